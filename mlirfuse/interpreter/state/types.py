"""From MLIR types and attributes to NumPy: element dtypes, shapes, enum keywords.

`index` has 64 bits, `iN` is a signed NumPy integer (unsigned ops reinterpret the bits), `i1` is bool.
"""

from __future__ import annotations

import re

import numpy as np
from mlir import ir

from mlirfuse.errors import DTypeError, InterpreterError
from mlirfuse.support import dtypes

DYNAMIC = ir.ShapedType.get_dynamic_size()


def element_dtype(type_: ir.Type) -> np.dtype:
    """The NumPy dtype of a scalar type or of a shaped type's elements; raises `InterpreterError`."""
    element = ir.ShapedType(type_).element_type if isinstance(type_, ir.ShapedType) else type_
    name = str(element)
    if name == "index":
        return np.dtype(np.int64)
    if name == "tf32":  # float32 with its last bits zero
        return np.dtype(np.float32)
    try:
        return dtypes.from_mlir(element).numpy
    except DTypeError as error:
        raise InterpreterError(f"no NumPy dtype for {name}", hint=error.hint) from None


def vector_shape(type_: ir.Type) -> tuple[int, ...]:
    """The extents of a vector type; () for a scalar type."""
    return tuple(ir.VectorType(type_).shape) if isinstance(type_, ir.VectorType) else ()


def is_workgroup(type_: ir.Type) -> bool:
    """Whether a memref type is in a block's shared memory."""
    space = ir.MemRefType(type_).memory_space
    return space is not None and ("workgroup" in str(space) or str(space).startswith("3"))


def keyword(attribute: ir.Attribute) -> str:
    """The enum keyword of an attribute such as `#gpu<dim x>` or `#vector.kind<add>`."""
    match = re.search(r"(\w+)>$", str(attribute))
    if match is None:
        raise InterpreterError(f"{attribute} is not an enum attribute")
    return match.group(1)


def constant_array(attribute: ir.Attribute) -> np.ndarray:
    """A constant attribute as an array: shape () for a number, the attribute's own shape for dense elements."""
    if isinstance(attribute, ir.FloatAttr):
        return np.array(ir.FloatAttr(attribute).value).astype(element_dtype(attribute.type))
    if isinstance(attribute, ir.BoolAttr):
        return np.array(ir.BoolAttr(attribute).value)
    if isinstance(attribute, ir.IntegerAttr):
        return np.array(ir.IntegerAttr(attribute).value).astype(element_dtype(attribute.type))
    if isinstance(attribute, ir.DenseElementsAttr):
        dense = ir.DenseElementsAttr(attribute)
        shape, dtype = tuple(ir.ShapedType(dense.type).shape), element_dtype(dense.type)
        if dense.is_splat:
            return np.full(shape, constant_array(dense.get_splat_value()), dtype)
        if dtype.kind not in "iub" and dtype.itemsize <= 2:
            return _parse_dense(str(dense), dtype).reshape(shape)
        return np.array(list(attribute)).astype(dtype).reshape(shape)
    raise InterpreterError(f"constant {attribute} is neither a number nor dense elements")


def _parse_dense(text: str, dtype: np.dtype) -> np.ndarray:
    """Dense elements of a float type that the bindings cannot read (16 bits and less), from the attribute's text.

    Numbers are decimal, or hexadecimal bits for NaN and infinities; a long list is one string of hexadecimal bytes.
    """
    body = text[: text.rindex(">", 0, text.rindex(" : "))]
    if raw := re.search(r'"0x([0-9A-Fa-f]*)"', body):
        return np.frombuffer(bytes.fromhex(raw.group(1)), dtype)
    bits = np.dtype(f"u{dtype.itemsize}")
    tokens = re.findall(r"0x[0-9A-Fa-f]+|-?\d+\.[\d.eE+-]*", body)
    return np.array(
        [
            np.array(int(t, 16), bits).view(dtype) if t.startswith("0x") else np.array(float(t)).astype(dtype)
            for t in tokens
        ]
    )
