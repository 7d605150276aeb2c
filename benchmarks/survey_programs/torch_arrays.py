"""mlirfuse's spelling of functions, for PyTorch's tensors. `exact` computes all of them in double precision."""
# they are mlirfuse's names, and do what mlirfuse's do

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import (
    abs,  # noqa: F401
    bfloat16,
    broadcast_to,  # noqa: F401
    clip,  # noqa: F401
    cos,  # noqa: F401
    erf,  # noqa: F401
    exp,  # noqa: F401
    exp2,  # noqa: F401
    expm1,  # noqa: F401
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    floor,  # noqa: F401
    int8,  # noqa: F401
    int16,  # noqa: F401
    int32,  # noqa: F401
    isfinite,  # noqa: F401
    log,  # noqa: F401
    log1p,  # noqa: F401
    log2,  # noqa: F401
    logical_and,  # noqa: F401
    logical_not,  # noqa: F401
    reciprocal,  # noqa: F401
    round,  # noqa: F401
    rsqrt,  # noqa: F401
    sigmoid,  # noqa: F401
    sign,  # noqa: F401
    sin,  # noqa: F401
    sqrt,  # noqa: F401
    square,  # noqa: F401
    tanh,  # noqa: F401
    where,  # noqa: F401
    zeros_like,  # noqa: F401
)

FLOAT8 = {float8_e4m3fn: 448.0, float8_e5m2: 57344.0}
Axis = int | tuple[int, ...] | None


def _over(x: Any, axis: Axis) -> tuple[int, ...]:
    return tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis


def sum(x: Any, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Any:
    return torch.sum(x, dim=_over(x, axis), dtype=dtype, keepdim=keepdims)


def mean(x: Any, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Any:
    return torch.mean(x, dim=_over(x, axis), dtype=dtype, keepdim=keepdims)


def max(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    return torch.amax(x, dim=_over(x, axis), keepdim=keepdims)


def min(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    return torch.amin(x, dim=_over(x, axis), keepdim=keepdims)


def var(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    return torch.var(x, dim=_over(x, axis), correction=0, keepdim=keepdims)


def std(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    return torch.std(x, dim=_over(x, axis), correction=0, keepdim=keepdims)


def any(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    return torch.any(x, dim=_over(x, axis), keepdim=keepdims)


def all(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    return torch.all(x, dim=_over(x, axis), keepdim=keepdims)


def flip(x: Any, axis: Axis = None) -> Any:
    return torch.flip(x, dims=_over(x, axis))


def maximum(x: Any, y: Any) -> Any:
    return torch.maximum(x, y) if isinstance(y, torch.Tensor) else torch.clamp_min(x, y)


def minimum(x: Any, y: Any) -> Any:
    return torch.minimum(x, y) if isinstance(y, torch.Tensor) else torch.clamp_max(x, y)


def concat(arrays: list[Any], axis: int = 0) -> Any:
    return torch.cat(arrays, dim=axis)


def stack(arrays: list[Any], axis: int = 0) -> Any:
    return torch.stack(arrays, dim=axis)


def permute_dims(x: Any, axes: tuple[int, ...]) -> Any:
    return x.permute(axes)


def matrix_transpose(x: Any) -> Any:
    return x.mT


def reshape(x: Any, shape: tuple[int, ...]) -> Any:
    return x.reshape(shape)


def astype(x: Any, dtype: Any) -> Any:
    """Numbers out of a float8 type's range become its largest number, as with mlirfuse."""
    limit = FLOAT8.get(dtype)
    return (x if limit is None else x.clamp(-limit, limit)).to(dtype)


def matmul(x: Any, y: Any, dtype: Any = None) -> Any:
    """With a dtype for operands that are narrower, their product in it."""
    return x @ y if dtype is None or dtype == x.dtype else x.to(dtype) @ y.to(dtype)


def einsum(equation: str, *operands: Any) -> Any:
    """Of three and more operands in opt_einsum's order, where that is installed."""
    return torch.einsum(equation, *operands)


def contiguous(results: Any) -> tuple[Any, ...]:
    """Results in C order, as those of mlirfuse are."""
    return tuple(r.contiguous() for r in (results if isinstance(results, tuple | list) else (results,)))


def _exactly(cast: Callable[..., Any]) -> Callable[..., Any]:
    def exact_cast(x: Any, dtype: Any) -> Any:
        return cast(x, dtype).double() if dtype in FLOAT8 else x.to(dtype)

    return exact_cast


_WIDE = dict.fromkeys(("bfloat16", "float16", "float32"), torch.float64)
exact = SimpleNamespace(**(dict(globals()) | _WIDE | {"astype": _exactly(astype)}))
"""The same functions, in which all floats that compute are of 64 bits; float8 is rounded to."""
__all__ = ["astype", "bfloat16", "contiguous", "einsum", "exact", "float16", "float32", "matmul"]
