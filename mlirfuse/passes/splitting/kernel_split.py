"""Splits a kernel into those that reduce and one that uses the results; part of `fuse-split-reductions`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import count

from mlir import ir
from mlir.dialects import func

from mlirfuse.analysis.kernels import argument_attributes, body, is_tile_program, symbol
from mlirfuse.analysis.loops.iteration_space import Conflict, IterationSpace, space_of_structures
from mlirfuse.analysis.loops.order import reduction_depths
from mlirfuse.analysis.loops.structure import OpStructure, structure_of
from mlirfuse.dialect.attributes import GRID_REDUCTION, SCHEDULE
from mlirfuse.support.connected import connected
from mlirfuse.support.rewriting import backward_slice, defining_op
from mlirfuse.tiling.kernel_signature import change_signature, default_attributes


def first_reductions(space: IterationSpace, structures: Sequence[OpStructure]) -> list[list[ir.Operation]]:
    """The reductions that wait for no other, where something along what they reduce waits for them, by kernel.

    Those that have loops in common share a kernel. Reductions of unrelated arrays have none once the ops that read both
    are in another kernel, so each gets its own.

    Empty where nothing waits: what only rounds a result, or divides it, is no reason for a second kernel.
    """
    depths = reduction_depths(structures)
    first = [s for s in structures if s.reduction_loops and not depths[s.op]]
    reduced = {dim for s in first for dim in space.reduced.get(s.op, ())}
    if not any(depths[s.op] and reduced & set(space.loops[s.op]) for s in structures):
        return []
    needed = {s.op for s in first} | backward_slice([o for s in first for o in s.operands], [s.op for s in structures])
    alone = space_of_structures([s for s in structures if s.op in needed])
    if isinstance(alone, Conflict):
        return [[s.op for s in first]]
    return connected([s.op for s in first], lambda op: {d for d in alone.loops[op] if d is not None})


def values_again(space: IterationSpace, structures: Sequence[OpStructure]) -> list[ir.Operation]:
    """The elementwise ops of which the first reductions reduce something, and whose results other ops need again: the
    last of those that depend on each other.
    """
    ops = [s.op for s in structures]
    first = {op for group in first_reductions(space, structures) for op in group}
    needed = backward_slice([operand for op in first for operand in op.operands], ops)
    whole = {d for d, extent in enumerate(space.extents) if extent != 1}
    shared = [
        op
        for op in ops
        if op in needed
        and whole <= set(space.loops[op])
        and any(use.owner.operation not in needed | first for result in op.results for use in result.uses)
    ]
    before = {earlier for op in shared for earlier in backward_slice(list(op.operands), ops)}
    return [op for op in shared if op not in before]


def reduced_values(structures: Sequence[OpStructure], returned: Sequence[ir.Value]) -> list[ir.Operation]:
    """The elementwise ops whose results are returned, and those whose results are reduced that need more than these,
    where reductions are the last ops of a kernel.
    """
    depths = reduction_depths(structures)
    first = [s.op for s in structures if not s.reduction_loops and not depths[s.op]]
    made = {result: op for op in first for result in op.results}
    read = [operand for s in structures if s.reduction_loops for operand in s.operands]
    found = dict.fromkeys(made[value] for value in returned if value in made)
    for value in read:
        if value in made and not _is_made_of(value, found):
            found[made[value]] = None
    return list(found)


def _is_made_of(value: ir.Value, ops: Collection[ir.Operation]) -> bool:
    """Whether a value is computed of results of some ops, and of no argument beside."""
    open_, seen = [value], set[ir.Value]()
    while open_:
        value = open_.pop()
        maker = defining_op(value)
        if maker is None and isinstance(value.type, ir.RankedTensorType):
            return False
        if maker is not None and maker not in ops and value not in seen:
            open_ += list(maker.operands)
        seen.add(value)
    return True


def what_is_given(host: ir.Operation, kernel: ir.Operation) -> str | None:
    """What is given of a kernel's schedule, so that it stays whole, or None."""
    if is_tile_program(kernel) or SCHEDULE in kernel.attributes:
        return "it has a schedule"
    if GRID_REDUCTION in host.attributes:
        return "the caller says how its reductions are combined"
    return None


