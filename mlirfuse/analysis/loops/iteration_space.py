"""Iteration spaces: the loop dimensions of a group of ops, unified through their indexing maps.

Two loops of different ops are the same dimension of the segment's space if a value connects them: the producer writes
the value along one loop and the consumer reads it along the other. nvFuser unifies IterDomains in the same way. Later
analyses (of reduced, contiguous and broadcast dimensions, and of what fits on chip) use this structure, and never the
names of ops.

Extents of 1 are broadcast and therefore no dimensions. Two reads of a value from outside the group may run along
different dimensions (`x + x.T`), so such reads are unified only if that merges no two loops of one op.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from mlir import ir

from mlirfuse.analysis.loops.structure import OpStructure, structure_of

Node = int
"""A loop of an op, or an axis of a value or of a use."""

Use = tuple[ir.Operation, int]

Axes = tuple[int | None, ...]
"""The dimension, or the extent, of each axis."""


@dataclass(frozen=True)
class IterationSpace:
    """The unified loops of a group of ops.

    Attributes:
        extents: extent of each dimension, outermost first in the memory order of the largest read; None if dynamic.
        loops: for each op, the dimension that each of its loops runs along (None for a loop of extent 1).
        value_axes: for each value computed in the group, the dimension of each axis (None for extent 1).
        use_axes: for each read of a value from outside, as (op, operand number), the dimension of each axis.
        reduced: for each reducing op, the dimensions that the op reduces.
    """

    extents: tuple[int | None, ...]
    loops: dict[ir.Operation, tuple[int | None, ...]]
    value_axes: dict[ir.Value, tuple[int | None, ...]]
    use_axes: dict[Use, tuple[int | None, ...]]
    reduced: dict[ir.Operation, frozenset[int]]

    @property
    def rank(self) -> int:
        return len(self.extents)

    @property
    def reduced_dims(self) -> frozenset[int]:
        """Dimensions that some op of the group reduces."""
        return frozenset().union(*self.reduced.values())

    @property
    def unread_dims(self) -> frozenset[int]:
        """Dimensions of dynamic extent along which no operand is read, so that the extent is unknown at a launch."""
        read = {dim for axes in self.use_axes.values() for dim in axes}
        return frozenset(dim for dim, extent in enumerate(self.extents) if extent is None and dim not in read)

    def spanned(self) -> bool:
        """Whether one op's loops run along every dimension."""
        whole = {d for d, extent in enumerate(self.extents) if extent != 1}
        return any(whole <= set(loops) for loops in self.loops.values())


@dataclass(frozen=True)
class Conflict:
    """Why ops do not share one iteration space."""

    reason: str
    op: ir.Operation


class _UnionFind:
    """Disjoint sets of nodes; a set is one dimension."""

    def __init__(self, parent: Sequence[Node] = ()):
        self.parent = list(parent)

    def new(self, count: int) -> list[Node]:
        """`count` nodes, each in a set of its own."""
        first = len(self.parent)
        nodes = list(range(first, first + count))
        self.parent += nodes
        return nodes

    def find(self, node: Node) -> Node:
        parent = self.parent
        while (above := parent[node]) != node:
            parent[node] = parent[above]  # halves the way for the next search
            node = parent[node]
        return node

    def union(self, a: Node, b: Node) -> None:
        self.parent[self.find(b)] = self.find(a)

    def copy(self) -> _UnionFind:
        return _UnionFind(self.parent)


def build_iteration_space(ops: Sequence[ir.Operation]) -> IterationSpace | Conflict:
    """Unifies the loops of `ops`, which are in program order; or returns why that is impossible."""
    return space_of_structures([s for op in ops if (s := structure_of(op)) is not None])


def space_of_structures(structures: Sequence[OpStructure]) -> IterationSpace | Conflict:
    """`build_iteration_space` for ops whose structures are known."""
    numbers: dict[ir.Value, int] = {}
    loops = tuple([_numbered(s, numbers) for s in structures])
    found = _unified(loops)
    if isinstance(found, int):
        return Conflict("two of its loops are one dimension of its producers", structures[found].op)
    ops, values = [s.op for s in structures], list(numbers)
    return IterationSpace(
        found.extents,
        {ops[n]: axes for n, axes in found.loops.items()},
        {values[n]: axes for n, axes in found.value_axes.items()},
        {(ops[n], operand): axes for (n, operand), axes in found.use_axes.items()},
        {ops[n]: dims for n, dims in found.reduced.items()},
    )


class _Loops(NamedTuple):
    """What the space depends on of an op's structure, whose operands and results are numbers of values."""

    loop_count: int
    reduced: tuple[int, ...]
    operands: tuple[int, ...]
    operand_axes: tuple[Axes | None, ...]
    operand_extents: tuple[Axes, ...]
    idle_extents: tuple[tuple[int, int | None], ...]
    idle_axes: tuple[tuple[int, Axes], ...]
    results: tuple[int, ...]
    result_axes: tuple[Axes, ...]
    result_extents: tuple[Axes, ...]


class _Space(NamedTuple):
    """An `IterationSpace` of numbers of ops and of values."""

    extents: Axes
    loops: dict[int, Axes]
    value_axes: dict[int, Axes]
    use_axes: dict[tuple[int, int], Axes]
    reduced: dict[int, frozenset[int]]


def _numbered(s: OpStructure, numbers: dict[ir.Value, int]) -> _Loops:
    """The loops of an op, with numbers for its values."""
    return _Loops(
        s.loop_count,
        s.reduction_loops,
        tuple([numbers.setdefault(value, len(numbers)) for value in s.operands]),
        s.operand_axes,
        s.operand_extents,
        s.idle_extents,
        s.idle_axes,
        tuple([numbers.setdefault(value, len(numbers)) for value in s.op.results]),
        s.result_axes,
        s.result_extents,
    )


