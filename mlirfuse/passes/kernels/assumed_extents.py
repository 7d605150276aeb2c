"""Prices the kernels of a pair for the extents that are assumed of the merged one, as one call has one extent of each.

A kernel of run-time extents that nobody has a hint of is priced for a large iteration space of its own: one number for
each of so many rows would be as large as the rows are together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from mlir import ir

from mlirfuse.analysis.kernels import argument_attributes
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.scheduling.scheduling_problem import kernel_problem
from mlirfuse.dialect.expected_extents import EXTENT_HINTS, hints_attribute
from mlirfuse.passes.kernels.kernel_pair import KernelPair, extent_sources
from mlirfuse.schedule.predict.counts.space import with_extents
from mlirfuse.schedule.problem import Problem
from mlirfuse.support.rewriting import erase

Extents = list[int | None]


@contextmanager
def with_assumed_extents(pair: KernelPair, merged: ir.Operation) -> Iterator[tuple[ir.Operation, ir.Operation]]:
    """The two kernels of a pair, with the extents that are assumed of the merged kernel as hints.

    Args:
        pair: the pair.
        merged: what `KernelPair.build` has made of it, without contractions.

    Raises:
        ScheduleError: the merged kernel's ops share no iteration space.
    """
    space, _ = kernel_space(merged)
    problem = kernel_problem(merged)
    if None not in space.extents or not isinstance(problem, Problem):
        yield pair.first, pair.second
        return
    assumed = with_extents(problem).extents
    arguments = dict(zip(merged.regions[0].blocks[0].arguments, pair.inputs(), strict=True))
    known: dict[ir.Value, Extents] = {}
    for (op, number), axes in space.use_axes.items():
        value = arguments.get(op.operands[number])
        if value is not None:
            known[value] = [None if dim is None else assumed[dim] for dim in axes]
    for result, sources in extent_sources(pair.first_call, pair.first).items():
        known[result] = _of_result(result, sources, known)
    calls = ((pair.first_call, pair.first), (pair.second_call, pair.second))
    copies = [_hinted(call, kernel, known) for call, kernel in calls]
    try:
        yield copies[0], copies[1]
    finally:
        for copy in copies:
            erase(copy)


def _of_result(result: ir.Value, sources: Sequence[tuple[ir.Value, int]], known: Mapping[ir.Value, Extents]) -> Extents:
    """The extents of a kernel's result, of which each dynamic one is that of an operand's axis."""
    left, type_ = iter(sources), ir.RankedTensorType(result.type)
    found: Extents = []
    for axis in range(type_.rank):
        source = next(left) if type_.is_dynamic_dim(axis) else None
        found.append(None if source is None or source[0] not in known else known[source[0]][source[1]])
    return found


def _hinted(call: ir.Operation, kernel: ir.Operation, known: Mapping[ir.Value, Extents]) -> ir.Operation:
    """A copy of a kernel whose arguments have hints."""
    with ir.InsertionPoint(kernel):
        copy = kernel.clone().operation
    attributes = argument_attributes(kernel)
    for operand, of_argument in zip(call.operands, attributes, strict=True):
        if operand in known:
            type_ = ir.RankedTensorType(operand.type)
            of_argument[EXTENT_HINTS] = hints_attribute(
                [n if type_.is_dynamic_dim(axis) else None for axis, n in enumerate(known[operand])]
            )
    copy.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in attributes])
    return copy
