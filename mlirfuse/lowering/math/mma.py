"""`lower-mma`: `fuse.mma` becomes `mma.sync`, with conversions to tf32 in front where it needs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import llvm, nvvm, vector

from mlirfuse.analysis.arithmetic.casts import element_type, rounds_ties_away
from mlirfuse.dialect.mma import DEPTHS
from mlirfuse.distribution.threads.fragments import elements
from mlirfuse.errors import PassError
from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import erase, nested, ops_named


@dataclass(frozen=True)
class LowerMma(Pass):
    """Lowers `fuse.mma` to `nvvm.mma.sync`, and casts of f32 to and from tf32.

    Shapes are m16n8k16, m16n8k8 for tf32, and m16n8k32 for int8. `nvgpu.mma.sync` would do for f16, but has no
    lowering for bf16, whose operands NVVM takes as 32-bit integers. A number in tf32 is such an integer too, with the
    bits of an f32. Requires that tf32 is rounded to by `to_nearest_away`, and used by nothing but products and
    `arith.extf` to f32.

    ```mlir
    %d = "fuse.mma"(%a, %b, %c) : (vector<8xbf16>, vector<4xbf16>, vector<4xf32>) -> vector<4xf32>
    // lower-mma
    %r = nvvm.mma.sync A[%a0, %a1, %a2, %a3] B[%b0, %b1] C[%c0, %c1, %c2, %c3]
      {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<bf16>,
       multiplicandBPtxType = #nvvm.mma_type<bf16>, shape = #nvvm.shape<m = 16, n = 8, k = 16>}
      : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    ```

    ```mlir
    %t = arith.truncf %x to_nearest_away : vector<4xf32> to vector<4xtf32>
    // lower-mma, for each element
    %t0 = nvvm.convert.float.to.tf32 %x0 {rnd = #nvvm.fp_rnd_mode<rna>} : i32
    ```

    Raises `PassError` for another use of tf32.
    """

    name: ClassVar[str] = "lower-mma"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            ops = ops_named(func.operation, "fuse.mma", "arith.truncf", "arith.extf")
            # Uses of tf32 that have no lowering are looked for only where a cast makes tf32.
            ops = nested(func.operation) if any(map(_has_tf32, ops)) else ops
            ops = [op for op in ops if op.name == "fuse.mma" or _has_tf32(op)]
            bits: Registers = {}
            for op in ops:
                with ir.InsertionPoint(op), op.location:
                    _lower(op, bits)
            products = sum(op.name == "fuse.mma" for op in ops)
            for op in reversed(ops):
                erase(op)
            if products:
                remarks.applied(self, f"{products} products on the tensor cores", func)


Registers = dict[ir.Value, list[ir.Value]]
"""The elements of values in tf32, as `i32`."""


def _has_tf32(op: ir.Operation) -> bool:
    return any(isinstance(element_type(value.type), ir.FloatTF32Type) for value in (*op.operands, *op.results))


def _lower(op: ir.Operation, bits: Registers) -> None:
    """Emits an op's lowering, records its results in tf32, and replaces the others."""
    if op.name == "fuse.mma":
        a, b, c = op.operands
        op.results[0].replace_all_uses_with(_product(a, b, c, bits))
    elif op.name == "arith.truncf" and rounds_ties_away(op):
        i32 = ir.IntegerType.get_signless(32)
        away = nvvm.FPRoundingMode.RNA
        bits[op.results[0]] = [nvvm.convert_float_to_tf32(i32, x, rnd=away) for x in elements(op.operands[0])]
    elif op.name == "arith.extf" and op.operands[0] in bits:
        numbers = [llvm.bitcast(ir.F32Type.get(), word) for word in bits[op.operands[0]]]
        whole = vector.FromElementsOp(op.results[0].type, numbers).result if len(numbers) > 1 else numbers[0]
        op.results[0].replace_all_uses_with(whole)
    else:
        raise PassError(
            f"{op.name} of tf32 has no lowering: tf32 may only be multiplied, and extended to f32", where=op
        )


def _product(a: ir.Value, b: ir.Value, c: ir.Value, bits: Registers) -> ir.Value:
    element = element_type(a.type)
    is_integer = isinstance(element, ir.IntegerType)
    kind = ir.Attribute.parse(f"#nvvm.mma_type<{'s8' if is_integer else element}>")
    number = element_type(c.type)
    sums = [vector.ExtractOp(c, [], [i]).result for i in range(4)]
    product = nvvm.MmaOp(
        ir.Type.parse(f"!llvm.struct<({', '.join([str(number)] * 4)})>"),
        ir.Attribute.parse(f"#nvvm.shape<m = 16, n = 8, k = {DEPTHS[str(element)]}>"),
        ir.Attribute.parse("#nvvm.mma_layout<row>"),
        ir.Attribute.parse("#nvvm.mma_layout<col>"),
        *(bits[operand] if operand in bits else _pairs(operand) for operand in (a, b)),
        sums,
        multiplicandAPtxType=kind,
        multiplicandBPtxType=kind,
        intOverflowBehavior=ir.Attribute.parse("#nvvm.mma_int_overflow<wrapped>") if is_integer else None,
    ).result
    parts = [llvm.ExtractValueOp(number, product, ir.DenseI64ArrayAttr.get([i])).result for i in range(4)]
    return vector.FromElementsOp(c.type, parts).result


def _pairs(fragment: ir.Value) -> list[ir.Value]:
    """The 32-bit registers of a fragment, as NVVM takes them: `vector<2xf16>`, or `i32` for other types."""
    vector_type = ir.VectorType(fragment.type)
    pair = ir.VectorType.get([2], vector_type.element_type)
    count = vector_type.shape[0] * vector_type.element_type.width // 32
    if str(vector_type.element_type) == "f16":
        return [vector.ExtractStridedSliceOp(pair, fragment, [2 * i], [2], [1]).result for i in range(count)]
    i32 = ir.IntegerType.get_signless(32)
    words = vector.BitCastOp(ir.VectorType.get([count], i32), fragment).result
    return [vector.ExtractOp(words, [], [i]).result for i in range(count)]
