"""Puts the result of a sum over merged groups in the order that its readers expect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import tensor

from mlirfuse.dialect.gathered_view import DEFINITION, Gather, gather_of, gathered_view
from mlirfuse.passes.groups.grouped_sum import RESULT, GroupedSum, joint_index
from mlirfuse.passes.groups.regrouping import copy_of, regrouped
from mlirfuse.support.reshapes import reassociation
from mlirfuse.support.rewriting import erase


@dataclass(frozen=True)
class MergedResult:
    """The result of a sum over merged groups.

    Attributes:
        found: the sum over all groups.
        merged: the groups that are one.
        extents: the new extent of each loop.
        kept: the loops that there still are: all, or all but that over a single group.
    """

    found: GroupedSum
    merged: int
    extents: Sequence[int]
    kept: Sequence[int]

    def replace(self, old: ir.Value, value: ir.Value) -> None:
        """Has the readers of the old result read the merged one.

        Diagonal blocks are copied. Otherwise readers have their own reshape or gathered view of it, where that treats
        the group and its inside as one axis, and else a view of the old shape.
        """
        if self.found.block != RESULT:
            for use in list(old.uses):
                reader = use.owner.operation
                with ir.InsertionPoint(reader), reader.location:
                    new = self._read(reader, value)
                if new is not None:
                    reader.results[0].replace_all_uses_with(new)
                    erase(reader)
        if list(old.uses):
            with ir.InsertionPoint(old.owner), old.owner.location:
                old.replace_all_uses_with(self._as_before(value))

    def _read(self, reader: ir.Operation, value: ir.Value) -> ir.Value | None:
        """What a reader makes of the result, from the merged one; None where it needs the old result."""
        if reader.name == "tensor.collapse_shape":
            return self._collapsed(reader, value)
        return self._gathered(reader, value) if reader.name == DEFINITION.full_name else None

    def _collapsed(self, reader: ir.Operation, value: ir.Value) -> ir.Value | None:
        run, groups = self.found.run(RESULT), reassociation(reader)
        if not self.found.is_joint(RESULT) or not any(set(run) <= set(group) for group in groups):
            return None
        shift = len(self.kept) - len(self.extents)
        new = [sorted({a if a <= run.start else max(run.start, a + shift) for a in group}) for group in groups]
        if all(len(group) == 1 for group in new):
            return value
        return tensor.CollapseShapeOp(reader.results[0].type, value, new).result

    def _gathered(self, reader: ir.Operation, value: ir.Value) -> ir.Value | None:
        """A gathered view that divides one index by the elements of a group, from one that divides it by more."""
        run, gather, inner = self.found.run(RESULT), gather_of(reader.attributes), self.found.inner[RESULT]
        joint = joint_index(reader, run.start, run[-1], self.found.extents[inner])
        if joint is None:
            return None
        indices: dict[int | None, ir.AffineExpr] = {self.found.group: joint, inner: joint}
        if self.found.group in self.kept:
            wide = self.extents[inner]
            indices = {
                self.found.group: ir.AffineExpr.get_floor_div(joint, wide),
                inner: ir.AffineExpr.get_mod(joint, wide),
            }
        pairs = zip(self.found.axes[RESULT], gather.map.results, strict=True)
        results = [indices.get(loop, expr) for loop, expr in pairs if loop is None or loop in self.kept]
        return gathered_view(value, Gather(gather.basis, ir.AffineMap.get(gather.map.n_dims, 0, results)))

    def _as_before(self, value: ir.Value) -> ir.Value:
        """The result in its old shape."""
        if self.found.block != RESULT and self.found.is_joint(RESULT):
            run = self.found.run(RESULT)
            own = range(run.start, run.stop + len(self.kept) - len(self.extents))
            loops = [self.found.axes[RESULT][axis] for axis in run]
            return regrouped(value, own, [1 if loop is None else self.found.extents[loop] for loop in loops])
        return copy_of(gathered_view(value, self._places()))

    def _places(self) -> Gather:
        """Where the elements of the old result lie in the merged one: groups are numbered by the merged group, and the
        number of the old group in it.
        """
        basis: list[tuple[int, ...]] = []
        places: dict[int | None, ir.AffineExpr] = {}
        count, number = 0, ir.AffineExpr.get_constant(0)
        for loop in self.found.axes[RESULT]:
            places[loop] = ir.AffineExpr.get_dim(count)
            if loop == self.found.group and self.merged > 1:
                basis.append((self.extents[self.found.group], self.merged))
                number = ir.AffineExpr.get_dim(count + 1)
            else:
                basis.append((1 if loop is None else self.found.extents[loop],))
            count += len(basis[-1])
        inner = self.found.inner.values()
        results = [
            places[loop] if loop is None or loop not in inner else number * self.found.extents[loop] + places[loop]
            for loop in self.found.axes[RESULT]
            if loop is None or loop in self.kept
        ]
        return Gather(tuple(basis), ir.AffineMap.get(count, 0, results))
