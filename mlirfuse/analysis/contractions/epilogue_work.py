"""Measures what follows a contraction in its kernel, for each element of the product."""

from __future__ import annotations

from math import prod

from mlir import ir

from mlirfuse.analysis.arithmetic.instruction_counts import Instructions, instructions_of
from mlirfuse.analysis.arithmetic.ranges import Ranges
from mlirfuse.analysis.contractions.contraction import CASTS, Contraction
from mlirfuse.analysis.kernels import stored_values
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.schedule.parts.contraction_problem import EpilogueWork
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import nested

ROUNDING = CASTS | {"arith.truncf", "arith.trunci", "linalg.yield"}
"""Ops of bodies that convert results on their way out and do nothing else, which storing them includes."""


def epilogue_work(kernel: ir.Operation, space: IterationSpace, contraction: Contraction) -> EpilogueWork:
    """The work of a contraction's epilogue: of ops that run over rows and columns of the product."""
    tile, count = {contraction.m, contraction.n}, len(contraction.pairs)
    arguments = list(kernel.regions[0].blocks[0].arguments)
    reads: dict[ir.Value, set[int | None]] = {}
    for (op, number), axes in space.use_axes.items():
        value = op.operands[number]
        if value in arguments and tile <= set(axes) and not set(contraction.summed) & set(axes):
            reads[value] = set(axes)
    returned = [value for value in stored_values(kernel) if tile <= set(space.value_axes[value])]
    instructions, range_of = Instructions(), Ranges().of
    for op, loops in space.loops.items():
        if tile <= set(loops) and not set(contraction.summed) & set(loops) and not _only_rounds(op):
            instructions += instructions_of(op, range_of)
    return EpilogueWork(
        written=sum(map(_bytes, returned)) / count,
        read=sum(_bytes(value) / _times(space, contraction, axes) for value, axes in reads.items()) / count,
        arguments=len(reads) / count,
        instructions=(instructions.plain + instructions.double) / count,
        special=instructions.special / count,
        results=max(1, len(returned)),
    )


def _bytes(value: ir.Value) -> int:
    return from_mlir(ir.RankedTensorType(value.type).element_type).bytes


def _times(space: IterationSpace, contraction: Contraction, axes: set[int | None]) -> int:
    """How many products read an element of an argument, as it lacks batch dimensions."""
    return prod(space.extents[d] or 1 for d in contraction.batch if d not in axes)


def _only_rounds(op: ir.Operation) -> bool:
    return {inner.name for inner in nested(op)[1:]} <= ROUNDING
