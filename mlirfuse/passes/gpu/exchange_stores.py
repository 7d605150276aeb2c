"""`fuse-exchange-stores`: warps store the runs of their threads as whole lines, through shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import gcd
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, gpu, nvvm, scf, vector

from mlirfuse.analysis.kernels import block_threads, gpu_kernels, least_resident_blocks, symbol
from mlirfuse.analysis.memory.buffers import is_nontemporal
from mlirfuse.dialect.module_target import target_of_module
from mlirfuse.dialect.shared_memory import is_workgroup, workgroup_memref
from mlirfuse.distribution.threads.guard import Guard
from mlirfuse.distribution.threads.scalars import add, constant, divide, less, multiply, remainder
from mlirfuse.distribution.workgroup_buffers import add_workgroup_buffer
from mlirfuse.passes.gpu.lanes import in_first_lane, lane_step
from mlirfuse.passes.gpu.merge_guards import STORES, guards_stores
from mlirfuse.passes.gpu.row_accesses import RowStores, aligned_elements, rows_of_stores
from mlirfuse.passes.gpu.view_indices import as_row
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.layout import WARP
from mlirfuse.schedule.model.machine import STORED_RUNS_BYTES, WIDEST_ACCESS
from mlirfuse.schedule.model.residency import shared_left
from mlirfuse.support.dtypes import bytes_of, from_mlir
from mlirfuse.support.rewriting import clone, defining_op, erase
from mlirfuse.target import Target
from mlirfuse.tiling.memory import strides

BELOW = frozenset(
    predicate.value for predicate in (arith.CmpIPredicate.ult, arith.CmpIPredicate.slt, arith.CmpIPredicate.ule)
)
"""Comparisons that say that an index is below a bound."""


@dataclass(frozen=True)
class FuseExchangeStores(Pass):
    """Makes stores of runs of threads, which lie lane beside lane, stores of whole lines by warps.

    Requires one thread's code (`gpu.func`), behind `fuse-merge-stores`. Where threads have several accesses side by
    side, as of joined arrays that interleave, or rows of few elements, each access of a warp is spread over many
    lines, of which the L2 gets pieces. Through shared memory, each access of the warp is a run of lines; a warp barrier
    stands between. Where rows may end inside of a tile, the warps that are inside with all lanes do so, and the others
    store as they did. Declines for runs of one access, for those whose distance between lanes is not their length, in
    code that only some lanes of a warp reach otherwise, and where the runs of a block are more than 48 KB, or than what
    as many blocks as an SM is to hold leave of its shared memory.

    ```mlir
    %i = ...                                          // 36 elements from lane to lane
    vector.store %a, %y[%i] : memref<4608xf32>, vector<4xf32>
    ...                                               // nine of them
    vector.store %z, %y[%i + 32] : memref<4608xf32>, vector<4xf32>
    ```
    becomes
    ```mlir
    vector.store %a, %shared[%own] : memref<4608xf32, #gpu.address_space<workgroup>>, vector<4xf32>
    ...
    nvvm.bar.warp.sync %all
    %0 = vector.load %shared[%lane * 4] ...
    vector.store %0, %y[%first + %lane * 4] ...
    ...                                               // nine of each
    nvvm.bar.warp.sync %all
    ```
    """

    name: ClassVar[str] = "fuse-exchange-stores"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        target = target_of_module(module)
        for kernel in gpu_kernels(module):
            threads = block_threads(kernel)
            runs = list(_runs(kernel, threads, target))
            if not runs:
                remarks.declined(self, "no runs of a warp's threads lie one beside the other", kernel)
                continue
            stores = sum(len(run.row.stores) for run in runs)
            shared = _places(kernel, threads, runs)
            of_block: dict[ir.Block, list[_Run]] = {}
            for run in runs:
                of_block.setdefault(run.block, []).append(run)
            for of_one in of_block.values():
                _exchange_block(of_one, shared)
            remarks.applied(self, f"{stores} stores of {symbol(kernel)} are of whole warps", kernel)


@dataclass(frozen=True)
class _Run:
    """Stores of a thread that make one run of memory, which ends where that of the next lane begins.

    Attributes:
        row: the stores, in program order.
        first: the number of its first element.
        end: that behind its last one.
    """

    row: RowStores
    first: int
    end: int

    @property
    def length(self) -> int:
        """Elements of the run."""
        return self.end - self.first

    @property
    def block(self) -> ir.Block:
        return next(iter(self.row.stores.values())).block

    @property
    def bytes(self) -> int:
        return self.length * from_mlir(self.element).bytes

    @property
    def element(self) -> ir.Type:
        return ir.MemRefType(self.row.array.type).element_type


def _runs(kernel: ir.Operation, threads: int, target: Target) -> Iterator[_Run]:
    """The runs that can be exchanged of a kernel with blocks of so many threads, 0 for an unknown number."""
    if not threads or threads % WARP:
        return
    room = min(STORED_RUNS_BYTES, _shared_left(kernel, target)) // threads
    longest: dict[ir.Type, int] = {}
    for row in rows_of_stores(kernel, STORES):
        apart = _lanes_apart(row)
        for run in _runs_of(row) if apart else ():
            taken = longest | {run.element: max(run.bytes, longest.get(run.element, 0))}
            fits = len(run.row.stores) > 1 and run.length == apart and sum(taken.values()) <= room
            if fits and _is_reached_together(run.block):
                longest = taken
                yield run


def _shared_left(kernel: ir.Operation, target: Target) -> int:
    """Bytes of shared memory that a block may have beside what it has."""
    blocks = max(1, least_resident_blocks(kernel))
    buffers = [value.type for value in kernel.regions[0].blocks[0].arguments if is_workgroup(value.type)]
    return shared_left(blocks, target) - sum(map(bytes_of, buffers))


def _lanes_apart(row: RowStores) -> int:
    """Elements from the stores of a lane to those of the next one; 0 where that is not known."""
    type_ = ir.MemRefType(row.array.type)
    steps = strides(type_)
    if from_mlir(type_.element_type).kind == "bool" or row.rest is None or None in steps or steps[-1] != 1:
        return 0
    if type_.rank > 1 and not type_.has_static_shape:
        return 0
    moved = [lane_step(index) for index in (*row.at, row.rest)]
    known = [step for step in moved if step is not None]
    if len(known) < len(moved):
        return 0
    return sum(step * (stride or 0) for step, stride in zip(known, steps, strict=True))


def _runs_of(row: RowStores) -> Iterator[_Run]:
    """Stores to a row that have no gaps between them, together."""
    ends = list[tuple[int, int]]()
    for number in sorted(row.stores):
        end = number + _width(row.stores[number])
        if ends and ends[-1][1] == number:
            ends[-1] = ends[-1][0], end
        else:
            ends.append((number, end))
    for first, end in ends:
        stores = {number: op for number, op in row.stores.items() if first <= number < end}
        yield _Run(replace(row, stores=stores), first, end)


def _width(store: ir.Operation) -> int:
    """Elements that an op stores."""
    type_ = store.operands[0].type
    return ir.VectorType(type_).shape[0] if isinstance(type_, ir.VectorType) else 1


def _is_reached_together(block: ir.Block) -> bool:
    """Whether all lanes of a warp run a block, or it is a branch of a condition that all of them can know of."""
    op = block.owner.operation
    if guards_stores(op):
        if not _is_known_at_ends(op.operands[0]):
            return False
        op = op.parent.operation
    while op.name != "gpu.func":
        conditions = list(op.operands)[:3] if op.name == "scf.for" else list(op.operands) if op.name == "scf.if" else []
        if not conditions or any(lane_step(value) != 0 for value in conditions):
            return False
        op = op.parent.operation
    return True


def _is_known_at_ends(condition: ir.Value) -> bool:
    """Whether a condition is true in all lanes where it is in the first and in the last one: of an index that grows
    from lane to lane it says that it is below a bound.
    """
    op = defining_op(condition)
    if lane_step(condition) == 0:
        return True
    if op is None or op.name == "arith.andi":
        return op is not None and all(map(_is_known_at_ends, op.operands))
    if op.name != "arith.cmpi" or ir.IntegerAttr(op.attributes["predicate"]).value not in BELOW:
        return False
    index, bound = op.operands
    step = lane_step(index)
    return step is not None and step > 0 and lane_step(bound) == 0


def _in_all_lanes(condition: ir.Value) -> ir.Value:
    """Whether a condition is true in all lanes, where `_is_known_at_ends`; emitted here."""
    op = defining_op(condition)
    if op is None or lane_step(condition) == 0:
        return condition
    if op.name == "arith.andi":
        return arith.AndIOp(*map(_in_all_lanes, op.operands)).result
    index, bound = op.operands
    first, steps = in_first_lane(index), (WARP - 1) * (lane_step(index) or 0)
    last = arith.AddIOp(first, arith.ConstantOp(index.type, ir.IntegerAttr.get(index.type, steps)).result).result
    ends = [arith.CmpIOp(op.attributes["predicate"], end, bound).result for end in (first, last)]
    return arith.AndIOp(*ends).result


@dataclass(frozen=True)
class _Places:
    """An array in shared memory in which each warp has places of its own, whatever runs its threads exchange: a warp
    may have come to its next runs while another exchanges these.

    Attributes:
        buffer: it.
        of_warp: elements of a warp.
    """

    buffer: ir.Value
    of_warp: int


def _places(kernel: ir.Operation, threads: int, runs: Sequence[_Run]) -> dict[ir.Type, _Places]:
    """For each type of elements an array in shared memory, in which each thread has a place for its longest run."""
    longest: dict[ir.Type, int] = {}
    for run in runs:
        longest[run.element] = max(run.length, longest.get(run.element, 0))
    with kernel.location:
        return {
            element: _Places(add_workgroup_buffer(kernel, workgroup_memref([threads * length], element)), WARP * length)
            for element, length in longest.items()
        }


def _exchange_block(runs: Sequence[_Run], shared: Mapping[ir.Type, _Places]) -> None:
    """Exchanges the runs of a block; of a branch in a copy of it, for warps whose lanes all take it."""
    branch = runs[0].block.owner.operation
    if not guards_stores(branch):
        for run in runs:
            _exchange(run, shared[run.element])
        return
    with ir.InsertionPoint(branch), branch.location:
        whole = scf.IfOp(_in_all_lanes(branch.operands[0]), has_else=True)
        copies: dict[ir.Value, ir.Value] = {}
        of: dict[ir.Operation, ir.Operation] = {}
        with ir.InsertionPoint(whole.then_block):
            for op in branch.regions[0].blocks[0].operations:
                of[op.operation] = clone(op.operation, copies)
        with ir.InsertionPoint(whole.else_block):
            otherwise = scf.YieldOp([])
    branch.move_before(otherwise)
    for run in runs:
        row = run.row
        stores = {number: of[op] for number, op in row.stores.items()}
        at = tuple(copies.get(index, index) for index in row.at)
        rest = None if row.rest is None else copies.get(row.rest, row.rest)
        _exchange(replace(run, row=replace(row, at=at, rest=rest, stores=stores)), shared[run.element])


def _exchange(run: _Run, shared: _Places) -> None:
    """Replaces the stores of a run, at the last of them."""
    row, order = run.row, list(run.row.stores.values())
    size, nontemporal = from_mlir(run.element).bytes, is_nontemporal(order[-1]) or None
    with ir.InsertionPoint(order[-1]), order[-1].location:
        thread = gpu.thread_id(gpu.Dimension.x)
        lane, of_warp = remainder(thread, WARP), WARP * run.length
        begin = multiply(divide(thread, WARP), shared.of_warp)
        own = add(begin, multiply(lane, run.length))
        for number, op in row.stores.items():
            value, width = op.operands[0], _width(op)
            if not isinstance(value.type, ir.VectorType):
                value = vector.BroadcastOp(ir.VectorType.get([1], run.element), value).result
            place = add(own, constant(number - run.first))
            alignment = size * gcd(width, run.length, number - run.first, shared.of_warp)
            vector.StoreOp(value, shared.buffer, [place], alignment=alignment)
        _meet()
        steps = [step or 0 for step in strides(ir.MemRefType(row.array.type))]
        memory = as_row(row.array, steps) if len(steps) > 1 else row.array
        indices = [in_first_lane(index) for index in (*row.at, row.rest) if index is not None]
        first = reduce(add, [multiply(index, step) for index, step in zip(indices, steps, strict=True)])
        aligned = aligned_elements(memory, first, row.known)
        width = gcd(aligned, run.first, of_warp, WIDEST_ACCESS // size)
        type_ = ir.VectorType.get([width], run.element)
        pieces = of_warp // width
        for piece in range(0, pieces, WARP):
            number = add(lane, constant(piece))
            with Guard(less(number, constant(pieces)) if piece + WARP > pieces else None):
                at = multiply(number, width)
                value = vector.LoadOp(type_, shared.buffer, [add(begin, at)], alignment=width * size).result
                place = add(add(first, at), constant(run.first))
                vector.StoreOp(value, memory, [place], nontemporal=nontemporal, alignment=width * size)
        _meet()
    for op in order:
        erase(op)


def _meet() -> None:
    """A barrier of the warp."""
    i32 = ir.IntegerType.get_signless(32)
    nvvm.bar_warp_sync(arith.ConstantOp(i32, ir.IntegerAttr.get(i32, -1)).result)