@lru_cache(maxsize=128)  # one pass after another asks for the space of the same kernels
def _unified(ops: tuple[_Loops, ...]) -> _Space | int:
    """Unifies the loops of ops; or returns the number of one that two dimensions would be one of."""
    inside = {result for op in ops for result in op.results}
    sets = _UnionFind()
    extents: dict[Node, int | None] = {}
    loop_nodes: list[list[Node]] = []
    value_nodes: dict[int, list[Node]] = {}
    uses: dict[int, list[list[Node]]] = {}
    use_nodes: dict[tuple[int, int], list[Node]] = {}

    for n, op in enumerate(ops):
        loops = sets.new(op.loop_count)
        loop_nodes.append(loops)
        extents |= {loops[loop]: extent for loop, extent in op.idle_extents}
        for number, (operand, axes) in enumerate(zip(op.operands, op.operand_axes, strict=True)):
            if axes is None:
                continue
            nodes = _tie(sets, extents, value_nodes.get(operand), op.operand_extents[number], axes, loops)
            if operand in inside:
                value_nodes[operand] = nodes
            else:
                use_nodes[(n, number)] = nodes
                uses.setdefault(operand, []).append(nodes)
        for number, axes in op.idle_axes:  # the op runs along it, without reading it
            operand = op.operands[number]
            nodes = _tie(sets, extents, value_nodes.get(operand), op.operand_extents[number], axes, loops)
            if operand not in inside:
                uses.setdefault(operand, []).append(nodes)
        for result, shape, axes in zip(op.results, op.result_extents, op.result_axes, strict=True):
            value_nodes[result] = _tie(sets, extents, value_nodes.get(result), shape, axes, loops)

    for n, nodes in enumerate(loop_nodes):
        if not _distinct(sets, nodes):
            return n
    for readings in uses.values():
        for other in readings[1:]:
            sets = _tie_reads(sets, extents, loop_nodes, readings[0], other)
    return _number(ops, sets, extents, loop_nodes, value_nodes, use_nodes)


def _tie(
    sets: _UnionFind,
    extents: dict[Node, int | None],
    known: list[Node] | None,
    shape: Sequence[int | None],
    axes: Sequence[int | None],
    loops: list[Node],
) -> list[Node]:
    """Unifies a value's axes with their loops; returns the axes' nodes, which are new if `known` is None."""
    nodes = sets.new(len(shape)) if known is None else known
    for node, extent, loop in zip(nodes, shape, axes, strict=True):
        extents[node] = extent
        if loop is None or extent == 1:
            continue
        sets.union(loops[loop], node)
    return nodes


def _tie_reads(
    sets: _UnionFind,
    extents: dict[Node, int | None],
    groups: Collection[list[Node]],
    first: list[Node],
    other: list[Node],
) -> _UnionFind:
    """Unifies two reads of a value from outside, unless that would merge two loops of one op."""
    apart = [(a, b) for a, b in zip(first, other, strict=True) if extents[a] != 1 and sets.find(a) != sets.find(b)]
    if not apart:  # the usual case: the reads have the same dimensions
        return sets
    trial = sets.copy()
    for a, b in apart:
        trial.union(a, b)
    return trial if all(_distinct(trial, nodes) for nodes in groups) else sets


def _distinct(sets: _UnionFind, nodes: list[Node]) -> bool:
    roots = [sets.find(node) for node in nodes]
    return len(set(roots)) == len(roots)


def _number(
    ops: Sequence[_Loops],
    sets: _UnionFind,
    extents: dict[Node, int | None],
    loop_nodes: Sequence[list[Node]],
    value_nodes: dict[int, list[Node]],
    use_nodes: dict[tuple[int, int], list[Node]],
) -> _Space:
    """Gives the merged dimensions numbers, in the memory order of the largest read."""
    class_extent: dict[Node, int | None] = {}
    for node, extent in extents.items():
        if extent != 1:
            root = sets.find(node)
            known = class_extent.get(root)
            class_extent[root] = known if known is not None else extent

    def by_size(use: tuple[int, int]) -> tuple[int, int]:
        shape = [extents[n] for n in use_nodes[use]]
        static = 1
        for extent in shape:
            static *= extent or 1
        return len([e for e in shape if e != 1]), static

    order: list[Node] = []
    for use in sorted(use_nodes, key=by_size, reverse=True):
        order += [sets.find(n) for n in use_nodes[use]]
    for nodes in loop_nodes:
        order += [sets.find(n) for n in nodes]
    number: dict[Node, int] = {}
    for root in order:
        if root in class_extent and root not in number:
            number[root] = len(number)
    # A group of scalars has one dimension of extent 1, so that every kernel has a tile.
    sizes = [class_extent[root] for root in number] or [1]

    def axes(nodes: Iterable[Node]) -> Axes:
        return tuple([number.get(sets.find(n)) if extents.get(n) != 1 else None for n in nodes])

    loops = {n: axes(nodes) for n, nodes in enumerate(loop_nodes)}
    values = {value: axes(nodes) for value, nodes in value_nodes.items()}
    reduced = {
        n: frozenset(d for i in op.reduced if (d := loops[n][i]) is not None) for n, op in enumerate(ops) if op.reduced
    }
    return _Space(tuple(sizes), loops, values, {u: axes(n) for u, n in use_nodes.items()}, reduced)
