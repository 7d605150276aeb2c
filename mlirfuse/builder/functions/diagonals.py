"""Diagonals of tensors: views, whose stride is the sum of the strides of the dimensions that they run along."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirfuse.builder.array_types import array_function
from mlirfuse.builder.emission.emit import pointwise
from mlirfuse.builder.extents import Dim, Shape, needs_static, show
from mlirfuse.builder.functions import reductions
from mlirfuse.builder.functions.axes import integer, normalise_axes
from mlirfuse.builder.functions.casting import tensor_argument
from mlirfuse.builder.functions.indexing import sliced
from mlirfuse.builder.functions.manipulation import permute_dims
from mlirfuse.builder.source import at_user_line
from mlirfuse.builder.state import Access, TensorBase
from mlirfuse.errors import ShapeError

if TYPE_CHECKING:
    from mlirfuse.builder.tensor import Tensor


@array_function
def diagonal(x: Tensor, /, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Tensor:
    """The elements whose index along `axis2` is that along `axis1` plus `offset`, as a new last dimension; a view.

    The dimensions are the last two by default, as in the array API's `linalg`.

    Raises:
        ShapeError: there are fewer than two dimensions, or the axes are out of range or the same.
        NeedsStatic: one of the two extents is dynamic.
    """
    return _diagonal("diagonal", x, offset, axis1, axis2)  # type: ignore[return-value]


@array_function
def trace(x: Tensor, /, offset: int = 0, axis1: int = -2, axis2: int = -1, *, dtype: object = None) -> Tensor:
    """The sum of `diagonal`; int64 for integers and bools, as NumPy. Elements are first cast to `dtype` if given."""
    return reductions.sum(_diagonal("trace", x, offset, axis1, axis2), -1, dtype=dtype)  # type: ignore[return-value]


def diagonal_of(x: TensorBase, access: Access, shape: Shape) -> TensorBase:
    """The tensor of `shape` whose element at an index is the element of x at the loops `access` of that index.

    Raises:
        NeedsStatic: an extent along a diagonal is dynamic.
    """
    for loop, extent in zip(access, x.shape, strict=True):
        if isinstance(extent, Dim) and access.count(loop) > 1:
            needs_static(extent, f"a diagonal of {show(x.shape)}")
    return pointwise(x.state, [(x, access)], shape, x.dtype, lambda element: element)


def _diagonal(function: str, x: Tensor, offset: int, axis1: int, axis2: int) -> TensorBase:
    source = tensor_argument(x, function)
    if source.ndim < 2:
        raise at_user_line(ShapeError(f"{function} needs 2 dimensions, not shape {show(source.shape)}"))
    row, column = normalise_axes((axis1, axis2), source.ndim, function)
    rest = [d for d in range(source.ndim) if d not in (row, column)]
    last = permute_dims(source, [*rest, row, column])
    above = integer(offset, f"{function}: offset")
    rows, columns = (
        needs_static(n, f"{function} of {show(source.shape)}") if isinstance(n, Dim) else n for n in last.shape[-2:]
    )
    count = max(0, min(rows + min(above, 0), columns - max(above, 0)))
    whole = [(0, extent, 1) for extent in last.shape[:-2]]
    part = sliced(last, [*whole, (max(-above, 0), count, 1), (max(above, 0), count, 1)])
    loops = tuple(range(len(whole)))
    return diagonal_of(part, (*loops, len(loops), len(loops)), (*part.shape[:-2], count))
