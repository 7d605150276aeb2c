"""`where` and `clip`."""

from __future__ import annotations

from typing import Any, overload

from mlir.dialects import arith

from mlirfuse.builder.array_types import Array, ArrayT, ScalarLike
from mlirfuse.builder.emission.lift import build
from mlirfuse.builder.emission.operands import Constant, check_fits, common_dtype, resolve, scalars_only
from mlirfuse.builder.functions.arithmetic import maximum, minimum
from mlirfuse.builder.source import at_user_line
from mlirfuse.builder.state import TensorBase
from mlirfuse.errors import DTypeError, TraceError
from mlirfuse.support.dtypes import bool_, float32, float64


@overload
def where(condition: Array, a: ArrayT, b: ArrayT | ScalarLike, /) -> ArrayT: ...


@overload
def where(condition: Array, a: ScalarLike, b: ArrayT, /) -> ArrayT: ...


@overload
def where(condition: ArrayT, a: ScalarLike, b: ScalarLike, /) -> ArrayT: ...


def where(condition: Any, a: Any, b: Any, /) -> Any:
    """`a` where the condition is true, else `b`; the three broadcast together.

    Raises:
        DTypeError: the condition is not bool.
        ShapeError: the shapes do not broadcast.
    """
    chosen = [resolve(operand, "where") for operand in (a, b)]
    selector = resolve(condition, "where")
    kind = selector.kind if isinstance(selector, Constant) else selector.dtype.kind
    if kind != "bool":
        raise at_user_line(DTypeError(f"where got a condition of kind {kind}", hint="compare it: `mask != 0`"))
    dtype = common_dtype(chosen, "where")
    if isinstance(selector, TensorBase) and scalars_only(chosen) and dtype == float64:
        dtype = float32  # scalars alone are kept in float64; in a tensor they become the default float
    for operand in chosen:
        check_fits(operand, dtype, "where")
    return build(
        "where",
        [selector, *chosen],
        [bool_, dtype, dtype],
        dtype,
        dtype,
        lambda c, x, y: arith.SelectOp(c, x, y).result,
    )


def clip(x: ArrayT, min: ArrayT | ScalarLike | None = None, max: ArrayT | ScalarLike | None = None) -> ArrayT:
    """Limits x to [min, max]; None leaves a side open. NaN stays NaN.

    Raises:
        TraceError: both sides are None.
    """
    if min is None and max is None:
        raise at_user_line(TraceError("clip got neither min nor max", hint="give at least one"))
    if min is not None:
        x = maximum(x, min)
    return x if max is None else minimum(x, max)
