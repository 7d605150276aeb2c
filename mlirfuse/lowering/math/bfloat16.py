"""`lower-bfloat16`: vectors of bfloat16 are widened by shifting and masking words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, vector

from mlirfuse.analysis.arithmetic.casts import element_type
from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import defining_op, erase, ops_named

HALF, HIGH = 16, -(2**16)
"""The shift, in bits, that makes a float32 of a word's low half, and the mask that makes one of its high half."""

NARROWED = frozenset({"arith.addf", "arith.subf", "arith.mulf", "arith.divf"})
"""Single-precision operations that LLVM narrows to bfloat16 where their result is rounded to it."""


@dataclass(frozen=True)
class LowerBfloat16(Pass):
    """Widens vectors of `bf16` to `f32` by one integer instruction an element: a shift or a mask of the word of two.

    A bfloat16 is the high half of the same number in single precision. ptxas assembles a pair of `cvt.f32.bf16` to
    three instructions and keeps each half in a register of its own, so that kernels of long rows would spill. Scalars
    and vectors of an odd number of elements are left alone, and so are operands of an operation whose result is rounded
    to `bf16` at once, as LLVM narrows that operation to bfloat16.

    ```mlir
    %w = arith.extf %x : vector<2xbf16> to vector<2xf32>
    // lower-bfloat16
    %0 = vector.bitcast %x : vector<2xbf16> to vector<1xi32>
    %1 = vector.extract %0[0] : i32 from vector<1xi32>
    %low = arith.shli %1, %c16 : i32
    %high = arith.andi %1, %mask : i32
    %2 = vector.from_elements %low, %high : vector<2xi32>
    %w = vector.bitcast %2 : vector<2xi32> to vector<2xf32>
    ```
    """

    name: ClassVar[str] = "lower-bfloat16"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            casts = [op for op in ops_named(func.operation, "arith.extf") if _widens(op)]
            whole = [op for op in casts if _fills_words(op.operands[0].type)]
            lowered = [op for op in whole if not any(_is_narrow(use.owner.operation) for use in op.results[0].uses)]
            for op in lowered:
                with ir.InsertionPoint(op), op.location:
                    op.results[0].replace_all_uses_with(_widened(op.operands[0], ir.VectorType(op.results[0].type)))
                erase(op)
            if lowered:
                remarks.applied(self, f"{len(lowered)} casts of bfloat16 are computed on 32-bit words", func)
            if len(casts) > len(whole):
                remarks.declined(
                    self, f"{len(casts) - len(whole)} casts of bfloat16 are of scalars or odd vectors", func
                )
            if len(whole) > len(lowered):
                remarks.declined(
                    self,
                    f"{len(whole) - len(lowered)} casts are left to LLVM, which narrows their uses to bfloat16",
                    func,
                )


def _is_narrow(op: ir.Operation) -> bool:
    """Whether LLVM narrows an operation to bfloat16: its operands are widened, and its result is rounded."""
    if op.name not in NARROWED or not all(_is_widened(operand) for operand in op.operands):
        return False
    users = [use.owner.operation for use in op.results[0].uses]
    return all(u.name == "arith.truncf" and isinstance(element_type(u.results[0].type), ir.BF16Type) for u in users)


def _is_widened(value: ir.Value) -> bool:
    producer = defining_op(value)
    return producer is not None and producer.name == "arith.extf" and _widens(producer)


def _widens(op: ir.Operation) -> bool:
    source, target = (element_type(value.type) for value in (op.operands[0], op.results[0]))
    return isinstance(source, ir.BF16Type) and isinstance(target, ir.F32Type)


def _fills_words(type_: ir.Type) -> bool:
    return isinstance(type_, ir.VectorType) and type_.rank == 1 and type_.shape[0] % 2 == 0


def _widened(value: ir.Value, target: ir.VectorType) -> ir.Value:
    i32, width = ir.IntegerType.get_signless(32), target.shape[0]
    packed = vector.BitCastOp(ir.VectorType.get([width // 2], i32), value).result
    words = vector.ToElementsOp(packed).results
    shift, mask = (arith.constant(i32, ir.IntegerAttr.get(i32, bits)) for bits in (HALF, HIGH))
    # The first of two elements is the low half: words are little-endian.
    wide = [half for word in words for half in (arith.shli(word, shift), arith.andi(word, mask))]
    return vector.BitCastOp(target, vector.FromElementsOp(ir.VectorType.get([width], i32), wide).result).result
