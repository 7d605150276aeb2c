"""Whether a function's result over run-time extents is needed again along these: what takes a second pass over them."""

from __future__ import annotations

from mlir import ir

from mlirfuse.analysis.kernels import body
from mlirfuse.analysis.loops.structure import OpStructure, structure_of


def needs_second_pass(function: ir.Operation) -> bool:
    """Whether an op that runs along a dynamic extent depends on a reduction over one.

    A block holds no more than a part of such a dimension, so that the reduction takes the whole grid, and what uses it
    another kernel, or a second visit of each tile. With numbers for the extents one kernel may hold all of it on chip.

    Args:
        function: a host function of ops on tensors.
    """
    reduced: set[ir.Value] = set()
    for op in body(function):
        structure = structure_of(op)
        depends = any(operand in reduced for operand in op.operands)
        if structure is not None:
            extents = (*structure.operand_extents, *structure.result_extents)
            runs = any(None in of_value for of_value in extents)
            if depends and runs:
                return True
            depends = depends or _reduces_dynamic(structure)
        if depends:
            reduced.update(op.results)
    return False


def _reduces_dynamic(structure: OpStructure) -> bool:
    """Whether an op reduces a dynamic extent."""
    pairs = zip(structure.operand_axes, structure.operand_extents, strict=True)
    return any(
        axis in structure.reduction_loops and extent is None
        for axes, extents in pairs
        if axes is not None
        for axis, extent in zip(axes, extents, strict=True)
    )
