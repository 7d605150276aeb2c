"""Operands of a contraction in shared memory, and the position of a warp's accumulators in their tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from mlirfuse.dialect.attributes import PRECISION
from mlirfuse.distribution.distributor import Distributor
from mlirfuse.distribution.threads.fragments import Fragments, widen
from mlirfuse.distribution.threads.scalars import add, constant, multiply
from mlirfuse.errors import PassError
from mlirfuse.support.precision import IEEE
from mlirfuse.tiling.contractions.k_loop import feeds_contraction, operand_producer
from mlirfuse.tiling.memory import strides


@dataclass(frozen=True)
class SharedOperand:
    """An operand's tile in shared memory.

    Attributes:
        slot: the memref that holds it.
        starts: the tile's first index in each dimension of the slot.
        outer: the slot's dimension that runs along the accumulators' rows (or columns).
        k: the slot's dimension that is summed over.
        element_type: type of one element.
    """

    slot: ir.Value
    starts: Sequence[ir.Value]
    outer: int
    k: int
    element_type: ir.Type

    @property
    def k_is_contiguous(self) -> bool:
        return strides(ir.MemRefType(self.slot.type))[self.k] == 1

    @property
    def outer_is_contiguous(self) -> bool:
        """Whether vectors run along the outer dimension: not where neighbours only lie together for a k of one step."""
        last = ir.MemRefType(self.slot.type).rank - 1
        return self.outer == last and strides(ir.MemRefType(self.slot.type))[last] == 1

    def indices(self, outer: ir.Value, k: ir.Value) -> list[ir.Value]:
        """Indices of an element of the tile."""
        at = {self.outer: outer, self.k: k}
        return [add(start, at[d]) if d in at else start for d, start in enumerate(self.starts)]


@dataclass(frozen=True)
class Product:
    """A `vector.contract` whose operands are in shared memory.

    Attributes:
        left: the operand with the accumulators' rows.
        right: the operand with the accumulators' columns.
        steps: elements of k.
        accumulators: the accumulators' values before the op.
        precision: how precisely operands are multiplied (`mlirfuse/support/precision.py`).
    """

    left: SharedOperand
    right: SharedOperand
    steps: int
    accumulators: Fragments
    precision: str

    @property
    def rows(self) -> int:
        """The accumulators' dimension of rows; the dimension of columns is the next one, and the last."""
        return self.accumulators.layout.rank - 2

    @property
    def columns(self) -> int:
        return self.accumulators.layout.rank - 1


def product_of(d: Distributor, op: ir.Operation) -> Product:
    """Reads a contraction; raises `PassError` where an operand is not in shared memory."""
    maps = [m.value for m in op.attributes["indexing_maps"]]
    loops = [[expr.position for expr in m.results] for m in maps]
    rank = len(loops[2])
    operands = []
    for number, outer in ((0, rank - 2), (1, rank - 1)):
        read = operand_producer(op.operands[number])
        if read is None or read.name != "vector.transfer_read" or not feeds_contraction(read):
            raise PassError(
                f"operand {number} of the contraction is not read from memory by a vector.transfer_read of its own",
                where=op,
            )
        slot = d.scalars[read.operands[0]]
        if "workgroup" not in str(ir.MemRefType(slot.type).memory_space):
            raise PassError(f"operand {number} is not in shared memory", where=op, hint="run fuse-stage-operands first")
        starts = [d.scalars[v] for v in list(read.operands)[1 : 1 + ir.MemRefType(slot.type).rank]]
        element = ir.MemRefType(slot.type).element_type
        operands.append(SharedOperand(slot, starts, loops[number].index(outer), loops[number].index(rank), element))
    steps = ir.VectorType(op.operands[0].type).shape[operands[0].k]
    precision = ir.StringAttr(op.attributes[PRECISION]).value if PRECISION in op.attributes else IEEE
    return Product(operands[0], operands[1], steps, _accumulators(d, op), precision)


def _accumulators(d: Distributor, op: ir.Operation) -> Fragments:
    tile = d.tile(op.operands[2])
    if isinstance(tile, Fragments):
        return tile
    accumulators = ir.VectorType(op.operands[2].type)
    fragments = Fragments(d.layout, tuple(accumulators.shape), accumulators.element_type)
    number = tile.value
    fragments.make = lambda key: widen(number, fragments.width)
    return fragments


def warp_start(d: Distributor, dim: int) -> ir.Value:
    """Index in the tile of the first element of the current warp along a dimension."""
    warp = d.threads.warp[dim]
    step = d.layout.within(dim) * d.layout.span(dim)
    return constant(0) if warp is None else multiply(warp, step)
