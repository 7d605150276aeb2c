"""Where LLVM's bitcode of CUDA's math functions is, and whether a kernel needs it."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from mlir import ir

from mlirfuse.errors import CompileError
from mlirfuse.support.rewriting import ops_named

FILE = "libdevice.10.bc"
PREFIX = "__nv_"  # the prefix of every function in libdevice


def functions_used(module: ir.Operation) -> tuple[str, ...]:
    """The libdevice functions that the `llvm.func` kernels of a module declare, sorted."""
    names = (str(op.attributes["sym_name"]).strip('"') for op in ops_named(module, "llvm.func"))
    return tuple(sorted({name for name in names if name.startswith(PREFIX)}))


def candidates(environment: Mapping[str, str] = os.environ) -> Iterator[Path]:
    """The places libdevice may be at, best first: NVIDIA's wheels, a CUDA toolkit, Triton."""
    packages = Path(sysconfig.get_paths()["purelib"])
    for wheel in ("cu13/nvvm", "cu12/nvvm", "cuda_nvcc/nvvm", "nvvm"):
        yield packages / "nvidia" / wheel / "libdevice" / FILE
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if environment.get(variable):
            yield Path(environment[variable]) / "nvvm" / "libdevice" / FILE
    yield Path("/usr/local/cuda/nvvm/libdevice") / FILE
    triton = find_spec("triton")
    if triton is not None and triton.origin is not None:
        yield Path(triton.origin).parent / "backends" / "nvidia" / "lib" / FILE


@cache
def find() -> Path | None:
    """The path of libdevice, or None."""
    return next((path for path in candidates() if path.is_file()), None)


def require(functions: tuple[str, ...]) -> Path:
    """The path of libdevice for a kernel that calls `functions`; raises `CompileError` where there is none."""
    path = find()
    if path is None:
        raise CompileError(
            f"the kernel calls {', '.join(functions)}, and CUDA's {FILE} was not found",
            hint="pip install nvidia-nvvm, or set CUDA_HOME to a CUDA toolkit",
        )
    return path
