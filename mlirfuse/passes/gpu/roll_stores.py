"""`fuse-roll-stores`: long code that is the same for all fragments that a thread stores becomes a loop over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, scf

from mlirfuse.analysis.arithmetic.code_size import code_size, registers_of
from mlirfuse.analysis.kernels import gpu_kernels
from mlirfuse.analysis.rolling import (
    LOADS,
    Computed,
    Copied,
    Node,
    Same,
    Step,
    held_registers,
    instructions,
    loaded_ahead,
    ordered,
)
from mlirfuse.dialect.stage_columns import stage_columns
from mlirfuse.dialect.stage_tile import LOADS_IN_TURN, is_transposed, staged_shape
from mlirfuse.distribution.exchange.partials import forbid_unrolling
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.model.registers import OTHER_REGISTERS
from mlirfuse.support.dtypes import element_bytes
from mlirfuse.support.rewriting import ops_named

LONG = 1024
"""Instructions of a kernel's unrolled code from which on it becomes loops. Less is assembled within some 50 ms."""

MOST_REGISTERS = 255
"""Registers that an instruction can name."""

FEW_REGISTERS = 32
"""Registers of a thread that loads may hold across a loop; where they take more, the loop loads an iteration ahead."""

MOVES = 4
"""Times as many instructions as an iteration moves registers, at least, that an iteration has to have."""


@dataclass(frozen=True)
class FuseRollStores(Pass):
    """Makes a loop of long unrolled code that computes what a `fuse.stage_tile` stores.

    Requires the gpu stage. The epilogue of a contraction is the same for all fragments of a thread's accumulators; with
    functions such as `erf` unrolled, LLVM and ptxas would take seconds for it. An iteration of the loop computes the
    fragments of some columns of the staged subtile, and stores these (`fuse.stage_columns`). Registers cannot be
    indexed, so the loop carries what differs between fragments, such as accumulators, and each iteration moves these
    values on by one place. This needs no shared memory, no barrier, and no more registers than unrolled code. Indices
    grow by a step each iteration, and loads of many registers are issued an iteration ahead, unless the op has
    `loads_in_turn`. Code stays unrolled where
    it is shorter than `LONG` in the whole kernel, and where moving registers is not small beside the computation,
    unless accumulators and loads together exceed a consumer's registers, so that unrolled code would spill.

    ```mlir
    %a = math.erf %acc#0 : vector<2xf32>
    %b = math.erf %acc#1 : vector<2xf32>
    ...
    "fuse.stage_tile"(%ring, %stage, %a, %b, ...) {offset = 0 : i64} : ...
    ```
    becomes
    ```mlir
    scf.for %i = %c0 to %c4 step %c1 iter_args(%x = %acc#0, %y = %acc#4, ...) -> (vector<2xf32>, ...) {
      %a = math.erf %x : vector<2xf32>
      ...
      %column = arith.muli %i, %c16 : index
      "fuse.stage_columns"(%ring, %stage, %column, %a, ...) {columns = 16 : i64} : ...
      scf.yield %y, ... : vector<2xf32>, ...
    } {llvm.loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}
    ```
    """

    name: ClassVar[str] = "fuse-roll-stores"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for kernel in gpu_kernels(module):
            stores = ops_named(kernel, "fuse.stage_tile")
            blocks = {op.block: [inner.operation for inner in op.block.operations] for op in stores}
            if all(sum(map(code_size, ops)) < LONG and _loaded(ops) <= FEW_REGISTERS for ops in blocks.values()):
                continue
            groups = [_groups([op for op in stores if op.block == block]) for block in blocks]
            long = sum(group.instructions for inside in groups for group in inside) >= LONG
            for inside in groups:
                ahead = sum(loaded_ahead(group.nodes) for group in inside)
                spills = ahead > 0 and ahead + sum(group.accumulators for group in inside) > _free(kernel)
                for group in inside:
                    if long or spills:
                        self._roll(group, remarks, at_any_cost=spills)

    def _roll(self, group: Group, remarks: Remarks, *, at_any_cost: bool) -> None:
        each, held = instructions(group.nodes), held_registers(group.nodes)
        if each < MOVES * held and not at_any_cost:
            what = f"the loop would move {held} registers for {each:.0f} instructions an iteration"
            remarks.declined(self, what, group.op)
            return
        with ir.InsertionPoint(group.op), group.op.location:
            in_turn = LOADS_IN_TURN in group.op.attributes
            _Loop(group.nodes, group.count, in_turn=in_turn).emit(group.roots, group.emit)
        what = f"a loop of {group.count} steps of some {each:.0f} instructions, which moves {held} registers"
        remarks.applied(self, what, group.op)
        group.op.erase()
        _erase_dead(group.nodes)


@dataclass(frozen=True)
class Group:
    """Stores that a loop can do.

    Attributes:
        op: the op, in whose place the loop comes.
        count: iterations.
        roots: what each iteration stores.
        nodes: what the roots depend on, and themselves.
        emit: stores the values of an iteration of a number (index).
    """

    op: ir.Operation
    count: int
    roots: Sequence[Node]
    nodes: Sequence[Node]
    emit: Callable[[ir.Value, Sequence[ir.Value]], None]

    @property
    def instructions(self) -> float:
        """Of unrolled code, about."""
        return self.count * instructions(self.nodes)

    @property
    def accumulators(self) -> int:
        """Registers of the sums that the stored fragments are computed from, of 32 bits an element."""
        return self.count * sum(ir.VectorType(root.values[0].type).shape[0] for root in self.roots)


