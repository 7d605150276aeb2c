"""`fuse-flatten-joins`: a join of joins is one of their parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from mlir import ir
from mlir.dialects import tensor

from mlirfuse.analysis.joined_views import are_apart, place_in_whole, selected_views
from mlirfuse.analysis.kernels import body, host_functions
from mlirfuse.dialect.attributes import OPERATION
from mlirfuse.dialect.gathered_view import Gather, gather_of, gathered_view
from mlirfuse.passes.joins.joins import joined
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.reshapes import reassociation
from mlirfuse.support.rewriting import defining_op, erase_dead


@dataclass(frozen=True)
class FuseFlattenJoins(Pass):
    """Joins the parts of joined arrays where these were joined again.

    Requires functions of tensor ops. Matrices of few rows and columns are written as a `mf.stack` of rows, each of them
    one of elements, and matrices of blocks as a `mf.concat` of rows of blocks. As one join, its parts can all be stored
    where they belong (`fuse-scatter-parts`). Declines where no part is a join, where such a part is used elsewhere or
    reshaped but for new dimensions of one element, where its own parts are no slices of it in the order of its
    dimensions, where the parts of all together have several shapes, and where parts overlap.

    ```mlir
    %ab = ...                                // %a, then %b, selected by place
    %cd = ...                                // %c, then %d
    %y = ...                                 // %ab, then %cd
    ```
    becomes
    ```mlir
    %y = ...                                 // %a, %b, %c and %d, each selected by its place in %y
    ```
    """

    name: ClassVar[str] = "fuse-flatten-joins"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for function in host_functions(module):
            done = 0
            for op in body(function):
                views = _views_of(op)
                if not isinstance(views, str):
                    done += self._flatten(op, views, remarks)
            if done:
                erase_dead([op for op in body(function) if op.results])
            else:
                remarks.declined(self, "no joined arrays are joined again", function)

    def _flatten(self, join: ir.Operation, views: Sequence[ir.Operation], remarks: Remarks) -> bool:
        """Puts the parts of a join's parts in place of these; returns whether there are any."""
        inner = [_inner_join(view, join) for view in views]
        for reason in dict.fromkeys(reason for reason in inner if isinstance(reason, str)):
            remarks.declined(self, reason, join)
        if not any(isinstance(each, _Inner) for each in inner):
            return False
        if not are_apart(views):
            remarks.declined(self, "parts overlap", join)
            return False
        if len({shape for each, view in zip(inner, views, strict=True) for shape in _part_shapes(each, view)}) > 1:
            remarks.declined(self, "the parts of its parts have other shapes", join)
            return False
        with ir.InsertionPoint(join), join.location:
            parts = list[tuple[ir.Value, Gather]]()
            for view, nested in zip(reversed(views), reversed(inner), strict=True):
                own = gather_of(view.attributes)
                parts += nested.parts(own) if isinstance(nested, _Inner) else [(view.operands[0], own)]
            found = [gathered_view(part, gather) for part, gather in parts]
            shapes = [tuple(ir.RankedTensorType(part.type).shape) for part, _ in parts]
            checks = [
                gathered_view(part, replace(gather, inside=shape))
                for (part, gather), shape in zip(parts, shapes, strict=True)
            ]
            new = joined(found, checks, ir.RankedTensorType(join.results[0].type))
        remarks.applied(self, f"a join of {len(views)} parts is one of {len(parts)}", join)
        join.results[0].replace_all_uses_with(new)
        return True


