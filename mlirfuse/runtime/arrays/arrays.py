"""Reads call arguments: arrays of CuPy, PyTorch, JAX and others, and Python numbers.

`signature` runs on every call: it only gathers the pointers, and a key that differs between calls that need different
code or sizes. `read_argument` runs when a key is new: it checks an argument and describes it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mlirfuse.builder.errors import UnsupportedError
from mlirfuse.builder.source import at_user_line
from mlirfuse.builder.spec import LeftOut
from mlirfuse.builder.state import ScalarBase, TensorBase
from mlirfuse.errors import ArgumentError, DTypeError
from mlirfuse.runtime.arrays.foreign import read_dlpack, read_interface
from mlirfuse.schedule.model.machine import WIDEST_ACCESS
from mlirfuse.support.dtypes import DType, dtype_of, is_dtype

ALIGNMENT = WIDEST_ACCESS
"""Bytes to which a pointer is known to be aligned at most: more allows no wider access."""

_LOW_BITS = ALIGNMENT - 1

_GPU_HINT = "give arrays on the GPU, or compile with target='interpret'"
_KINDS_HINT = (
    "arrays are CuPy's, PyTorch's or of other frameworks; constants None, strings, dtypes, and tuples of these"
)

_PLAIN = {"bool": bool, "int": int, "float": float}
"""The Python type of each kind of number."""


@dataclass(frozen=True)
class ArrayInfo:
    """An array in GPU memory.

    Attributes:
        pointer: address of its first element.
        shape: extents.
        strides: in elements; 0 for a broadcast dimension, negative for a reversed one.
        dtype: element type.
        device: CUDA device number.
        framework: whose arrays results become: `torch` or `cupy`.
        lends: whether results may be views of the array. Those of other frameworks, which results are no arrays of,
            are not written to through a result, as JAX takes its arrays for constants.
    """

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    device: int
    framework: str
    lends: bool = True

    @property
    def span(self) -> tuple[int, int]:
        """Bytes from the pointer to the array's first byte, and to the byte behind its last; both 0 where the array is
        empty.

        The first number is negative where a stride is, as the pointer is the address of element (0, 0, ...).
        """
        if 0 in self.shape:
            return 0, 0
        steps = [(n - 1) * s * self.dtype.bytes for n, s in zip(self.shape, self.strides, strict=True)]
        return sum(s for s in steps if s < 0), sum(s for s in steps if s > 0) + self.dtype.bytes

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie in C order without gaps."""
        expected = 1
        for extent, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if extent > 1 and stride != expected:
                return 0 in self.shape
            expected *= extent
        return True

    @property
    def alignment(self) -> int:
        """Largest power of two, at most 16, that divides the pointer and every stride but a unit one, in bytes.

        The strides of a contiguous array follow from its shape, and do not count.
        """
        width = ALIGNMENT
        strides = [s * self.dtype.bytes for n, s in zip(self.shape, self.strides, strict=True) if s != 1 and n > 1]
        if self.is_contiguous:
            strides = []
        for value in (self.pointer, *strides):
            while value % width:
                width //= 2
        return width


@dataclass(frozen=True)
class ScalarInfo:
    """A Python number: `kind` is `float`, `int` or `bool`. Its value is no part of the signature."""

    kind: str


@dataclass(frozen=True)
class StaticInfo:
    """A constant of the compilation, such as an axis or None."""

    value: object


Argument = ArrayInfo | ScalarInfo | StaticInfo
Key = list[object]
Reader = Callable[[Any, Key, list[Any]], None]


