"""Reductions. float16 and bfloat16 inputs are computed in float32 throughout, and only the result is rounded. Results
have the input's dtype, except that sums and products of integers are int64.

`axis` None reduces all dimensions; `keepdims` keeps reduced dimensions with extent 1. An axis out of range or named
twice raises `ShapeError`. Dynamic leading dimensions can be reduced if the remaining dimensions are static, or if none
remain. Reductions over other dynamic dimensions raise `NeedsStatic`, as do `max` and `min` over any dynamic dimension,
because they are undefined for zero elements; but see `trace`'s `dynamic_reductions`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from mlir import ir
from mlir.dialects import arith, math

from mlirfuse.builder.array_types import array_function
from mlirfuse.builder.emission.body import constant, convert
from mlirfuse.builder.emission.emit import reduction
from mlirfuse.builder.emission.lift import build
from mlirfuse.builder.emission.operands import Constant, check_computes, dtype_argument
from mlirfuse.builder.extents import Dim, Shape, needs_static, product, show
from mlirfuse.builder.functions.arithmetic import square, subtract
from mlirfuse.builder.functions.axes import Axes, flag, normalise_axes
from mlirfuse.builder.functions.casting import cast, tensor_argument
from mlirfuse.builder.functions.manipulation import reshape_to
from mlirfuse.builder.source import at_user_line
from mlirfuse.builder.state import ScalarBase, TensorBase, size_value
from mlirfuse.errors import DTypeError, ShapeError, TraceError
from mlirfuse.support.dtypes import DType, bool_, float32, float64, int64

if TYPE_CHECKING:
    from mlirfuse.builder.tensor import Tensor

Axis = Axes | None


@array_function
def sum(x: Tensor, /, axis: Axis = None, *, dtype: object = None, keepdims: bool = False) -> Tensor:
    """The sum; int64 for integers and bools, as NumPy. Elements are first cast to `dtype` if it is given."""
    return _accumulate("sum", x, axis, dtype, keepdims, 0, arith.AddFOp, arith.AddIOp)


@array_function
def prod(x: Tensor, /, axis: Axis = None, *, dtype: object = None, keepdims: bool = False) -> Tensor:
    """The product; int64 for integers and bools, as NumPy. Elements are first cast to `dtype` if it is given."""
    return _accumulate("prod", x, axis, dtype, keepdims, 1, arith.MulFOp, arith.MulIOp)


@array_function
def max(x: Tensor, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The largest element; NaN if any element is NaN. Raises `ShapeError` for no elements, `DTypeError` for bools."""
    return _extremum("max", x, axis, keepdims, arith.MaximumFOp, arith.MaxSIOp, largest=True)


