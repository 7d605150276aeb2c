"""Factors of dimensions: how far loops must be split for values that are reshaped between ops to have the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from math import prod
from operator import mul

from mlir import ir

from mlirfuse.analysis.loops.structure import OpStructure, is_constant
from mlirfuse.support.reshapes import reassociation

Factors = tuple[int, ...]
"""Extents that a static dimension is split into, the outermost first; a dynamic one is `(DYNAMIC,)`."""

DYNAMIC = ir.ShapedType.get_dynamic_size()


class Unequal(Exception):
    """Factors have no refinement in common: 6 as 2 x 3 and as 3 x 2, or a dynamic dimension would have to be split."""


def refined(first: Factors, second: Factors) -> Factors:
    """The fewest factors that both are products of neighbours of; raises `Unequal` where there are none."""
    if first == second:
        return first
    if DYNAMIC in (*first, *second) or prod(first) != prod(second):
        raise Unequal
    strides = sorted({1, *accumulate(reversed(first), mul), *accumulate(reversed(second), mul)})
    if any(outer % inner for inner, outer in pairwise(strides)):
        raise Unequal
    return tuple(outer // inner for inner, outer in pairwise(strides))[::-1] or (1,)


class DimFactors:
    """The factors of the dimensions of values, which ops and reshapes make equal.

    Args:
        structures: the ops whose loops may be split.
    """

    def __init__(self, structures: Sequence[OpStructure]):
        self._structures = structures
        self._reshapes: list[ir.Operation] = []
        self._known: dict[ir.Value, list[Factors]] = {}

    def of(self, value: ir.Value) -> list[Factors]:
        """The factors of each dimension of a value."""
        if value not in self._known:
            self._known[value] = [(extent,) for extent in ir.RankedTensorType(value.type).shape]
        return self._known[value]

    def loops(self, structure: OpStructure) -> list[Factors]:
        """The factors of each loop of an op; raises `Unequal` where its operands have none in common."""
        found: dict[int, Factors] = {}
        for value, axes in _accesses(structure):
            for factors, loop in zip(self.of(value), axes, strict=True):
                if loop is not None:
                    found[loop] = refined(found.get(loop, factors), factors)
        return [found.get(loop, (1,)) for loop in range(structure.loop_count)]

    def unite(self, reshapes: Iterable[ir.Operation]) -> bool:
        """Has both sides of reshapes have the same factors, if there are any; returns whether that is so."""
        before, reshaped = {value: list(found) for value, found in self._known.items()}, list(self._reshapes)
        self._reshapes += reshapes
        try:
            while self._spread():
                pass
        except Unequal:
            self._known, self._reshapes = before, reshaped
            return False
        return True

    def _spread(self) -> bool:
        """Takes factors from each op and reshape to the values around it; returns whether any changed."""
        changed = False
        for structure in self._structures:
            loops = self.loops(structure)
            for value, axes in _accesses(structure):
                for dim, loop in enumerate(axes):
                    changed |= loop is not None and self._set(value, dim, loops[loop])
        for reshape in self._reshapes:
            source, result = reshape.operands[0], reshape.results[0]
            merged, split = (result, source) if reshape.name == "tensor.collapse_shape" else (source, result)
            for dim, group in enumerate(reassociation(reshape)):
                parts = [self.of(split)[d] for d in group]
                whole = refined(self.of(merged)[dim], tuple(n for part in parts for n in part))
                changed |= self._set(merged, dim, whole)
                for d, part in zip(group, _parts(whole, [prod(part) for part in parts]), strict=True):
                    changed |= self._set(split, d, part)
        return changed

    def _set(self, value: ir.Value, dim: int, factors: Factors) -> bool:
        if self.of(value)[dim] == factors:
            return False
        self.of(value)[dim] = factors
        return True


def _accesses(structure: OpStructure) -> list[tuple[ir.Value, Sequence[int | None]]]:
    """An op's operands and results, with the loop along each of their axes; results start from the last operands.

    What is the same number everywhere, or nothing yet, belongs to no op: others start from it too.
    """
    count = len(structure.op.results)
    operands = zip(structure.operands[:-count], structure.operand_axes[:-count], strict=True)
    read = [(value, axes) for value, axes in operands if axes and isinstance(value.type, ir.RankedTensorType)]
    starts = zip(structure.operands[-count:], structure.result_axes, strict=True)
    own = [(value, axes) for value, axes in starts if not is_constant(value)]
    return [*read, *own, *zip(structure.op.results, structure.result_axes, strict=True)]


def _parts(factors: Factors, extents: Sequence[int]) -> list[Factors]:
    """Factors of neighbouring dimensions together, for each of them."""
    if len(extents) == 1:
        return [factors]
    found, rest = [], list(factors)
    for extent in extents:
        part: list[int] = []
        while prod(part) != extent:
            part.append(rest.pop(0))
        found.append(tuple(part) or (1,))
    return found
