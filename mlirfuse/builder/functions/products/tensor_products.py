"""Products of tensors over whole dimensions, by their positions: `tensordot`, `vecdot` and `outer`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlirfuse.builder.array_types import ArrayT
from mlirfuse.builder.extents import is_one, product, show, unify
from mlirfuse.builder.functions.axes import Axes, integer, normalise_axes
from mlirfuse.builder.functions.casting import tensor_argument
from mlirfuse.builder.functions.manipulation import reshape_to
from mlirfuse.builder.functions.products.einsum import einsum
from mlirfuse.builder.source import at_user_line
from mlirfuse.builder.state import TensorBase
from mlirfuse.errors import ShapeError


def tensordot(
    x1: ArrayT,
    x2: ArrayT,
    /,
    axes: int | Sequence[Axes] = 2,
    *,
    dtype: object = None,
    precision: str | None = None,
) -> ArrayT:
    """Products summed over some dimensions of both operands: the last `axes` of x1 and the first ones of x2, or those
    that a pair of sequences names. The result has the other dimensions of x1, then those of x2.

    `dtype` and `precision` are as in `matmul`.

    Raises:
        ShapeError: an axis is out of range or named twice, or the extents differ.
        NeedsStatic: a summed extent is dynamic, or rows or columns are, as in `einsum`.
    """
    left, right = tensor_argument(x1, "tensordot"), tensor_argument(x2, "tensordot")
    of_left, of_right = _tensordot_axes(axes, left, right)
    for a, b in zip(of_left, of_right, strict=True):
        _same_extent("tensordot", left, a, right, b)
    first = list(range(left.ndim))
    second = list(range(left.ndim, left.ndim + right.ndim))
    for a, b in zip(of_left, of_right, strict=True):
        second[b] = first[a]
    result = [i for d, i in enumerate(first) if d not in of_left] + [
        i for d, i in enumerate(second) if d not in of_right
    ]
    total: Any = einsum(x1, first, x2, second, result, dtype=dtype, precision=precision)
    return total


def vecdot(x1: ArrayT, x2: ArrayT, /, axis: int = -1, *, dtype: object = None, precision: str | None = None) -> ArrayT:
    """Dot products along one dimension of both operands, which they have in the same place from the end; the other
    dimensions broadcast. `dtype` and `precision` are as in `matmul`.

    Raises:
        ShapeError: the axis is out of range, its extents differ, or the other dimensions do not broadcast.
        NeedsStatic: the axis' extent is dynamic.
    """
    left, right = tensor_argument(x1, "vecdot"), tensor_argument(x2, "vecdot")
    rank = min(left.ndim, right.ndim)
    position = integer(axis, "vecdot: axis")
    (place,) = normalise_axes(position - left.ndim if position >= 0 else position, max(rank, 1), "vecdot")
    from_end = place - max(rank, 1)
    if not rank:
        raise at_user_line(ShapeError("vecdot of a tensor without dimensions", hint="multiply by a scalar with *"))
    _same_extent("vecdot", left, from_end % left.ndim, right, from_end % right.ndim)
    behind = list(range(1, -from_end))
    indices: Any = [..., 0, *behind]
    total: Any = einsum(x1, indices, x2, indices, [..., *behind], dtype=dtype, precision=precision)
    return total


def outer(x1: ArrayT, x2: ArrayT, /) -> ArrayT:
    """Each element of x1 times each element of x2, both flattened: a matrix with a row for each element of x1."""
    left, right = tensor_argument(x1, "outer"), tensor_argument(x2, "outer")
    total: Any = einsum("i,j->ij", _flat(left), _flat(right))
    return total


def _flat(x: TensorBase) -> TensorBase:
    return reshape_to(x, (product(x.shape),))


def _tensordot_axes(
    axes: int | Sequence[Axes], left: TensorBase, right: TensorBase
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The summed dimensions of both operands, in the same order."""
    if not isinstance(axes, list | tuple):
        count = integer(axes, "tensordot: axes")
        if not 0 <= count <= min(left.ndim, right.ndim):
            shapes = f"{show(left.shape)} and {show(right.shape)}"
            raise at_user_line(ShapeError(f"tensordot of shapes {shapes} over {count} axes", hint="they have fewer"))
        return tuple(range(left.ndim - count, left.ndim)), tuple(range(count))
    if len(axes) != 2:
        raise at_user_line(ShapeError(f"tensordot: axes {axes!r}", hint="an int, or a pair of sequences"))
    of_left, of_right = (
        normalise_axes(named, x.ndim, "tensordot") for named, x in zip(axes, (left, right), strict=True)
    )
    if len(of_left) != len(of_right):
        raise at_user_line(ShapeError(f"tensordot: axes {axes!r} have different lengths", hint="pair them"))
    return of_left, of_right


def _same_extent(function: str, left: TensorBase, a: int, right: TensorBase, b: int) -> None:
    """Raises `ShapeError` unless two dimensions have equal extents: extents of 1 do not broadcast here."""
    one, other = left.shape[a], right.shape[b]
    if is_one(one) != is_one(other) or unify(one, other) is None:
        shapes = f"{show(left.shape)} and {show(right.shape)}"
        what = f"{function} of shapes {shapes}: dimension {a} has {one} elements and dimension {b} has {other}"
        raise at_user_line(ShapeError(what, hint="extents that are summed over must be equal"))
