"""`lower-contraction`: a product and a sum in single or double precision may become one fused multiply-add."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.passes.base import Pass, Remarks
from mlirfuse.rewriting import ops_named

OPS = frozenset({"arith.addf", "arith.subf", "arith.mulf"})


@dataclass(frozen=True)
class LowerContraction(Pass):
    """Marks `f32` and `f64` sums and products with `fastmath<contract>`, so that the backend fuses them.

    A fused multiply-add rounds once instead of twice: it is the default of nvcc (`-fmad=true`) and of every framework
    that compiles through it. Half precision is left alone, because there each operation must round as NumPy's does:
    also a product in `f32` that is then rounded to half, because LLVM makes a half-precision product of the two ops
    that inherits the flag. Flags that an op has already are kept.

    ```mlir
    %1 = arith.mulf %a, %b : f32
    // lower-contraction
    %1 = arith.mulf %a, %b fastmath<contract> : f32
    ```
    """

    name: ClassVar[str] = "lower-contraction"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        none = ir.Attribute.parse("#arith.fastmath<none>")
        contract = ir.Attribute.parse("#arith.fastmath<contract>")
        for func in kernels(module):
            marked = 0
            for op in ops_named(func.operation, *OPS):
                if not _is_wide(op.results[0].type) or _is_rounded_product(op):
                    continue
                if op.attributes["fastmath"] == none:
                    op.attributes["fastmath"] = contract
                    marked += 1
            if marked:
                remarks.applied(self, f"{marked} operations may contract", func)
            else:
                remarks.declined(self, "no sum or product in single or double precision", func)


def _is_wide(value_type: ir.Type) -> bool:
    element = value_type.element_type if isinstance(value_type, ir.VectorType) else value_type
    return isinstance(element, (ir.F32Type, ir.F64Type))


def _is_rounded_product(op: ir.Operation) -> bool:
    """Whether an op is a product that a cast to a narrower type rounds."""
    return op.name == "arith.mulf" and any(use.owner.name == "arith.truncf" for use in op.results[0].uses)
