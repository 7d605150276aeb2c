"""Choosing an assembler for PTX, and assembling kernels with it.

The newest ptxas that is installed is chosen, of a CUDA release whose code the driver can load; otherwise the driver's
own compiler, which reports no spills. `MLIRFUSE_ASSEMBLER` overrides: `ptxas`, `driver`, or a path. nvJitLink is no
choice: it compiles for linking, and ignores `setmaxnreg` there, so that warp-specialised kernels spill.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from mlirfuse.errors import CompileError
from mlirfuse.lowering.ptx import cubin_cache, ptxas
from mlirfuse.lowering.ptx.resources import KernelResources, parse_log
from mlirfuse.lowering.ptx.to_ptx import KernelBinary
from mlirfuse.support.installation import driver_cuda_version
from mlirfuse.target import Target

VARIABLE = "MLIRFUSE_ASSEMBLER"
PTXAS, DRIVER = "ptxas", "driver"

_RELEASES = {74: (11, 4), 78: (11, 8), 81: (12, 1), 86: (12, 7), 87: (12, 8), 88: (12, 9), 90: (13, 0)}
"""The first CUDA release whose ptxas reads a version of PTX (times ten): PTX ISA, "Release Notes"."""


@dataclass(frozen=True)
class Assembler:
    """An assembler of PTX.

    Attributes:
        kind: `ptxas` or `driver`.
        version: its CUDA release, such as (13, 5, 37), of the driver (13, 0); empty where there is no driver.
        path: where ptxas is; None for the driver.
    """

    kind: str
    version: tuple[int, ...]
    path: Path | None = None

    def __str__(self) -> str:
        release = ".".join(map(str, self.version)) or "of an unknown release"
        return f"ptxas {release} ({self.path})" if self.kind == PTXAS else f"the driver's compiler, CUDA {release}"


@dataclass(frozen=True)
class AssembledKernel:
    """A kernel's machine code.

    Attributes:
        binary: the PTX that was assembled.
        cubin: the code, an ELF file.
        resources: the assembler's report.
        assembler: what assembled it.
    """

    binary: KernelBinary
    cubin: bytes
    resources: KernelResources
    assembler: Assembler


@cache
def driver_release() -> tuple[int, ...]:
    """The CUDA release of the driver, such as (13, 0), whose compiler has the same release; empty without a driver."""
    version = driver_cuda_version()
    return () if version is None else (version // 1000, version % 1000 // 10)


def chosen_assembler(target: Target | None = None) -> Assembler:
    """The assembler for a target; None stands for any known target.

    Raises:
        CompileError: `MLIRFUSE_ASSEMBLER` names one that is not there.
    """
    asked = os.environ.get(VARIABLE, "")
    if asked in ("", PTXAS):
        found = _newest(driver_release(), _RELEASES[target.ptx] if target else ())
        if found is not None:
            return found
        if asked == PTXAS:
            raise CompileError(
                f"{VARIABLE}={PTXAS}, and no ptxas that fits the driver is installed",
                hint="pip install nvidia-cuda-nvcc",
            )
    if asked in ("", DRIVER):
        return Assembler(DRIVER, driver_release())
    version = ptxas.version_of(Path(asked)) if os.access(asked, os.X_OK) else ()
    if not version:
        raise CompileError(
            f"{VARIABLE}={asked} is no ptxas that runs", hint=f"{PTXAS}, {DRIVER}, or the path of a ptxas"
        )
    return Assembler(PTXAS, version, Path(asked))


def _newest(driver: tuple[int, ...], least: tuple[int, ...]) -> Assembler | None:
    """The newest ptxas of a release from `least` on.

    A driver loads code of all releases of its own major version and of earlier major versions (CUDA Compatibility,
    "Minor Version Compatibility").
    """
    for version, path in ptxas.installed():
        if version >= least and (not driver or version[0] <= driver[0]):
            return Assembler(PTXAS, version, path)
    return None


def assemble_kernel(binary: KernelBinary, assembler: Assembler | None = None) -> AssembledKernel:
    """Assembles a kernel, or finds it assembled in this process or on disk.

    Args:
        binary: the kernel.
        assembler: `chosen_assembler` for its target by default.

    Raises:
        CompileError: there is no ptxas, or it refuses the PTX (the message quotes the line).
    """
    assembler = assembler or chosen_assembler(binary.target)
    if assembler.path is None:
        raise CompileError(
            "the driver assembles kernels when it loads them, and ptxas was not found",
            hint="pip install nvidia-cuda-nvcc, or set CUDA_HOME to a CUDA toolkit",
            where=binary.name,
        )
    return _assembled(binary, assembler)


@lru_cache(maxsize=1024)
def _assembled(binary: KernelBinary, assembler: Assembler) -> AssembledKernel:
    assert assembler.path is not None
    version = ".".join(map(str, assembler.version))
    name = cubin_cache.digest("cubin", version, *ptxas.OPTIONS, binary.target.chip, binary.ptx)
    kept = cubin_cache.lookup(name)
    if kept is None:
        cubin, log = ptxas.run_ptxas(assembler.path, binary)
        cubin_cache.store(name, json.dumps(log).encode() + b"\n" + cubin)
    else:
        head, _, cubin = kept.partition(b"\n")
        log = json.loads(head)
    return AssembledKernel(binary, cubin, parse_log(log, binary), assembler)


def assemble_kernels(
    binaries: Iterable[KernelBinary], assembler: Assembler | None = None
) -> tuple[AssembledKernel, ...]:
    """Assembles several kernels at the same time; see `assemble_kernel`."""
    kernels = tuple(binaries)
    if len(kernels) < 2:
        return tuple(assemble_kernel(binary, assembler) for binary in kernels)
    with ThreadPoolExecutor(min(len(kernels), os.cpu_count() or 1)) as pool:
        return tuple(pool.map(lambda binary: assemble_kernel(binary, assembler), kernels))


def assemble(binary: KernelBinary, path: Path | None = None) -> KernelResources:
    """The resources of a kernel as ptxas reports them; see `assemble_kernel`.

    Args:
        binary: the kernel.
        path: which ptxas to ask; that of `chosen_assembler` by default.
    """
    asked = Assembler(PTXAS, ptxas.version_of(path), path) if path else None
    return assemble_kernel(binary, asked).resources
