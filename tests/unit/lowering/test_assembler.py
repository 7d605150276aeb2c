"""The choice of an assembler, and the cache of its cubins."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from mlirfuse.errors import CompileError
from mlirfuse.lowering.ptx import assembler, cubin_cache, ptxas
from mlirfuse.lowering.ptx.assembler import Assembler, assemble_kernel, assemble_kernels, chosen_assembler
from mlirfuse.lowering.ptx.to_ptx import KernelBinary
from mlirfuse.target import target_of
from tests.support.harnesses.lowering_harness import SCALE, compile_text

INSTALLED = (((14, 1, 9), Path("/new")), ((13, 5, 37), Path("/wheel")), ((12, 4, 131), Path("/old")))


@pytest.fixture(scope="module")
def scale() -> KernelBinary:
    return compile_text(SCALE)[0]["scale_kernel"]


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """An empty directory, and no kernels in the process."""
    monkeypatch.setenv(cubin_cache.VARIABLE, str(tmp_path))
    assembler._assembled.cache_clear()
    return tmp_path


@pytest.fixture
def runs(monkeypatch) -> list[str]:
    """The kernels that ptxas is run for."""
    names: list[str] = []
    run = ptxas.run_ptxas

    def counted(path: Path, binary: KernelBinary) -> tuple[bytes, str]:
        names.append(binary.name)
        return run(path, binary)

    monkeypatch.setattr(ptxas, "run_ptxas", counted)
    return names


def _machine(monkeypatch, driver: tuple[int, ...], asked: str = "") -> None:
    monkeypatch.setattr(ptxas, "installed", lambda: INSTALLED)
    monkeypatch.setattr(assembler, "driver_release", lambda: driver)
    monkeypatch.setenv(assembler.VARIABLE, asked)


@pytest.mark.parametrize(
    ("driver", "chip", "path"),
    [
        ((), "sm_90a", "/new"),
        ((13, 0), "sm_90a", "/wheel"),  # its minor version does not count
        ((12, 9), "sm_90a", "/old"),
        ((12, 9), "sm_120", None),  # which CUDA 12.4 does not know
        ((11, 8), "sm_80", None),
    ],
)
def test_the_newest_that_the_driver_loads_code_of_is_chosen(monkeypatch, driver, chip, path):
    _machine(monkeypatch, driver)
    found = chosen_assembler(target_of(chip))
    assert found.path == (path and Path(path))
    assert found.kind == ("ptxas" if path else "driver")
    assert str(found).startswith("ptxas " if path else f"the driver's compiler, CUDA {driver[0]}.{driver[1]}")


def test_the_variable_overrides(monkeypatch, tmp_path):
    _machine(monkeypatch, (13, 0), "driver")
    assert chosen_assembler() == Assembler("driver", (13, 0))
    _machine(monkeypatch, (11, 8), "ptxas")
    with pytest.raises(CompileError, match="no ptxas that fits the driver"):
        chosen_assembler()
    path = tmp_path / "ptxas"
    path.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 13.2, V13.2.1'\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    _machine(monkeypatch, (13, 0), str(path))
    assert chosen_assembler() == Assembler("ptxas", (13, 2, 1), path)
    for wrong in (tmp_path / "missing", tmp_path):
        _machine(monkeypatch, (13, 0), str(wrong))
        with pytest.raises(CompileError, match=r"is no ptxas that runs\n  hint: ptxas, driver, or the path"):
            chosen_assembler()


def test_a_kernel_is_assembled_once(scale, cache, runs):
    made = assemble_kernel(scale)
    assert made.cubin.startswith(b"\x7fELF")
    assert assemble_kernel(scale) is made
    assembler._assembled.cache_clear()  # as in another process
    assert assemble_kernel(scale) == made
    assert runs == ["scale_kernel"]
    other = replace(scale, target=target_of("sm_90"), ptx=scale.ptx.replace("sm_90a", "sm_90"))
    assert [kernel.binary for kernel in assemble_kernels([scale, other])] == [scale, other]
    assert runs == ["scale_kernel"] * 2


def test_a_broken_entry_is_made_again(scale, cache, runs):
    made = assemble_kernel(scale)
    entry = max(cache.iterdir(), key=lambda path: path.stat().st_size)
    for content in (entry.read_bytes()[:-1], b""):
        entry.write_bytes(content)
        assembler._assembled.cache_clear()
        assert assemble_kernel(scale) == made
    assert len(runs) == 3


@pytest.mark.parametrize("directory", ["off", "/dev/null/none"])
def test_without_a_directory_every_process_assembles(scale, cache, runs, monkeypatch, directory):
    monkeypatch.setenv(cubin_cache.VARIABLE, directory)
    for _ in range(2):
        assembler._assembled.cache_clear()
        assemble_kernel(scale)
    assert len(runs) == 2


def test_the_directory_does_not_grow_without_end(cache, monkeypatch):
    monkeypatch.setattr(cubin_cache, "LARGEST", 1000)
    for number in range(12):
        cubin_cache.store(f"00{number:02}", b"x" * 100)
        os.utime(cache / f"00{number:02}", ns=(number, number))
    kept = sorted(path.name for path in cache.iterdir())
    assert kept[-1] == "0011"
    assert sum(path.stat().st_size for path in cache.iterdir()) <= 1000
    assert cubin_cache.lookup("0011") == b"x" * 100
    assert cubin_cache.lookup("0000") is None


def test_the_newest_is_found_first():
    versions = [version for version, _ in ptxas.installed()]
    assert versions == sorted(versions, reverse=True)
    assert ptxas.version_of(Path("/bin/true")) == ()
