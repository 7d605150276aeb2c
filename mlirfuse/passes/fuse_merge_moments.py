"""`fuse-merge-moments`: a mean and a sum of squared deviations from it become one reduction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import body, is_tile_program, kernels
from mlirfuse.analysis.patterns import centred_square_source, is_scaled
from mlirfuse.analysis.structure import OpStructure, structure_of
from mlirfuse.dialect.moments import moments
from mlirfuse.passes.base import Pass, Remarks
from mlirfuse.rewriting import erase_dead
from mlirfuse.tiling.plain_reduction import plain_reduction


@dataclass(frozen=True)
class FuseMergeMoments(Pass):
    """Replaces `Σ x` and `Σ (x - Σx/n)²` by one `fuse.moments`, so that one round of communication is enough.

    Requires kernels on tensors. Matches a sum of the square of `x - m`, where m is the sum of the same x over the same
    dimensions divided by the number of elements, through broadcasts and reshapes that only add extents of 1. Where the
    schedule turns out to walk rows in chunks, `fuse-expand-moments` takes the merge back.

    ```mlir
    %sum = linalg.generic ... reduce add (%x)
    %mean = divf %sum, n
    %d = subf %x, %mean
    %sq = mulf %d, %d
    %m2 = linalg.generic ... reduce add (%sq)
    ```
    becomes
    ```mlir
    %sum, %m2 = "fuse.moments"(%x) {dims = array<i64: 1>}
    %mean = divf %sum, n
    %d = subf %x, %mean
    ```
    """

    name: ClassVar[str] = "fuse-merge-moments"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        for kernel in kernels(module):
            if is_tile_program(kernel):
                continue
            found = [m for op in body(kernel) if (m := _match(op)) is not None]
            for match in found:
                _rewrite(match)
                remarks.applied(self, "sum and centred sum of squares share one reduction", kernel)
            if not found:
                remarks.declined(self, "no sum of squared deviations from a mean", kernel)
            erase_dead([op for op in body(kernel) if op.results])


@dataclass(frozen=True)
class _Match:
    source: ir.Value
    dims: tuple[int, ...]
    sum_op: ir.Operation
    m2_op: ir.Operation


def _match(op: ir.Operation) -> _Match | None:
    """The sum and the centred sum of squares that end in `op`."""
    m2 = structure_of(op)
    if m2 is None or plain_reduction(m2) != "arith.addf":
        return None
    found = centred_square_source(m2.operands[0])
    if found is None:
        return None
    source, mean = found
    total = is_scaled(mean, _count(m2))
    if total is None:
        return None
    first = structure_of(total)
    if first is None or plain_reduction(first) != "arith.addf" or first.operands[0] != source:
        return None
    if first.reduction_loops != m2.reduction_loops:
        return None
    return _Match(source, m2.reduction_loops, total, op)


def _count(structure: OpStructure) -> int | None:
    """Number of elements reduced into one result; None where it is dynamic."""
    source = ir.RankedTensorType(structure.operands[0].type)
    axes = structure.operand_axes[0] or ()
    count = 1
    for axis, loop in enumerate(axes):
        if loop in structure.reduction_loops:
            if source.is_dynamic_dim(axis):
                return None
            count *= source.get_dim_size(axis)
    return count


def _rewrite(match: _Match) -> None:
    with ir.InsertionPoint(match.sum_op), match.sum_op.location:
        total, m2 = moments(match.source, match.dims, match.sum_op.results[0].type)
    match.sum_op.results[0].replace_all_uses_with(total)
    match.m2_op.results[0].replace_all_uses_with(m2)
