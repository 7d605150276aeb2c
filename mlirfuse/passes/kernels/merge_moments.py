"""`fuse-merge-moments`: merges a mean and the sum of squared deviations from it into one reduction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.arithmetic.patterns import Extents, is_mean_over, is_scaled, squared_difference
from mlirfuse.analysis.loops.structure import OpStructure, structure_of
from mlirfuse.dialect.moments import moments
from mlirfuse.passes.kernels.merge_reductions import DependentReductions, merge_reductions, merge_reductions_of
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.tiling.reduction.plain_reduction import plain_reduction


@dataclass(frozen=True)
class FuseMergeMoments(Pass):
    """Replaces `Σ x` and `Σ (x - Σx/n)²` by one `fuse.moments`, which needs one exchange instead of two.

    Requires kernels on tensors. Matches a sum of the square of `x - m`, where m is the sum of the same x over the
    same dimensions divided by the number of elements, which run time may know, through broadcasts and reshapes that
    only add extents of 1. Dimensions are compared in the kernel's iteration space, as a square of transposed
    differences reduces other dimensions.
    Declines where another reduction waits for the mean alone: its pass over the rows remains, and serves both.
    `fuse-expand-moments` undoes the merge where the schedule processes rows in chunks.

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
        """Rewrites the `builtin.module` in place."""
        for kernel, count, apart in merge_reductions(module, _match, moments):
            for _ in range(count):
                remarks.applied(self, "sum and centred sum of squares share one reduction", kernel)
            if apart:
                remarks.declined(self, "another reduction waits for the mean alone, and shares its pass", kernel)
            elif not count:
                remarks.declined(self, "no sum of squared deviations from a mean", kernel)


def merge_moments(kernel: ir.Operation) -> None:
    """Merges the sums and centred sums of squares of one kernel on tensors."""
    merge_reductions_of(kernel, _match, moments)


def _match(m2: OpStructure) -> DependentReductions | None:
    """The sum and the centred sum of squares that end in `m2`."""
    difference = squared_difference(m2.operands[0]) if plain_reduction(m2) == "arith.addf" else None
    if difference is None:
        return None
    known, dynamic = _count(m2)
    divisor: Extents = ()
    total = is_scaled(difference.subtracted, None if dynamic else known)
    if dynamic and (mean := is_mean_over(difference.subtracted)) is not None and mean[1] == known:
        total, _, divisor = mean
    first = structure_of(total) if total is not None else None
    if first is None or plain_reduction(first) != "arith.addf" or first.operands[0] != difference.source:
        return None
    return DependentReductions(first, m2, difference, divisor)


def _count(structure: OpStructure) -> tuple[int, int]:
    """Number of elements reduced into one result, along axes of known extents, and how many axes have others."""
    source = ir.RankedTensorType(structure.operands[0].type)
    axes = structure.operand_axes[0] or ()
    count, dynamic = 1, 0
    for axis, loop in enumerate(axes):
        if loop in structure.reduction_loops and source.is_dynamic_dim(axis):
            dynamic += 1
        elif loop in structure.reduction_loops:
            count *= source.get_dim_size(axis)
    return count, dynamic
