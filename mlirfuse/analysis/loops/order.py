"""The order of a kernel's ops by the reductions that they depend on."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.analysis.loops.structure import OpStructure


def reduction_depths(structures: Sequence[OpStructure]) -> dict[ir.Operation, int]:
    """For each op, the length of the longest chain of reductions that must complete before it can start."""
    after: dict[ir.Value, int] = {}
    depths: dict[ir.Operation, int] = {}
    for s in structures:
        depth = max((after.get(operand, 0) for operand in s.operands), default=0)
        depths[s.op] = depth
        for result in s.op.results:
            after[result] = depth + (1 if s.reduction_loops else 0)
    return depths


def by_reduction_depth(structures: Sequence[OpStructure]) -> list[OpStructure]:
    """The ops in an order that respects dependences, with ops that depend on fewer reductions in sequence first."""
    depths = reduction_depths(structures)
    return sorted(structures, key=lambda s: depths[s.op])
