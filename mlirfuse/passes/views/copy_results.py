"""`fuse-copy-results`: results that have to be arrays of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import body, functions
from mlirfuse.dialect.copies import COPIED_RESULTS
from mlirfuse.passes.views.copies import copied
from mlirfuse.passmanager.base import Pass, Remarks


@dataclass(frozen=True)
class FuseCopyResults(Pass):
    """Copies the results that `fuse.copied_results` lists, which may be views of arguments, or of each other.

    Requires host functions of tensor ops, and removes the attribute. A copy is an elementwise op with `fuse.copied`, so
    that `fuse-segment` gives it to a kernel; without the attribute, results that are views of memory stay views, and
    have none. A call with `out=` needs copies, as do results that the caller's framework has no views for.

    ```mlir
    func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {fuse.copied_results = array<i64: 0>} {
      return %x : tensor<?x8xf32>
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
      %copy = linalg.generic ... ins(%x : tensor<?x8xf32>) ... {fuse.copied = 0 : i64} -> tensor<?x8xf32>
      return %copy : tensor<?x8xf32>
    ```
    """

    name: ClassVar[str] = "fuse-copy-results"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for function in functions(module):
            if COPIED_RESULTS not in function.attributes:
                continue
            terminator = body(function)[-1]
            for number in ir.DenseI64ArrayAttr(function.attributes[COPIED_RESULTS]):
                terminator.operands[number] = copied(terminator, terminator.operands[number], number)
                remarks.applied(self, f"copies result {number}, which is to be an array of its own", function)
            del function.attributes[COPIED_RESULTS]
