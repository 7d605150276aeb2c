"""Sums of a contraction's operand over what the contraction sums over, such as a bias's gradient beside a weight's.

`dw = dy.T @ x` and `db = sum(dy, 0)` read dy alike: a block that copies tiles of dy to multiply them can add up their
elements, or elementwise functions of them, in the same loop along k.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

from mlir import ir

from mlirfuse.analysis.arithmetic.combining import combiner_of
from mlirfuse.analysis.contractions.contraction import Contraction
from mlirfuse.analysis.contractions.contraction_operands import operand_of, producers
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.structure import RENAMING_OPS, OpStructure
from mlirfuse.errors import PassError
from mlirfuse.support.rewriting import number_of

ZERO_OF_ZERO = frozenset(
    f"arith.{name}" for name in ("extf", "truncf", "extsi", "extui", "sitofp", "uitofp", "negf", "mulf", "muli")
) | {"math.absf", "math.absi", "math.sqrt", "math.tanh", "math.sin", "math.expm1", "math.log1p", "math.erf"}
"""Ops that make zero of zeros only: elements past the end of k, which read as zero, then add nothing."""

ADDITIONS = frozenset({"arith.addf", "arith.addi"})


@dataclass(frozen=True)
class OperandSum:
    """A sum of elements of an operand, or of an elementwise function of them.

    Attributes:
        reduction: the op that adds up.
        ops: the elementwise ops before, in program order.
        source: the operand, an argument of the kernel.
        number: the operand's number in the contraction.
    """

    reduction: OpStructure
    ops: tuple[OpStructure, ...]
    source: ir.Value
    number: int

    @property
    def members(self) -> tuple[ir.Operation, ...]:
        """All ops of the sum."""
        return (*(s.op for s in self.ops), self.reduction.op)


def operand_sums(
    space: IterationSpace, contraction: Contraction, structures: Iterable[OpStructure]
) -> tuple[OperandSum, ...]:
    """The sums among a kernel's ops that can be made in the contraction's loop along k, all of one operand."""
    found: list[OperandSum] = []
    for s in structures:
        if s.reduction_loops and s.op != contraction.structure.op:
            one = _operand_sum(space, contraction, s)
            if isinstance(one, OperandSum) and (not found or one.number == found[0].number):
                found.append(one)
    return tuple(found)


def sum_problem(space: IterationSpace, contraction: Contraction, reduction: OpStructure) -> str | None:
    """Why a reduction is no sum of an operand, or None."""
    found = _operand_sum(space, contraction, reduction)
    return found if isinstance(found, str) else None


def _operand_sum(space: IterationSpace, contraction: Contraction, s: OpStructure) -> OperandSum | str:
    if len(contraction.pairs) > 1:
        return "several products share an operand, and their kernel sums none up"
    if s.op.name != "linalg.generic" or len(s.op.results) != 1:
        return f"{s.op.name} is no sum"
    if space.reduced.get(s.op, frozenset()) != frozenset(contraction.summed):
        return "it reduces other dimensions than the contraction sums over"
    try:
        if combiner_of(s).name not in ADDITIONS:
            return "it combines its elements by another op than an addition"
    except PassError as error:
        return error.message
    values = list(s.operands)[: len(s.operands) - 1]
    ops = tuple(dict.fromkeys(p for value in values for p in producers(value)))
    leaves = [leaf for each in (*ops, s) for leaf in _leaves(each, ops)]
    if len(set(leaves)) != 1:
        return "it sums up more than one array"
    number = next((n for n in (0, 1) if _reads(space, contraction, n, leaves[0], (*ops, s))), None)
    if number is None:
        return "it does not read an operand of the contraction as the contraction does"
    own = set(space.loops[s.op])
    if any(space.extents[d] is None for d in contraction.parallel if d not in own):
        return "the other operand has a dynamic extent: if the extent is 0, no block exists to write the sums"
    if any(each.reduction_loops for each in ops):
        return "it sums up what is reduced before"
    if not all(_is_zero_of_zero(each) for each in (*ops, s)):
        return "its elements are not zero where the operand is zero, as it is past the end of the dimension"
    return OperandSum(s, ops, leaves[0], number)


def _leaves(s: OpStructure, ops: Sequence[OpStructure]) -> list[ir.Value]:
    """The tensors that an op reads from outside of a sum."""
    made = {result for each in ops for result in each.op.results}
    read = zip(s.operands, s.operand_axes, strict=True)
    return [v for v, axes in read if axes is not None and v not in made]


def _reads(
    space: IterationSpace, contraction: Contraction, number: int, leaf: ir.Value, ops: Sequence[OpStructure]
) -> bool:
    """Whether ops read an operand of the contraction, element by element as the contraction does."""
    before = producers(contraction.structure.op.operands[number])
    if any(p.op not in space.loops or p.op.name not in RENAMING_OPS for p in before):  # of another kernel, or computed
        return False
    operand = operand_of(space, contraction, number)
    if operand.source != leaf:
        return False
    uses = [(each.op, n) for each in ops for n, v in enumerate(each.operands) if v == leaf]
    return all(space.use_axes.get(use) == operand.axes for use in uses)


def _is_zero_of_zero(s: OpStructure) -> bool:
    """Whether what an op yields, or adds to its sum, is zero where what it reads is."""
    if s.op.name in RENAMING_OPS:
        return True
    block = s.op.regions[0].blocks[0]
    *inside, _ = (op.operation for op in block.operations)
    if s.reduction_loops:
        inside.remove(combiner_of(s).op)
    captured = [v for op in inside for v in op.operands if v.owner != block and v.owner not in inside]
    numbers = [number_of(v) for v in captured]
    return all(op.name in ZERO_OF_ZERO for op in inside) and all(n is not None and isfinite(n) for n in numbers)
