"""`fuse-expand-moments`: splits `fuse.moments` into two reductions where rows are processed in chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith

from mlirfuse.analysis.kernels import body, is_tile_program, kernels
from mlirfuse.passes.splitting.tensor_reductions import reduce_rows
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.support.rewriting import erase


@dataclass(frozen=True)
class FuseExpandMoments(Pass):
    """Replaces `fuse.moments` by a sum, and a sum of squared deviations from the mean that the first sum gives.

    Requires kernels on tensors with a schedule. Applies where the schedule processes rows in chunks: centred squares
    need the whole sum first, so two passes are needed anyway. Declines elsewhere.

    ```mlir
    %sum, %m2 = "fuse.moments"(%x) {dims = array<i64: 1>}
    ```
    becomes
    ```mlir
    %sum = linalg.generic ... reduce add (%x)
    %m2 = linalg.generic ... reduce add ((%x - %sum / n) * (%x - %sum / n))
    ```
    """

    name: ClassVar[str] = "fuse-expand-moments"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for kernel in kernels(module):
            if is_tile_program(kernel):
                continue
            found = [op for op in body(kernel) if op.name == "fuse.moments"]
            if not found or schedule_of(kernel).persistence == "registers":
                remarks.declined(self, "no moments, or rows that stay whole in registers", kernel)
                continue
            for op in found:
                _expand(op)
            remarks.applied(self, f"{len(found)} moments became two reductions each", kernel)


def _expand(op: ir.Operation) -> None:
    source, dims = op.operands[0], list(ir.DenseI64ArrayAttr(op.attributes["dims"]))
    source_type = ir.RankedTensorType(source.type)
    count = float(prod(source_type.get_dim_size(d) for d in dims))

    def squared_deviation(arguments: Sequence[ir.Value]) -> ir.Value:
        element, total = arguments
        n = arith.ConstantOp(source_type.element_type, ir.FloatAttr.get(source_type.element_type, count)).result
        centred = arith.SubFOp(element, arith.DivFOp(total, n).result).result
        return arith.MulFOp(centred, centred, fastmath=arith.FastMathFlags.contract).result

    with ir.InsertionPoint(op), op.location:
        total = reduce_rows("arith.addf", source, [], dims, lambda arguments: arguments[0])
        squares = reduce_rows("arith.addf", source, [total], dims, squared_deviation)
    op.results[0].replace_all_uses_with(total)
    op.results[1].replace_all_uses_with(squares)
    erase(op)
