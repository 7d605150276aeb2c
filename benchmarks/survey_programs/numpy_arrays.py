"""mlirfuse's spelling of functions, for NumPy arrays: a reference in double precision; float8 is rounded to."""
# ruff: noqa: D103  # they are mlirfuse's names, and do what mlirfuse's do

from __future__ import annotations

from math import erf as _erf
from typing import Any

import ml_dtypes
import numpy as np
from numpy import (
    abs,  # noqa: F401
    all,  # noqa: F401
    any,  # noqa: F401
    broadcast_to,  # noqa: F401
    clip,  # noqa: F401
    concat,  # noqa: F401
    cos,  # noqa: F401
    exp,  # noqa: F401
    exp2,  # noqa: F401
    expm1,  # noqa: F401
    flip,  # noqa: F401
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
    matrix_transpose,  # noqa: F401
    max,  # noqa: F401
    maximum,  # noqa: F401
    mean,  # noqa: F401
    min,  # noqa: F401
    minimum,  # noqa: F401
    permute_dims,  # noqa: F401
    reciprocal,  # noqa: F401
    reshape,  # noqa: F401
    round,  # noqa: F401
    sign,  # noqa: F401
    sin,  # noqa: F401
    sqrt,  # noqa: F401
    square,  # noqa: F401
    stack,  # noqa: F401
    std,  # noqa: F401
    sum,  # noqa: F401
    tanh,  # noqa: F401
    var,  # noqa: F401
    where,  # noqa: F401
    zeros_like,  # noqa: F401
)

bfloat16 = float16 = float32 = np.float64
float8_e4m3fn, float8_e5m2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
_LARGEST = {float8_e4m3fn: 448.0, float8_e5m2: 57344.0}

erf = np.vectorize(_erf, otypes=[np.float64])


def rsqrt(x: Any) -> Any:
    return 1 / np.sqrt(x)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def astype(x: Any, dtype: Any) -> Any:
    limit = _LARGEST.get(dtype)
    if limit is None:
        return x.astype(dtype)
    return np.clip(x, -limit, limit).astype(np.float32).astype(dtype).astype(np.float64)


def einsum(equation: str, *operands: Any) -> Any:
    return np.einsum(equation, *operands, optimize=True)


def matmul(x: Any, y: Any, dtype: Any = None) -> Any:
    return np.matmul(x, y) if dtype is None else np.matmul(x.astype(dtype), y.astype(dtype))
