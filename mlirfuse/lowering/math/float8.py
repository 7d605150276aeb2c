"""`lower-float8`: casts from and to the float8 types become the conversions of pairs that the hardware has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, llvm, nvvm, vector

from mlirfuse.analysis.arithmetic.casts import element_type
from mlirfuse.errors import PassError, TargetError
from mlirfuse.lowering.kernel_func import kernels, target_of_kernel
from mlirfuse.lowering.memory.addresses import SHARED, element_pointer
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import erase, ops_named

CASTS = frozenset({"arith.extf", "arith.truncf", "arith.sitofp", "arith.uitofp"})
"""Casts that may have a float8 type; upstream's canonicalisation folds casts through f32 to the last two."""


@dataclass(frozen=True)
class LowerFloat8(Pass):
    """Lowers casts from and to float8 to conversions of two numbers at a time.

    Requires a target of sm_89 or later. float8 widens exactly to f16, and from f16 to other types. Pairs of f16 narrow
    to float8 directly, bf16 and integers through f32. Narrowing rounds to nearest even and saturates, as the hardware
    has no other conversion. `nvgpu.ldmatrix` becomes `nvvm.ldmatrix`. All other ops on float8 values only move bytes,
    which upstream lowers as `i8`.

    ```mlir
    %w = arith.extf %x : vector<2xf8E4M3FN> to vector<2xf16>
    %n = arith.truncf %y : vector<2xf32> to vector<2xf8E4M3FN>
    ```
    becomes
    ```mlir
    %b = vector.bitcast %x : vector<2xf8E4M3FN> to vector<2xi8>
    %w = nvvm.convert.f8x2.to.f16x2 %b : vector<2xi8> (f8E4M3FN) -> vector<2xf16>
    %h = nvvm.convert.f32x2.to.f8x2 %y1, %y0 {rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>}
         : i16 (f8E4M3FN)
    %v = vector.from_elements %h : vector<1xi16>
    %n = vector.bitcast %v : vector<1xi16> to vector<2xf8E4M3FN>
    ```

    Raises `TargetError` for an older target, and `PassError` for a cast from f64, which would round twice.
    """

    name: ClassVar[str] = "lower-float8"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            for op in ops_named(func.operation, "nvgpu.ldmatrix"):
                if _is_float8(element_type(op.results[0].type)):
                    with ir.InsertionPoint(op), op.location:
                        op.results[0].replace_all_uses_with(_load_matrices(op))
                    erase(op)
            casts = [op for op in ops_named(func.operation, *CASTS) if _is_float8(_narrow(op))]
            if not casts:
                continue
            target = target_of_kernel(func)
            if not target.has_float8_conversions:
                raise TargetError(
                    f"{target.chip} cannot convert {from_mlir(_narrow(casts[0])).name}",
                    where=casts[0],
                    hint="float8 needs sm_89 or a later architecture",
                )
            for op in casts:
                with ir.InsertionPoint(op), op.location:
                    op.results[0].replace_all_uses_with((_widen if op.name == "arith.extf" else _round)(op))
                erase(op)
            remarks.applied(self, f"{len(casts)} casts of float8", func)


def _widen(op: ir.Operation) -> ir.Value:
    source, target = op.operands[0], op.results[0].type
    width, element = _width(source.type), element_type(source.type)
    f16, i8 = ir.F16Type.get(), ir.IntegerType.get_signless(8)
    values = []
    for pair in _pairs(_vector(source)):
        raw = vector.BitCastOp(ir.VectorType.get([2], i8), pair).result
        halves = nvvm.convert_f8x2_to_f16x2(ir.VectorType.get([2], f16), raw, element)
        values += list(vector.ToElementsOp(halves).results)
    wide = vector.FromElementsOp(ir.VectorType.get([width], f16), values[:width]).result
    for step in _cast_chain(element_type(target)):
        cast = arith.ExtFOp if step.width > element_type(wide.type).width else arith.TruncFOp
        wide = cast(ir.VectorType.get([width], step), wide).result
    return wide if isinstance(target, ir.VectorType) else vector.ExtractOp(wide, [], [0]).result


def _cast_chain(target: ir.Type) -> list[ir.Type]:
    """The float types of the casts from f16 to `target`, in order."""
    if isinstance(target, ir.F16Type):
        return []
    return [ir.F32Type.get(), target] if isinstance(target, ir.BF16Type) else [target]


