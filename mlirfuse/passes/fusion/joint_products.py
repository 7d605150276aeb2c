"""Makes one `linalg.generic` of two that contract, in one kernel, with an operand that both multiply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import linalg

from mlirfuse.analysis.contractions.contraction import Pair, products_of
from mlirfuse.analysis.kernels import body
from mlirfuse.analysis.loops.maps import projected_axes, projection
from mlirfuse.analysis.loops.structure import OpStructure, is_constant, structure_of
from mlirfuse.support.rewriting import backward_slice, clone, erase

CHEAP = frozenset({"arith.constant", "tensor.empty", "tensor.dim", "linalg.fill"})
"""What the initial values of a contraction come from, where these are zeros."""


@dataclass(frozen=True)
class JointProducts:
    """Two ops of one block that contract, in program order.

    Attributes:
        first: an op of one or several products.
        second: another.
        shared: the number of the operand in each that both multiply.
        loops: for each loop of the second op, that of the first.
    """

    first: ir.Operation
    second: ir.Operation
    shared: Pair
    loops: tuple[int, ...]

    def join(self) -> None:
        """Replaces both ops by one of all products, in the place of the first."""
        ops = (self.first, self.second)
        inside = [op.operation for op in self.first.block.operations]
        for op in [op for op in inside if op in backward_slice(list(self.second.operands), inside)]:
            if self.first.is_before_in_block(op):
                op.move_before(self.first)
        maps = [self._maps(number) for number in (0, 1)]
        own = [[n for n in range(_factors(op)) if n != shared] for op, shared in zip(ops, self.shared, strict=True)]
        order = [(number, n) for number in (0, 1) for n in own[number]]
        place = (0, self.shared[0])
        inputs = [place, *order] if self.shared[0] == 0 else [*order, place]
        inits = [(number, n) for number in (0, 1) for n in range(_factors(ops[number]), len(ops[number].operands))]
        with ir.InsertionPoint(self.first), self.first.location:
            joint = linalg.GenericOp(
                [result.type for op in ops for result in op.results],
                [ops[number].operands[n] for number, n in inputs],
                [ops[number].operands[n] for number, n in inits],
                ir.ArrayAttr.get([maps[number][n] for number, n in (*inputs, *inits)]),
                self.first.attributes["iterator_types"],
            ).operation
        for name in self.first.attributes:
            if name not in joint.attributes:
                joint.attributes[name] = self.first.attributes[name]
        self._fill(joint, [*inputs, *inits])
        for old, new in zip([r for op in ops for r in op.results], joint.results, strict=True):
            old.replace_all_uses_with(new)
        erase(self.second)
        erase(self.first)

    def _maps(self, number: int) -> list[ir.Attribute]:
        """The indexing maps of the first op, or those of the second in loops of the first."""
        maps = list(ir.ArrayAttr((self.first, self.second)[number].attributes["indexing_maps"]))
        if number == 0:
            return maps
        count = len(self.loops)
        return [
            projection(count, [None if loop is None else self.loops[loop] for loop in projected_axes(m)]) for m in maps
        ]

    def _fill(self, joint: ir.Operation, operands: Sequence[tuple[int, int]]) -> None:
        """Clones the bodies of both ops into the joint op, whose operands are numbered ones of the first or second."""
        bodies = [op.regions[0].blocks[0] for op in (self.first, self.second)]
        types = [bodies[number].arguments[n].type for number, n in operands]
        block = joint.regions[0].blocks.append(*types, arg_locs=[joint.location] * len(types))
        yielded: list[ir.Value] = []
        with ir.InsertionPoint(block):
            for number, old in enumerate(bodies):
                mapping: dict[ir.Value, ir.Value] = {
                    old.arguments[n]: argument
                    for (of, n), argument in zip(operands, block.arguments, strict=True)
                    if of == number
                }
                mapping[old.arguments[self.shared[number]]] = block.arguments[operands.index((0, self.shared[0]))]
                *ops, end = [op.operation for op in old.operations]
                for op in ops:
                    clone(op, mapping)
                yielded += [mapping[v] for v in end.operands]
            linalg.YieldOp(yielded)


def joint_products(kernel: ir.Operation) -> JointProducts | str:
    """The two contractions of a kernel as parts of one op, or why they cannot be one."""
    found = [(op, s, p) for op in body(kernel) if (s := structure_of(op)) is not None and (p := products_of(op))]
    if len(found) != 2:
        return f"the kernel has {len(found)} ops that contract, not two"
    (first, one, own), (second, other, theirs) = found
    arguments = list(kernel.regions[0].blocks[0].arguments)
    if any(op.operands[n] not in arguments for op, _, products in found for _, pair in products for n in pair):
        return "an operand is computed in the kernel"
    if not all(map(is_constant, (*_inits(first), *_inits(second)))):
        return "their sums do not start from zero"
    inside = body(kernel)
    if any(op.name not in CHEAP for op in backward_slice(_inits(second), inside)):
        return "the initial values of one depend on results"
    shared = _shared((first, second), [[pair for _, pair in products] for products in (own, theirs)])
    if shared is None:
        return "they share no operand that is operand A, or operand B, of all products"
    types = [{str(v.type.element_type) for v in op.operands} for op in (first, second)]
    if types[0] != types[1]:
        return "they multiply other types"
    loops = _matched(one, other, shared)
    if loops is None:
        return "their loops differ"
    extents = [_loop_extents(s) for s in (one, other)]
    if any(extents[0].get(to) != extents[1].get(loop) for loop, to in enumerate(loops)):
        return "their results have other extents"
    return JointProducts(first, second, shared, loops)


def _factors(op: ir.Operation) -> int:
    """The number of operands that an op multiplies, which come first."""
    return len(op.operands) - len(op.results)


def _inits(op: ir.Operation) -> list[ir.Value]:
    return list(op.operands)[_factors(op) :]


def _shared(ops: Sequence[ir.Operation], pairs: Sequence[Sequence[Pair]]) -> Pair | None:
    """The number, in each op, of the operand that is operand A of all products, or operand B of all."""
    for side in (0, 1):
        numbers = [{pair[side] for pair in own} for own in pairs]
        values = [{op.operands[n] for n in own} for op, own in zip(ops, numbers, strict=True)]
        if len(values[0]) == len(values[1]) == 1 and values[0] == values[1]:
            return numbers[0].pop(), numbers[1].pop()
    return None


def _matched(first: OpStructure, second: OpStructure, shared: Pair) -> tuple[int, ...] | None:
    """For each loop of the second op that of the first: along the shared operand's axes, and along results in order."""
    if first.loop_count != second.loop_count:
        return None
    axes = [s.operand_axes[number] or () for s, number in zip((first, second), shared, strict=True)]
    rest = [
        [loop for loop in s.result_axes[0] if loop not in own] for s, own in zip((first, second), axes, strict=True)
    ]
    if len(axes[0]) != len(axes[1]) or len(rest[0]) != len(rest[1]):
        return None
    found: dict[int | None, int | None] = {}
    for to, loop in zip([*axes[0], *rest[0]], [*axes[1], *rest[1]], strict=True):
        if found.setdefault(loop, to) != to:
            return None
    loops = [found.get(loop) for loop in range(second.loop_count)]
    known = [loop for loop in loops if loop is not None]
    kinds = [{found[loop] for loop in second.reduction_loops if loop in found}, set(first.reduction_loops)]
    return tuple(known) if len(set(known)) == second.loop_count and kinds[0] == kinds[1] else None


def _loop_extents(structure: OpStructure) -> dict[int, int | None]:
    """The extent of each loop that an operand or a result has an axis along; None where dynamic."""
    sources = [*zip(structure.operand_axes, structure.operand_extents, strict=True)]
    sources += zip(structure.result_axes, structure.result_extents, strict=True)
    return {
        loop: extent
        for axes, extents in sources
        for loop, extent in zip(axes or (), extents if axes else (), strict=True)
        if loop is not None
    }
