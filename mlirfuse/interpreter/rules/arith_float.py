"""`arith` on floats. Each op rounds in its own type; NumPy and ml_dtypes compute f16 and bf16 in f32 and round once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mlir import ir

from mlirfuse.interpreter.registry import direct, pure
from mlirfuse.interpreter.site import Site

Function = Callable[..., np.ndarray]

# `maximumf` and `minimumf` propagate NaN, `maxnumf` and `minnumf` ignore it.
BINARY: dict[str, Function] = {
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "divf": np.divide,
    "remf": np.fmod,
    "maximumf": np.maximum,
    "minimumf": np.minimum,
    "maxnumf": np.fmax,
    "minnumf": np.fmin,
}


for _name, _function in BINARY.items():
    direct(f"arith.{_name}")(_function)
direct("arith.negf")(np.negative)


def _unordered(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.isnan(a) | np.isnan(b)


# By the number that encodes the predicate: ordered comparisons are false for NaN, unordered ones true.
PREDICATES: tuple[Function, ...] = (
    lambda a, b: np.zeros(np.broadcast_shapes(a.shape, b.shape), bool),
    lambda a, b: a == b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: (a != b) & ~_unordered(a, b),
    lambda a, b: ~_unordered(a, b),
    lambda a, b: (a == b) | _unordered(a, b),
    lambda a, b: (a > b) | _unordered(a, b),
    lambda a, b: (a >= b) | _unordered(a, b),
    lambda a, b: (a < b) | _unordered(a, b),
    lambda a, b: (a <= b) | _unordered(a, b),
    lambda a, b: a != b,
    _unordered,
    lambda a, b: np.ones(np.broadcast_shapes(a.shape, b.shape), bool),
)


@pure("arith.cmpf")
def _cmpf(site: Site) -> Function:
    return PREDICATES[ir.IntegerAttr(site.op.attributes["predicate"]).value]
