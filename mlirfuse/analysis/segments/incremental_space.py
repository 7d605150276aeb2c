"""The iteration space of a segment, updated while the segment grows.

If all loops of a segment were unified again for each new op, the time would be quadratic in the number of ops. Most ops
are elementwise, on values whose dimensions are known, and unify no dimensions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mlir import ir

from mlirfuse.analysis.contractions.contraction import contraction_in
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.structure import OpStructure

Axes = tuple[int | None, ...]


@dataclass
class IncrementalSpace:
    """The dimensions of a group of ops, and of all values that they read and make.

    Attributes:
        extents: extent of each dimension; None if dynamic.
        axes: the dimension of each axis of a value (None for extent 1); None for a value that is read in several ways.
        reads: all operands of the ops, also those without a read of elements.
        closed: whether `try_add` adds no op: ops after a contraction, or after a sum over a dynamic extent, must meet
            more conditions than matching loops.
    """

    extents: tuple[int | None, ...]
    axes: dict[ir.Value, Axes | None]
    reads: set[ir.Value]
    closed: bool

    @staticmethod
    def of(space: IterationSpace, structures: Sequence[OpStructure]) -> IncrementalSpace:
        """The incremental space of ops whose iteration space is known."""
        sums_at_run_time = any(space.extents[d] is None for d in space.reduced_dims)
        closed = sums_at_run_time or contraction_in(space, structures) is not None
        growing = IncrementalSpace(space.extents, dict(space.value_axes), set(), closed)
        for s in structures:
            growing.reads.update(s.operands)
            growing._read(
                (s.operands[n], axes) for n in range(len(s.operands)) if (axes := space.use_axes.get((s.op, n)))
            )
        return growing

    def try_add(self, structure: OpStructure) -> bool:
        """Adds an op that does not change the dimensions; returns False, and adds nothing, for any other op.

        Such an op reduces nothing, its loops run along different dimensions of known operands, and it adds no
        information about dynamic extents.
        """
        loops = None if self.closed or structure.reduction_loops else self._loops(structure)
        if loops is None:
            return False
        s = structure
        read = [
            (operand, dims)
            for operand, axes, extents in zip(s.operands, s.operand_axes, s.operand_extents, strict=True)
            if axes is not None and (dims := self._dims_of(axes, extents, loops)) is not None
        ]
        result_axes = [
            self._dims_of(axes, extents, loops) for axes, extents in zip(s.result_axes, s.result_extents, strict=True)
        ]
        if len(read) < sum(axes is not None for axes in s.operand_axes) or None in result_axes:
            return False
        self.reads.update(s.operands)
        self._read(read)
        self.axes.update(zip(s.op.results, result_axes, strict=True))
        return True

    def _loops(self, structure: OpStructure) -> list[int | None] | None:
        """The dimension of each loop, from known operands; None if operands disagree."""
        loops: list[int | None] = [None] * structure.loop_count
        for operand, axes in zip(structure.operands, structure.operand_axes, strict=True):
            if axes is None or operand not in self.axes:
                continue
            dims = self.axes[operand]
            if dims is None:
                return None
            for loop, dim in zip(axes, dims, strict=True):
                if loop is None or dim is None:
                    continue
                if loops[loop] not in (None, dim):
                    return None
                loops[loop] = dim
        known = [dim for dim in loops if dim is not None]
        return loops if len(set(known)) == len(known) else None

    def _dims_of(self, axes: Axes, extents: Sequence[int | None], loops: Sequence[int | None]) -> Axes | None:
        """The dimension of each axis of a value; None if one is unknown, or has another extent than its axis."""
        dims: list[int | None] = []
        for loop, extent in zip(axes, extents, strict=True):
            dim = None if loop is None or extent == 1 else loops[loop]
            if extent != 1 and (dim is None or extent not in (None, self.extents[dim])):
                return None
            dims.append(dim)
        return tuple(dims)

    def _read(self, readings: Iterable[tuple[ir.Value, Axes]]) -> None:
        for value, axes in readings:
            if self.axes.setdefault(value, axes) != axes:
                self.axes[value] = None
