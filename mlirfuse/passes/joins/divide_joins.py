"""`fuse-divide-joins`: what is computed of a join, element by element, is computed of its parts, and joined then."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.joined_views import joined_views
from mlirfuse.analysis.kernels import body, host_functions
from mlirfuse.dialect.gathered_view import Gather, gathered_view
from mlirfuse.passes.joins.joined_results import is_result
from mlirfuse.passes.joins.joins import joined
from mlirfuse.passes.slices.sliced_ops import Range, Ranges, SlicedOps, is_elementwise
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.model.machine import WIDEST_ACCESS
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import erase_dead

MOST_PARTS = 4
"""Parts of a join, at most: each has ops of its own."""


@dataclass(frozen=True)
class FuseDivideJoins(Pass):
    """Computes results on parts, where they are computed of a join of equal parts, element by element.

    Requires functions of tensor ops. Rotary embeddings add a row, times one array, to its halves in the other order,
    times another one. Of the halves, each element of the row is read once; of the whole, it is read where it is and
    where it went. A kernel then stores the halves of the result where they belong (`fuse-scatter-parts`). Declines
    where the parts of a join have runs that are shorter than an access of 16 bytes, and where what is computed of the
    join is no result of the function and no operand of a product, but for functions of its elements.

    ```mlir
    %turned = ...                            // %right, then %left, selected by place
    %y = linalg.generic ... ins(%x, %turned : tensor<64x128xf32>, tensor<64x128xf32>) { ... arith.addf ... }
    return %y
    ```
    becomes
    ```mlir
    %0 = tensor.extract_slice %x[0, 0] [64, 64] [1, 1] ...
    %y0 = linalg.generic ... ins(%0, %right : tensor<64x64xf32>, tensor<64x64xf32>) { ... arith.addf ... }
    %1 = tensor.extract_slice %x[0, 64] [64, 64] [1, 1] ...
    %y1 = linalg.generic ... ins(%1, %left : tensor<64x64xf32>, tensor<64x64xf32>) { ... arith.addf ... }
    %y = ...                                 // %y0, then %y1, selected by place
    return %y
    ```
    """

    name: ClassVar[str] = "fuse-divide-joins"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for function in host_functions(module):
            joins = [join for op in body(function) if (join := _join_of(op)) is not None]
            if not joins:
                remarks.declined(self, "nothing is computed of a join of equal parts", function)
            done = 0
            for join in joins:
                top = _computed_of(join.op.results[0])
                if top == join.op.results[0] or not is_result(top):
                    remarks.declined(self, "what is computed of the join is no result", join.op)
                    continue
                with ir.InsertionPoint.after(top.owner.operation), join.op.location:
                    top.replace_all_uses_with(_divided(top, join))
                done += 1
            if done:
                remarks.applied(self, f"{done} joins are of what was computed of them", function)
                erase_dead([op for op in body(function) if op.results])


@dataclass(frozen=True)
class _Join:
    """An op that joins equal parts.

    Attributes:
        op: the op.
        parts: in order.
        ranges: of each part in the whole.
    """

    op: ir.Operation
    parts: tuple[ir.Value, ...]
    ranges: tuple[Ranges, ...]


def _join_of(op: ir.Operation) -> _Join | None:
    """The join of equal parts that an op makes by selecting among views; None for another op."""
    if op.name != "linalg.generic" or not is_elementwise(op):
        return None
    joined = joined_views(op, lambda operand: operand)
    if isinstance(joined, str) or len(joined.views) > MOST_PARTS or len(joined.places) > 1:
        return None
    type_ = ir.RankedTensorType(op.results[0].type)
    (axis,) = joined.places
    count = joined.shape[axis]
    whole = [n * len(joined.views) if a == axis else n for a, n in enumerate(joined.shape)]
    if joined.axes != tuple(range(type_.rank)) or whole != list(type_.shape):
        return None
    if axis == type_.rank - 1 and count * from_mlir(type_.element_type).bytes < WIDEST_ACCESS:
        return None
    starts = range(0, type_.shape[axis], count)
    ranges = [tuple(Range(n, count) if a == axis else None for a in range(type_.rank)) for n in starts]
    return _Join(op, tuple(view.operands[0] for view in joined.views), tuple(ranges))


def _computed_of(value: ir.Value) -> ir.Value:
    """What elementwise ops of the same shape make of a value, one after the other, that nothing else reads."""
    while len(uses := list(value.uses)) == 1:
        op, number = uses[0].owner.operation, uses[0].operand_number
        if not is_elementwise(op) or number >= len(op.operands) - 1:
            break
        maps = list(ir.ArrayAttr(op.attributes["indexing_maps"]))
        same = ir.RankedTensorType(op.results[0].type).shape == ir.RankedTensorType(value.type).shape
        if not same or maps[number] != maps[-1] or maps[-1].value != ir.AffineMap.get_identity(maps[-1].value.n_dims):
            break
        value = op.results[0]
    return value


class _OfParts(SlicedOps):
    """Slices of what is computed of a join: of the join itself its parts."""

    def __init__(self, join: _Join):
        super().__init__()
        self._parts = dict(zip(join.ranges, join.parts, strict=True))
        self._joined = join.op.results[0]

    def _build(self, value: ir.Value, ranges: Ranges) -> ir.Value:
        return self._parts[ranges] if value == self._joined else super()._build(value, ranges)


def _divided(top: ir.Value, join: _Join) -> ir.Value:
    """A value that is computed of a join, as a join of what is computed of the parts."""
    sliced = _OfParts(join)
    values = [sliced.of(top, ranges) for ranges in join.ranges]
    type_ = ir.RankedTensorType(top.type)
    rank, views, checks = type_.rank, list[ir.Value](), list[ir.Value]()
    for value, ranges in zip(values, join.ranges, strict=True):
        starts = [own.start if own else 0 for own in ranges]
        places = [ir.AffineExpr.get_dim(d) - start for d, start in enumerate(starts)]
        gather = Gather(tuple((extent,) for extent in type_.shape), ir.AffineMap.get(rank, 0, places))
        views.append(gathered_view(value, gather))
        checks.append(gathered_view(value, replace(gather, inside=tuple(ir.RankedTensorType(value.type).shape))))
    return joined(views, checks, type_)
