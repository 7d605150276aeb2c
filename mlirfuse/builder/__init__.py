"""Tracing a Python function over array-API values into the `linalg` stage."""

from __future__ import annotations

from mlirfuse.builder.arithmetic import (
    abs,
    add,
    divide,
    floor_divide,
    maximum,
    minimum,
    multiply,
    negative,
    reciprocal,
    remainder,
    sign,
    square,
    subtract,
)
from mlirfuse.builder.casting import astype
from mlirfuse.builder.comparisons import (
    bitwise_and,
    bitwise_invert,
    bitwise_or,
    bitwise_xor,
    equal,
    greater,
    greater_equal,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
)
from mlirfuse.builder.creation import full_like, ones_like, zeros_like
from mlirfuse.builder.errors import ControlFlowError, NeedsStatic, UnsupportedError
from mlirfuse.builder.functions import (
    ceil,
    cos,
    erf,
    exp,
    exp2,
    expm1,
    floor,
    log,
    log1p,
    log2,
    round,
    rsqrt,
    sigmoid,
    sin,
    sqrt,
    tanh,
    trunc,
)
from mlirfuse.builder.manipulation import (
    broadcast_to,
    expand_dims,
    matrix_transpose,
    permute_dims,
    reshape,
    squeeze,
)
from mlirfuse.builder.powers import pow
from mlirfuse.builder.reductions import all, any, max, mean, min, prod, std, sum, var
from mlirfuse.builder.selection import clip, where
from mlirfuse.builder.spec import ScalarSpec, StaticSpec, TensorSpec
from mlirfuse.builder.tensor import Scalar, Tensor
from mlirfuse.builder.trace import equal_extents, result_structure, trace
