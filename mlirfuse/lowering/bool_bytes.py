"""Boolean buffers in memory: one byte an element, 0 or 1, as NumPy and the frameworks store them.

LLVM would pack a `vector<8xi1>` into one byte, and read only the lowest bit of one `i1`.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, gpu, memref, vector

from mlirfuse.errors import PassError
from mlirfuse.lowering.kernel_func import entry_block, parameters
from mlirfuse.support.rewriting import erase

_LOADS, _STORES = ("vector.load", "memref.load"), ("vector.store", "memref.store")
_VIEWS = (
    "memref.cast",
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.extract_strided_metadata",
    "memref.reinterpret_cast",
    "memref.subview",
    "memref.transpose",
)
_TYPELESS = ("memref.dim", "memref.extract_aligned_pointer_as_index")


def store_as_bytes(func: gpu.GPUFuncOp) -> None:
    """Retypes the `i1` memrefs among a kernel's arguments and workgroup buffers to `i8`, their views and accesses.

    Raises `PassError` where such a memref is used by an op other than a view, a load, a store, or a read of its extents
    or address.
    """
    values = list(entry_block(func).arguments)
    buffers = [value for value in values if _is_bool(value.type)]
    for buffer in buffers:
        _retype(buffer, func)
    if buffers:
        types = [argument.type for argument in values[: len(parameters(func))]]
        func.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))


def _retype(buffer: ir.Value, func: gpu.GPUFuncOp) -> None:
    uses = [use.owner.operation for use in buffer.uses]
    buffer.set_type(_byte_type(buffer.type))
    for op in uses:
        if op.name in _VIEWS:
            _retype(op.results[0], func)
        else:
            _rewrite(op, func)


def _is_bool(type_: ir.Type) -> bool:
    return isinstance(type_, ir.MemRefType) and ir.MemRefType(type_).element_type == ir.IntegerType.get_signless(1)


def _byte_type(type_: ir.Type) -> ir.MemRefType:
    old = ir.MemRefType(type_)
    return ir.MemRefType.get(
        old.shape, ir.IntegerType.get_signless(8), layout=old.layout, memory_space=old.memory_space
    )


def _like(type_: ir.Type, bits: int) -> ir.Type:
    """`type_`, a vector or a scalar, with an integer element of that width."""
    element = ir.IntegerType.get_signless(bits)
    return ir.VectorType.get(ir.VectorType(type_).shape, element) if isinstance(type_, ir.VectorType) else element


def _rewrite(op: ir.Operation, func: gpu.GPUFuncOp) -> None:
    """Casts the value of one access of a retyped buffer from or to `i1`."""
    if op.name in _TYPELESS:
        return
    if op.name not in (*_LOADS, *_STORES):
        raise PassError(
            f"{op.name} of a boolean buffer in kernel {func.attributes['sym_name']} has no lowering",
            where=op,
            hint="cast it to i8 first",
        )
    with ir.InsertionPoint(op), op.location:
        if op.name in _STORES:
            op.operands[0] = arith.extui(_like(op.operands[0].type, 8), op.operands[0])
            return
        hints = {name: op.attributes[name] for name in ("alignment", "nontemporal") if name in op.attributes}
        loaded = _like(op.results[0].type, 8)
        build = vector.LoadOp if op.name == "vector.load" else memref.LoadOp
        base, *indices = op.operands
        arguments = (loaded, base, indices) if op.name == "vector.load" else (base, indices)
        value = build(*arguments, **hints).result
        op.results[0].replace_all_uses_with(arith.cmpi(arith.CmpIPredicate.ne, value, _zero(loaded)))
    erase(op)


def _zero(type_: ir.Type) -> ir.Value:
    if isinstance(type_, ir.VectorType):
        zero = ir.IntegerAttr.get(ir.VectorType(type_).element_type, 0)
        return arith.constant(type_, ir.DenseElementsAttr.get_splat(type_, zero))
    return arith.constant(type_, 0)
