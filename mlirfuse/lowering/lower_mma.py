"""`lower-mma`: `fuse.mma` becomes `mma.sync`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import llvm, nvvm, vector

from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.passes.base import Pass, Remarks
from mlirfuse.passes.rewriting import nested


@dataclass(frozen=True)
class LowerMma(Pass):
    """Lowers `fuse.mma` to `nvvm.mma.sync` of shape m16n8k16.

    `nvgpu.mma.sync` would do for f16, but has no lowering for bf16, whose operands NVVM takes as 32-bit integers.

    ```mlir
    %d = "fuse.mma"(%a, %b, %c) : (vector<8xbf16>, vector<4xbf16>, vector<4xf32>) -> vector<4xf32>
    // lower-mma
    %r = nvvm.mma.sync A[%a0, %a1, %a2, %a3] B[%b0, %b1] C[%c0, %c1, %c2, %c3]
      {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<bf16>,
       multiplicandBPtxType = #nvvm.mma_type<bf16>, shape = #nvvm.shape<m = 16, n = 8, k = 16>}
      : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    ```
    """

    name: ClassVar[str] = "lower-mma"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            ops = [op for op in nested(func.operation) if op.name == "fuse.mma"]
            for op in ops:
                with ir.InsertionPoint(op), op.location:
                    op.results[0].replace_all_uses_with(_lower(*op.operands))
                op.erase()
            if ops:
                remarks.applied(self, f"{len(ops)} products on the tensor cores", func)


def _lower(a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    element = ir.VectorType(a.type).element_type
    kind = ir.Attribute.parse(f"#nvvm.mma_type<{element}>")
    f32 = ir.F32Type.get()
    totals = [vector.ExtractOp(c, [], [i]).result for i in range(4)]
    product = nvvm.MmaOp(
        ir.Type.parse("!llvm.struct<(f32, f32, f32, f32)>"),
        ir.Attribute.parse("#nvvm.shape<m = 16, n = 8, k = 16>"),
        ir.Attribute.parse("#nvvm.mma_layout<row>"),
        ir.Attribute.parse("#nvvm.mma_layout<col>"),
        _pairs(a),
        _pairs(b),
        totals,
        multiplicandAPtxType=kind,
        multiplicandBPtxType=kind,
    ).result
    parts = [llvm.ExtractValueOp(f32, product, ir.DenseI64ArrayAttr.get([i])).result for i in range(4)]
    return vector.FromElementsOp(c.type, parts).result


def _pairs(fragment: ir.Value) -> list[ir.Value]:
    """The 32-bit registers of a fragment, as NVVM takes them: `vector<2xf16>`, or `i32` for bf16."""
    vector_type = ir.VectorType(fragment.type)
    pair = ir.VectorType.get([2], vector_type.element_type)
    count = vector_type.shape[0] // 2
    if str(vector_type.element_type) == "f16":
        return [vector.ExtractStridedSliceOp(pair, fragment, [2 * i], [2], [1]).result for i in range(count)]
    i32 = ir.IntegerType.get_signless(32)
    words = vector.BitCastOp(ir.VectorType.get([count], i32), fragment).result
    return [vector.ExtractOp(words, [], [i]).result for i in range(count)]
