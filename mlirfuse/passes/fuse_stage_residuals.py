"""`fuse-stage-residuals`: what an epilogue reads comes through the shared memory through which its result leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, memref, scf

from mlirfuse.analysis.kernels import argument_attributes, is_tile_program, kernels
from mlirfuse.analysis.workspaces import WORKSPACE
from mlirfuse.dialect.async_load import async_load
from mlirfuse.dialect.async_store_wait import async_store_wait
from mlirfuse.dialect.mbarrier_arrive import mbarrier_arrive
from mlirfuse.dialect.mbarrier_expect import mbarrier_expect
from mlirfuse.dialect.mbarrier_init import mbarrier_init
from mlirfuse.dialect.mbarrier_wait import mbarrier_wait
from mlirfuse.dialect.shared_memory import stage_bytes
from mlirfuse.dialect.stage_tile import is_transposed
from mlirfuse.dialect.staged_tile import staged_tile
from mlirfuse.dialect.warp_roles import teams_of
from mlirfuse.passes.base import Pass, Remarks
from mlirfuse.rewriting import backward_slice, clone, nested, number_of
from mlirfuse.tiling.memory import alignment
from mlirfuse.tiling.read_ring import read_indices
from mlirfuse.tiling.stage_ring import MAX_RANK, TMA_ALIGNMENT
from mlirfuse.tiling.tiles import index

PURE = frozenset({"arith", "math"})
"""Dialects whose ops work on tiles element by element."""


@dataclass(frozen=True)
class FuseStageResiduals(Pass):
    """Lets the producer copy the tile that an epilogue reads into the stages that its result is written to later.

    Requires tile programs with `fuse.warp_roles` as `fuse-pipeline-contraction` makes them, whose results
    `fuse-stage-results` has staged. A `vector.transfer_read` of the consumers is replaced where a tensor map can
    describe its source, an argument that the kernel does not write; where a result of the same type, tile and order in
    memory is computed of it element by element; and where that result's panels have a stage each. So the copy costs no
    shared memory, a warp overwrites what it has read itself, and nobody waits for other warps in between. The producer
    starts the copies behind those of the tile's factors, which are under way then. In a walk it first waits until the
    stores of the tile that the stages had before have read them.

    ```mlir
    "fuse.warp_roles"() ({
      scf.for ... {
        %r = vector.transfer_read %R[%m, %n], %pad : memref<8192x4096xbf16>, vector<128x128xbf16>
        ...
    ```
    becomes
    ```mlir
    "fuse.warp_roles"() ({
      scf.for ... iter_args(..., %round) {
        "fuse.mbarrier_wait"(%landed, %stage, %round) : ...
        "fuse.mbarrier_wait"(%landed, %next, %round) : ...
        %r = "fuse.staged_tile"(%panels, %stage) {offsets = array<i64: 0, 64>} : (...) -> vector<128x128xbf16>
        ... the result is computed, staged and stored ...
        "fuse.async_store_wait"() {pending = 0 : i64} : () -> ()
        "fuse.mbarrier_arrive"(%free, %team) {warpgroups = 1 : i64} : ...
      }
    }, {
      scf.for ... iter_args(..., %team, %round) {
        ... copies of the factors ...
        "fuse.mbarrier_wait"(%free, %team, %other_round) : ...
        "fuse.mbarrier_expect"(%landed, %stage) {bytes = 16384 : i64} : ...
        "fuse.async_load"(%R, %panels, %stage, %landed, %m, %n) {dims = array<i64: 0, 1>} : ...
        ...
    ```
    """

    name: ClassVar[str] = "fuse-stage-residuals"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        for kernel in kernels(module):
            roles = [op for op in nested(kernel) if op.name == "fuse.warp_roles"] if is_tile_program(kernel) else []
            for role in roles:
                taken: set[ir.Value] = set()
                for read in [op for op in nested(role) if op.name == "vector.transfer_read"]:
                    plan = _plan(kernel, role, read, taken)
                    if isinstance(plan, str):
                        remarks.declined(self, plan, read)
                        continue
                    taken.add(plan.ring)
                    remarks.applied(self, f"{len(plan.offsets)} panels come through the stages of a result", read)
                    _stage(role, read, plan)


@dataclass(frozen=True)
class Plan:
    """How a tile comes.

    Attributes:
        ring: the stages of the result's panels, of each team.
        offsets: the tile's column with which each panel begins.
        dims: the source's dimensions along which a stage's rows and columns run.
        writes: the `fuse.stage_tile`s of the result, a panel each.
        addressing: what computes the tile's place in the walk.
        transposed: whether a stage's rows are columns of the tile.
    """

    ring: ir.Value
    offsets: tuple[int, ...]
    dims: tuple[int, int]
    writes: tuple[ir.Operation, ...]
    addressing: tuple[ir.Operation, ...]
    transposed: bool


def _plan(kernel: ir.Operation, role: ir.Operation, read: ir.Operation, taken: set[ir.Value]) -> Plan | str:
    mapped = _mapped(kernel, read)
    if isinstance(mapped, str):
        return mapped
    dims, transposed = mapped
    walk = read.parent if read.parent != role else None
    if walk is not None and (walk.name != "scf.for" or walk.parent != role):
        return "not every block reads the tile"
    own = [op.operation for op in read.block.operations]
    made = backward_slice(read_indices(read), own)
    addressing = tuple(op for op in own if op in made)
    given = {value for op in addressing for value in op.operands} | set(read_indices(read))
    known = [read.block.arguments[0]] if walk is not None else []
    if any(isinstance(v.owner, ir.Block) and v.owner.owner in (walk, role) and v not in known for v in given) or any(
        op.regions for op in addressing
    ):
        return "the producer does not know where the tile lies"
    results = _results_of(read, transposed=transposed)
    if not results:
        return "no result of its type and order is staged that is computed of it element by element"
    rings = {ring: writes for ring, writes in results.items() if ring not in taken}
    for ring, writes in rings.items():
        if ir.MemRefType(ring.type).shape[0] == teams_of(role) * len(writes):
            offsets = tuple(ir.IntegerAttr(write.attributes["offset"]).value for write in writes)
            return Plan(ring, offsets, dims, tuple(writes), addressing, transposed)
    return "the result's panels have not a stage each" if rings else "another tile comes through the result's stages"


def _mapped(kernel: ir.Operation, read: ir.Operation) -> tuple[tuple[int, int], bool] | str:
    """The source's dimensions along which a stage's rows and columns run, and whether these are the tile's columns and
    rows; or why no tensor map can copy the tile.
    """
    source, tile = read.operands[0], ir.VectorType(read.results[0].type)
    type_, arguments = ir.MemRefType(source.type), list(kernel.regions[0].blocks[0].arguments)
    results = list(ir.AffineMapAttr(read.attributes["permutation_map"]).value.results)[-2:]
    if len(results) < 2 or not all(isinstance(result, ir.AffineDimExpr) for result in results):
        return "a row or a column is broadcast"
    row, column = (ir.AffineDimExpr(result).position for result in results)
    if source not in arguments or any(
        use.owner.name in ("fuse.async_store", "vector.transfer_write") for use in source.uses
    ):
        return "the source is no argument that is only read"
    attributes = argument_attributes(kernel)[arguments.index(source)]
    align = attributes.get("fuse.align")
    if WORKSPACE in attributes or align is None:
        return "the source is not aligned, or other blocks write it"
    strides, _ = type_.get_strides_and_offset()
    transposed = strides[column] != 1 and strides[row] == 1
    if transposed:
        row, column = column, row
    if (
        strides[column] != 1
        or alignment(type_, column, ir.IntegerAttr(align).value) < TMA_ALIGNMENT
        or 0 in strides
        or type_.rank > MAX_RANK
    ):
        return f"a tensor map cannot describe {type_}"
    is_inside = all(ir.BoolAttr(inside).value for inside in read.attributes["in_bounds"])
    if tile.rank < 2 or len(read.operands) != 2 + type_.rank or not (is_inside or number_of(read.operands[-1]) == 0):
        return "the tile has a mask, or is padded with another number than zero"
    return (row, column), transposed


def _results_of(read: ir.Operation, *, transposed: bool) -> dict[ir.Value, list[ir.Operation]]:
    """The `fuse.stage_tile`s behind a read of tiles of its type and order that are computed of it, by their rings."""
    made = {read.results[0]}
    found: dict[ir.Value, list[ir.Operation]] = {}
    for op in (op.operation for op in read.block.operations):
        is_like = op.name == "fuse.stage_tile" and op.operands[2].type == read.results[0].type
        if is_like and op.operands[2] in made and is_transposed(op) == transposed:
            found.setdefault(op.operands[0], []).append(op)
        if op.name.split(".")[0] in PURE and any(operand in made for operand in op.operands):
            made.update(op.results)
    return found


def _stage(role: ir.Operation, read: ir.Operation, plan: Plan) -> None:
    """Replaces the read."""
    panels, teams = len(plan.offsets), teams_of(role)
    with read.location:
        if read.parent == role:
            (landed,) = _barriers(role, [(panels, 1)])
            with ir.InsertionPoint(read):
                _receive(read, plan, landed, index(0), _parity(0))
            with ir.InsertionPoint.at_block_terminator(role.regions[1].blocks[0]):
                _copy(read, plan, landed, index(0), read_indices(read))
            read.erase()
            return
        warpgroups = ir.DenseI64ArrayAttr(role.attributes["warpgroups"])[0]
        landed, free = _barriers(role, [(teams * panels, 1), (teams, warpgroups)])
        walk, (round_,) = _carry(read.parent, [_parity], lambda carried: [_other(carried[0])])
        with ir.InsertionPoint(read):
            team = role.regions[0].blocks[0].arguments[0] if teams > 1 else index(0)
            _receive(read, plan, landed, _first_stage(team, panels), round_)
        _hand_back(walk, plan, free, team, warpgroups)
        (other,) = [op.operation for op in role.regions[1].blocks[0].operations if op.operation.name == "scf.for"]
        producer, (team, round_) = _carry(
            other, [lambda: index(0), _parity], lambda carried: _next_tile(carried[0], carried[1], teams)
        )
        with ir.InsertionPoint.at_block_terminator(producer.regions[0].blocks[0]):
            mapping = {_variable(walk): _variable(producer)}
            for op in plan.addressing:
                clone(op, mapping)
            # The first tile of each team finds a fresh barrier, for which a wait with parity 1 returns at once.
            mbarrier_wait(free, team, _other(round_))
            places = [mapping.get(place, place) for place in read_indices(read)]
            _copy(read, plan, landed, _first_stage(team, panels), places)
        read.erase()


def _barriers(role: ir.Operation, counts: Sequence[tuple[int, int]]) -> list[ir.Value]:
    """Barriers beside the ring's, so many that expect so many arrivals each."""
    space, i64 = ir.Attribute.parse("#gpu.address_space<workgroup>"), ir.IntegerType.get_signless(64)
    block = [op.operation for op in role.block.operations]
    last = max(number for number, op in enumerate(block) if op.name == "fuse.mbarrier_init")
    made = []
    with ir.InsertionPoint(block[last + 1]):
        for count, arrivals in counts:
            type_ = ir.MemRefType.get([count], i64, memory_space=space)
            made.append(memref.AllocOp(type_, [], [], alignment=ir.IntegerAttr.get(i64, 16)).result)
            mbarrier_init(made[-1], arrivals)
    return made


