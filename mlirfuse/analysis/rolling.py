"""Finds how values that unrolled code computes alike differ between its copies, so that a loop can compute them.

A `Node` stands for one value a copy. Copies are alike where their ops have the same names and attributes, down to
values that all copies share, to indices that grow by a constant step, and to values that differ otherwise: a loop takes
these from registers. LLVM's LoopReroll and Rocha et al. (CGO 2022) roll straight-line code in this way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mlir import ir

from mlirfuse.analysis.arithmetic.code_size import code_size, registers_of
from mlirfuse.analysis.memory.global_memory import reads_only
from mlirfuse.support.rewriting import defining_op, integer_of

PURE_DIALECTS = ("arith.", "math.")
PURE = frozenset(
    {"affine.apply"}
    | {f"vector.{n}" for n in ("broadcast", "extract", "insert", "from_elements", "to_elements", "bitcast")}
    | {f"vector.{n}" for n in ("shape_cast", "extract_strided_slice", "insert_strided_slice", "shuffle")}
)
LOADS = frozenset({"vector.load", "memref.load"})

Copies = tuple[ir.Value, ...]
"""A value of each copy."""


@dataclass(frozen=True, eq=False)
class Node:
    """A value of each copy; this class itself stands for values that differ, and are taken from registers."""

    values: Copies


class Same(Node):
    """One value for all copies."""


@dataclass(frozen=True, eq=False)
class Step(Node):
    """An index: `root`, or 0 for None, plus `start`, plus `step` times the copy's number."""

    root: ir.Value | None
    start: int
    step: int


@dataclass(frozen=True, eq=False)
class Computed(Node):
    """A result of ops that are alike.

    Attributes:
        ops: one a copy.
        number: of the result.
        operands: of the ops.
        ahead: whether a loop computes the value an iteration ahead, as a load.
    """

    ops: tuple[ir.Operation, ...]
    number: int
    operands: tuple[Node, ...]
    ahead: bool = False


class Copied:
    """The nodes of values that a loop in `block` could compute, by the values of all copies.

    Loads stay in front of the loop and hold registers, or where `loads_ahead` the loop does those that may move.
    """

    def __init__(self, block: ir.Block, *, loads_ahead: bool = False):
        self._block, self._loads_ahead = block, loads_ahead
        self._nodes: dict[Copies, Node] = {}

    def node(self, values: Sequence[ir.Value]) -> Node:
        """The node of values, one a copy."""
        open_ = [tuple(values)]
        while open_:  # not by recursion, as chains of ops may be long
            key = open_[-1]
            if key in self._nodes:
                open_.pop()
                continue
            made = self._leaf(key) or self._computed(key)
            if isinstance(made, Node):
                self._nodes[key] = made
            else:
                open_ += made
        return self._nodes[tuple(values)]

    def _leaf(self, values: Copies) -> Node | None:
        """The node of values that no ops which are alike compute; None for all others."""
        if all(value == values[0] for value in values[1:]):
            return Same(values)
        step = _step(values)
        return step if step or self._alike(values) else Node(values)

    def _computed(self, values: Copies) -> Node | list[Copies]:
        """The node of values that ops compute which are alike, or the operands whose nodes are to be made first."""
        ops = tuple(op for value in values if (op := defining_op(value)) is not None)
        keys = list(zip(*(op.operands for op in ops), strict=True))
        if missing := [key for key in keys if key not in self._nodes]:
            return missing
        operands = tuple(self._nodes[key] for key in keys)
        if ops[0].name == "arith.truncf" and type(operands[0]) is Node:
            return Node(values)  # the narrower value takes fewer registers
        return Computed(values, ops, ir.OpResult(values[0]).result_number, operands, ops[0].name in LOADS)

    def _alike(self, values: Copies) -> bool:
        """Whether a loop can compute the values by one op."""
        ops = [defining_op(value) for value in values]
        first = ops[0]
        if first is None or not (is_pure(first) or first.name in LOADS):
            return False
        if len(set(ops)) != len(ops) or not _are_like(first, ops[1:]):
            return False
        if len(first.results) > 1 and len({ir.OpResult(value).result_number for value in values}) != 1:
            return False
        if not isinstance(values[0].type, ir.IndexType) and any(op is None or op.block != self._block for op in ops):
            return False  # computed once, in front of a loop around the block
        return first.name not in LOADS or (self._loads_ahead and reads_only(first))


def ordered(roots: Iterable[Node]) -> list[Node]:
    """The nodes that `roots` depend on, and themselves, operands first."""
    found: dict[Node, None] = {}
    open_ = list(roots)[::-1]
    while open_:
        node = open_[-1]
        waiting = [o for o in node.operands if o not in found] if isinstance(node, Computed) else []
        if node in found or not waiting:
            found[open_.pop()] = None
        else:
            open_ += waiting
    return list(found)


def instructions(nodes: Iterable[Node]) -> float:
    """Instructions of one copy of the nodes, about."""
    return sum(code_size(op) for op in dict.fromkeys(n.ops[0] for n in nodes if isinstance(n, Computed)))


def held_registers(nodes: Iterable[Node], *, loaded: bool = False) -> int:
    """Registers of a thread that all copies of values take which a loop does not compute; `loaded` of loads alone."""
    held = [node.values for node in nodes if type(node) is Node]
    if loaded:
        held = [values for values in held if (op := defining_op(values[0])) is not None and op.name in LOADS]
    return sum(len(values) * registers_of(values[0].type) for values in held)


def loaded_ahead(nodes: Iterable[Node]) -> int:
    """Registers that all copies of the loads fill which a loop does an iteration ahead."""
    ahead = [node.values for node in nodes if isinstance(node, Computed) and node.ahead]
    return sum(len(values) * registers_of(values[0].type) for values in ahead)


def is_pure(op: ir.Operation) -> bool:
    """Whether an op is known to compute its results from its operands alone."""
    return (op.name.startswith(PURE_DIALECTS) or op.name in PURE) and not op.regions


def _are_like(model: ir.Operation, ops: Iterable[ir.Operation | None]) -> bool:
    """Whether ops, whose results have the types of the model's, do what the model does, to other operands."""
    name, types, results = model.name, [operand.type for operand in model.operands], len(model.results)
    attributes = [(each, model.attributes[each]) for each in model.attributes]
    for op in ops:
        if op is None or op.name != name or len(op.results) != results:
            return False
        if [operand.type for operand in op.operands] != types:
            return False
        own = op.attributes
        if len(own) != len(attributes) or any(each not in own or own[each] != one for each, one in attributes):
            return False
    return True


def _step(values: Copies) -> Step | None:
    """Indices that differ by a constant step, if they do."""
    if not isinstance(values[0].type, ir.IndexType):
        return None
    parts = [_offset(value) for value in values]
    (root, start), (_, second) = parts[:2]
    expected = [(root, start + number * (second - start)) for number in range(len(values))]
    return Step(values, root, start, second - start) if parts == expected else None


def _offset(value: ir.Value) -> tuple[ir.Value | None, int]:
    """An index as a value, or None, and a constant that is added."""
    constant = integer_of(value)
    if constant is not None:
        return None, constant
    owner = defining_op(value)
    if owner is None or owner.name != "arith.addi":
        return value, 0
    left, right = owner.operands
    for base, other in ((left, right), (right, left)):
        constant = integer_of(other)
        if constant is not None:
            root, before = _offset(base)
            return root, before + constant
    return value, 0
