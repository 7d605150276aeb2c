"""Element types: one frozen object a dtype, with its NumPy and MLIR names.

Every stage of the compiler supports all of them; promotion follows the Python array API standard
(https://data-apis.org/array-api/latest/API_specification/type_promotion.html) with bfloat16 beside float16, whose
common type is float32. The two float8 types (OCP 8-bit floating point, E4M3 without infinities and E5M2) are for
storage and matrix products: they can be read, written, cast and multiplied as matrices, and have no other arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import ml_dtypes
import numpy as np
from mlir import ir

from mlirfuse.errors import DTypeError


@dataclass(frozen=True, eq=False)
class DType:
    """An element type. It equals what names it to NumPy, `np.float32`, `np.dtype("float32")` or `"float32"`, and
    PyTorch's dtype; sets and dictionaries find it by itself alone, as they do NumPy's dtypes.

    Attributes:
        name: the array API's name, such as `float16`.
        mlir_name: the builtin type's text, such as `f16`.
        kind: `bool`, `int` or `float`.
        bits: width in memory; bool takes 8.
    """

    name: str
    mlir_name: str
    kind: str
    bits: int

    def __repr__(self) -> str:
        return f"mf.{self.name}"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.name == other.name
        if other is None:
            return False
        try:
            return self.name == dtype_of(other).name
        except DTypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def bytes(self) -> int:
        """Size of one element in memory, in bytes."""
        return self.bits // 8

    @property
    def itemsize(self) -> int:
        """The same, by NumPy's name."""
        return self.bytes

    @property
    def dtype(self) -> np.dtype:
        """NumPy's dtype, by which `np.dtype`, `np.finfo` and `np.issubdtype` take this one."""
        return self.numpy

    @cached_property
    def numpy(self) -> np.dtype:
        """The NumPy dtype; that of ml_dtypes for types that NumPy does not have."""
        return np.dtype(getattr(ml_dtypes, self.name, self.name))

    @property
    def is_float8(self) -> bool:
        """Whether it is one of the two float8 types, whose only arithmetic is matrix products."""
        return self.kind == "float" and self.bits == 8

    def mlir(self) -> ir.Type:
        """The MLIR element type, in the current context; bool is `i1`."""
        return ir.Type.parse(self.mlir_name)


bool_ = DType("bool", "i1", "bool", 8)
int8 = DType("int8", "i8", "int", 8)
int16 = DType("int16", "i16", "int", 16)
int32 = DType("int32", "i32", "int", 32)
int64 = DType("int64", "i64", "int", 64)
float8_e4m3fn = DType("float8_e4m3fn", "f8E4M3FN", "float", 8)
float8_e5m2 = DType("float8_e5m2", "f8E5M2", "float", 8)
float16 = DType("float16", "f16", "float", 16)
bfloat16 = DType("bfloat16", "bf16", "float", 16)
float32 = DType("float32", "f32", "float", 32)
float64 = DType("float64", "f64", "float", 64)

ALL = (bool_, int8, int16, int32, int64, float8_e4m3fn, float8_e5m2, float16, bfloat16, float32, float64)
_BY_NAME = {dtype.name: dtype for dtype in ALL}
_BY_MLIR = {dtype.mlir_name: dtype for dtype in ALL}


def dtype_of(obj: object) -> DType:
    """The dtype named by a `DType`, a NumPy or framework dtype, or a string; raises `DTypeError`."""
    if isinstance(obj, DType):
        return obj
    name = obj if isinstance(obj, str) else getattr(obj, "name", None) or str(obj).removeprefix("torch.")
    if not isinstance(name, str) or name not in _BY_NAME:
        try:
            name = "None" if obj is None else np.dtype(obj).name  # type: ignore[call-overload]  # NumPy's is float64
        except TypeError:
            name = str(name)
    if name not in _BY_NAME:
        asked = obj if isinstance(obj, str) else name
        close = f"did you mean {_BY_MLIR[asked].name}? " if asked in _BY_MLIR else ""
        raise DTypeError(f"dtype {asked!r} is not supported", hint=f"{close}supported: {', '.join(_BY_NAME)}")
    return _BY_NAME[name]


def is_dtype(obj: object) -> bool:
    """Whether it is a dtype of mlirfuse, NumPy or PyTorch, or a scalar type of NumPy; not whether it is supported."""
    if isinstance(obj, type):
        return issubclass(obj, np.generic)
    kind = type(obj)
    return isinstance(obj, DType | np.dtype) or (kind.__module__, kind.__name__) == ("torch", "dtype")


def from_mlir(element_type: ir.Type) -> DType:
    """The dtype of an MLIR element type; raises `DTypeError`."""
    text = str(element_type)
    if text not in _BY_MLIR:
        raise DTypeError(f"element type {text!r} has no mlirfuse dtype", hint=f"supported: {', '.join(_BY_MLIR)}")
    return _BY_MLIR[text]


def element_bytes(type_: ir.Type) -> int:
    """Bytes of an element of a tensor, vector or memref; raises `DTypeError`."""
    return from_mlir(ir.ShapedType(type_).element_type).bytes


def bytes_of(type_: ir.Type) -> int:
    """Bytes of a number, or of all elements of a vector, memref or tensor of static shape; raises `DTypeError`."""
    if isinstance(type_, ir.VectorType | ir.MemRefType | ir.RankedTensorType):
        return prod(type_.shape) * from_mlir(type_.element_type).bytes
    return from_mlir(type_).bytes


def promote(a: DType, b: DType) -> DType:
    """The array API's result type of mixing two array dtypes; raises `DTypeError` across kinds.

    float16 with bfloat16 gives float32, and the two float8 types give float16, the smallest types that hold both. An
    integer with a float gives the float: the standard leaves that pair open, and every framework in use does the same.
    """
    if a == b:
        return a
    if "bool" in (a.kind, b.kind):
        raise DTypeError(f"cannot mix {a.name} with {b.name}", hint="cast one side with .astype(...)")
    if a.kind != b.kind:
        return a if a.kind == "float" else b
    if a.bits == b.bits:
        return float16 if a.is_float8 else float32
    return a if a.bits > b.bits else b


_LARGEST = {float8_e4m3fn.name: 448.0, float8_e5m2.name: 57344.0}
"""The largest numbers of the float8 types."""


def rounded(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Floats in another NumPy float dtype, rounded to nearest; numbers out of a float8 type's range become its largest
    number.

    `cvt.rn.satfinite`, the hardware's only conversion to float8, saturates so; ml_dtypes would give NaN. NaN stays NaN.
    """
    limit = _LARGEST.get(dtype.name)
    if limit is not None:
        values = np.clip(values.astype(np.float32), -limit, limit)
    return values.astype(dtype)
