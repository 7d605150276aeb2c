"""Replaces two dependent reductions of the same rows by one op that computes both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mlir import ir

from mlirfuse.analysis.arithmetic.patterns import Difference, Extents
from mlirfuse.analysis.kernels import body, is_tile_program, kernels
from mlirfuse.analysis.loops.iteration_space import IterationSpace, space_of_structures
from mlirfuse.analysis.loops.order import reduction_depths
from mlirfuse.analysis.loops.structure import OpStructure, structure_of
from mlirfuse.support.rewriting import backward_slice, erase_dead

Build = Callable[[ir.Value, Sequence[int], ir.Type], tuple[ir.Value, ir.Value]]
"""Builds a joint reduction of a tensor over dimensions; returns its two results."""


@dataclass(frozen=True)
class DependentReductions:
    """A reduction, and a second one of a function of the difference between the source and the first result.

    Attributes:
        first: the reduction of the source's elements.
        second: the reduction that needs its result.
        difference: the source minus a function of the first result.
        divisor: extents of run time that must be those of what is reduced, as the first result is divided by them;
            None where it is divided by nothing.
    """

    first: OpStructure
    second: OpStructure
    difference: Difference
    divisor: Extents | None = None

    def of_the_same_rows(self, space: IterationSpace) -> bool:
        """Whether both reductions run over the same dimensions, which the difference reads as the first reduction does.

        A value of the kernel has one dimension along each axis at every read. An argument may be read in several ways,
        and a square of a transposed difference may reduce other dimensions or keep another order.
        """
        source = self.difference.source
        axes = {
            space.value_axes.get(source) or space.use_axes[use] for use in ((self.first.op, 0), self.difference.read)
        }
        reduced = {space.reduced.get(s.op, frozenset()) for s in (self.first, self.second)}
        left = {space.value_axes[s.op.results[0]] for s in (self.first, self.second)}
        same = len(axes) == len(reduced) == len(left) == 1
        return (
            same
            and self.first.reduction_loops == self.second.reduction_loops
            and self._divides_by_what_is_reduced(space)
        )

    def _divides_by_what_is_reduced(self, space: IterationSpace) -> bool:
        """Whether the divisor, if there is one, has each reduced dimension of run time once."""
        if self.divisor is None:
            return True
        reads = {op.operands[number]: axes for (op, number), axes in space.use_axes.items()}
        known = [(space.value_axes.get(value) or reads.get(value), axis) for value, axis in self.divisor]
        dims = [None if axes is None else axes[axis] for axes, axis in known]
        counted = sorted(d for d in dims if d is not None)
        reduced = sorted(d for d in space.reduced.get(self.first.op, ()) if space.extents[d] is None)
        return len(counted) == len(dims) and counted == reduced


def merge_reductions(
    module: ir.Operation, match: Callable[[OpStructure], DependentReductions | None], build: Build
) -> Iterable[tuple[ir.Operation, int, int]]:
    """Merges the pairs that match in a module's kernels on tensors, where that saves a pass over the rows.

    Yields each kernel with the number of pairs that are merged, and of those that are not since another reduction needs
    the first result in a pass of its own, which the second one shares.
    """
    for kernel in kernels(module):
        if not is_tile_program(kernel):
            yield (kernel, *merge_reductions_of(kernel, match, build))


def merge_reductions_of(
    kernel: ir.Operation, match: Callable[[OpStructure], DependentReductions | None], build: Build
) -> tuple[int, int]:
    """The same for one kernel on tensors; returns the two numbers."""
    structures = [s for op in body(kernel) if (s := structure_of(op)) is not None]
    found = [pair for s in structures if (pair := match(s)) is not None]
    matched, merged = [], []
    if found and isinstance(space := space_of_structures(structures), IterationSpace):
        matched = [pair for pair in found if pair.of_the_same_rows(space)]
        merged = [pair for pair in matched if not _shares_its_pass(pair, structures, space)]
    for pair in merged:
        _rewrite(pair, build)
    erase_dead([op for op in body(kernel) if op.results])
    return len(merged), len(matched) - len(merged)


def _shares_its_pass(pair: DependentReductions, structures: Sequence[OpStructure], space: IterationSpace) -> bool:
    """Whether a third reduction of the same dimensions waits for the first one, and for no other than the second does.

    It passes over the rows behind the first reduction anyway, and the second one is computed on the way.
    """
    depths, dims = reduction_depths(structures), space.reduced[pair.first.op]
    ops = [s.op for s in structures]
    return any(
        space.reduced.get(s.op) == dims
        and s.op != pair.second.op
        and depths[s.op] == depths[pair.second.op]
        and pair.first.op in backward_slice(s.operands, ops)
        for s in structures
    )


def _rewrite(pair: DependentReductions, build: Build) -> None:
    first, second = pair.first.op, pair.second.op
    with ir.InsertionPoint(first), first.location:
        made = build(pair.difference.source, pair.first.reduction_loops, first.results[0].type)
    for old, new in zip((first, second), made, strict=True):
        old.results[0].replace_all_uses_with(new)
