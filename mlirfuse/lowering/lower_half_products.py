"""`lower-half-products`: a product rounded to half precision stays rounded."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlir import ir
from mlir.dialects import llvm, vector

from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.passes.base import Pass, Remarks
from mlirfuse.passes.rewriting import defining_op, nested

HALF_BITS = 16


@dataclass(frozen=True)
class LowerHalfProducts(Pass):
    """Hides half-precision products from the backend where they go on into further arithmetic.

    LLVM turns a product computed in f32 and rounded to f16 or bf16 into a half-precision product, which is the same
    number. But the NVPTX backend then contracts it with a following sum to `fma.rn.f16x2`, whatever the fast-math flags
    say, and the rounding that NumPy does between the two is lost. A register move in inline assembly keeps them apart;
    ptxas removes the move, and does not contract what says `.rn`. Products in f32 are left to be contracted, as in nvcc:
    there is no rounding in between that anyone asked for.

    ```mlir
    %p = arith.mulf %a, %b : vector<2xf32>
    %h = arith.truncf %p : vector<2xf32> to vector<2xf16>
    %e = arith.extf %h : vector<2xf16> to vector<2xf32>
    // lower-half-products
    %p = arith.mulf %a, %b : vector<2xf32>
    %h = arith.truncf %p : vector<2xf32> to vector<2xf16>
    %w = vector.bitcast %h : vector<2xf16> to vector<1xi32>
    %i = vector.to_elements %w : vector<1xi32>
    %o = llvm.inline_asm "mov.b32 $0, $1;", "=r,r" %i : (i32) -> i32
    ... %h2 from %o
    %e = arith.extf %h2 : vector<2xf16> to vector<2xf32>
    ```
    """

    name: ClassVar[str] = "lower-half-products"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            rounded = [op for op in nested(func.operation) if _is_half_product(op)]
            for op in rounded:
                _hide(op)
            if rounded:
                remarks.applied(self, f"{len(rounded)} products keep their rounding", func)


def _is_half_product(op: ir.Operation) -> bool:
    """Whether an op rounds an f32 product to half precision for arithmetic that goes on."""
    if op.name != "arith.truncf":
        return False
    product = defining_op(op.operands[0])
    if product is None or product.name != "arith.mulf" or _element(op.results[0]).width != HALF_BITS:
        return False
    return any(use.owner.name != "vector.store" for use in op.results[0].uses)


def _element(value: ir.Value) -> ir.Type:
    return ir.VectorType(value.type).element_type if isinstance(value.type, ir.VectorType) else value.type


def _hide(op: ir.Operation) -> None:
    """Puts register moves after the rounding, in front of all its uses."""
    result = op.results[0]
    users = [(use.owner.operation, use.operand_number) for use in result.uses]
    with ir.InsertionPoint.after(op), op.location:
        hidden = _moved(result)
    for user, position in users:
        user.operands[position] = hidden


def _moved(value: ir.Value) -> ir.Value:
    """A half-precision value or fragment after a move that LLVM cannot look through."""
    is_fragment = isinstance(value.type, ir.VectorType)
    fragment = value if is_fragment else vector.broadcast(ir.VectorType.get([1], value.type), value)
    bits = prod(ir.VectorType(fragment.type).shape) * HALF_BITS
    width, register = (32, "r") if bits % 32 == 0 else (16, "h")
    word = ir.IntegerType.get_signless(width)
    packed = vector.bitcast(ir.VectorType.get([bits // width], word), fragment)
    text, constraints = f"mov.b{width} $0, $1;", f"={register},{register}"
    moved = [llvm.InlineAsmOp(word, [w], text, constraints).res for w in vector.ToElementsOp(packed).results]
    result = vector.bitcast(fragment.type, vector.from_elements(packed.type, moved))
    return result if is_fragment else vector.ToElementsOp(result).results[0]