def signature(args: Sequence[object]) -> tuple[Key, list[Any]]:
    """The key of a call, and the pointers and numbers of its arguments.

    Returns:
        key: equal for calls that the same launch plan serves; its entries are hashable.
        values: in order, the pointer of every array and every number; static arguments have none.

    Raises:
        ArgumentError, DTypeError, RuntimeError: an argument cannot be read; `read_argument` and `require_no_gradient`
            say which and why.
    """
    key: Key = []
    values: list[Any] = []
    for argument in args:
        kind = type(argument)
        reader = _READERS[kind] if kind in _READERS else _reader_of(argument)
        if reader is not None:
            reader(argument, key, values)
            continue
        # A torch tensor. `is_neg` belongs to the key: a lazily negated tensor shares memory with its source.
        tensor: Any = argument
        if tensor.requires_grad:
            require_no_gradient(tensor)
        pointer = tensor.data_ptr()
        strides = None if tensor.is_contiguous() else tensor.stride()
        key += (tensor.dtype, tensor.shape, strides, pointer & _LOW_BITS, tensor.get_device(), tensor.is_neg())
        values.append(pointer)
    return key, values


def read_argument(argument: object, name: str = "argument") -> Argument:
    """The description of an argument.

    Raises:
        ArgumentError: an array that is not on a GPU, or has an unsupported dtype, or no array at all.
        UnsupportedError: a value that is being traced.
    """
    try:
        return _describe(argument)
    except (ArgumentError, DTypeError) as error:
        raise ArgumentError(error.message, where=name, hint=error.hint) from None


def require_no_gradient(argument: object, name: str = "argument") -> None:
    """Raises `ArgumentError` for a PyTorch tensor that requires a gradient, where autograd is recording.

    Autograd does not see the kernels, and would compute no gradient. `torch.no_grad()` and `torch.inference_mode()`
    switch recording off, as `torch.autograd.Function` does.
    """
    if framework_of(argument) != "torch" or not argument.requires_grad:  # type: ignore[attr-defined]
        return
    torch = sys.modules.get("torch")
    if torch is None or torch.is_grad_enabled():
        hint = "call .detach() on it, or call the function under torch.no_grad() or in a torch.autograd.Function"
        raise ArgumentError("the tensor requires grad, and fused functions compute no gradients", where=name, hint=hint)


def _describe(argument: object) -> Argument:
    if isinstance(argument, (bool, np.bool_)):
        return ScalarInfo("bool")
    if isinstance(argument, (int, np.integer)):
        return ScalarInfo("int")
    if isinstance(argument, (float, np.floating)):
        return ScalarInfo("float")
    if isinstance(argument, tuple) and (wrong := _no_constant(argument)):
        raise ArgumentError(f"a tuple with a {wrong} is no constant", hint="give arrays as arguments of their own")
    if argument is None or isinstance(argument, (str, tuple, LeftOut)) or is_dtype(argument):
        return StaticInfo(argument)
    kind = framework_of(argument)
    if kind == "torch":
        return _describe_torch(argument)
    if kind == "cupy":
        return _describe_cupy(argument)
    if hasattr(argument, "__cuda_array_interface__"):
        return replace(_from_bytes(*read_interface(argument)), lends=False)
    if hasattr(argument, "__dlpack__") and hasattr(argument, "__dlpack_device__"):
        pointer, shape, strides, dtype, device, _ = read_dlpack(argument)
        return _checked(ArrayInfo(pointer, shape, strides, dtype_of(dtype), device, "cupy", lends=False))
    if isinstance(argument, TensorBase | ScalarBase):
        hint = "call the plain one, which becomes part of this: FUSED.__wrapped__(...)"
        raise at_user_line(UnsupportedError("a fused function is called inside of another", hint=hint))
    raise ArgumentError(f"{type(argument).__name__} is no array, number or constant", hint=_KINDS_HINT)


def _no_constant(values: tuple[object, ...]) -> str | None:
    """The type of a tuple's entry that is no constant, such as an array; None where all are constants."""
    for value in values:
        if isinstance(value, tuple):
            if wrong := _no_constant(value):
                return wrong
        elif not (value is None or isinstance(value, (str, int, float, np.number)) or is_dtype(value)):
            return type(value).__name__
    return None


def framework_of(argument: object) -> str:
    """`torch`, `cupy` or the empty string, from the class's origin; nothing is imported."""
    for base in type(argument).__mro__:
        module = base.__module__.partition(".")[0]
        if (module, base.__name__) == ("torch", "Tensor"):
            return "torch"
        if (module, base.__name__) == ("cupy", "ndarray"):
            return "cupy"
    return ""