def _unrelated(kernel: ir.Operation) -> list[list[ir.Operation]]:
    """The ops that compute results of a kernel, by the loops that they have in common, without the first group.

    Loops of one iteration relate nothing, and what has no others belongs to the first group.
    """
    structures = [s for op in body(kernel) if (s := structure_of(op)) is not None]
    space = space_of_structures(structures)
    if isinstance(space, Conflict):
        return []
    makers = {defining_op(value) for value in body(kernel)[-1].operands}
    long = {d for d, extent in enumerate(space.extents) if extent != 1}
    related = connected([s.op for s in structures], lambda op: long.intersection(space.loops[op]))
    groups = [[op for op in group if op in makers] for group in related]
    return [group for group in groups if group and set(space.loops[group[0]]) & long][1:]


@dataclass(frozen=True)
class KernelSplit:
    """A kernel on tensors, its only launch, and the reductions that are to have kernels of their own.

    Attributes:
        call: the launch.
        kernel: the kernel.
        reductions: of the kernel that are to have kernels of their own, by kernel, or other ops; they depend on no
            other reduction.
        word: of the names of their kernels.
    """

    call: ir.Operation
    kernel: ir.Operation
    reductions: Sequence[Sequence[ir.Operation]]
    word: str = "reductions"

    def split(self) -> tuple[list[ir.Operation], ir.Operation]:
        """Moves each group of reductions to a kernel with a launch of its own; the kernel keeps its name and the rest.

        Elementwise ops in front of the reductions are computed in both, where the rest needs them. What only the
        reductions had loops in common with gets a kernel of its own too: the loops of unrelated arrays would be nested.

        Returns the kernels of the reductions and of what is unrelated, and the launch of the rest.
        """
        firsts, call = [], self.call
        for group in self.reductions:
            first, call = self._without(call, group, self.word)
            firsts.append(first)
        for group in _unrelated(self.kernel):
            part, call = self._without(call, group, "part")
            firsts.append(part)
        return firsts, call

    def _without(self, call: ir.Operation, ops: Sequence[ir.Operation], word: str) -> tuple[ir.Operation, ir.Operation]:
        """Gives some ops a kernel, whose name has a word; returns that, and the launch of the rest."""
        operands = list(call.operands)
        attributes = argument_attributes(self.kernel)
        places = [number for number, op in enumerate(_with_loops(self.kernel)) if op in ops]
        with ir.InsertionPoint(self.kernel):
            first = self.kernel.clone().operation
        first.attributes["sym_name"] = ir.StringAttr.get(self._name(word))
        with ir.InsertionPoint(call), call.location:
            types = [v.type for v in body(first)[-1].operands]
            first_call = func.CallOp(types, symbol(first), operands).operation
        first_call = change_signature(first_call, first, operands, attributes, _results(first, places))
        reduced = dict(zip(_results(self.kernel, places), first_call.results, strict=True))
        kept = []
        for value, result in zip(body(self.kernel)[-1].operands, call.results, strict=True):
            if value in reduced:
                result.replace_all_uses_with(reduced[value])
            else:
                kept.append(value)
        block = self.kernel.regions[0].blocks[0]
        for value in reduced:
            value.replace_all_uses_with(block.add_argument(value.type, self.kernel.location))
        rest_call = change_signature(
            call,
            self.kernel,
            [*operands, *first_call.results],
            [*attributes, *(default_attributes() for _ in first_call.results)],
            kept,
        )
        return first, rest_call

    def _name(self, word: str) -> str:
        """A symbol that the module does not have."""
        module = self.kernel.parent.regions[0].blocks[0].operations
        known = {symbol(op.operation) for op in module if "sym_name" in op.operation.attributes}
        names = (f"{symbol(self.kernel)}_{word}{number or ''}" for number in count())
        return next(name for name in names if name not in known)


def _with_loops(kernel: ir.Operation) -> list[ir.Operation]:
    """The ops of a kernel that have loops."""
    return [op for op in body(kernel) if structure_of(op) is not None]


def _results(kernel: ir.Operation, places: Sequence[int]) -> list[ir.Value]:
    """The results of some ops of a kernel, by their places among those with loops."""
    ops = _with_loops(kernel)
    return [result for place in places for result in ops[place].results]
