"""`fuse-fold-transposes`: ops read transposed values where they are, through another indexing map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import body, functions
from mlirfuse.passes.base import Pass, Remarks
from mlirfuse.passes.rewriting import defining_op, erase_dead


@dataclass(frozen=True)
class FuseFoldTransposes(Pass):
    """Lets each `linalg.generic` that reads a transpose's result read its source, with the map permuted.

    Requires functions of tensor ops. A transpose that nobody reads any more is erased; one whose result is returned, or
    read by something other than a `linalg.generic`, stays. So an operand's transpose never decides what shares a
    kernel, and a contraction of transposed factors reads them as they lie in memory.

    ```mlir
    %t = linalg.transpose ins(%w : tensor<384x512xf16>) outs(%e : tensor<512x384xf16>) permutation = [1, 0]
    %y = linalg.generic {indexing_maps = [..., affine_map<(m, n, k) -> (k, n)>, ...]} ins(%x, %t) ...
    ```
    becomes
    ```mlir
    %y = linalg.generic {indexing_maps = [..., affine_map<(m, n, k) -> (n, k)>, ...]} ins(%x, %w) ...
    ```
    """

    name: ClassVar[str] = "fuse-fold-transposes"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        for function in functions(module):
            ops = body(function)
            folded = sum(_fold(op) for op in ops if op.name == "linalg.generic")
            erase_dead([op for op in ops if op.name == "linalg.transpose"])
            if folded:
                remarks.applied(self, f"{folded} reads of transposed values", function)


def _fold(op: ir.Operation) -> int:
    """Folds the transposes that an op reads; returns how many."""
    maps = [m.value for m in ir.ArrayAttr(op.attributes["indexing_maps"])]
    inputs = len(op.operands) - len(op.results)
    folded = 0
    for number in range(inputs):
        while (maker := defining_op(op.operands[number])) is not None and maker.name == "linalg.transpose":
            permutation = list(ir.DenseI64ArrayAttr(maker.attributes["permutation"]))
            results = list(maps[number].results)
            source = [results[permutation.index(axis)] for axis in range(len(permutation))]
            maps[number] = ir.AffineMap.get(maps[number].n_dims, 0, source)
            op.operands[number] = maker.operands[0]
            folded += 1
    op.attributes["indexing_maps"] = ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps])
    return folded
