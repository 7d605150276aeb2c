"""`fuse-verify`: the part of the fuse dialect's verification that IRDL cannot express."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.dialect.verification import verify_fuse_attributes, verify_fuse_ops
from mlirfuse.passmanager.base import Pass, Remarks


@dataclass(frozen=True)
class FuseVerify(Pass):
    """Checks every `fuse` op against its definition's `verify`, and every `fuse` attribute against its declaration.

    IRDL has checked names, counts and required attributes when the op was parsed or built; this pass checks the
    relations between types and the ranges of values. Of discardable attributes it checks name, type and carrier
    (`dialect/attributes.py`). It changes nothing. The pass manager checks the ops again after every mlirfuse pass
    (`--verify-each`).

    Raises `IRError` at the first op or attribute that does not verify:

    ```mlir
    // error: 'fuse.moments' op dims [1, 0] must be ascending dimensions of tensor<4x8xf32>
    %sum, %m2 = "fuse.moments"(%x) {dims = array<i64: 1, 0>} : (tensor<4x8xf32>) -> (tensor<f32>, tensor<f32>)
    ```
    """

    name: ClassVar[str] = "fuse-verify"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Checks the module; raises `IRError`."""
        verify_fuse_ops(module)
        verify_fuse_attributes(module)
