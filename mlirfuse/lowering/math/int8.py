"""`lower-int8`: converts vectors of bytes to floating point by byte permutations, not in the conversion unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, nvvm, vector

from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import erase, ops_named

SIGNS = 0x80808080
"""Flips the sign bits of a word's four signed bytes: each becomes unsigned, and 128 larger."""

BYTES = 4  # of a word

# The second operand of a permutation, and its selectors; 0 to 3 select bytes of the first operand. A byte in the lowest
# bits of the mantissas of 1024 (float16) and 2^23 (float32) adds its value to the number.
HALF_EXPONENT, HALF_SELECTORS, HALF_OFFSET = 0x64646464, (0x4140, 0x4342), 1024.0 + 128
SINGLE_EXPONENT, SINGLE_SELECTOR, SINGLE_OFFSET = 0x4B000000, 0x7440, 2.0**23 + 128


@dataclass(frozen=True)
class LowerInt8(Pass):
    """Converts vectors of `i8` to floating point with byte permutations and a subtraction, which are exact.

    An SM converts 16 integers a cycle, and permutes or subtracts four to eight times as many. A byte `u` in the lowest
    mantissa bits of the float16 number 1024 gives 1024 + u, and of the float32 number 2^23 gives 2^23 + u. bf16, whose
    mantissa is shorter than a byte, is rounded from float32. Scalars, and vectors whose bytes fill no whole words, are
    left alone.

    ```mlir
    %f = arith.sitofp %x : vector<4xi8> to vector<4xf16>
    // lower-int8
    %0 = vector.bitcast %x : vector<4xi8> to vector<1xi32>
    %1 = arith.xori %0, %signs : vector<1xi32>
    %w = vector.extract %1[0] : i32 from vector<1xi32>
    %2 = nvvm.prmt <default> %selector01, %w, %exponents : i32
    %3 = nvvm.prmt <default> %selector23, %w, %exponents : i32
    %4 = vector.from_elements %2, %3 : vector<2xi32>
    %5 = vector.bitcast %4 : vector<2xi32> to vector<4xf16>
    %f = arith.subf %5, %offset : vector<4xf16>    // 1152
    ```
    """

    name: ClassVar[str] = "lower-int8"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            casts = [op for op in ops_named(func.operation, "arith.sitofp") if _is_byte(op.operands[0])]
            lowered = [op for op in casts if _fills_words(op)]
            for op in lowered:
                with ir.InsertionPoint(op), op.location:
                    op.results[0].replace_all_uses_with(_convert(op.operands[0], ir.VectorType(op.results[0].type)))
                erase(op)
            if lowered:
                remarks.applied(self, f"{len(lowered)} conversions of bytes are computed by permutations", func)
            if len(casts) > len(lowered):
                remarks.declined(
                    self,
                    f"{len(casts) - len(lowered)} conversions are of scalars, or of vectors that fill no 32-bit words",
                    func,
                )


def _is_byte(value: ir.Value) -> bool:
    type_ = value.type.element_type if isinstance(value.type, ir.VectorType) else value.type
    return isinstance(type_, ir.IntegerType) and type_.width == 8


def _fills_words(op: ir.Operation) -> bool:
    """Whether a conversion is of whole words, to a type that this pass knows."""
    if not isinstance(op.results[0].type, ir.VectorType):
        return False
    type_ = ir.VectorType(op.results[0].type)
    return type_.rank == 1 and type_.shape[0] % BYTES == 0 and str(type_.element_type) in ("f16", "bf16", "f32")


def _convert(value: ir.Value, result: ir.VectorType) -> ir.Value:
    """The bytes as floating point."""
    i32 = ir.IntegerType.get_signless(32)
    count = result.shape[0] // BYTES
    packed = vector.bitcast(ir.VectorType.get([count], i32), value)
    unsigned = arith.xori(packed, _splat(packed.type, ir.IntegerAttr.get(i32, SIGNS - (1 << 32))))
    words = list(vector.ToElementsOp(unsigned).results)
    f16, f32 = ir.F16Type.get(), ir.F32Type.get()
    if result.element_type == f16:
        return _offset(words, HALF_EXPONENT, HALF_SELECTORS, result, HALF_OFFSET)
    single = ir.VectorType.get(result.shape, f32)
    selectors = tuple(SINGLE_SELECTOR + byte for byte in range(BYTES))
    exact = _offset(words, SINGLE_EXPONENT, selectors, single, SINGLE_OFFSET)
    return exact if result.element_type == f32 else arith.truncf(result, exact)


def _offset(
    words: list[ir.Value], exponent: int, selectors: tuple[int, ...], result: ir.VectorType, offset: float
) -> ir.Value:
    """Puts the bytes of words into the mantissas of a number, and subtracts that number."""
    i32 = ir.IntegerType.get_signless(32)
    high = arith.constant(i32, exponent)
    chosen = [arith.constant(i32, selector) for selector in selectors]
    parts = [nvvm.prmt(i32, word, each, nvvm.PermuteMode.DEFAULT, hi=high) for word in words for each in chosen]
    packed = vector.from_elements(ir.VectorType.get([len(parts)], i32), parts)
    numbers = vector.bitcast(result, packed)
    return arith.subf(numbers, _splat(result, ir.FloatAttr.get(result.element_type, offset)))


def _splat(type_: ir.Type, attribute: ir.Attribute) -> ir.Value:
    return arith.constant(type_, ir.DenseElementsAttr.get_splat(ir.VectorType(type_), attribute))