def _round(op: ir.Operation) -> ir.Value:
    source, target = op.operands[0], op.results[0].type
    width, element = _width(target), element_type(target)
    if isinstance(element_type(source.type), ir.F64Type):
        raise PassError(f"f64 cannot be cast to {element} at once", where=op, hint="cast to f32 first")
    i16 = ir.IntegerType.get_signless(16)
    wide, f32 = _vector(source), ir.VectorType.get([width], ir.F32Type.get())
    if op.name != "arith.truncf":
        wide = (arith.SIToFPOp if op.name == "arith.sitofp" else arith.UIToFPOp)(f32, wide).result
    if isinstance(element_type(wide.type), ir.BF16Type):
        wide = arith.ExtFOp(f32, wide).result
    words = []
    for pair in _pairs(wide):
        if isinstance(element_type(wide.type), ir.F16Type):
            words.append(nvvm.convert_f16x2_to_f8x2(i16, pair, element))
        else:
            low, high = vector.ToElementsOp(pair).results
            nearest, finite = nvvm.FPRoundingMode.RN, nvvm.SaturationMode.SATFINITE
            # The first operand is the upper half of the result.
            words.append(nvvm.convert_f32x2_to_f8x2(i16, high, low, element, rnd=nearest, sat=finite))
    packed = vector.FromElementsOp(ir.VectorType.get([len(words)], i16), words).result
    narrow = vector.BitCastOp(ir.VectorType.get([2 * len(words)], element), packed).result
    if not isinstance(target, ir.VectorType):
        return vector.ExtractOp(narrow, [], [0]).result
    if width == 2 * len(words):
        return narrow
    return vector.ExtractStridedSliceOp(target, narrow, [0], [width], [1]).result


def _pairs(value: ir.Value) -> Sequence[ir.Value]:
    """Pairs of neighbouring elements of a vector; the last element is paired with itself if the number is odd."""
    width, element = _width(value.type), element_type(value.type)
    pair = ir.VectorType.get([2], element)
    if width % 2 == 0:
        return [vector.ExtractStridedSliceOp(pair, value, [i], [2], [1]).result for i in range(0, width, 2)]
    values = list(vector.ToElementsOp(value).results)
    values.append(values[-1])
    return [vector.FromElementsOp(pair, values[i : i + 2]).result for i in range(0, width, 2)]


def _vector(value: ir.Value) -> ir.Value:
    """A scalar as a vector of one element."""
    if isinstance(value.type, ir.VectorType):
        return value
    return vector.FromElementsOp(ir.VectorType.get([1], value.type), [value]).result


def _width(type_: ir.Type) -> int:
    return ir.VectorType(type_).shape[0] if isinstance(type_, ir.VectorType) else 1


def _narrow(op: ir.Operation) -> ir.Type:
    """The narrow type of a cast, which may be float8: the operand's type if the cast widens, else the result's."""
    return element_type((op.operands[0] if op.name == "arith.extf" else op.results[0]).type)


def _is_float8(type_: ir.Type) -> bool:
    return isinstance(type_, ir.Float8E4M3FNType | ir.Float8E5M2Type)


def _load_matrices(op: ir.Operation) -> ir.Value:
    """`ldmatrix` of float8, which upstream lowers to vectors of a type that LLVM does not have."""
    source, *indices = op.operands
    result = ir.VectorType(op.results[0].type)
    count, i32 = result.shape[0], ir.IntegerType.get_signless(32)
    registers = ir.Type.parse(f"!llvm.struct<({', '.join(['i32'] * count)})>") if count > 1 else i32
    loaded = nvvm.ldmatrix(
        registers,
        element_pointer(source, indices, SHARED),
        count,
        nvvm.MMALayout.row,
        ir.Attribute.parse("#nvvm.ld_st_matrix_shape<m = 8, n = 8>"),
        nvvm.LdStMatrixEltType.B16,
    )
    words = [llvm.extractvalue(i32, loaded, ir.DenseI64ArrayAttr.get([i])) for i in range(count)]
    packed = vector.FromElementsOp(ir.VectorType.get([count], i32), words).result
    flat = vector.BitCastOp(ir.VectorType.get([prod(result.shape)], result.element_type), packed).result
    return vector.ShapeCastOp(result, flat).result
