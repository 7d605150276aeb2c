"""`fuse-multiply-add`: marks products that may be contracted to fused multiply-adds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.arithmetic.multiply_add import added_once, allow_contraction, is_wide, only_summed
from mlirfuse.analysis.kernels import body, functions, is_tile_program
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import ops_named


@dataclass(frozen=True)
class FuseMultiplyAdd(Pass):
    """Marks products of `f32` and `f64` with `fastmath<contract>` that only sums read, or that reach one result once.

    Requires functions of `linalg` and `tensor` ops. Every other operation rounds its result, as NumPy's does. A product
    with several uses must have one value in all of them: if it were contracted in one place and rounded in another, `(v
    - mean) * (v - mean)` could be negative, and `h - max(h)` would not be 0 at the maximum. So this is decided here,
    before passes repeat an op for each of its uses; `lower-contraction` does the rest.

    A sum reads a product directly or through reshapes and transposes. A product in an elementwise sum is marked where
    the sum, and every value on the way to one result of the function, has a single use, so that it is computed in one
    place. It is not marked where the other addend is a product of the same operands. Products in half precision are
    rounded, and left alone.

    ```mlir
    %0 = linalg.generic ins(%x, %y) { ^bb0(%a: f32, %b: f32, %o: f32): %p = arith.mulf %a, %b : f32 ... }
    %1 = linalg.generic {iterator_types = ["parallel", "reduction"]} ins(%0) { ... arith.addf ... }
    ```
    becomes
    ```mlir
    %0 = linalg.generic ins(%x, %y) { ^bb0(...): %p = arith.mulf %a, %b fastmath<contract> : f32 ... }
    %1 = linalg.generic {iterator_types = ["parallel", "reduction"]} ins(%0) { ... arith.addf ... }
    ```
    """

    name: ClassVar[str] = "fuse-multiply-add"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for function in functions(module):
            if not body(function) or is_tile_program(function):
                continue
            products = [op for op in ops_named(function, "arith.mulf") if is_wide(op.results[0].type)]
            marked = [op for op in products if (only_summed(op.results[0]) or added_once(op)) and allow_contraction(op)]
            if marked:
                remarks.applied(self, f"{len(marked)} product(s) may be contracted", function)
            elif products:
                remarks.declined(self, "no product is read only by sums, or reaches one result once", function)