def _describe_torch(tensor: Any) -> ArrayInfo:
    if tensor.device.type != "cuda":
        raise ArgumentError(f"the tensor is on {tensor.device}", hint=_GPU_HINT)
    if str(tensor.layout) != "torch.strided":
        raise ArgumentError(f"the tensor's layout is {tensor.layout}", hint="make it dense with .to_dense()")
    if tensor.is_neg():
        raise ArgumentError("the tensor is lazily negated", hint="write the values with .resolve_neg()")
    shape, strides, dtype = tuple(tensor.shape), tuple(tensor.stride()), dtype_of(tensor.dtype)
    return _checked(ArrayInfo(tensor.data_ptr(), shape, strides, dtype, tensor.get_device(), "torch"))


def _describe_cupy(array: Any) -> ArrayInfo:
    return _from_bytes(array.data.ptr, tuple(array.shape), tuple(array.strides), array.dtype, array.data.device_id)


def _from_bytes(
    pointer: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: object, device: int
) -> ArrayInfo:
    """The description of an array with strides in bytes, which may be no multiples of the element size."""
    if isinstance(dtype, np.dtype) and not dtype.isnative:
        raise ArgumentError(f"dtype {dtype} is not in this machine's byte order", hint="cast it with .astype(...)")
    element = dtype_of(dtype)
    if any(stride % element.bytes for stride in strides):
        raise ArgumentError(f"strides {strides} are no multiples of the size of {element.name}", hint="copy the array")
    return _checked(ArrayInfo(pointer, shape, tuple(s // element.bytes for s in strides), element, device, "cupy"))


def _checked(info: ArrayInfo) -> ArrayInfo:
    if info.pointer % info.dtype.bytes:
        raise ArgumentError(f"the pointer is not aligned to {info.dtype.name}", hint="copy the array")
    return info


def _read_cupy(array: Any, key: Key, values: list[Any]) -> None:
    data = array.data
    pointer = data.ptr
    strides = None if array._c_contiguous else array.strides  # `flags.c_contiguous` takes ten times as long
    key.append((array.dtype, array.shape, strides, pointer & _LOW_BITS, data.device_id))
    values.append(pointer)


def _read_number(number: Any, key: Key, values: list[Any]) -> None:
    key.append(type(number))
    values.append(number)


def _read_as(plain: Callable[[Any], Any], number: Any, key: Key, values: list[Any]) -> None:
    """A number of NumPy, or of a class made from a Python number's."""
    _read_number(plain(number), key, values)


def _read_static(value: Any, key: Key, values: list[Any]) -> None:
    key.append((type(value), value))


def _read_tuple(value: Any, key: Key, values: list[Any]) -> None:
    _describe(value)
    _read_static(value, key, values)


def _read_foreign(array: Any, key: Key, values: list[Any]) -> None:
    info = _describe(array)
    assert isinstance(info, ArrayInfo)
    key.append((info.dtype, info.shape, info.strides, info.pointer & _LOW_BITS, info.device, "foreign"))
    values.append(info.pointer)


_READERS: dict[type, Reader | None] = {
    float: _read_number,
    int: _read_number,
    bool: _read_number,
    type(None): _read_static,
    str: _read_static,
    LeftOut: _read_static,
    tuple: _read_tuple,
    DType: _read_static,
}
"""The reader of each argument type; None for tensors of torch, which `signature` reads inline for speed."""


def _reader_of(argument: object) -> Reader | None:
    """The reader of a type without an entry in the table yet; raises `ArgumentError` for types that are no argument."""
    reader: Reader | None
    if kind := framework_of(argument):
        reader = None if kind == "torch" else _read_cupy
    elif isinstance(argument, tuple):
        reader = _read_tuple
    else:
        info = _describe(argument)
        readers: dict[type, Reader] = {StaticInfo: _read_static, ArrayInfo: _read_foreign}
        reader = partial(_read_as, _PLAIN[info.kind]) if isinstance(info, ScalarInfo) else readers[type(info)]
    _READERS[type(argument)] = reader
    return reader
