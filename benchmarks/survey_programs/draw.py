"""Random arrays for a program's arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from survey_programs.program import Argument, Program

LEAST = 0.1
"""Of positive numbers, which are divided by."""


def traced(program: Program, xp: Any) -> Callable[..., Any]:
    """The function of arrays alone, as frameworks take it; new code each time, by which they keep what they compile."""

    def call(*arrays: Any) -> Any:
        return program.fn(xp, *arrays)

    name = program.fn.__name__
    call.__code__ = call.__code__.replace(co_name=name)
    call.__name__ = call.__qualname__ = name
    return call


def numpy_arrays_of(arguments: Sequence[Argument], seed: int = 0) -> list[np.ndarray]:
    """Arrays in each argument's dtype."""
    import ml_dtypes

    rng = np.random.default_rng(seed)
    return [_drawn(a, np, rng, np.dtype(getattr(ml_dtypes, a.dtype, a.dtype))) for a in arguments]


def cupy_arrays_of(arguments: Sequence[Argument], seed: int = 0) -> list[Any]:
    """Arrays of CuPy."""
    import cupy

    from mlirfuse.support.dtypes import dtype_of

    rng = cupy.random.default_rng(seed)
    return [_drawn(a, cupy, rng, np.dtype(dtype_of(a.dtype).numpy)) for a in arguments]


def _drawn(a: Argument, xp: Any, rng: Any, dtype: np.dtype) -> Any:
    """An array of NumPy or CuPy, by a generator of its own."""
    if a.values == "~":
        return xp.broadcast_to(xp.arange(a.shape[-1]), a.shape).astype(dtype)
    if isinstance(a.values, int):
        return rng.integers(0, a.values, a.shape).astype(dtype)
    if a.dtype == "bool":
        return rng.random(a.shape) < 0.9
    if a.dtype.startswith("int"):
        return rng.integers(-127, 128, a.shape).astype(dtype)
    values = rng.standard_normal(a.shape, dtype=np.float32)
    return (xp.abs(values) + LEAST if a.values == "+" else values).astype(dtype)


def torch_arrays_of(arguments: Sequence[Argument], seed: int = 0) -> list[Any]:
    """Tensors on the GPU."""
    import torch

    torch.manual_seed(seed)
    return [_torch(a, getattr(torch, a.dtype)) for a in arguments]


def _torch(a: Argument, dtype: Any) -> Any:
    import torch

    if a.values == "~":
        return torch.arange(a.shape[-1], device="cuda").expand(a.shape).to(dtype).contiguous()
    if isinstance(a.values, int):
        return torch.randint(a.values, a.shape, device="cuda").to(dtype)
    if a.dtype == "bool":
        return torch.rand(a.shape, device="cuda") < 0.9
    if a.dtype.startswith("int"):
        return torch.randint(-127, 128, a.shape, device="cuda", dtype=dtype)
    floats = torch.float16 if a.dtype.startswith("float8") else dtype
    values = torch.randn(a.shape, device="cuda", dtype=floats)
    return (values.abs_() + LEAST if a.values == "+" else values).to(dtype)