def _loaded(ops: Iterable[ir.Operation]) -> int:
    """Registers that the loads of a block fill."""
    return sum(registers_of(op.results[0].type) for op in ops if op.name in LOADS)


def _free(kernel: ir.Operation) -> int:
    """Registers of a consumer's thread for accumulators and what is loaded."""
    counts = [
        ir.IntegerAttr(op.attributes["count"]).value
        for op in ops_named(kernel, "fuse.set_registers")
        if ir.StringAttr(op.attributes["action"]).value == "increase"
    ]
    return min(counts, default=MOST_REGISTERS) - OTHER_REGISTERS


def _groups(stores: Sequence[ir.Operation]) -> list[Group]:
    """The loops that can take the place of a block's `fuse.stage_tile`s."""
    found = [group for op in stores if (group := _staged(op, loads_ahead=False))]
    if sum(held_registers(group.nodes, loaded=True) for group in found) <= FEW_REGISTERS:
        return found
    return [group for op in stores if (group := _staged(op, loads_ahead=True))]


def _staged(op: ir.Operation, *, loads_ahead: bool) -> Group | None:
    """The steps of a thread's `fuse.stage_tile`; None where its columns do not divide into several."""
    ring, stage, *values = op.operands
    type_, transposed = ir.MemRefType(ring.type), is_transposed(op)
    columns = staged_shape(type_, transposed)[1]
    width = 16 if element_bytes(type_) == 2 and columns % 16 == 0 else 8  # four matrices of one `stmatrix`, or fewer
    steps, fragments = columns // width, 2 * (columns // 8)
    if steps < 2:
        return None
    each = fragments // steps
    starts = range(0, len(values), fragments)
    copies = [[v for s in starts for v in values[s + i * each : s + (i + 1) * each]] for i in range(steps)]

    def emit(number: ir.Value, found: Sequence[ir.Value]) -> None:
        column = arith.muli(number, arith.constant(ir.IndexType.get(), width))
        stage_columns(ring, stage, column, found, width, transposed=transposed)

    copied = Copied(op.block, loads_ahead=loads_ahead)
    roots = [copied.node(same) for same in zip(*copies, strict=True)]
    return Group(op, steps, roots, ordered(roots), emit)


class _Loop:
    """A loop that computes nodes, a copy an iteration; with `in_turn` nothing is loaded ahead."""

    def __init__(self, nodes: Sequence[Node], count: int, *, in_turn: bool):
        self._nodes, self._count = nodes, count
        self._held = [node for node in nodes if type(node) is Node]
        self._ahead = [node for node in nodes if isinstance(node, Computed) and node.ahead and not in_turn]

    def emit(self, roots: Sequence[Node], store: Callable[[ir.Value, Sequence[ir.Value]], None]) -> None:
        """Emits the loop, which calls `store` with its counter and the values of `roots`."""
        index = ir.IndexType.get()
        zero, one, end = (arith.constant(index, n) for n in (0, 1, self._count))
        initial = [v for node in self._held for v in node.values] + [node.values[0] for node in self._ahead]
        loop = scf.ForOp(zero, end, one, initial)
        forbid_unrolling(loop)
        carried = iter(loop.inner_iter_args)
        with ir.InsertionPoint(loop.body):
            number = loop.induction_variable
            places = {node: [next(carried) for _ in node.values] for node in self._held}
            values = {node: place[0] for node, place in places.items()}
            values |= {node: next(carried) for node in self._ahead}
            following = self._following(number, one, end, zero, values)
            self._compute(self._nodes, number, values)
            store(number, [values[root] for root in roots])
            moved = [v for place in places.values() for v in (*place[1:], place[-1])]
            scf.YieldOp([*moved, *following])

    def _following(
        self, number: ir.Value, one: ir.Value, end: ir.Value, zero: ir.Value, values: dict[Node, ir.Value]
    ) -> list[ir.Value]:
        """Loads for the next iteration; the last one loads again what the first one did."""
        if not self._ahead:
            return []
        after = arith.addi(number, one)
        after = arith.select(arith.cmpi(arith.CmpIPredicate.ult, after, end), after, zero)
        found = {node: values[node] for node in self._held}
        self._compute(ordered(self._ahead), after, found)
        return [found[node] for node in self._ahead]

    def _compute(self, nodes: Sequence[Node], number: ir.Value, values: dict[Node, ir.Value]) -> None:
        """Emits the nodes that have no value yet, for the iteration of a number."""
        emitted: dict[ir.Operation, ir.Operation] = {}
        for node in nodes:
            if node in values:
                continue
            if isinstance(node, Same):
                values[node] = node.values[0]
            elif isinstance(node, Step):
                values[node] = _index(node, number)
            elif isinstance(node, Computed):
                model = node.ops[0]
                if model not in emitted:
                    emitted[model] = model.clone(ir.InsertionPoint.current)
                    for place, operand in enumerate(node.operands):
                        emitted[model].operands[place] = values[operand]
                values[node] = emitted[model].results[node.number]


def _index(node: Step, number: ir.Value) -> ir.Value:
    index = ir.IndexType.get()
    moved = arith.muli(number, arith.constant(index, node.step))
    if node.start:
        moved = arith.addi(moved, arith.constant(index, node.start))
    return moved if node.root is None else arith.addi(node.root, moved)


def _erase_dead(nodes: Sequence[Node]) -> None:
    """Erases the unrolled ops that a loop has replaced, unless something else uses them."""
    computed = [node for node in nodes if isinstance(node, Computed)]
    for op in dict.fromkeys(op for node in reversed(computed) for op in node.ops):
        if all(not list(result.uses) for result in op.results):
            op.erase()