@array_function
def min(x: Tensor, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The smallest element; NaN if any element is NaN. Raises `ShapeError` for no elements, `DTypeError` for bools."""
    return _extremum("min", x, axis, keepdims, arith.MinimumFOp, arith.MinSIOp, largest=False)


@array_function
def any(x: Tensor, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """Whether at least one element is not zero, as bool."""
    return _logical("any", x, axis, keepdims, False, arith.OrIOp)


@array_function
def all(x: Tensor, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """Whether no element is zero, as bool."""
    return _logical("all", x, axis, keepdims, True, arith.AndIOp)


@array_function
def mean(x: Tensor, /, axis: Axis = None, *, dtype: object = None, keepdims: bool = False) -> Tensor:
    """The sum divided by the number of elements; float32 for integers and bools. `dtype` first casts the elements."""
    source = tensor_argument(x, "mean")
    result = _float_result(source.dtype if dtype is None else dtype_argument(dtype))
    total = _reduce("mean", source, axis, result, 0, arith.AddFOp)
    return _quotient("mean", source, total, axis, result, keepdims)


@array_function
def var(x: Tensor, /, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The mean squared deviation from the mean, in two passes; `correction` is subtracted from the divisor.

    float16 and bfloat16 are computed in float32, and only the result is rounded.
    """
    return _variance("var", x, axis, correction, keepdims)


@array_function
def std(x: Tensor, /, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The square root of `var`."""
    return _variance("std", x, axis, correction, keepdims, lambda value: math.SqrtOp(value).result)


def _accumulate(
    name: str, x: object, axis: Axis, dtype: object, keepdims: bool, start: int, float_op: type, int_op: type
) -> Tensor:
    source = tensor_argument(x, name)
    result = source.dtype if source.dtype.kind == "float" else int64
    if dtype is not None:
        result = dtype_argument(dtype)
    if result.kind == "bool":
        raise at_user_line(DTypeError(f"{name} does not add up in bool", hint="use any or all"))
    total = _reduce(name, source, axis, result, start, float_op if result.kind == "float" else int_op)
    return _keep(source, axis, keepdims, cast(total, result))


def _extremum(
    name: str, x: object, axis: Axis, keepdims: bool, float_op: type, int_op: type, *, largest: bool
) -> Tensor:
    source = tensor_argument(x, name)
    dtype = source.dtype
    if dtype.kind == "bool":
        raise at_user_line(DTypeError(f"{name} does not take bool", hint="use any or all"))
    axes = (
        normalise_axes(axis, source.ndim, name) if source.state.dynamic_reductions else _static_axes(name, source, axis)
    )
    if 0 in [extent for d in axes if isinstance(extent := source.shape[d], int)]:
        raise at_user_line(ShapeError(f"{name} over no elements: shape {show(source.shape)}, axis {axis}"))
    start: float | int
    if dtype.kind == "float":
        start = float("-inf") if largest else float("inf")
    else:
        start = int(np.iinfo(dtype.numpy).min if largest else np.iinfo(dtype.numpy).max)
    reduced = _reduce(name, source, axis, dtype, start, float_op if dtype.kind == "float" else int_op)
    return _keep(source, axis, keepdims, cast(reduced, dtype))


def _logical(name: str, x: object, axis: Axis, keepdims: bool, start: bool, op: type) -> Tensor:
    source = tensor_argument(x, name)
    return _keep(source, axis, keepdims, _reduce(name, source, axis, bool_, start, op))


def _quotient(
    name: str,
    source: TensorBase,
    total: TensorBase,
    axis: Axis,
    result: DType,
    keepdims: bool,
    correction: float = 0.0,
    last: Callable[[ir.Value], ir.Value] = lambda value: value,
) -> Tensor:
    """`last(total / (count - correction))`, rounded once to `result`.

    `count` is the number of elements of `source` along `axis`; `total` is their sum in the accumulator type.
    """
    count = product(tuple(source.shape[d] for d in normalise_axes(axis, source.ndim, name)))
    wide = total.dtype
    divisor: Constant | ScalarBase
    if isinstance(count, int):
        divisor = Constant(float(np.maximum(count - correction, 0)), "float")
    else:
        divisor = ScalarBase(source.state, float64, partial(_elements, count, correction))

    def rule(value: ir.Value, number: ir.Value) -> ir.Value:
        return convert(last(arith.DivFOp(value, number).result), wide, result)

    quotient = build(name, [total, divisor], [wide, wide], wide, result, rule)
    return _keep(source, axis, keepdims, quotient)


def _elements(count: Dim, correction: float) -> ir.Value:
    """The number of elements less the correction, at least 0, as float64 at the current insertion point."""
    kind = ir.F64Type.get()
    number = arith.IndexCastOp(ir.IntegerType.get_signless(64), size_value(count)).result
    wide = arith.SIToFPOp(kind, number).result
    if correction == 0:
        return wide
    rest = arith.SubFOp(wide, constant(kind, correction)).result
    return arith.MaximumFOp(rest, constant(kind, 0.0)).result


def _variance(
    name: str,
    x: object,
    axis: Axis,
    correction: float,
    keepdims: bool,
    last: Callable[[ir.Value], ir.Value] = lambda value: value,
) -> Tensor:
    source = tensor_argument(x, name)
    if not isinstance(correction, int | float | np.number):
        raise at_user_line(TraceError(f"{name}: correction {correction!r} is no number"))
    result = _float_result(source.dtype)
    wide = _accumulator(result)
    elements = cast(source, wide)
    total = _reduce(name, elements, axis, wide, 0, arith.AddFOp)
    centre = _quotient(name, elements, total, axis, wide, True)
    squares = square(subtract(elements, centre))
    return _quotient(
        name, squares, _reduce(name, squares, axis, wide, 0, arith.AddFOp), axis, result, keepdims, correction, last
    )


def _reduce(name: str, source: TensorBase, axis: Axis, dtype: DType, start: float | int | bool, op: type) -> TensorBase:
    """Casts to `dtype`, then reduces in its accumulator type; the result keeps that type."""
    axes = _axes_at_run_time(name, source, axis)
    source.state.reordered = source.state.reordered.between(source.shape, axes)
    check_computes(dtype, name)
    wide = _accumulator(dtype)

    def body(element: ir.Value, accumulator: ir.Value) -> ir.Value:
        rounded = convert(element, source.dtype, dtype)
        return op(accumulator, convert(rounded, dtype, wide)).result

    if not axes:
        return cast(cast(source, dtype), wide)
    leading = _leading(axes)
    if leading in (0, len(axes)) or not any_dynamic(source.shape[:leading]):
        return reduction(source, axes, wide, start, body)
    inner = reduction(source, axes[leading:], wide, start, body)
    return reduction(inner, axes[:leading], wide, start, lambda element, total: op(total, element).result)


def _leading(axes: tuple[int, ...]) -> int:
    """How many of some axes, in order, are the first ones in a row."""
    return next((n for n, axis in enumerate(axes) if axis != n), len(axes))


def any_dynamic(shape: Shape) -> bool:
    """Whether an extent is dynamic."""
    return len([extent for extent in shape if isinstance(extent, Dim)]) > 0


def _axes_at_run_time(name: str, source: TensorBase, axis: Axis) -> tuple[int, ...]:
    """The dimensions to reduce, in order; raises `NeedsStatic` for those of dynamic extent that no kernel reduces.

    A kernel reduces leading dimensions of dynamic extent where the extents of those that are left are static. With
    `dynamic_reductions` those are made static, and a kernel in front reduces the axes that do not lead.
    """
    axes = tuple(sorted(normalise_axes(axis, source.ndim, name)))
    leading = _leading(axes)
    if source.state.dynamic_reductions and any_dynamic(source.shape[:leading]):
        for d in range(leading, source.ndim):
            if isinstance(extent := source.shape[d], Dim):
                needs_static(extent, f"{name} over axes {axes} of {show(source.shape)}")
        return axes
    if leading == len(axes) and not any_dynamic(source.shape[leading:]):
        return axes
    return _static_axes(name, source, axis)


def _keep(source: TensorBase, axis: Axis, keepdims: bool, reduced: TensorBase) -> Tensor:
    if not flag(keepdims, "keepdims"):
        return reduced  # type: ignore[return-value]
    axes = normalise_axes(axis, source.ndim, "keepdims")
    return reshape_to(reduced, tuple(1 if d in axes else extent for d, extent in enumerate(source.shape)))


def _static_axes(name: str, source: TensorBase, axis: Axis) -> tuple[int, ...]:
    axes = tuple(sorted(normalise_axes(axis, source.ndim, name)))
    for d in axes:
        extent = source.shape[d]
        if isinstance(extent, Dim):
            needs_static(extent, f"{name} over dimension {d} of {show(source.shape)}")
    return axes


def _accumulator(dtype: DType) -> DType:
    return float32 if dtype.kind == "float" and dtype.bits == 16 else dtype


def _float_result(dtype: DType) -> DType:
    return dtype if dtype.kind == "float" else float32
