"""`fuse-merge-exp-sums`: a maximum and a sum of exponentials about it become one reduction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import body, is_tile_program, kernels
from mlirfuse.analysis.patterns import body_op, difference_source, tensor_operand
from mlirfuse.analysis.structure import structure_of
from mlirfuse.dialect.exp_sum import exp_sum
from mlirfuse.passes.base import Pass, Remarks
from mlirfuse.rewriting import defining_op, erase_dead
from mlirfuse.tiling.plain_reduction import plain_reduction


@dataclass(frozen=True)
class FuseMergeExpSums(Pass):
    """Replaces `max x` and `Σ exp(x - max x)` by one `fuse.exp_sum`, so that one round of communication is enough.

    Requires kernels on tensors. Matches a sum of exponentials of `x - m`, where m is the maximum of the same x over the
    same dimensions, through broadcasts and reshapes that only add extents of 1, in single or double precision. What
    else uses the exponentials (a softmax divides them by their sum) computes them again, once the maximum is known.
    Where the schedule turns out to walk rows in chunks, `fuse-expand-exp-sums` takes the merge back.

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
        for kernel in kernels(module):
            if is_tile_program(kernel):
                continue
            found = [m for op in body(kernel) if (m := _match(op)) is not None]
            for match in found:
                _rewrite(match)
                remarks.applied(self, "maximum and sum of exponentials share one reduction", kernel)
            if not found:
                remarks.declined(self, "no sum of exponentials about a maximum", kernel)
            erase_dead([op for op in body(kernel) if op.results])


@dataclass(frozen=True)
class _Match:
    source: ir.Value
    dims: tuple[int, ...]
    max_op: ir.Operation
    sum_op: ir.Operation


def _match(op: ir.Operation) -> _Match | None:
    """The maximum and the sum of exponentials that end in `op`."""
    total = structure_of(op)
    if total is None or plain_reduction(total) != "arith.addf":
        return None
    exponential = body_op(total.operands[0])
    if exponential is None or exponential[1].name != "math.exp":
        return None
    difference = tensor_operand(exponential[0], exponential[1].operands[0])
    found = None if difference is None else difference_source(difference)
    if found is None:
        return None
    source, maximum = found
    if not isinstance(source.type.element_type, (ir.F32Type, ir.F64Type)):
        return None
    maker = defining_op(maximum)
    first = structure_of(maker) if maker is not None else None
    if first is None or plain_reduction(first) != "arith.maximumf" or first.operands[0] != source:
        return None
    if first.reduction_loops != total.reduction_loops:
        return None
    return _Match(source, total.reduction_loops, first.op, op)


def _rewrite(match: _Match) -> None:
    with ir.InsertionPoint(match.max_op), match.max_op.location:
        maximum, total = exp_sum(match.source, match.dims, match.max_op.results[0].type)
    match.max_op.results[0].replace_all_uses_with(maximum)
    match.sum_op.results[0].replace_all_uses_with(total)
