"""Emits one thread's code for a tile program, op by op, through the rules of `RULES`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import gpu

from mlirfuse.dialect.attributes import LAYOUT
from mlirfuse.dialect.group_barrier import group_barrier
from mlirfuse.dialect.mbarrier_init import mbarrier_init
from mlirfuse.dialect.shared_memory import workgroup_memref
from mlirfuse.distribution.exchange.exchange import Exchange
from mlirfuse.distribution.exchange.steps import run_exchanges
from mlirfuse.distribution.exchange.warp_barriers import WarpBarriers
from mlirfuse.distribution.threads.fragments import Fragments, Key, Uniform, splat
from mlirfuse.distribution.threads.scalars import constant
from mlirfuse.distribution.threads.threads import Threads
from mlirfuse.distribution.workgroup_buffers import add_workgroup_buffer
from mlirfuse.errors import PassError, errors_at
from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.model.machine import WARPGROUP
from mlirfuse.support.dataclass_attributes import from_attribute
from mlirfuse.support.rewriting import clone, nested

Rule = Callable[["Distributor", ir.Operation], None]
RULES: dict[str, Rule] = {}
"""Rules by op name. All ops of `arith` and `math` share the elementwise rule; ops without vectors are copied."""


ROLES = frozenset({"fuse.warp_roles"})
"""Ops whose regions run concurrently, each region with layouts of its own."""


def layouts_of(op: ir.Operation) -> list[BlockedLayout]:
    """The layouts of the tiles inside an op, in order of appearance; only the op's own layout if the op has one."""
    with errors_at(op):
        return [from_attribute(BlockedLayout, attribute) for attribute in _layout_attributes(op)]


def _layout_attributes(op: ir.Operation) -> list[ir.Attribute]:
    inside = [op] if LAYOUT in op.attributes else nested(op)
    return list(dict.fromkeys(inner.attributes[LAYOUT] for inner in inside if LAYOUT in inner.attributes))


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Registers a function as the rule of the named ops."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


@dataclass(frozen=True)
class Role:
    """The warpgroups of a block that run the code being emitted: `warpgroups` of them, starting with number `first`."""

    warpgroups: int
    first: int = 0


