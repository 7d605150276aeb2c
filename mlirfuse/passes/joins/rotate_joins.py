"""`fuse-rotate-joins`: slices of one array that are joined again, the last ones first, are one view of the array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.joined_views import are_apart, place_in_whole
from mlirfuse.dialect.attributes import OPERATION
from mlirfuse.dialect.gathered_view import Gather, gathered_view
from mlirfuse.passes.joins.joins import copied, rewrite_joins
from mlirfuse.passes.slices.sliced_ops import SLICE, ranges_of
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.model.machine import WIDEST_ACCESS
from mlirfuse.support.dtypes import element_bytes
from mlirfuse.support.rewriting import defining_op


@dataclass(frozen=True)
class FuseRotateJoins(Pass):
    """Reads an array modulo the extent of an axis where parts of it are joined so that indices wrap around.

    Requires functions of tensor ops with static extents. A periodic boundary is written as a join of slices
    (`mf.roll`, `mf.concat`): of n elements shifted by one the last n - 1, then the first. Each element is then read
    from one place, which is computed, in place of one from each part, of which one is selected. The pass declines where
    parts are no slices of one array with steps of one, where they leave elements between them, where they do not follow
    each other in the array, the first behind the last, and along rows of whole vectors: threads beside the ends load
    several elements of a part at once, but none at indices that may wrap around.

    ```mlir
    %last = tensor.extract_slice %x[1] [8] [1] : tensor<9xf32> to tensor<8xf32>
    %first = tensor.extract_slice %x[0] [1] [1] : tensor<9xf32> to tensor<1xf32>
    %a = "fuse.gathered_view"(%last) {map = affine_map<(i) -> (i)>, ...} : (tensor<8xf32>) -> tensor<9xf32>
    %b = "fuse.gathered_view"(%first) {map = affine_map<(i) -> (i - 8)>, ...} : (tensor<1xf32>) -> tensor<9xf32>
    %y = linalg.generic ... ins(%a, %b, %in_a, %in_b : ...) { ... arith.select ... }
    ```
    becomes
    ```mlir
    %a = "fuse.gathered_view"(%x) {map = affine_map<(i) -> ((i + 1) mod 9)>, ...} : (tensor<9xf32>) -> tensor<9xf32>
    %y = linalg.generic ... ins(%a : tensor<9xf32>) ...                                                  // a copy
    ```
    """

    name: ClassVar[str] = "fuse-rotate-joins"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        rewrite_joins(self, module, remarks, _rotated, "an array's slices are joined in another order")


def _rotated(_join: ir.Operation, views: Sequence[ir.Operation]) -> ir.Value | str:
    """A copy of the array that parts are slices of, as the whole reads it; or why it does not."""
    found = [_place_in_source(view) for view in views]
    places = [each for each in found if not isinstance(each, str)]
    if len(places) < len(found):
        return next(each for each in found if isinstance(each, str))
    sources, axes, offsets = zip(*places, strict=True)
    if len(set(sources)) > 1 or len(set(axes)) > 1:
        return "parts are slices of several arrays, or in several orders"
    source, shape = sources[0], ir.RankedTensorType(sources[0].type).shape
    moved = [axis for axis in range(len(shape)) if len({offset[axis] for offset in offsets}) > 1]
    if len(moved) != 1:
        return "parts lie in the whole as in the array, or apart in several dimensions"
    (axis,) = moved
    if axis == len(shape) - 1 and shape[axis] * element_bytes(source.type) % WIDEST_ACCESS == 0:
        return "along rows of whole vectors the parts are loaded as such (fuse-unswitch-checks)"
    if len({offset[axis] % shape[axis] for offset in offsets}) > 1 or not _covers(views, axes[0][axis]):
        return "parts do not follow each other in the array"
    dims = [ir.AffineExpr.get_dim(dim) + offset for dim, offset in zip(axes[0], offsets[0], strict=True)]
    dims[axis] = (ir.AffineExpr.get_dim(axes[0][axis]) + offsets[0][axis] % shape[axis]) % shape[axis]
    whole = ir.RankedTensorType(views[0].results[0].type).shape
    return copied(
        gathered_view(source, Gather(tuple((extent,) for extent in whole), ir.AffineMap.get(len(whole), 0, dims)))
    )


def _place_in_source(view: ir.Operation) -> tuple[ir.Value, tuple[int, ...], tuple[int, ...]] | str:
    """The array that a part is a slice of, for each of its axes the dimension of the whole that runs along it, and how
    much larger the index along it is there; or why the part is no such slice.
    """
    place = place_in_whole(view)
    if isinstance(place, str):
        return place
    axes, starts = place
    value = view.operands[0]
    slice_ = defining_op(value)
    begins = [0] * len(axes)
    if slice_ is not None and slice_.name == SLICE and OPERATION not in slice_.attributes:
        value, ranges = slice_.operands[0], ranges_of(slice_)
        if ranges is None or len(ranges) != len(axes) or any(each and each.step != 1 for each in ranges):
            return "a slice has steps, drops a dimension, or begins at a number known at run time only"
        begins = [each.start if each else 0 for each in ranges]
    if not ir.RankedTensorType(value.type).has_static_shape:
        return "an array has extents known at run time only"
    return value, axes, tuple(begin - starts[dim] for begin, dim in zip(begins, axes, strict=True))


def _covers(views: Sequence[ir.Operation], dim: int) -> bool:
    """Whether parts follow one another along a dimension of the whole with nothing in between, and fill the others."""
    whole, ends = ir.RankedTensorType(views[0].results[0].type).shape, list[tuple[int, int]]()
    for view in views:
        place = place_in_whole(view)
        assert not isinstance(place, str)  # checked by _place_in_source
        axes, starts = place
        shape = ir.RankedTensorType(view.operands[0].type).shape
        extents = {d: shape[axis] for axis, d in enumerate(axes)}
        if any(starts[d] or extents[d] != whole[d] for d in extents if d != dim):
            return False
        ends.append((starts[dim], starts[dim] + extents[dim]))
    ends.sort()
    return are_apart(views) and ends[0][0] == 0 and ends[-1][1] == whole[dim] == sum(b - a for a, b in ends)
