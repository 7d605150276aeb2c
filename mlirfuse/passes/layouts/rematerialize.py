"""`fuse-rematerialize`: recomputes values that live across a reduction from tiles in shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import is_tile_program, kernels
from mlirfuse.analysis.memory.shared_memory import is_shared, writes_shared
from mlirfuse.dialect.optimization_barrier import optimization_barrier
from mlirfuse.passes.layouts.reduction_points import REDUCTIONS, is_tile, with_unit_dims
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.support.rewriting import clone, defining_op, nested

CHEAP = frozenset(
    f"arith.{name}"
    for name in (
        *("addf", "subf", "mulf", "negf", "maximumf", "minimumf", "extf", "truncf", "select", "cmpf"),
        *("addi", "subi", "muli", "extsi", "extui", "trunci", "cmpi", "andi", "ori", "xori"),
    )
) | {"vector.broadcast", "vector.shape_cast", "vector.transfer_read", "fuse.optimization_barrier"}
"""Ops that cost less than keeping their results; reads are of shared memory only."""


@dataclass(frozen=True)
class FuseRematerialize(Pass):
    """Repeats, after a reduction, reads of shared memory and the arithmetic on them whose results are used beyond it.

    Requires tile programs scheduled with `order = "depth"`, which saves registers, in which a loop reads tiles from
    shared memory that its step does not overwrite after the read. Such a tile then takes no registers across the
    reduction. Values that are expensive, or do not come from shared memory, stay as they are; row values and
    loop-invariant values are used without recomputation.

    ```mlir
    %x = vector.transfer_read %slot[%c0, %c0], %pad : memref<1x4096xbf16, ...>, vector<1x4096xbf16>
    %w = arith.extf %x
    %s = vector.multi_reduction <add>, %w, %zero [1]
    %y = arith.subf %w, %mean
    ```
    becomes
    ```mlir
    %x = vector.transfer_read %slot[%c0, %c0], %pad : memref<1x4096xbf16, ...>, vector<1x4096xbf16>
    %w = arith.extf %x
    %s = vector.multi_reduction <add>, %w, %zero [1]
    %x2 = vector.transfer_read %slot[%c0, %c0], %pad : memref<1x4096xbf16, ...>, vector<1x4096xbf16>
    %w2 = arith.extf %x2
    %y = arith.subf %w2, %mean
    ```
    """

    name: ClassVar[str] = "fuse-rematerialize"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        for kernel in kernels(module):
            if not is_tile_program(kernel):
                continue
            if schedule_of(kernel).order != "depth":
                remarks.declined(self, "scheduled with order = 'breadth', which does not save registers", kernel)
                continue
            repeated = sum(_Step(op).rematerialize() for op in nested(kernel) if op.name == "scf.for")
            if repeated:
                remarks.applied(self, f"{repeated} op(s) repeated after a reduction", kernel)
            else:
                remarks.declined(self, "no tile of shared memory is used across a reduction", kernel)


@dataclass
class _Step:
    """One step of a loop, and the position of each of its ops."""

    loop: ir.Operation
    ops: Sequence[ir.Operation] = field(init=False)
    position: dict[ir.Operation, int] = field(init=False)

    def __post_init__(self) -> None:
        self.ops = [op.operation for op in self.loop.regions[0].blocks[0].operations]
        self.position = {op: number for number, op in enumerate(self.ops)}

    def rematerialize(self) -> int:
        """Repeats ops in a loop; returns their number."""
        # Reductions are exchanged together, before the first use of one of their results.
        reductions = {self._first_use(op): op for op in self.ops if op.name in REDUCTIONS}
        starts = sorted(reductions)
        repeated = 0
        for start, end in zip(starts, [*starts, len(self.ops)][1:], strict=True):
            copies: dict[ir.Value, ir.Value] = {}
            for user in self.ops[start:end]:
                for number, operand in enumerate(user.operands):
                    if self._lives_across(operand, start) and self._is_repeatable(operand):
                        user.operands[number] = self._copy(operand, user, reductions[start], copies)
            repeated += len(copies)
        return repeated

    def _first_use(self, op: ir.Operation) -> int:
        """The position in this step of the first use of a result other than a change of shape."""
        first = len(self.ops)
        for result in op.results:
            for use in result.uses:
                user = use.owner.operation
                if user.name in ("vector.shape_cast", "vector.broadcast"):
                    first = min(first, self._first_use(user))
                else:
                    first = min(first, self.position.get(user, first))
        return first

    def _lives_across(self, value: ir.Value, start: int) -> bool:
        """Whether a tile of this step is made before the op of that number."""
        maker = defining_op(value)
        return maker in self.position and self.position[maker] < start and _takes_registers(value)

    def _is_repeatable(self, value: ir.Value) -> bool:
        """Whether a tile comes from shared memory by cheap ops alone."""
        return all(self._is_cheap(op) for op in self._makers(value))

    def _makers(self, value: ir.Value) -> Iterator[ir.Operation]:
        """The ops of this step that compute a tile, back to values that are no tiles, each once."""
        open_, seen = [value], set[ir.Operation]()
        while open_:
            tile = open_.pop()
            maker = defining_op(tile)
            if maker is None or maker in seen or maker not in self.position or not _takes_registers(tile):
                continue
            seen.add(maker)
            yield maker
            open_ += maker.operands

    def _is_cheap(self, op: ir.Operation) -> bool:
        if op.name != "vector.transfer_read":
            return op.name in CHEAP
        return is_shared(op.operands[0]) and not any(
            writes_shared(later) for later in self.ops[self.position[op] + 1 :]
        )

    def _copy(
        self, value: ir.Value, before: ir.Operation, reduction: ir.Operation, copies: dict[ir.Value, ir.Value]
    ) -> ir.Value:
        """A tile, computed again in front of `before`.

        An optimization barrier of the tile in front of the reduction is replaced by one behind the reduction.
        """
        maker = defining_op(value)
        if value in copies:
            return copies[value]
        if maker is None or maker not in self.position or not _takes_registers(value):
            return value
        mapping = {operand: self._copy(operand, before, reduction, copies) for operand in maker.operands}
        with ir.InsertionPoint(before), maker.location:
            if maker.name == "fuse.optimization_barrier":
                copies[value] = optimization_barrier(mapping[maker.operands[0]], with_unit_dims(reduction))
            else:
                copies[value] = clone(maker, mapping).results[0]
        return copies[value]


def _takes_registers(value: ir.Value) -> bool:
    """Whether a thread holds many elements of a value; a row value is one number, even where it is broadcast."""
    maker = defining_op(value)
    return is_tile(value) and not (
        maker is not None and maker.name == "vector.broadcast" and not is_tile(maker.operands[0])
    )
