"""`concat` and `stack`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from typing import Any

from mlir import ir
from mlir.dialects import arith

from mlirfuse.builder.array_types import ArrayT
from mlirfuse.builder.emission.emit import pointwise
from mlirfuse.builder.emission.gather import gathered
from mlirfuse.builder.emission.operands import Constant, common_dtype, element
from mlirfuse.builder.extents import Dim, needs_static, product, same_shape, show
from mlirfuse.builder.functions.axes import integer, normalise_axes
from mlirfuse.builder.functions.casting import cast, tensor_argument
from mlirfuse.builder.functions.manipulation import expand_dims, reshape_to
from mlirfuse.builder.source import at_user_line
from mlirfuse.builder.state import TensorBase
from mlirfuse.errors import ShapeError, TraceError


def concat(arrays: Sequence[ArrayT], /, axis: int | None = 0) -> ArrayT:
    """The arrays one after the other along an existing dimension, promoted to a common dtype; None flattens them first.

    Raises:
        TraceError: there are no arrays, or something else is among them.
        ShapeError: the arrays have other extents in another dimension, or no dimensions; or the axis is out of range.
        NeedsStatic: an extent is dynamic.
        DTypeError: the dtypes have no common one.
    """
    parts = _arguments("concat", arrays)
    if axis is None:
        parts = [reshape_to(part, (product(part.shape),)) for part in parts]
    first = parts[0]
    if not first.ndim:
        raise at_user_line(ShapeError("concat of arrays without dimensions", hint="stack them, or pass axis=None"))
    (place,) = normalise_axes(0 if axis is None else integer(axis, "concat: axis"), first.ndim, "concat")
    for part in parts[1:]:
        others = [(*p.shape[:place], *p.shape[place + 1 :]) for p in (first, part)]
        if part.ndim != first.ndim or not same_shape(*others):
            what = f"concat: shapes {show(first.shape)} and {show(part.shape)} differ beside dimension {place}"
            raise at_user_line(ShapeError(what, hint="all other extents must be equal"))
    return _joined(parts, place)  # type: ignore[return-value]


def stack(arrays: Sequence[ArrayT], /, axis: int = 0) -> ArrayT:
    """The arrays, which have one shape, one after the other along a new dimension, promoted to a common dtype.

    Raises:
        TraceError: there are no arrays, or something else is among them.
        ShapeError: the arrays have different shapes, or the axis is out of range.
        NeedsStatic: an extent is dynamic.
        DTypeError: the dtypes have no common one.
    """
    parts = _arguments("stack", arrays)
    first = parts[0]
    for part in parts[1:]:
        if not same_shape(part.shape, first.shape):
            what = f"stack: shapes {show(first.shape)} and {show(part.shape)} differ"
            raise at_user_line(ShapeError(what, hint="use concat for arrays that differ in one dimension"))
    (place,) = normalise_axes(integer(axis, "stack: axis"), first.ndim + 1, "stack")
    wide: list[Any] = [expand_dims(part, axis=place) for part in parts]
    return _joined(wide, place)  # type: ignore[return-value]


def _arguments(function: str, arrays: object) -> list[TensorBase]:
    """The arrays as tensors of their common dtype, whose extents are numbers."""
    if not isinstance(arrays, list | tuple):
        raise at_user_line(TraceError(f"{function} takes a sequence of arrays", hint=f"mf.{function}([a, b])"))
    parts = [tensor_argument(array, function) for array in arrays]
    if not parts:
        raise at_user_line(TraceError(f"{function} of no arrays", hint="pass one at least"))
    for extent in (extent for part in parts for extent in part.shape):
        if isinstance(extent, Dim):  # which may be equal to a number
            needs_static(extent, f"{function} of {', '.join(show(part.shape) for part in parts)}")
    dtype = common_dtype(parts, function)
    return [cast(part, dtype) for part in parts]


def _joined(parts: Sequence[TensorBase], place: int) -> TensorBase:
    """The parts one after the other: each is a view of the whole, and selected where it is inside of its part."""
    if len(parts) > 1:
        parts = [part for part in parts if part.shape[place]] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    sizes = [part.shape[place] for part in parts]
    first, total = parts[0], sum(size for size in sizes if isinstance(size, int))
    extents = tuple(total if d == place else n for d, n in enumerate(first.shape) if isinstance(n, int))
    zero = partial(element, Constant(0, "int"), first.dtype, first.dtype)
    if 0 in extents:
        return pointwise(first.state, [], extents, first.dtype, zero)
    starts = [0, *accumulate(size for size in sizes if isinstance(size, int))]
    moved = [partial(_moved, place, start) for start in starts[: len(parts)]]
    views = [gathered(part, extents, indices) for part, indices in zip(parts, moved, strict=True)]
    checks = [gathered(part, extents, indices, inside=True) for part, indices in zip(parts, moved, strict=True)]
    access = tuple(range(len(extents)))

    def body(*elements: ir.Value) -> ir.Value:
        found = zero()
        for one, check in zip(elements[: len(views)], elements[len(views) :], strict=True):
            found = arith.SelectOp(check, one, found).result
        return found

    return pointwise(first.state, [(view, access) for view in (*views, *checks)], extents, first.dtype, body)


def _moved(place: int, start: int, at: Sequence[ir.AffineExpr]) -> list[ir.AffineExpr]:
    return [expr - start if d == place and start else expr for d, expr in enumerate(at)]