class Distributor:
    """State of one kernel's distribution.

    Attributes:
        layout: the layout of the current op's tiles.
        threads: the current thread's coordinates in that layout.
        scalars: the new value of each scalar and memref of the tile program.
        tiles: the new value of each vector of the tile program.
        depth_first: whether each fragment goes through all ops before the next fragment does.
        after_exchange: a value that depends on the last exchanges, outside of loops; None before the first exchange.
        in_loop: whether the code being emitted is inside a loop.
        role: the warpgroups that run the code being emitted; None for the whole block.
        shared_spill: number of a thread's fragments that are spilled to shared memory.
        in_order: whether spilled fragments are loaded and stored in program order.
        rematerialize_addresses: whether addresses of results are computed again after the reductions.
        delayed_reads: tiles whose spilled fragments are not being loaded yet.
        start_barrier: the cluster barrier at the kernel's start; None where a cluster is one block.
        loop_mbarriers: the two mbarriers of the outermost loop around the code being emitted, if that loop needs any.
        row_shift: in a layout that shifts rows, the thread's shift in elements, set when the first row is read.
        shifted_like: the rows that `row_shift` applies to: the layout dimension along each axis of their buffer, and
            the tile's offsets in that buffer.
    """

    def __init__(
        self,
        layout: BlockedLayout,
        function: ir.OpView,
        scalars: dict[ir.Value, ir.Value],
        *,
        depth_first: bool = False,
        shared_spill: int = 0,
        in_order: bool = False,
        rematerialize_addresses: bool = False,
    ):
        self.layout = layout
        self.shared_spill = shared_spill
        self.in_order = in_order
        self.rematerialize_addresses = rematerialize_addresses
        self.delayed_reads: list[Fragments] = []
        self.depth_first = depth_first
        self.function = function
        self.scalars = scalars
        self.tiles: dict[ir.Value, Fragments | Uniform] = {}
        self.pending: list[Exchange] = []
        self.after_exchange: ir.Value | None = None
        self.in_loop = False
        self.start_barrier: ir.Operation | None = None
        self.loop_mbarriers: ir.Value | None = None
        self.row_shift: ir.Value | None = None
        self.shifted_like: object = None
        self.phases: dict[str, ir.Value] = {}
        self._loop_barriers = WarpBarriers()
        self.role: Role | None = None
        self.threads = Threads(layout)
        self._thread = self.threads.number
        self._layouts: dict[ir.Attribute, BlockedLayout] = {}
        self.argument_attributes: dict[ir.Value, dict[str, ir.Attribute]] = {}

    def distribute(self, op: ir.Operation) -> None:
        """Emits one thread's code for `op` at the current insertion point."""
        with op.location:
            handler = RULES.get(op.name)
            if handler is not None:
                handler(self, op)
            elif not _has_vectors(op):
                self._copy(op)
            elif op.name.split(".")[0] in ("arith", "math"):
                RULES["elementwise"](self, op)
            else:
                raise PassError(
                    f"no distribution rule for {op.name}",
                    where=op,
                    hint="add one to mlirfuse/distribution",
                )
            if not self.depth_first:
                self._force_results(op)

    def _copy(self, op: ir.Operation) -> None:
        """Copies an op on scalars. An operand may be the result of a full reduction, which every thread holds as a
        scalar.
        """
        for operand in op.operands:
            if operand in self.tiles:
                self.scalars[operand] = self.number(operand)
        clone(op, self.scalars)

    def _force_results(self, op: ir.Operation) -> None:
        """Emits an op's results now, except those that wait for an exchange."""
        for result in op.results:
            tile = self.tiles.get(result)
            if isinstance(tile, Fragments) and not tile.waits:
                tile.force()

    def distribute_all(self, ops: Sequence[ir.Operation]) -> None:
        """Emits one thread's code for consecutive ops, each in the layout of its tiles."""
        for op in ops:
            if op.name not in ROLES:
                self.enter(self.layouts_of(op) or self._layout_of_operands(op))
            self.distribute(op)

    def layouts_of(self, op: ir.Operation) -> list[BlockedLayout]:
        """The module's `layouts_of`, cached: reading the layout attribute is slow, and many ops share one."""
        attributes = _layout_attributes(op)
        for attribute in attributes:
            if attribute not in self._layouts:
                with errors_at(op):
                    self._layouts[attribute] = from_attribute(BlockedLayout, attribute)
        return [self._layouts[attribute] for attribute in attributes]

    def _layout_of_operands(self, op: ir.Operation) -> list[BlockedLayout]:
        """The layout of the op's first tile operand, which the op takes for its own."""
        tiles = (self.tiles.get(operand) for operand in op.operands)
        return [tile.layout for tile in tiles if isinstance(tile, Fragments)][:1]

    def enter(self, layouts: Sequence[BlockedLayout]) -> None:
        """Makes the layout of the next op the current one. Tiles of the previous layout cannot be used in a new one.

        Raises:
            PassError: `layouts` has more than one layout.
        """
        if len(layouts) > 1:
            raise PassError(
                f"one op has tiles in {len(layouts)} layouts, and only fuse.convert_layout may",
                where=ir.Location.current,
                hint="convert the tiles to one layout with fuse.convert_layout",
            )
        if layouts and layouts[0] != self.layout:
            self.force_all()
            self.layout = layouts[0]
            self.threads = Threads(self.layout, self.first_thread)

    @property
    def first_thread(self) -> int:
        """The first thread of those that run the code being emitted."""
        return 0 if self.role is None else self.role.first * WARPGROUP

    @contextmanager
    def as_role(self, role: Role) -> Iterator[None]:
        """A context in which the code emitted is run by one role.

        The role sees the values emitted before; values emitted inside are not visible after the context.
        """
        threads, tiles, scalars, after = self.threads, self.tiles, self.scalars, self.after_exchange
        self.role, self.tiles, self.scalars = role, dict(tiles), dict(scalars)
        if role.first:
            self.threads = Threads(self.layout, self.first_thread)
        yield
        self.flush()
        self.role, self.threads, self.tiles, self.scalars, self.after_exchange = None, threads, tiles, scalars, after

    def tile(self, value: ir.Value) -> Fragments | Uniform:
        """The fragments of a tile value, after any pending exchange that they depend on."""
        tile = self.tiles[value]
        if isinstance(tile, Fragments) and tile.layout != self.layout:
            raise PassError(
                "a tile is used in another layout than its producer has",
                where=value.owner.operation,
                hint="convert the tile with fuse.convert_layout",
            )
        if isinstance(tile, Fragments) and tile.waits:
            self.flush()
        return tile

    def fragments(self, value: ir.Value) -> Fragments:
        """Like `tile`, for ops that need fragments: a uniform value is expanded to fragments that are all the same
        scalar.
        """
        tile = self.tile(value)
        if isinstance(tile, Fragments):
            return tile
        type_, rank = ir.VectorType(value.type), self.layout.rank
        return splat(self.layout, type_.shape if type_.rank == rank else [1] * rank, tile.value)

    def number(self, value: ir.Value) -> ir.Value:
        """The scalar of a tile value that has one element; every thread holds that scalar."""
        tile = self.tile(value)
        return tile.value if isinstance(tile, Uniform) else tile.at((0,) * self.layout.rank)

    def start_reads(self, key: Key) -> None:
        """Emits the loads of one spilled fragment of each tile in `delayed_reads`.

        The loads are delayed until registers are free.
        """
        for tile in self.delayed_reads:
            tile.at(key)

    def force_all(self) -> None:
        """Emits all pending fragments and exchanges, before control flow that could run them any number of times."""
        self.flush()
        for tile in list(self.tiles.values()):
            if isinstance(tile, Fragments):
                tile.force()

    def flush(self) -> None:
        """Runs all pending exchanges between warps in one step."""
        pending, self.pending = self.pending, []
        if pending:
            after = run_exchanges(self, pending)
            self.after_exchange = None if self.in_loop else after

    def barrier(self) -> None:
        """A barrier of the block's threads that run the code being emitted: all threads, or those of a role."""
        if self.role is not None:
            group_barrier(self.role.warpgroups, self.role.first)
        else:
            gpu.BarrierOp()

    def loop_barrier(self, warps: int | None) -> None:
        """A barrier in a loop, of which each group of that many consecutive warps needs no other; None for all."""
        if self.role is not None:
            self.barrier()
        else:
            self._loop_barriers.add(warps)

    def emit_deferred(self) -> None:
        """Emits what had to wait for all of the kernel's code."""
        self.flush()
        self._loop_barriers.settle(self._thread, self.layout.threads // WARP)

    def mbarriers(self) -> ir.Value:
        """The two mbarriers of the outermost loop, initialised before the first cluster barrier."""
        if self.loop_mbarriers is None:
            assert self.start_barrier is not None
            with ir.InsertionPoint(self.start_barrier):
                self.loop_mbarriers = self.scratch(2, ir.IntegerType.get_signless(64))
                mbarrier_init(self.loop_mbarriers, arrivals=1)
        return self.loop_mbarriers

    def shift(self) -> ir.Value:
        """The thread's shift in elements, as an index.

        If no row has fixed the shift yet, the shift becomes 0, and rows accessed later have an alignment of their own.
        That happens when passes after the layout choice fold the read that the layout was chosen for.
        """
        if self.row_shift is None:
            with ir.InsertionPoint.at_block_begin(self.function.operation.regions[0].blocks[0]):
                self.row_shift = constant(0)
        return self.row_shift

    def scratch(self, size: int, element_type: ir.Type) -> ir.Value:
        """A new array in the block's shared memory, aligned to 16 bytes."""
        return self.add_workgroup_buffer(workgroup_memref([size], element_type))

    def add_workgroup_buffer(
        self, memref_type: ir.Type, alignment: int = 16, marks: Mapping[str, ir.Attribute] | None = None
    ) -> ir.Value:
        """A new workgroup attribution of the kernel, aligned to `alignment` bytes, with the attributes `marks`."""
        return add_workgroup_buffer(self.function.operation, memref_type, alignment, marks)


def _has_vectors(op: ir.Operation) -> bool:
    values = [*op.operands, *op.results]
    return bool(op.regions) or any(isinstance(v.type, ir.VectorType) for v in values)
