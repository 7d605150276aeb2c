"""`lower-optimization-barriers`: `fuse.optimization_barrier` becomes an operation that neither LLVM nor ptxas can look
through.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, gpu, vector

from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import erase, ops_named


@dataclass(frozen=True)
class LowerOptimizationBarriers(Pass):
    """Lowers `fuse.optimization_barrier` to one exclusive-or per 32 bits with a zero that depends on `after`.

    Requires kernels with a one-dimensional grid, as all of mlirfuse's are. An opaque register move (inline assembly)
    would hide the value from LLVM but not from ptxas, which propagates copies and then merges the casts that the
    barrier is there to keep apart. The zero is the bits of `after` and the block's number in y: that number is always
    0, which no compiler knows, and the result depends on `after`. Works on scalars of 16, 32 or 64 bits and on
    fragments of a multiple of 32 bits. The barrier of a fragment of another size is dropped, with a remark.

    ```mlir
    %1 = "fuse.optimization_barrier"(%0, %after) : (vector<2xf16>, f32) -> vector<2xf16>
    ```
    becomes
    ```mlir
    %y = gpu.block_id y
    %b = arith.index_cast %y : index to i32
    %a = arith.bitcast %after : f32 to i32
    %zero = arith.andi %a, %b : i32
    %w = vector.bitcast %0 : vector<2xf16> to vector<1xi32>
    %z = vector.broadcast %zero : i32 to vector<1xi32>
    %x = arith.xori %w, %z : vector<1xi32>
    %1 = vector.bitcast %x : vector<1xi32> to vector<2xf16>
    ```
    """

    name: ClassVar[str] = "lower-optimization-barriers"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            barriers = ops_named(func.operation, "fuse.optimization_barrier")
            if not barriers:
                continue
            with ir.InsertionPoint.at_block_begin(func.operation.regions[0].blocks[0]), func.operation.location:
                i32 = ir.IntegerType.get_signless(32)
                row = arith.index_cast(i32, gpu.BlockIdOp(gpu.Dimension.y).result)
            for op in barriers:
                with ir.InsertionPoint(op), op.location:
                    opaque = _opaque(op.operands[0], arith.andi(_bits(op.operands[1]), row))
                if opaque is None:
                    reason = f"{op.operands[0].type} does not fill 32-bit registers, so its barrier is dropped"
                    remarks.declined(self, reason, op)
                op.results[0].replace_all_uses_with(opaque or op.operands[0])
                erase(op)
            remarks.applied(self, f"{len(barriers)} optimization barriers", func)


def _bits(value: ir.Value) -> ir.Value:
    """32 bits of a value, on which the zero depends."""
    if isinstance(value.type, ir.VectorType):
        value = vector.ToElementsOp(value).results[0]
    i32 = ir.IntegerType.get_signless(32)
    bits = register_bits(value.type)
    integer = ir.IntegerType.get_signless(bits)
    raw = value if value.type == integer else arith.bitcast(integer, value)
    if bits == 32:
        return raw
    return arith.extui(i32, raw) if bits < 32 else arith.trunci(i32, raw)


def register_bits(element: ir.Type) -> int:
    """Bits of a number in a register, where a bool is one, and not the byte that it is in memory."""
    return 1 if str(element) == "i1" else from_mlir(element).bits


def _opaque(value: ir.Value, zero: ir.Value) -> ir.Value | None:
    """The value after its exclusive-or; None where its bits are not whole registers."""
    vector_type = value.type if isinstance(value.type, ir.VectorType) else None
    element = vector_type.element_type if vector_type else value.type
    bits = register_bits(element) * (prod(vector_type.shape) if vector_type else 1)
    if vector_type is None and bits == 16:
        i16 = ir.IntegerType.get_signless(16)
        return arith.bitcast(element, arith.xori(arith.bitcast(i16, value), arith.trunci(i16, zero)))
    if bits % 32:
        return None
    words = ir.VectorType.get([bits // 32], zero.type)
    fragment = value if vector_type else vector.broadcast(ir.VectorType.get([1], element), value)
    mixed = arith.xori(vector.bitcast(words, fragment), vector.broadcast(words, zero))
    result = vector.bitcast(fragment.type, mixed)
    return result if vector_type else vector.ToElementsOp(result).results[0]
