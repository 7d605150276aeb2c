"""Diagonals of tensors: views, whose stride is the sum of the strides of the dimensions that they run along."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirfuse.builder.array_types import array_function
from mlirfuse.builder.emission.emit import pointwise
from mlirfuse.builder.extents import Dim, Shape, needs_static, show
from mlirfuse.builder.functions import reductions
from mlirfuse.builder.functions.casting import tensor_argument
from mlirfuse.builder.source import at_user_line
from mlirfuse.builder.state import Access, TensorBase
from mlirfuse.errors import ShapeError

if TYPE_CHECKING:
    from mlirfuse.builder.tensor import Tensor


@array_function
def diagonal(x: Tensor, /) -> Tensor:
    """The elements of equal index in the last two dimensions, as a new last dimension.

    Raises:
        ShapeError: fewer than two dimensions, or the last two have different extents.
        NeedsStatic: one of the last two extents is dynamic.
    """
    source = tensor_argument(x, "diagonal")
    return _last_two(source, "diagonal")  # type: ignore[return-value]


@array_function
def trace(x: Tensor, /, *, dtype: object = None) -> Tensor:
    """The sum of `diagonal`; int64 for integers and bools, as NumPy. Elements are first cast to `dtype` if given."""
    source = tensor_argument(x, "trace")
    return reductions.sum(_last_two(source, "trace"), -1, dtype=dtype)  # type: ignore[return-value]


def diagonal_of(x: TensorBase, access: Access, shape: Shape) -> TensorBase:
    """The tensor of `shape` whose element at an index is the element of x at the loops `access` of that index.

    Raises:
        NeedsStatic: an extent of x but the first is dynamic, so that strides are unknown.
    """
    for dim, (loop, extent) in enumerate(zip(access, x.shape, strict=True)):
        if isinstance(extent, Dim) and (dim or access.count(loop) > 1):
            needs_static(extent, f"a diagonal of {show(x.shape)}")
    return pointwise(x.state, [(x, access)], shape, x.dtype, lambda element: element)


def _last_two(x: TensorBase, function: str) -> TensorBase:
    if x.ndim < 2:
        raise at_user_line(ShapeError(f"{function} needs 2 dimensions, not shape {show(x.shape)}"))
    *outer, rows, columns = x.shape
    for extent in (rows, columns):
        if isinstance(extent, Dim):
            needs_static(extent, f"{function} of {show(x.shape)}")
    if rows != columns:
        what = f"{function} of {show(x.shape)}: {rows} rows and {columns} columns"
        raise at_user_line(ShapeError(what, hint="the matrices must be square"))
    loop = len(outer)
    return diagonal_of(x, (*range(loop), loop, loop), (*outer, rows))
