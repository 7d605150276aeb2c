"""Instructions of a kernel for an element of its iteration space: of one pass over it, and of passes that repeat it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mlir import ir

from mlirfuse.analysis.arithmetic.instruction_counts import (
    Instructions,
    instruction_count,
    instructions_of,
    reciprocals_of,
)
from mlirfuse.analysis.arithmetic.multiply_add import may_contract
from mlirfuse.analysis.arithmetic.ranges import RangeOf
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.dialect.joint import JOINT_REDUCTIONS
from mlirfuse.schedule.problem import SharedInstructions


@dataclass(frozen=True)
class PassInstructions:
    """Instructions an element of the space.

    Attributes:
        once: of each op once.
        again: of ops beyond their first time, where every level of reductions, and the results, get a pass of their own
            that computes what it needs.
        again_early: the same where results are written by the first pass that can compute them.
        stores_early: whether a pass that reduces can write results that vary along what is reduced.
        stores_last: whether such results need a pass of their own.
    """

    once: Instructions
    again: Instructions
    again_early: Instructions
    stores_early: bool
    stores_last: bool


def pass_instructions(
    space: IterationSpace,
    structures: Sequence[OpStructure],
    depths: Mapping[ir.Operation, int],
    returned: Iterable[ir.Value],
    range_of: RangeOf,
) -> PassInstructions:
    """Counts the instructions of ops that run over all of the space.

    Passes are those of `fuse-tile-chunked`: one a level of reductions, one more for joint reductions, which
    `fuse-expand-moments` and `fuse-expand-exp-sums` take apart, and one for results that vary along what is reduced and
    depend on the last reductions.

    Args:
        space: the ops' iteration space.
        structures: the ops.
        depths: for each op the number of reductions that must complete before it (`reduction_depths`).
        returned: values that leave the kernel.
        range_of: the numbers that values can be (`Ranges`).
    """
    whole = frozenset(d for d, extent in enumerate(space.extents) if extent != 1)
    counts = {s.op: instructions_of(s.op, range_of) for s in structures if whole <= set(space.loops[s.op])}
    makers = {result: s.op for s in structures for result in s.op.results}
    varying = {s.op for s in structures if space.reduced_dims & set(space.loops[s.op]) and s.op not in space.reduced}
    levels: dict[int, list[ir.Operation]] = {}
    for s in structures:
        if space.reduced.get(s.op):
            levels.setdefault(depths[s.op], []).append(s.op)
    joint = [found for roots in levels.values() if (found := [op for op in roots if op.name in JOINT_REDUCTIONS])]
    results = [makers[value] for value in returned if makers.get(value) in varying]
    last = [op for op in results if depths[op] > max(levels, default=-1)]
    early = {level: list(roots) for level, roots in levels.items()}
    for op in results:
        if op not in last:
            early[min(level for level in levels if level >= depths[op])].append(op)
    once = sum(counts.values(), _NONE)

    def beyond(passes: Iterable[Sequence[ir.Operation]]) -> Instructions:
        needed = (op for roots in passes for op in _needed(roots, makers, varying))
        total = sum((counts.get(op, _NONE) for op in needed), _NONE)
        return Instructions(
            max(0.0, total.plain - once.plain),
            max(0.0, total.special - once.special),
            max(0.0, total.double - once.double),
        )

    again, stores_early = beyond([*levels.values(), *joint, results]), len(last) < len(results)
    return PassInstructions(
        once,
        again,
        again_early=beyond([*early.values(), *joint, last]) if stores_early else again,
        stores_early=stores_early,
        stores_last=bool(last),
    )


_NONE = Instructions()


def shared_instructions(
    space: IterationSpace, structures: Sequence[OpStructure], range_of: RangeOf
) -> tuple[SharedInstructions, ...]:
    """Counts the instructions of ops that vary along some dimensions only, for each element along these; and of
    reciprocals of what varies so, by which other ops divide.
    """
    whole = frozenset(d for d, extent in enumerate(space.extents) if extent != 1)
    found: dict[frozenset[int], Instructions] = {}
    reciprocals: dict[tuple[ir.Value, frozenset[int]], Instructions] = {}
    for s in structures:
        dims = whole & set(space.loops[s.op])
        if dims and dims != whole and not space.reduced.get(s.op):
            found[dims] = found.get(dims, _NONE) + instructions_of(s.op, range_of)
        for number, count in reciprocals_of(s.op, range_of).items():
            axes = s.operand_axes[number]
            along = whole.intersection(space.loops[s.op][axis] for axis in axes or () if axis is not None)
            reciprocals[s.operands[number], along] = count
    for (_, dims), count in reciprocals.items():
        if dims and dims != whole:
            found[dims] = found.get(dims, _NONE) + count
    return tuple(
        SharedInstructions(dims, count.plain, count.special, count.double)
        for dims, count in found.items()
        if count != _NONE
    )


def _needed(
    roots: Iterable[ir.Operation], makers: Mapping[ir.Value, ir.Operation], varying: set[ir.Operation]
) -> set[ir.Operation]:
    """The ops that a pass executes for some ops: these, and what they need of ops that vary along a row."""
    found, stack = set(roots), list(roots)
    while stack:
        for operand in stack.pop().operands:
            maker = makers.get(operand)
            if maker is not None and maker in varying and maker not in found:
                found.add(maker)
                stack.append(maker)
    return found


def sliding_instructions(
    space: IterationSpace, structures: Sequence[OpStructure], range_of: RangeOf
) -> tuple[float, float]:
    """Plain instructions for each element of the space, and for each that a thread reads, where elements of the space
    that read the same element of an array share what is computed of it alone. Products that additions may take are
    none of their own, nor are changes of sign, which whatever reads a number does too.
    """
    each = read = 0.0
    whole = {d for d, extent in enumerate(space.extents) if extent != 1}
    alone: dict[ir.Value, frozenset[ir.Value]] = {}  # the arguments that a value is computed of
    for s in structures:
        if not whole <= set(space.loops[s.op]) or s.op.name != "linalg.generic":
            continue
        body = s.op.regions[0].blocks[0]
        sources = {
            argument: alone.get(of, frozenset({of})) for argument, of in zip(body.arguments, s.op.operands, strict=True)
        }
        *inner, terminator = (op.operation for op in body.operations)
        for op in inner:
            found = frozenset[ir.Value]().union(*(sources.get(operand, ()) for operand in op.operands))
            sources.update(dict.fromkeys(op.results, found))
            count, _ = instruction_count(s.op, op, range_of)
            if len(found) == 1:
                read += max(count, 1.0)
            elif not _is_part(op):
                each += count
        alone.update(
            {of: sources.get(value, frozenset()) for of, value in zip(s.op.results, terminator.operands, strict=True)}
        )
    return each, read


def _is_part(op: ir.Operation) -> bool:
    """Whether an op is a part of the instructions that read its result."""
    return op.name in ("arith.negf", "math.absf") or (op.name == "arith.mulf" and may_contract(op))