@dataclass(frozen=True)
class _Inner:
    """A join whose result, perhaps with further dimensions of one element, is a part of another one.

    Attributes:
        views: of its parts, in order of selection, the one that is selected over all others last.
        groups: for each of its dimensions those of the outer join's part.
        shape: of that part.
    """

    views: tuple[ir.Operation, ...]
    groups: tuple[tuple[int, ...], ...]
    shape: tuple[int, ...]

    def parts(self, outer: Gather) -> list[tuple[ir.Value, Gather]]:
        """Its parts, and where each is in the outer join, of which it is a part at `outer`."""
        found = []
        for view in self.views:
            place = place_in_whole(view)
            assert not isinstance(place, str)  # checked by `_inner_join`
            indices = list(outer.map.results)
            for dims, start in zip(self.groups, place[1], strict=True):
                axis = _axis_of(dims, self.shape)
                indices[axis] = indices[axis] - start
            map_ = ir.AffineMap.get(len(outer.components), 0, indices)
            found.append((self._expanded(view.operands[0]), replace(outer, map=map_)))
        return found

    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of its parts with the further dimensions."""
        return [self._shape_of(view.operands[0]) for view in self.views]

    def _shape_of(self, part: ir.Value) -> tuple[int, ...]:
        shape = [1] * len(self.shape)
        for dims, extent in zip(self.groups, ir.RankedTensorType(part.type).shape, strict=True):
            shape[_axis_of(dims, self.shape)] = extent
        return tuple(shape)

    def _expanded(self, part: ir.Value) -> ir.Value:
        """One of the parts with the further dimensions."""
        if len(self.groups) == len(self.shape):
            return part
        shape = list(self._shape_of(part))
        groups = [list(dims) for dims in self.groups]
        maker = defining_op(part)
        if maker is not None and maker.name == "tensor.expand_shape":  # one reshape, which passes can look through
            part = maker.operands[0]
            groups = [[d for dim in dims for d in groups[dim]] for dims in reassociation(maker)]
        result = ir.RankedTensorType.get(shape, ir.RankedTensorType(part.type).element_type)
        return tensor.ExpandShapeOp(result, part, groups, [], shape).result


def _part_shapes(inner: _Inner | str | None, view: ir.Operation) -> list[tuple[int, ...]]:
    """The shapes of the parts of a part that is a join, or its own, in the dimensions of the outer join."""
    if isinstance(inner, _Inner):
        return inner.shapes()
    return [tuple(ir.RankedTensorType(view.operands[0].type).shape)]


def _views_of(op: ir.Operation) -> list[ir.Operation] | str:
    """The views among which an op selects, or why it is no join (`selected_views`)."""
    if op.name != "linalg.generic" or OPERATION in op.attributes:
        return "it is no join"
    return selected_views(op, lambda value: value)


def _inner_join(view: ir.Operation, outer: ir.Operation) -> _Inner | str | None:
    """The join that a part is, or why it stays a part; None for a part that is no join."""
    value = view.operands[0]
    shape = tuple(ir.RankedTensorType(value.type).shape)
    groups, reshape = [[d] for d in range(len(shape))], defining_op(value)
    if reshape is not None and reshape.name == "tensor.expand_shape":
        value, groups = reshape.operands[0], reassociation(reshape)
    join = defining_op(value)
    views = "" if join is None else _views_of(join)
    if isinstance(views, str):
        return None
    if any(shape[d] != 1 for dims in groups for d in dims if d != _axis_of(dims, shape)):
        return "a part is a join whose elements are in other dimensions"
    if not _is_only_in(value, outer):
        return "a part is a join that is used elsewhere"
    for each in views:
        place = place_in_whole(each)
        if isinstance(place, str) or place[0] != tuple(range(len(place[0]))):
            return "a part is a join whose parts are no slices of it, in the order of its dimensions"
        sides = zip(place[1], each.operands[0].type.shape, ir.RankedTensorType(value.type).shape, strict=True)
        if any(start < 0 or start + side > extent for start, side, extent in sides):
            return "a part is a join whose parts reach past its end"
    return _Inner(tuple(reversed(views)), tuple(map(tuple, groups)), shape)


def _axis_of(dims: Sequence[int], shape: Sequence[int]) -> int:
    """The first of some dimensions that has more than one element, or the first of all."""
    return next((d for d in dims if shape[d] != 1), dims[0])


def _is_only_in(value: ir.Value, join: ir.Operation) -> bool:
    """Whether a value is used by nothing but a join, and views and reshapes of it for that."""
    users = [use.owner.operation for use in value.uses]
    looked_through = ("tensor.expand_shape", "fuse.gathered_view")
    return all(user == join or (user.name in looked_through and _is_only_in(user.results[0], join)) for user in users)
