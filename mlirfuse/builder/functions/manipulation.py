"""Reshaping, transposing and broadcasting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mlirfuse.builder.array_types import array_function
from mlirfuse.builder.emission.emit import broadcast_access, pointwise, regroup, transpose
from mlirfuse.builder.emission.operands import broadcast
from mlirfuse.builder.extents import Dim, Extent, Shape, divide, needs_static, product, same, same_shape, show
from mlirfuse.builder.functions.axes import Axes, axis_list, integer, normalise_axes
from mlirfuse.builder.functions.casting import tensor_argument
from mlirfuse.builder.source import at_user_line
from mlirfuse.builder.state import TensorBase
from mlirfuse.errors import ShapeError

if TYPE_CHECKING:
    from mlirfuse.builder.tensor import Tensor


@array_function
def reshape(x: Tensor, /, shape: Sequence[Extent] | Extent) -> Tensor:
    """The same elements, in C order, in another shape; one extent may be -1.

    Raises:
        ShapeError: the numbers of elements differ.
        NeedsStatic: whether the numbers of elements differ depends on a dynamic extent.
    """
    source = tensor_argument(x, "reshape")
    wanted = _shape_argument(shape, "reshape")
    return reshape_to(source, _fill_in(source, wanted))


def reshape_to(x: TensorBase, shape: Shape) -> Tensor:
    """`reshape` to a complete shape that has as many elements."""
    if same_shape(x.shape, shape):
        return x  # type: ignore[return-value]
    return regroup(x, _groups(x.shape, shape), shape)  # type: ignore[return-value]


@array_function
def permute_dims(x: Tensor, /, axes: Sequence[int]) -> Tensor:
    """Dimension i of the result is dimension `axes[i]` of x.

    Raises:
        ShapeError: axes is not a permutation of x's dimensions.
    """
    source = tensor_argument(x, "permute_dims")
    named = tuple(axes) if isinstance(axes, Iterable) else axes
    permutation = normalise_axes(named, source.ndim, "permute_dims") if isinstance(named, tuple) else None
    if permutation is None or len(permutation) != source.ndim:
        what = f"permute_dims: axes {named} for shape {show(source.shape)}"
        raise at_user_line(ShapeError(what, hint="name every dimension once"))
    if permutation == tuple(range(source.ndim)):
        return x
    source.state.reordered = source.state.reordered.after(source.shape, permutation)
    return transpose(source, permutation)  # type: ignore[return-value]


@array_function
def matrix_transpose(x: Tensor, /) -> Tensor:
    """Swaps the last two dimensions; raises `ShapeError` where there are fewer."""
    source = tensor_argument(x, "matrix_transpose")
    if source.ndim < 2:
        raise at_user_line(ShapeError(f"matrix_transpose needs 2 dimensions, not shape {show(source.shape)}"))
    return permute_dims(x, [*range(source.ndim - 2), source.ndim - 1, source.ndim - 2])


@array_function
def expand_dims(x: Tensor, /, axis: Axes = 0) -> Tensor:
    """Adds dimensions of extent 1 at the positions that `axis` names in the result.

    Raises:
        ShapeError: an axis is out of range or named twice.
    """
    source = tensor_argument(x, "expand_dims")
    count = len(axis_list(axis, "expand_dims"))
    axes = normalise_axes(axis, source.ndim + count, "expand_dims")
    extents = iter(source.shape)
    return reshape_to(source, tuple(1 if d in axes else next(extents) for d in range(source.ndim + count)))


@array_function
def squeeze(x: Tensor, /, axis: Axes) -> Tensor:
    """Removes the dimensions of extent 1 that `axis` names.

    Raises:
        ShapeError: an axis is out of range, named twice, or of another extent.
        NeedsStatic: a named dimension has a dynamic extent.
    """
    source = tensor_argument(x, "squeeze")
    axes = normalise_axes(axis, source.ndim, "squeeze")
    for d in axes:
        extent = source.shape[d]
        if isinstance(extent, Dim):
            needs_static(extent, f"squeezing dimension {d}")
        if extent != 1:
            raise at_user_line(ShapeError(f"squeeze: dimension {d} of {show(source.shape)} has extent {extent}, not 1"))
    return reshape_to(source, tuple(e for d, e in enumerate(source.shape) if d not in axes))


@array_function
def broadcast_to(x: Tensor, /, shape: Sequence[Extent] | Extent) -> Tensor:
    """Repeats x to the shape, as a tensor of its own. Operations broadcast by themselves; this is rarely needed.

    Raises:
        ShapeError: x does not broadcast to that shape.
    """
    source = tensor_argument(x, "broadcast_to")
    target = _shape_argument(shape, "broadcast_to")
    if any(isinstance(e, int) and e < 0 for e in target):
        raise at_user_line(ShapeError(f"broadcast_to: negative extent in {show(target)}"))
    if not same_shape(broadcast([source.shape, target], "broadcast_to"), target):
        raise at_user_line(ShapeError(f"broadcast_to: {show(source.shape)} does not broadcast to {show(target)}"))
    if same_shape(source.shape, target):
        return x
    access = broadcast_access(source.shape, target)
    return pointwise(source.state, [(source, access)], target, source.dtype, lambda e: e)  # type: ignore[return-value]


def _shape_argument(shape: Sequence[Extent] | Extent, function: str) -> Shape:
    entries = shape if isinstance(shape, tuple | list) else (shape,)
    return tuple(e if isinstance(e, Dim) else integer(e, f"{function}: extent") for e in entries)


def _fill_in(source: TensorBase, shape: Shape) -> Shape:
    """The shape with -1 replaced, checked against the source's number of elements."""
    total = product(source.shape)
    unknown = [d for d, extent in enumerate(shape) if isinstance(extent, int) and extent == -1]
    known = product(tuple(e for d, e in enumerate(shape) if d not in unknown))
    bad = len(unknown) > 1 or any(isinstance(e, int) and e < -1 for e in shape)
    missing = None if bad else divide(total, known) if unknown else total if same(total, known) else None
    if missing is not None:
        return tuple(missing if d in unknown else extent for d, extent in enumerate(shape))
    what = f"reshape of {show(source.shape)} to {show(shape)}"
    dynamic = next((e for e in (total, known) if isinstance(e, Dim)), None)
    if dynamic is not None and not bad:
        needs_static(dynamic, what)
    raise at_user_line(
        ShapeError(
            f"{what}: {total} elements do not fit", hint="at most one extent may be -1, and the products must agree"
        )
    )


def _groups(source: Shape, target: Shape) -> list[tuple[list[int], Shape]]:
    """Pairs the dimensions of both sides into the smallest runs with equal numbers of elements."""
    if not source or not target:
        return []
    if 0 in [e for e in (*source, *target) if isinstance(e, int)]:
        return [(list(range(len(source))), target)]
    groups: list[tuple[list[int], Shape]] = []
    i = j = 0
    while i < len(source) and j < len(target):
        left, right = i + 1, j + 1
        while not same(a := product(source[i:left]), b := product(target[j:right])):
            grow_left, grow_right = divide(b, a) is not None, divide(a, b) is not None
            left += grow_left or not grow_right
            right += grow_right or not grow_left
        groups.append((list(range(i, left)), target[j:right]))
        i, j = left, right
    dims, extents = groups.pop()
    return [*groups, (dims + list(range(i, len(source))), extents + target[j:])]