def _receive(read: ir.Operation, plan: Plan, landed: ir.Value, first: ir.Value, parity: ir.Value) -> None:
    """The consumers wait for all panels, and read them as one tile."""
    for number in range(len(plan.offsets)):
        mbarrier_wait(landed, _advanced(first, number), parity)
    (tile,) = staged_tile(plan.ring, first, [read.results[0].type], plan.offsets, transposed=plan.transposed)
    read.results[0].replace_all_uses_with(tile)


def _copy(read: ir.Operation, plan: Plan, landed: ir.Value, first: ir.Value, places: Sequence[ir.Value]) -> None:
    """The producer starts the copies of all panels."""
    for number, offset in enumerate(plan.offsets):
        stage, place = _advanced(first, number), list(places)
        moved = plan.dims[0 if plan.transposed else 1]
        place[moved] = _advanced(place[moved], offset)
        mbarrier_expect(landed, stage, stage_bytes(ir.MemRefType(plan.ring.type)))
        async_load(read.operands[0], plan.ring, stage, landed, place, plan.dims)


def _hand_back(walk: ir.Operation, plan: Plan, free: ir.Value, team: ir.Value, warpgroups: int) -> None:
    """The stages are free for the next tile when the result's stores have read them; nobody else waits for these."""
    ops = [op.operation for op in walk.regions[0].blocks[0].operations]
    stores = [number for number, op in enumerate(ops) if op.name == "fuse.async_store" and op.operands[1] == plan.ring]
    with ir.InsertionPoint(ops[stores[-1] + 1]):
        async_store_wait(0)
        mbarrier_arrive(free, team, warpgroups)
    before = [ops[number] for write in plan.writes for number in range(ops.index(write) - 2, ops.index(write))]
    for op in before:
        if op.name in ("fuse.async_store_wait", "gpu.barrier"):
            op.erase()


