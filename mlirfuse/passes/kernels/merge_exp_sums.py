"""`fuse-merge-exp-sums`: merges a maximum and the sum of exponentials relative to it into one reduction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.arithmetic.patterns import body_op, difference_source, tensor_operand
from mlirfuse.analysis.loops.structure import OpStructure, structure_of
from mlirfuse.dialect.exp_sum import exp_sum
from mlirfuse.passes.kernels.merge_reductions import DependentReductions, merge_reductions, merge_reductions_of
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import defining_op
from mlirfuse.tiling.reduction.plain_reduction import plain_reduction


@dataclass(frozen=True)
class FuseMergeExpSums(Pass):
    """Replaces `max x` and `Σ exp(x - max x)` by one `fuse.exp_sum`, which needs one exchange instead of two.

    Requires kernels on tensors. Matches a sum of exponentials of `x - m`, where m is the maximum of the same x over the
    same dimensions, through broadcasts and reshapes that only add extents of 1, in single or double precision. Other
    uses of the exponentials (a softmax divides them by their sum) compute them again, once the maximum is known.
    Declines where another reduction waits for the maximum alone: its pass over the rows remains, and serves both.
    `fuse-expand-exp-sums` undoes the merge where the schedule processes rows in chunks.

    ```mlir
    %max = linalg.generic ... reduce maximumf (%x)
    %d = subf %x, %max
    %e = math.exp %d
    %sum = linalg.generic ... reduce addf (%e)
    ```
    becomes
    ```mlir
    %max, %sum = "fuse.exp_sum"(%x) {dims = array<i64: 1>}
    ```
    """

    name: ClassVar[str] = "fuse-merge-exp-sums"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for kernel, count, apart in merge_reductions(module, _match, exp_sum):
            for _ in range(count):
                remarks.applied(self, "maximum and sum of exponentials share one reduction", kernel)
            if apart:
                remarks.declined(self, "another reduction waits for the maximum alone, and shares its pass", kernel)
            elif not count:
                remarks.declined(self, "no sum of exponentials about a maximum", kernel)


def merge_exp_sums(kernel: ir.Operation) -> None:
    """Merges the maxima and sums of exponentials of one kernel on tensors."""
    merge_reductions_of(kernel, _match, exp_sum)


def _match(second: OpStructure) -> DependentReductions | None:
    """The maximum and the sum of exponentials that end in `second`."""
    exponential = body_op(second.operands[0]) if plain_reduction(second) == "arith.addf" else None
    if exponential is None or exponential[1].name != "math.exp":
        return None
    centred = tensor_operand(exponential[0], exponential[1].operands[0])
    difference = None if centred is None else difference_source(centred)
    if difference is None or not isinstance(difference.source.type.element_type, (ir.F32Type, ir.F64Type)):
        return None
    maker = defining_op(difference.subtracted)
    first = structure_of(maker) if maker is not None else None
    if first is None or plain_reduction(first) != "arith.maximumf" or first.operands[0] != difference.source:
        return None
    return DependentReductions(first, second, difference)
