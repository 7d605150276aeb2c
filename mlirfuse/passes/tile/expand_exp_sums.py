"""`fuse-expand-exp-sums`: splits `fuse.exp_sum` into two reductions where rows are processed in chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, math

from mlirfuse.analysis.kernels import body, is_tile_program, kernels
from mlirfuse.passes.splitting.tensor_reductions import reduce_rows
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.support.rewriting import erase


@dataclass(frozen=True)
class FuseExpandExpSums(Pass):
    """Replaces `fuse.exp_sum` by a maximum, and a sum of exponentials about it.

    Requires kernels on tensors with a schedule. Applies where the schedule processes rows in chunks: rescaling the
    accumulators at every chunk would take two exponentials an element; a second pass takes one. Declines elsewhere.

    ```mlir
    %max, %sum = "fuse.exp_sum"(%x) {dims = array<i64: 1>}
    ```
    becomes
    ```mlir
    %max = linalg.generic ... reduce maximumf (%x)
    %sum = linalg.generic ... reduce addf (exp(%x - %max))
    ```
    """

    name: ClassVar[str] = "fuse-expand-exp-sums"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for kernel in kernels(module):
            if is_tile_program(kernel):
                continue
            found = [op for op in body(kernel) if op.name == "fuse.exp_sum"]
            if not found or schedule_of(kernel).persistence == "registers":
                remarks.declined(self, "no sums of exponentials, or rows that stay whole in registers", kernel)
                continue
            for op in found:
                _expand(op)
            remarks.applied(self, f"{len(found)} sums of exponentials became two reductions each", kernel)


def _expand(op: ir.Operation) -> None:
    source, dims = op.operands[0], list(ir.DenseI64ArrayAttr(op.attributes["dims"]))

    def exponential(arguments: Sequence[ir.Value]) -> ir.Value:
        return math.ExpOp(arith.SubFOp(*arguments).result).result

    with ir.InsertionPoint(op), op.location:
        maximum = reduce_rows("arith.maximumf", source, [], dims, lambda arguments: arguments[0])
        total = reduce_rows("arith.addf", source, [maximum], dims, exponential)
    op.results[0].replace_all_uses_with(maximum)
    op.results[1].replace_all_uses_with(total)
    erase(op)