def _carry(
    loop: ir.Operation, initial: Sequence[Callable[[], ir.Value]], following: Callable[[list[ir.Value]], list[ir.Value]]
) -> tuple[ir.Operation, list[ir.Value]]:
    """The loop with more values carried: what each begins with is emitted before it, what follows at its end."""
    old = loop.regions[0].blocks[0]
    with ir.InsertionPoint(loop), loop.location:
        new = scf.ForOp(*list(loop.operands)[:3], [*list(loop.operands)[3:], *(make() for make in initial)])
        for before, after in zip(old.arguments, new.body.arguments, strict=False):
            before.replace_all_uses_with(after)
        for op in list(old.operations)[:-1]:
            new.body.append(op)
        carried = list(new.inner_iter_args)[-len(initial) :]
        with ir.InsertionPoint(new.body):
            scf.YieldOp([*old.operations[0].operands, *following(carried)])
    for before, after in zip(loop.results, new.results, strict=False):
        before.replace_all_uses_with(after)
    loop.erase()
    return new.operation, carried


def _next_tile(team: ir.Value, parity: ir.Value, teams: int) -> list[ir.Value]:
    """Whose tile the next one of the walk is, and the parity of that team's round."""
    following = arith.addi(team, index(1))
    wraps = arith.cmpi(arith.CmpIPredicate.eq, following, index(teams))
    return [arith.select(wraps, index(0), following), arith.select(wraps, _other(parity), parity)]


def _first_stage(team: ir.Value, panels: int) -> ir.Value:
    return arith.muli(team, index(panels))


def _advanced(start: ir.Value, count: int) -> ir.Value:
    return arith.addi(start, index(count)) if count else start


def _variable(loop: ir.Operation) -> ir.Value:
    return loop.regions[0].blocks[0].arguments[0]


def _parity(value: int = 0) -> ir.Value:
    return arith.constant(ir.IntegerType.get_signless(32), value)


def _other(parity: ir.Value) -> ir.Value:
    return arith.xori(parity, _parity(1))
