"""Rewrites a sum of products over groups to one over fewer groups, whose small array is block-diagonal."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.analysis.loops.maps import projection
from mlirfuse.dialect.gathered_view import Gather, gathered_view
from mlirfuse.passes.groups.grouped_sum import RESULT, GroupedSum, arrays, is_view, view_of
from mlirfuse.passes.groups.merged_results import MergedResult
from mlirfuse.passes.groups.regrouping import copy_of, erase_views, regrouped, summed, through_casts
from mlirfuse.support.affine_expressions import bounds, substituted, used_dims
from mlirfuse.support.rewriting import erase


class MergedGroups:
    """The sum with each `merged` neighbouring groups as one.

    Args:
        found: the sum.
        merged: a divisor of the number of groups.
        run: elements of which each merged group of a gathered view has whole runs: those of the next groups follow its
            own, and meet zeros of the block-diagonal operand, or columns of the result that are left out.
    """

    def __init__(self, found: GroupedSum, merged: int, run: int = 1):
        self.found, self.merged = found, merged
        extents = list(found.extents)
        for number, loop in found.inner.items():
            extents[loop] *= merged
            if number != RESULT and is_view(arrays(found.op)[number]):
                extents[loop] = -(-extents[loop] // run) * run
        extents[found.group] //= merged
        self.extents = extents
        self.kept = [loop for loop in range(len(extents)) if loop != found.group or extents[loop] > 1]

    def apply(self) -> None:
        """Replaces the sum, the casts of its result, and the views that put the result in order."""
        op = self.found.op
        old_operands = list(arrays(op)[:RESULT])
        with ir.InsertionPoint(op), op.location:
            value = self._sum([self._operand(number) for number in (0, 1)])
        chain, value = through_casts(op, value)
        MergedResult(self.found, self.merged, self.extents, self.kept).replace(chain[-1].results[0], value)
        for each in reversed(chain):
            erase(each)
        for operand in old_operands:
            erase_views(operand)

    def _axes(self, number: int) -> list[int | None]:
        """The loops of an array's axes, without that of a single group."""
        return [loop for loop in self.found.axes[number] if loop is None or loop in self.kept]

    def _shape(self, number: int) -> list[int]:
        return [1 if loop is None else self.extents[loop] for loop in self._axes(number)]

    def _operand(self, number: int) -> ir.Value:
        value = arrays(self.found.op)[number]
        if number == self.found.block:
            source, gather = view_of(value)
            return copy_of(gathered_view(source, self._block_diagonal(source, gather)))
        if is_view(value):
            return self._windows(value, number)
        loops = [self.found.axes[number][axis] for axis in self.found.run(number)]
        extents = [1 if loop is None else self.extents[loop] for loop in loops if loop is None or loop in self.kept]
        return regrouped(value, self.found.run(number), extents)

    def _windows(self, value: ir.Value, number: int) -> ir.Value:
        """A gathered view of merged groups, whose elements follow each other in the source."""
        source, gather = view_of(value)
        axes, before = self._axes(number), self.found.axes[number]
        places = [_dim(axes.index(loop)) if loop in axes else _number(0) for loop in before]
        group = before.index(self.found.group)
        places[group] = places[group] * self.merged
        results = [substituted(expr, places) for expr in gather.map.results]
        basis = tuple((extent,) for extent in self._shape(number))
        return gathered_view(source, Gather(basis, ir.AffineMap.get(len(axes), 0, results)))

    def _block_diagonal(self, source: ir.Value, gather: Gather) -> Gather:
        """Where the block-diagonal operand's elements lie in the source of the operand: outside of it off the diagonal.

        The loops that two merged groups have in place of one are numbered by the old group and the old loop. Where the
        numbers of their groups differ, the index leaves the axis of the source along which groups lie.
        """
        before, shape = self.found.axes[self.found.block], ir.RankedTensorType(source.type).shape
        basis: list[tuple[int, ...]] = []
        places: dict[int | None, ir.AffineExpr] = {}
        numbers: list[ir.AffineExpr] = []
        count = 0
        for loop in self._axes(self.found.block):
            old, new = (1, 1) if loop is None else (self.found.extents[loop], self.extents[loop])
            whole = any(
                expr == _dim(before.index(loop)) and n == old for expr, n in zip(gather.map.results, shape, strict=True)
            )
            if loop not in self.found.inner.values() or new == old or (self.merged == 1 and whole):
                basis.append((new,))
                places[loop] = _dim(count)
            elif new == old * self.merged:
                basis.append((self.merged, old))
                numbers.append(_dim(count))
                places[loop] = _dim(count + 1)
            else:
                basis.append((new,))
                numbers.append(ir.AffineExpr.get_floor_div(_dim(count), old))
                places[loop] = ir.AffineExpr.get_mod(_dim(count), old)
            count += len(basis[-1])
        first, second = [*numbers, _number(0), _number(0)][:2]
        at = [places.get(loop, _number(0)) for loop in before]
        group = before.index(self.found.group)
        at[group] = at[group] * self.merged + (first if self.merged > 1 else _number(0))
        results = [substituted(expr, at) for expr in gather.map.results]
        axis = next(n for n, expr in enumerate(gather.map.results) if group in used_dims(expr))
        low, high = bounds(gather.map.results[axis], gather.components)
        far = max(shape[axis] - low, high + 1)
        results[axis] = results[axis] + (first - second) * far
        return Gather(tuple(basis), ir.AffineMap.get(count, 0, results))

    def _sum(self, operands: Sequence[ir.Value]) -> ir.Value:
        """The sum over merged groups."""
        number = {loop: position for position, loop in enumerate(self.kept)}
        maps = [
            projection(len(self.kept), [None if loop is None else number[loop] for loop in self._axes(n)])
            for n in range(3)
        ]
        kinds = list(ir.ArrayAttr(self.found.op.attributes["iterator_types"]))
        iterators = ir.ArrayAttr.get([kinds[loop] for loop in self.kept])
        return summed(self.found.op, operands, self._shape(RESULT), ir.ArrayAttr.get(maps), iterators)


def _dim(position: int) -> ir.AffineExpr:
    return ir.AffineExpr.get_dim(position)


def _number(value: int) -> ir.AffineExpr:
    return ir.AffineExpr.get_constant(value)
