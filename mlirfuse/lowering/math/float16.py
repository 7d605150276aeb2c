"""`lower-float16`: in kernels with `wgmma`, vectors of float32 are rounded to float16 two numbers at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import nvvm, vector

from mlirfuse.analysis.arithmetic.casts import element_type
from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import defining_op, erase, number_of, ops_named

NARROWED = frozenset({"arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.negf", "arith.select"})
"""Single-precision operations that LLVM narrows to float16 where their operands are halves and their result is
rounded."""


@dataclass(frozen=True)
class LowerFloat16(Pass):
    """Rounds vectors of `f32` to `f16` by one conversion of two numbers, in kernels that multiply with `wgmma`.

    LLVM rounds the elements of a vector one by one where they are then used one by one. ptxas may move such conversions
    of accumulators in between the instructions of the loop, and then makes each `wgmma` wait for the one before
    (warning C7514). `lower-bfloat16` keeps pairs of `bf16` as words. Both conversions round to nearest even, and
    overflow to infinity. Kernels without `wgmma` are left alone, as are scalars, vectors of an odd number of elements,
    and results of operations on widened halves, which LLVM narrows to float16.

    ```mlir
    %y = arith.truncf %x : vector<2xf32> to vector<2xf16>
    // lower-float16
    %0:2 = vector.to_elements %x : vector<2xf32>
    %y = nvvm.convert.f32x2.to.f16x2 %0#1, %0#0 {rnd = #nvvm.fp_rnd_mode<rn>} : vector<2xf16>
    ```
    """

    name: ClassVar[str] = "lower-float16"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            casts = [op for op in ops_named(func.operation, "arith.truncf") if _rounds(op)]
            if not casts:
                continue
            if not ops_named(func.operation, "nvvm.wgmma.mma_async"):
                remarks.declined(self, "the kernel has no wgmma, which could be serialised by casts to float16", func)
                continue
            whole = [op for op in casts if _is_of_pairs(op.results[0].type)]
            lowered = [op for op in whole if not _is_narrow(op.operands[0])]
            for op in lowered:
                with ir.InsertionPoint(op), op.location:
                    op.results[0].replace_all_uses_with(_rounded(op.operands[0], ir.VectorType(op.results[0].type)))
                erase(op)
            if lowered:
                remarks.applied(self, f"{len(lowered)} casts to float16 convert pairs", func)
            if len(casts) > len(whole):
                remarks.declined(
                    self, f"{len(casts) - len(whole)} casts to float16 are of scalars or odd vectors", func
                )
            if len(whole) > len(lowered):
                remarks.declined(
                    self,
                    f"{len(whole) - len(lowered)} casts are left to LLVM, which narrows the rounded ops to float16",
                    func,
                )


def _rounds(op: ir.Operation) -> bool:
    source, target = (element_type(value.type) for value in (op.operands[0], op.results[0]))
    return isinstance(source, ir.F32Type) and isinstance(target, ir.F16Type)


def _is_of_pairs(type_: ir.Type) -> bool:
    return isinstance(type_, ir.VectorType) and type_.rank == 1 and type_.shape[0] % 2 == 0


def _is_narrow(value: ir.Value) -> bool:
    """Whether LLVM narrows the operation of a rounded value to float16: its operands are widened halves and
    constants.
    """
    producer = defining_op(value)
    if producer is None or producer.name not in NARROWED:
        return _is_widened(value)
    operands = list(producer.operands)[1:] if producer.name == "arith.select" else list(producer.operands)
    # LLVM narrows a select with one half operand; other operations need all operands to be halves.
    found = [_is_widened(operand) for operand in operands]
    if producer.name == "arith.select":
        return any(found)
    return any(found) and all(
        widened or number_of(operand) is not None for widened, operand in zip(found, operands, strict=True)
    )


def _is_widened(value: ir.Value) -> bool:
    producer = defining_op(value)
    return (
        producer is not None
        and producer.name == "arith.extf"
        and isinstance(element_type(producer.operands[0].type), ir.F16Type)
    )


def _rounded(value: ir.Value, target: ir.VectorType) -> ir.Value:
    pair = ir.VectorType.get([2], target.element_type)
    numbers, nearest = vector.ToElementsOp(value).results, nvvm.FPRoundingMode.RN
    # The first operand is the upper half of the result.
    pairs = [
        nvvm.convert_f32x2_to_f16x2(pair, numbers[i + 1], numbers[i], rnd=nearest) for i in range(0, len(numbers), 2)
    ]
    if len(pairs) == 1:
        return pairs[0]
    halves = [half for rounded in pairs for half in vector.ToElementsOp(rounded).results]
    return vector.FromElementsOp(target, halves).result
