"""Indexing with slices, integers, None and an ellipsis: all of them views."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any

import numpy as np
from mlir import ir
from mlir.dialects import arith, tensor

from mlirfuse.builder.array_types import array_function
from mlirfuse.builder.emission.emit import empty
from mlirfuse.builder.errors import UnsupportedError
from mlirfuse.builder.extents import Dim, Extent, Shape, needs_static, same, show
from mlirfuse.builder.functions.axes import Axes, integer, normalise_axes
from mlirfuse.builder.functions.casting import tensor_argument
from mlirfuse.builder.functions.manipulation import reshape_to
from mlirfuse.builder.source import at_user_line
from mlirfuse.builder.state import Range, ScalarBase, TensorBase, size_value, static
from mlirfuse.errors import ShapeError

if TYPE_CHECKING:
    from mlirfuse.builder.tensor import Tensor

Index = slice | int | EllipsisType | None
_HINT = "use slices, integers, None and `...`, or mf.where"


def index(x: TensorBase, key: Index | tuple[Index, ...]) -> Tensor:
    """`x[key]`, as NumPy's basic indexing.

    Raises:
        UnsupportedError: an array, a list or a bool as an index.
        ShapeError: an index out of range, a step of 0, more indices than dimensions, or two ellipses.
        NeedsStatic: a slice or an integer index of a dimension of dynamic extent, other than `:` and `::-1`; or one
            that is computed from an extent.
    """
    entries = _complete(x, key if isinstance(key, tuple) else (key,))
    ranges: list[Range] = []
    shape: list[Extent] = []
    for entry in entries:
        if entry is None:
            shape.append(1)
            continue
        dim = len(ranges)
        if isinstance(entry, slice):
            ranges.append(_range(entry, x.shape[dim], dim))
            shape.append(ranges[-1][1])
        else:
            ranges.append((_position(entry, x, dim), 1, 1))
    return reshape_to(sliced(x, ranges), tuple(shape))


@array_function
def flip(x: Tensor, /, axis: Axes | None = None) -> Tensor:
    """The elements in reverse order along the dimensions that `axis` names, by default along all; a view.

    Raises:
        ShapeError: an axis is out of range or named twice.
    """
    source = tensor_argument(x, "flip")
    axes = normalise_axes(axis, source.ndim, "flip")
    return index(source, tuple(slice(None, None, -1) if d in axes else slice(None) for d in range(source.ndim)))


def _complete(x: TensorBase, key: Sequence[Any]) -> list[slice | int | None]:
    """The index with a slice or an integer for each dimension, and no ellipsis."""
    for entry in key:
        is_index = isinstance(entry, slice | EllipsisType | int) or entry is None or hasattr(entry, "__index__")
        if isinstance(entry, ScalarBase):
            is_index = bool(entry.symbols)  # computed from extents, which become numbers of the compilation
        if not is_index or isinstance(entry, bool | TensorBase | np.ndarray):
            raise at_user_line(UnsupportedError(f"index {entry!r} is not supported", hint=_HINT))
    named = sum(entry is not None and entry is not Ellipsis for entry in key)
    ellipses = sum(entry is Ellipsis for entry in key)
    if named > x.ndim or ellipses > 1:
        what = f"index with {named} slices and {ellipses} ellipses for {x.ndim} dimensions"
        raise at_user_line(ShapeError(what))
    rest = [slice(None)] * (x.ndim - named)
    entries: list[slice | int | None] = []
    for entry in key:
        entries += rest if entry is Ellipsis else [entry]
    return entries if ellipses else [*entries, *rest]


def _number(extent: Extent, what: str) -> int:
    return needs_static(extent, what) if isinstance(extent, Dim) else extent


def _position(entry: Any, x: TensorBase, dim: int) -> int:
    """An integer index of a dimension, counted from its start."""
    position, extent = integer(entry, "index"), _number(x.shape[dim], f"index {entry} of dimension {dim}")
    if not -extent <= position < extent:
        what = f"index {position} is out of range for dimension {dim} of {show(x.shape)}"
        raise at_user_line(ShapeError(what))
    return position % extent


def _range(entry: slice, extent: Extent, dim: int) -> Range:
    """The indices that a slice selects from so many."""
    if isinstance(extent, Dim) and isinstance(entry.stop, Dim) and same(entry.stop, extent):
        entry = slice(entry.start, None, entry.step)
    bounds = [None if bound is None else integer(bound, "slice") for bound in (entry.start, entry.stop, entry.step)]
    start, stop, step = bounds
    step = 1 if step is None else step
    if step == 0:
        raise at_user_line(ShapeError("slice step cannot be 0"))
    if isinstance(extent, Dim):
        if step == 1 and start in (None, 0) and stop is None:
            return 0, extent, 1
        if step == -1 and start in (None, -1) and stop is None:
            return extent, extent, -1  # from the last element; `sliced` subtracts 1
        needs_static(extent, f"slicing dimension {dim}")
    found = range(*slice(start, stop, step).indices(extent))
    return (found.start if found else 0), len(found), step if len(found) > 1 else 1


def sliced(x: TensorBase, ranges: Sequence[Range]) -> TensorBase:
    """`tensor.extract_slice`; the tensor itself where every range is whole, and an empty tensor where one is empty."""
    shape: Shape = tuple(count for _, count, _ in ranges)
    if all(not isinstance(s, Dim) and (s, c, t) == (0, e, 1) for (s, c, t), e in zip(ranges, x.shape, strict=True)):
        return x
    if 0 in [extent for extent in shape if isinstance(extent, int)]:
        return empty(x.state, shape, x.dtype)
    if x.state.slices_again(x.value, ranges) and not x.state.dynamic_products:
        for dim in (extent for extent in x.shape if isinstance(extent, Dim)):
            needs_static(dim, "reading neighbours, by slices that overlap,")
    with x.state.emitting():
        offsets = [_last(start) if isinstance(start, Dim) else start for start, _, _ in ranges]
        sizes = [size_value(count) if isinstance(count, Dim) else count for _, count, _ in ranges]
        op = tensor.ExtractSliceOp(
            x.state.tensor_type(shape, x.dtype),
            x.value,
            [offset for offset in offsets if isinstance(offset, ir.Value)],
            [size for size in sizes if isinstance(size, ir.Value)],
            [],
            [ir.ShapedType.get_dynamic_size() if isinstance(o, ir.Value) else o for o in offsets],
            [static(count) for count in shape],
            [step for _, _, step in ranges],
        )
        x.state.number(op.operation)
    return x.state.wrap(op.result, shape, x.dtype)


def _last(extent: Dim) -> ir.Value:
    """The last index of a dimension, at the current insertion point."""
    one = arith.ConstantOp(ir.IndexType.get(), 1).result
    return arith.SubIOp(size_value(extent), one).result
