"""ptxas: where it may be installed, which release it is, and running it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from mlirfuse.errors import CompileError
from mlirfuse.lowering.ptx import cubin_cache
from mlirfuse.lowering.ptx.to_ptx import KernelBinary

OPTIONS = ("-v", "-O3")
"""Options of every call of ptxas, besides the architecture and the files."""

_VERSION = re.compile(r"release \d+\.\d+, V(\d+(?:\.\d+)+)")
_ERROR = re.compile(r"line (\d+); (?:error|fatal)\s*:\s*(.*)")


def ptxas_candidates(environment: Mapping[str, str] = os.environ) -> Iterator[Path]:
    """The places ptxas may be at: PATH, a CUDA toolkit, NVIDIA's wheels."""
    on_path = shutil.which("ptxas", path=environment.get("PATH"))
    if on_path:
        yield Path(on_path)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if environment.get(variable):
            yield Path(environment[variable]) / "bin" / "ptxas"
    packages = Path(sysconfig.get_paths()["purelib"])
    for wheel in ("cu13", "cu12", "cuda_nvcc"):
        yield packages / "nvidia" / wheel / "bin" / "ptxas"
    yield Path("/usr/local/cuda/bin/ptxas")


@cache
def installed() -> tuple[tuple[tuple[int, ...], Path], ...]:
    """Every ptxas that is installed, with its version; the newest first, equal ones in the order found."""
    paths = dict.fromkeys(path.resolve() for path in ptxas_candidates() if os.access(path, os.X_OK))
    found = [(version, path) for path in paths if (version := version_of(path))]
    return tuple(sorted(found, key=lambda item: item[0], reverse=True))


def find_ptxas() -> Path | None:
    """The newest ptxas that is installed, or None."""
    return installed()[0][1] if installed() else None


@cache
def version_of(ptxas: Path) -> tuple[int, ...]:
    """Its version, such as (13, 5, 37); empty where the file is no ptxas that runs here.

    The answer is kept on disk, by the file's path, size and time of change: asking for the version starts a process.
    """
    stat = ptxas.stat()
    key = cubin_cache.digest("version", str(ptxas), str(stat.st_size), str(stat.st_mtime_ns))
    kept = cubin_cache.lookup(key)
    text = kept.decode() if kept is not None else _ask_version(ptxas)
    if kept is None and text:
        cubin_cache.store(key, text.encode())
    return tuple(int(part) for part in text.split(".")) if text else ()


def _ask_version(ptxas: Path) -> str:
    try:
        result = subprocess.run([str(ptxas), "--version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = _VERSION.search(result.stdout)
    return match.group(1) if match else ""


def run_ptxas(ptxas: Path, binary: KernelBinary) -> tuple[bytes, str]:
    """Assembles a kernel for its target, and returns the cubin and what ptxas printed.

    Raises:
        CompileError: ptxas refuses the PTX (the message quotes the line), or does not run.
    """
    with tempfile.TemporaryDirectory() as directory:
        source, cubin = Path(directory) / "kernel.ptx", Path(directory) / "kernel.cubin"
        source.write_text(binary.ptx)
        command = [str(ptxas), *OPTIONS, f"-arch={binary.target.chip}", str(source), "-o", str(cubin)]
        try:
            result = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise CompileError(f"{ptxas} does not run: {error}", where=binary.name) from error
        log = result.stdout + result.stderr
        if result.returncode != 0:
            raise CompileError(
                f"ptxas refuses the kernel for {binary.target.chip}: {_first_error(log, binary.ptx)}", where=binary.name
            )
        return cubin.read_bytes(), log


def _first_error(log: str, ptx: str) -> str:
    match = _ERROR.search(log)
    if match is None:
        return log.strip() or "it printed nothing"
    lines, number = ptx.splitlines(), int(match.group(1))
    quoted = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return f"line {number}: {match.group(2)}: {quoted}"
