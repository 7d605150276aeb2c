"""`fuse-materialize-prologues`: stores computed operands of a contraction to shared memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, gpu, vector

from mlirfuse.analysis.kernels import is_tile_program, kernels
from mlirfuse.dialect.attributes import LAYOUT
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.contractions.thread_layouts import prologue_layout
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.support.dataclass_attributes import to_attribute
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.postorder import postorder
from mlirfuse.support.rewriting import clone, defining_op, ops_named
from mlirfuse.tiling.contractions.k_loop import operand_producer, use_fallback
from mlirfuse.tiling.slot_ring import SlotRing, padded_row
from mlirfuse.tiling.tiles import index, zero

SLOTS = 2
"""Two slots: one is written while slower warps still read the other, with one barrier a step."""

READ = "vector.transfer_read"
ROOTS = (READ, "vector.create_mask", "vector.constant_mask")
"""Ops whose value depends on the layout, and not on that of an operand."""


@dataclass(frozen=True)
class FuseMaterializePrologues(Pass):
    """Stores operands that a k-loop computes to shared memory, from which the multiplication reads them.

    Requires tile programs with a `contraction` in their schedule. The reads, the masks and the arithmetic of such an
    operand get a layout of their own, in which threads are contiguous along its rows; after a barrier, the contraction
    reads the elements of all threads. Reads that are the same in every step move out of the loop. What an operand is
    computed from and another op uses too is cloned for the operand, since the other op may be in another layout.

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
    """

    name: ClassVar[str] = "fuse-materialize-prologues"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        for kernel in kernels(module):
            schedule = schedule_of(kernel) if is_tile_program(kernel) else None
            if schedule is None or schedule.contraction is None:
                continue
            for contract in ops_named(kernel, "vector.contract"):
                computed = [number for number in (0, 1) if _is_computed(contract.operands[number])]
                if not computed:
                    remarks.declined(self, "the operands are read from memory as they are", contract)
                    continue
                with contract.location:
                    _store(contract, {n: _enter_layout(contract, n, schedule.layout.threads) for n in computed})
                fallback = use_fallback(contract)
                which = "" if fallback is None else f" for {fallback}"
                remarks.applied(self, f"{len(computed)} operand(s) computed in a layout of their own{which}", contract)


def _is_computed(operand: ir.Value) -> bool:
    maker = operand_producer(operand)
    return maker is not None and maker.name != READ


def _enter_layout(contract: ir.Operation, number: int, threads: int) -> ir.Attribute:
    """Gives the reads and masks that an operand is computed from a layout, and hoists loop-invariant reads."""
    tile = ir.VectorType(contract.operands[number].type)
    layout = to_attribute(prologue_layout(tile.shape, from_mlir(tile.element_type).bytes, threads))
    loop = contract.parent.operation
    for root in [op for op in _own_expression(contract, number) if op.name in ROOTS]:
        root.attributes[LAYOUT] = layout
        if root.name == READ and loop.name == "scf.for" and not any(_varies(v, loop) for v in root.operands):
            _hoist(root, loop)
    return layout


def _own_expression(contract: ir.Operation, number: int) -> list[ir.Operation]:
    """The ops of an operand's expression, after cloning those that anything else uses too.

    Other users, the contraction's other operand included, keep the originals, which may be in another layout.
    """
    expression = _expression(contract.operands[number])
    shared = _shared(expression, contract, number)
    copies: dict[ir.Value, ir.Value] = {}
    own = []
    for op in expression:
        if op in shared:
            with ir.InsertionPoint(op):
                own.append(clone(op, copies))
        else:
            _replace_operands(op, copies)
            own.append(op)
    operand = contract.operands[number]
    contract.operands[number] = copies.get(operand, operand)
    return own


def _shared(expression: Sequence[ir.Operation], contract: ir.Operation, number: int) -> set[ir.Operation]:
    """The ops of an operand's expression, in program order, that ops outside of the expression depend on."""
    members, shared = set(expression), set()
    for op in reversed(expression):
        for use in (use for result in op.results for use in result.uses):
            user = use.owner.operation
            is_operand = user == contract and use.operand_number == number
            if not is_operand and (user not in members or user in shared):
                shared.add(op)
    return shared


def _replace_operands(op: ir.Operation, copies: dict[ir.Value, ir.Value]) -> None:
    for number, operand in enumerate(op.operands):
        if operand in copies:
            op.operands[number] = copies[operand]


def _expression(operand: ir.Value) -> list[ir.Operation]:
    """The ops of an operand's expression whose values have a layout: `ROOTS`, and ops that depend on one.

    The order is that of dependences. All other ops of the expression compute constants, equal in every layout.
    """
    members: dict[ir.Operation, None] = {}
    for op in postorder(_vectors([operand]), lambda op: _vectors(op.operands)):
        if op.name in ROOTS or not members.keys().isdisjoint(_vectors(op.operands)):
            members[op] = None
    return list(members)


def _vectors(values: Iterable[ir.Value]) -> list[ir.Operation]:
    """What makes those of some values that are vectors."""
    makers = [defining_op(value) for value in values if isinstance(value.type, ir.VectorType)]
    return [maker for maker in makers if maker is not None]


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
    """Moves an op of a loop's body, and the ops that it depends on, before the loop."""
    if op.parent.operation != loop:
        return
    for operand in op.operands:
        maker = defining_op(operand)
        if maker is not None:
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
