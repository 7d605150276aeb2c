"""`fuse-flatten-tiles`: moves contiguous tiles of odd rows as one run of memory each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import argument_attributes, is_tile_program, kernels
from mlirfuse.dialect.attributes import ALIGN, DIMS, LAYOUT
from mlirfuse.dialect.flat_attribute import FLAT
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.model.machine import DEFAULT_ALIGNMENT, WIDEST_ACCESS
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import ops_named

DYNAMIC = ir.ShapedType.get_dynamic_size()


@dataclass(frozen=True)
class FuseFlattenTiles(Pass):
    """Marks transfers of tiles that are runs of memory, which rows that are no whole vectors divide.

    Requires tile programs whose schedule has `flat`. Rows of odd lengths start at any address, but a tile of whole rows
    is one run of memory, which threads move in whole vectors, through shared memory (`fuse.flat`). The reads of a block
    are moved next to the first, so that they share a barrier. An array takes part that is an argument, contiguous,
    aligned to 16 bytes, and varies along the whole tile; other arrays are accessed as they lie, and so are ops with a
    layout.

    ```mlir
    %0 = vector.transfer_read %x[%n, %c, %c0], %pad : memref<?x?x49xf16>, vector<1x32x49xf16>
    ```
    becomes
    ```mlir
    %0 = vector.transfer_read %x[%n, %c, %c0], %pad {fuse.flat} : memref<?x?x49xf16>, vector<1x32x49xf16>
    ```
    """

    name: ClassVar[str] = "fuse-flatten-tiles"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for kernel in kernels(module):
            schedule = schedule_of(kernel) if is_tile_program(kernel) else None
            if schedule is None or schedule.contraction is not None:
                continue
            if not schedule.flat:
                remarks.declined(self, "tiles are accessed by rows, as scheduled", kernel)
                continue
            reads = list(_flat(kernel, "vector.transfer_read", schedule.tile))
            writes = list(_flat(kernel, "vector.transfer_write", schedule.tile))
            for op in (*reads, *writes):
                op.attributes[FLAT] = ir.UnitAttr.get()
            _gather(reads)
            if reads or writes:
                remarks.applied(self, f"{len(reads)} read(s) and {len(writes)} write(s) of runs of memory", kernel)
            else:
                remarks.declined(self, "no contiguous array is accessed in whole tiles", kernel)


def _flat(kernel: ir.Operation, name: str, tile: tuple[int, ...]) -> Iterator[ir.Operation]:
    """The transfers of a kernel whose tiles are runs of arguments."""
    arguments, attributes = list(kernel.regions[0].blocks[0].arguments), argument_attributes(kernel)
    for op in ops_named(kernel, name):
        value, buffer = (op.results[0], op.operands[0]) if op.results else op.operands[:2]
        if LAYOUT in op.attributes or DIMS in op.attributes or tuple(ir.VectorType(value.type).shape) != tile:
            continue
        declared = attributes[arguments.index(buffer)].get(ALIGN) if buffer in arguments else None
        aligned = DEFAULT_ALIGNMENT if declared is None else ir.IntegerAttr(declared).value
        if buffer in arguments and aligned >= WIDEST_ACCESS and _is_run(op, ir.MemRefType(buffer.type), tile):
            yield op


def _is_run(op: ir.Operation, type_: ir.MemRefType, tile: tuple[int, ...]) -> bool:
    """Whether a transfer's tile is a run of a contiguous buffer, of which a vector is a part: its rows are whole, and
    only the outermost dimension along which it varies may end before it does.
    """
    if isinstance(type_.layout, ir.StridedLayoutAttr) or from_mlir(type_.element_type).kind == "bool":
        return False
    results = ir.AffineMapAttr(op.attributes["permutation_map"]).value.results
    inside = [ir.BoolAttr(each).value for each in ir.ArrayAttr(op.attributes["in_bounds"])]
    varies = [n for n, side in enumerate(tile) if side > 1]
    axes = [results[n].position if isinstance(results[n], ir.AffineDimExpr) else None for n in varies]
    if not varies or axes != list(range(type_.rank - len(varies), type_.rank)):
        return False
    whole = all(tile[n] == type_.shape[axis] for n, axis in list(zip(varies, axes, strict=True))[1:])
    return (
        whole and all(inside[n] for n in varies[1:]) and tile[-1] * from_mlir(type_.element_type).bytes >= WIDEST_ACCESS
    )


def _gather(reads: list[ir.Operation]) -> None:
    """Moves reads of one block next to the first of them, but those whose operands are computed behind it."""
    for block in dict.fromkeys(op.block for op in reads):
        last, *others = [op for op in reads if op.block == block]
        operations = [op.operation for op in block.operations]
        before = set(operations[: operations.index(last)])
        for op in others:
            made = {v.owner.operation for v in op.operands if not isinstance(v.owner, ir.Block)}
            if all(maker.block != block or maker in before for maker in made):
                op.move_after(last)
                last = op
