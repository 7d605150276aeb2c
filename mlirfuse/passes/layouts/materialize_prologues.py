"""`fuse-materialize-prologues`: stores computed operands of a contraction to shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, gpu, vector

from mlirfuse.analysis.kernels import is_tile_program, kernels
from mlirfuse.dialect.attributes import LAYOUT
from mlirfuse.errors import PassError
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.contractions.prologue_layout import prologue_layout
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.support.dataclass_attributes import to_attribute
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import defining_op, nested
from mlirfuse.tiling.contractions.k_loop import operand_producer, without_warpgroups
from mlirfuse.tiling.slot_ring import SlotRing, padded_row
from mlirfuse.tiling.tiles import index, zero

SLOTS = 2
"""Two slots: one is written while slower warps still read the other, with one barrier a step."""

MASKS = ("vector.create_mask", "vector.constant_mask")
"""Ops without a read whose value still depends on the layout."""


@dataclass(frozen=True)
class FuseMaterializePrologues(Pass):
    """Stores operands that a k-loop computes to shared memory, from which the multiplication reads them.

    Requires tile programs with a `contraction` in their schedule. The reads, the masks and the arithmetic of such an
    operand get a layout of their own, in which threads are contiguous along its rows; after a barrier, the contraction
    reads the elements of all threads. Reads that are the same in every step move out of the loop.

    ```mlir
    scf.for %k = %c0 to %c512 step %c32 iter_args(%sum = %zero) {
      %q = vector.transfer_read %w[%n, %k], %pad : memref<384x512xi8>, vector<128x32xi8>
      %b = arith.sitofp %q : vector<128x32xi8> to vector<128x32xf16>
      %next = vector.contract ... %a, %b, %sum
    ```
    becomes
    ```mlir
    %slots = memref.alloc() : memref<2x128x40xf16, #gpu.address_space<workgroup>>
    scf.for %k = %c0 to %c512 step %c32 iter_args(%sum = %zero) {
      %q = vector.transfer_read %w[%n, %k], %pad {fuse.layout = ...} : memref<384x512xi8>, vector<128x32xi8>
      %0 = arith.sitofp %q : vector<128x32xi8> to vector<128x32xf16>
      vector.transfer_write %0, %slot[%c0, %c0] {fuse.layout = ...} : vector<128x32xf16>, memref<128x32xf16, ...>
      gpu.barrier
      %b = vector.transfer_read %slot[%c0, %c0], %pad : memref<128x32xf16, ...>, vector<128x32xf16>
      %next = vector.contract ... %a, %b, %sum
    ```

    Raises `PassError` where an operand is computed from values that other ops use too.
    """

    name: ClassVar[str] = "fuse-materialize-prologues"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        for kernel in kernels(module):
            schedule = schedule_of(kernel) if is_tile_program(kernel) else None
            if schedule is None or schedule.contraction is None:
                continue
            for contract in [op for op in nested(kernel) if op.name == "vector.contract"]:
                computed = [number for number in (0, 1) if _is_computed(contract.operands[number])]
                if not computed:
                    remarks.declined(self, "the operands are read from memory as they are", contract)
                    continue
                with contract.location:
                    _store(contract, {n: _enter_layout(contract, n, schedule.layout.threads) for n in computed})
                by_mma = " for mma.sync" if without_warpgroups(contract) else ""
                remarks.applied(self, f"{len(computed)} operand(s) computed in a layout of their own{by_mma}", contract)


def _is_computed(operand: ir.Value) -> bool:
    maker = operand_producer(operand)
    return maker is not None and maker.name != "vector.transfer_read"


def _enter_layout(contract: ir.Operation, number: int, threads: int) -> ir.Attribute:
    """Gives the reads that an operand is computed from a layout, and hoists loop-invariant ones."""
    operand = contract.operands[number]
    tile = ir.VectorType(operand.type)
    layout = to_attribute(prologue_layout(tile.shape, from_mlir(tile.element_type).bytes, threads))
    loop = contract.parent.operation
    reads, masks = _reads_behind(operand, contract)
    for mask, users in masks.items():
        _own_mask(mask, users).attributes[LAYOUT] = layout
    for read in reads:
        if LAYOUT in read.attributes:
            raise PassError("a tile is read for two operands", where=read)
        read.attributes[LAYOUT] = layout
        if loop.name == "scf.for" and not any(_varies(v, loop) for v in read.operands):
            _hoist(read, loop)
    return layout


def _reads_behind(
    operand: ir.Value, user: ir.Operation
) -> tuple[list[ir.Operation], dict[ir.Operation, list[ir.Operation]]]:
    """The reads of memory that an operand is computed from, and the masks, each with its users for the operand.

    Constants are the same in every layout.

    Raises:
        PassError: another op uses the reads' results.
    """
    reads: dict[ir.Operation, None] = {}
    masks: dict[ir.Operation, list[ir.Operation]] = {}
    members = {user: True}

    def visit(value: ir.Value) -> bool:
        maker = defining_op(value)
        if maker is None or not isinstance(value.type, ir.VectorType):
            return False
        if maker not in members:
            if maker.name == "vector.transfer_read":
                reads[maker] = None
            behind = [visit(operand) for operand in maker.operands]
            members[maker] = maker in reads or any(behind)
            for mask in {m for o in maker.operands if (m := defining_op(o)) is not None and m.name in MASKS}:
                masks.setdefault(mask, []).append(maker)
        return members[maker]

    visit(operand)
    for op in [op for op, reads_memory in members.items() if reads_memory and op != user]:
        if any(use.owner.operation not in members for result in op.results for use in result.uses):
            raise PassError("part of an operand's expression is used elsewhere as well", where=op)
    return list(reads), masks


def _own_mask(mask: ir.Operation, users: Sequence[ir.Operation]) -> ir.Operation:
    """The mask, or a copy of it for these users where it has others, which may be in another layout."""
    if all(use.owner.operation in users for use in mask.results[0].uses):
        return mask
    with ir.InsertionPoint(mask):
        copy = mask.clone().operation
    for user in users:
        for number, operand in enumerate(user.operands):
            if operand == mask.results[0]:
                user.operands[number] = copy.results[0]
    return copy


def _varies(value: ir.Value, loop: ir.Operation) -> bool:
    """Whether a value varies between the steps of a loop: computed from the induction variable or a loop-carried
    value.
    """
    block = loop.regions[0].blocks[0]
    if isinstance(value.owner, ir.Block):
        return value.owner == block
    maker = value.owner.operation
    return maker.parent.operation == loop and any(_varies(operand, loop) for operand in maker.operands)


def _hoist(op: ir.Operation, loop: ir.Operation) -> None:
    """Moves an op, and what it needs, before a loop."""
    for operand in op.operands:
        maker = defining_op(operand)
        if maker is not None and maker.parent.operation == loop:
            _hoist(maker, loop)
    op.move_before(loop)


def _store(contract: ir.Operation, computed: dict[int, ir.Attribute]) -> None:
    """Puts operands, each in its layout, into shared memory, and has the contraction read them from there."""
    loop = contract.parent.operation
    in_loop = loop.name == "scf.for"
    tiles = [ir.VectorType(contract.operands[number].type) for number in computed]
    with ir.InsertionPoint(loop) if in_loop else ir.InsertionPoint.at_block_begin(contract.block):
        rings = [SlotRing(t.element_type, SLOTS if in_loop else 1, t.shape, padded_row(t)) for t in tiles]
    slot = _slot(loop) if in_loop else None
    for (number, layout), ring in zip(computed.items(), rings, strict=True):
        maker = defining_op(contract.operands[number])
        assert maker is not None  # checked by _is_computed
        # A loop-invariant operand is computed before the loop, but stored in each step.
        with ir.InsertionPoint.after(maker) if maker.block == contract.block else ir.InsertionPoint(contract):
            write = vector.TransferWriteOp(
                None,
                maker.results[0],
                ring.slot(slot or index(0)),
                [index(0)] * len(ring.shape),
                ir.AffineMapAttr.get(ir.AffineMap.get_identity(len(ring.shape))),
                in_bounds=ir.ArrayAttr.get([ir.BoolAttr.get(True)] * len(ring.shape)),
            )
        write.operation.attributes[LAYOUT] = layout
    with ir.InsertionPoint(contract):
        gpu.BarrierOp()
        for number, ring, tile in zip(computed, rings, tiles, strict=True):
            padding = arith.ConstantOp(tile.element_type, zero(tile.element_type)).result
            contract.operands[number] = ring.tile(slot or index(0), tile, padding)


def _slot(loop: ir.Operation) -> ir.Value:
    """The number of the slot that a step of a loop stores to."""
    with ir.InsertionPoint.at_block_begin(loop.regions[0].blocks[0]):
        lower, _, step, *_ = loop.operands
        gone = arith.SubIOp(loop.regions[0].blocks[0].arguments[0], lower).result
        return arith.RemUIOp(arith.DivUIOp(gone, step).result, index(SLOTS)).result
