"""`lower-pins`: `fuse.pin` becomes moves that LLVM cannot look through."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, nvvm, vector

from mlirfuse.dtypes import from_mlir
from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.passes.base import Pass, Remarks
from mlirfuse.passes.rewriting import nested


@dataclass(frozen=True)
class LowerPins(Pass):
    """Lowers `fuse.pin` to one opaque register move per 32 bits.

    Works on scalars of 16, 32 or 64 bits and on one-dimensional fragments of a multiple of 32 bits. ptxas gives both
    sides of a move one register, so a pin costs no instruction. A fragment of another size is left as it came: its pin
    is dropped, which changes no value, with a remark.

    ```mlir
    %1 = "fuse.pin"(%0) : (vector<2xf16>) -> vector<2xf16>
    ```
    becomes
    ```mlir
    %r = vector.bitcast %0 : vector<2xf16> to vector<1xi32>
    %w = vector.extract %r[0] : i32 from vector<1xi32>
    %m = nvvm.inline_ptx "mov.b32 $0, $1;" ro(%w : i32) -> i32
    ...
    ```
    """

    name: ClassVar[str] = "lower-pins"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            for op in [op for op in nested(func.operation) if op.name == "fuse.pin"]:
                with ir.InsertionPoint(op), op.location:
                    pinned = _pin(op.operands[0])
                if pinned is None:
                    remarks.declined(self, f"{op.operands[0].type} does not fill registers", op)
                op.results[0].replace_all_uses_with(pinned or op.operands[0])
                op.erase()


def _pin(value: ir.Value) -> ir.Value | None:
    """The value after its moves; None where its bits are not whole registers."""
    vector_type = value.type if isinstance(value.type, ir.VectorType) else None
    element = vector_type.element_type if vector_type else value.type
    bits = from_mlir(element).bits * (prod(vector_type.shape) if vector_type else 1)
    if vector_type is None and bits == 16:
        i16 = ir.IntegerType.get_signless(16)
        return arith.bitcast(element, _move(arith.bitcast(i16, value), "b16"))
    if bits % 32:
        return None
    i32 = ir.IntegerType.get_signless(32)
    words_type = ir.VectorType.get([bits // 32], i32)
    fragment = value if vector_type else vector.broadcast(ir.VectorType.get([1], element), value)
    words = vector.ToElementsOp(vector.bitcast(words_type, fragment)).results
    moved = vector.from_elements(words_type, [_move(word, "b32") for word in words])
    result = vector.bitcast(fragment.type, moved)
    return result if vector_type else vector.ToElementsOp(result).results[0]


def _move(register: ir.Value, suffix: str) -> ir.Value:
    return nvvm.InlinePtxOp([register.type], [register], [], f"mov.{suffix} $0, $1;").results[0]
