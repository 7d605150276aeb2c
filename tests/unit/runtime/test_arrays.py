"""What callers pass, read without a GPU: stand-ins have the attributes of the frameworks' arrays."""

from __future__ import annotations

import ctypes
import sys
from collections import namedtuple
from dataclasses import dataclass
from enum import IntEnum
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from mlirfuse.builder.spec import LEFT_OUT
from mlirfuse.errors import ArgumentError
from mlirfuse.runtime.arrays import arrays
from mlirfuse.runtime.arrays.arrays import (
    ArrayInfo,
    ScalarInfo,
    StaticInfo,
    read_argument,
    require_no_gradient,
    signature,
)
from mlirfuse.runtime.device import cuda
from mlirfuse.support.dtypes import bfloat16, bool_, float16, float32, float64

POINTER = 1 << 20


class ndarray:  # noqa: N801  CuPy's name
    """Has what is read of a `cupy.ndarray`."""

    __module__ = "cupy"

    def __init__(self, shape, dtype="float32", strides=None, pointer=POINTER, device=0):
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.strides = np.empty(shape, self.dtype).strides if strides is None else strides
        self.data = SimpleNamespace(ptr=pointer, device_id=device)
        self._c_contiguous = self.strides == np.empty(shape, self.dtype).strides


@dataclass(frozen=True)
class TorchDType:
    """A `torch.dtype` has no name, only its text."""

    text: str

    def __repr__(self):
        return f"torch.{self.text}"


class Tensor:
    """Has what is read of a `torch.Tensor`."""

    __module__ = "torch"

    def __init__(self, shape, dtype="float32", strides=None, pointer=POINTER, device="cuda:0", layout="torch.strided"):
        self.shape, self.dtype, self.layout = shape, TorchDType(dtype), layout
        self._strides = strides or tuple(s // 4 for s in np.empty(shape, np.float32).strides)
        self._pointer, self.negated, self.requires_grad = pointer, False, False
        self.device = SimpleNamespace(type=device.partition(":")[0])

    def stride(self):
        return self._strides

    def data_ptr(self):
        return self._pointer

    def is_contiguous(self):
        return self._strides == tuple(s // 4 for s in np.empty(self.shape, np.float32).strides)

    def get_device(self):
        return 0

    def is_neg(self):
        return self.negated


class Foreign:
    """An array of some other library, with the CUDA array interface."""

    def __init__(self, **interface):
        self.__cuda_array_interface__ = {"version": 3, "data": (POINTER, False)} | interface


class Parameter(Tensor):
    """A subclass, as `torch.nn.Parameter` is."""


@pytest.fixture(autouse=True)
def readers_are_forgotten(monkeypatch):
    monkeypatch.setattr(arrays, "_READERS", dict(arrays._READERS))


@pytest.fixture
def waited_for(monkeypatch) -> list[int]:
    """A CuPy that knows where memory lies; returns the streams that were waited for."""
    streams: list[int] = []
    runtime = SimpleNamespace(
        pointerGetAttributes=lambda pointer: SimpleNamespace(device=3),
        getDevice=lambda: 1,
        streamSynchronize=streams.append,
    )
    monkeypatch.setattr(cuda, "cupy", lambda: SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)))
    return streams


def test_cupy_array():
    info = read_argument(ndarray((4, 8), "float16"))
    assert info == ArrayInfo(POINTER, (4, 8), (8, 1), float16, 0, "cupy")
    assert (info.span, info.is_contiguous, info.alignment) == ((0, 64), True, 16)


def test_torch_tensor_and_subclass():
    assert read_argument(Tensor((4, 8), "bfloat16")) == ArrayInfo(POINTER, (4, 8), (8, 1), bfloat16, 0, "torch")
    assert read_argument(Parameter((2,))).framework == "torch"


def test_transposed_and_broadcast_strides_are_kept():
    transposed = read_argument(ndarray((8, 4), strides=(4, 32)))
    assert transposed.strides == (1, 8)
    assert not transposed.is_contiguous
    assert transposed.span == (0, 128)
    assert read_argument(Tensor((5, 8), strides=(0, 1))).span == (0, 32)


def test_contiguity_ignores_extents_of_one_and_empty_arrays():
    assert read_argument(ndarray((1, 8), strides=(4000, 4))).is_contiguous
    empty = read_argument(ndarray((0, 8), strides=(64, 4)))
    assert empty.is_contiguous
    assert empty.span == (0, 0)
    assert read_argument(ndarray((), "float64")).is_contiguous


def test_alignment_counts_the_pointer_and_strides_that_do_not_follow_from_the_shape():
    assert read_argument(ndarray((4, 8), "float16", pointer=POINTER + 2)).alignment == 2
    assert read_argument(ndarray((4, 8), "float32", strides=(40, 4))).alignment == 8
    assert read_argument(ndarray((4, 5), "float16")).alignment == 16  # contiguous: the strides follow from the shape
    assert read_argument(ndarray((4, 5), "float16", strides=(14, 2))).alignment == 2


@pytest.mark.usefixtures("waited_for")
def test_cuda_array_interface():
    info = read_argument(Foreign(shape=(2, 3), typestr="<f8"))
    assert info == ArrayInfo(POINTER, (2, 3), (3, 1), float64, 3, "cupy", lends=False)
    assert read_argument(Foreign(shape=(2, 3), typestr="|b1", strides=(1, 2))).dtype == bool_
    assert read_argument(Foreign(shape=(0,), typestr="<f4", data=(0, False))).device == 1


def test_cuda_array_interface_waits_for_the_producer(waited_for):
    read_argument(Foreign(shape=(2,), typestr="<f4", stream=7))
    read_argument(Foreign(shape=(2,), typestr="<f4", stream=None))
    assert waited_for == [7]


@pytest.mark.usefixtures("waited_for")
def test_cuda_array_interface_with_a_mask():
    with pytest.raises(ArgumentError, match="has a mask"):
        read_argument(Foreign(shape=(2,), typestr="<f4", mask=object()))


class DLPack:
    """A NumPy array behind DLPack that says it is on the GPU."""

    def __init__(self, array, device=(2, 1)):
        self.array, self.device = array, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream):
        assert stream == 1
        return self.array.__dlpack__()


def test_dlpack():
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    info = read_argument(DLPack(array[:, 1:, ::2]))
    pointer = array[:, 1:, ::2].ctypes.data
    assert info == ArrayInfo(pointer, (2, 2, 2), (12, 4, 2), float32, 1, "cupy", lends=False)
    assert ctypes.c_float.from_address(info.pointer).value == 4.0


def test_dlpack_of_the_cpu():
    with pytest.raises(ArgumentError, match="x: DLPack is not on a CUDA device"):
        read_argument(DLPack(np.zeros(2), device=(1, 0)), "x")


def test_dlpack_complex():
    with pytest.raises(ArgumentError, match=r"DLPack type \(5, 64, 1\)"):
        read_argument(DLPack(np.zeros(2, np.complex64)))


def test_reversed_arrays_begin_behind_their_memory() -> None:
    """The pointer is that of element (0, 0), and elements lie on both sides of it."""
    info = read_argument(ndarray((5, 8), strides=(-64, 4), pointer=POINTER + 4 * 64))
    assert (info.strides, info.span, info.is_contiguous, info.alignment) == ((-16, 1), (-256, 32), False, 16)
    odd = read_argument(ndarray((8,), "float16", strides=(-2,), pointer=POINTER + 14))
    assert (odd.strides, odd.span, odd.alignment) == ((-1,), (-14, 2), 2)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ([1.0, 2.0], "x: list is no array"),
        (np.zeros(4), "x: ndarray is not on a CUDA device"),
        (object(), "x: object is no array"),
        (dict, "x: type is no array, number or constant"),
        (Tensor((4,), device="cpu"), "x: the tensor is on"),
        (Tensor((4,), layout="torch.sparse_coo"), "x: the tensor's layout is torch.sparse_coo"),
        (Tensor((4,), "complex64"), "x: dtype 'complex64' is not supported"),
        (ndarray((4,), "uint8"), "x: dtype 'uint8' is not supported"),
        (ndarray((4,), ">f4"), "x: dtype >f4 is not in this machine's byte order"),
        (ndarray((4,), strides=(6,)), "x: strides .* are no multiples of the size"),
        (ndarray((4,), pointer=POINTER + 2), "x: the pointer is not aligned to float32"),
    ],
)
def test_what_is_refused(argument, message):
    with pytest.raises(ArgumentError, match=message):
        read_argument(argument, "x")


def test_lazily_negated_tensor():
    tensor = Tensor((4,))
    plain, _ = signature((tensor,))
    tensor.negated = True
    assert signature((tensor,))[0] != plain
    with pytest.raises(ArgumentError, match="lazily negated"):
        read_argument(tensor)


@pytest.fixture
def grad_mode(monkeypatch):
    """PyTorch's, which this sets."""
    mode = SimpleNamespace(enabled=True)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(is_grad_enabled=lambda: mode.enabled))
    return mode


def test_tensor_that_requires_grad(grad_mode):
    """Refused on every call, also of a key that was seen, unless PyTorch is told to record no gradients."""
    tensor = Parameter((4,))
    plain = signature((tensor,))
    tensor.requires_grad = True
    for _ in range(2):
        with pytest.raises(ArgumentError, match="the tensor requires grad.*\n.*detach"):
            signature((tensor,))
    with pytest.raises(ArgumentError, match="w: the tensor requires grad"):
        require_no_gradient(tensor, "w")
    grad_mode.enabled = False
    assert signature((tensor,)) == plain
    require_no_gradient(tensor, "w")
    require_no_gradient(1.0, "eps")


def test_numbers_and_constants():
    assert [read_argument(value) for value in (1, 2.5, True, np.float32(1), np.int64(2), np.bool_(True))] == [
        ScalarInfo(kind) for kind in ("int", "float", "bool", "float", "int", "bool")
    ]
    for value in ((0, 1), np.dtype("float16"), np.float16, float16, ml_dtypes.bfloat16, (np.float16, "x")):
        assert read_argument(value) == StaticInfo(value)
    assert read_argument(None) == StaticInfo(None)
    assert read_argument(LEFT_OUT) == StaticInfo(LEFT_OUT)


def test_numbers_of_other_classes_become_plain_ones():
    class Metres(float): ...

    for value, plain in (
        (IntEnum("Side", "LEFT").LEFT, 1),
        (Metres(2.5), 2.5),
        (np.int8(3), 3),
        (np.float16(0.5), 0.5),
    ):
        for _ in range(2):  # the second is read by what was learnt of its class
            (kind,), (number,) = signature((value,))
            assert (number, type(number), kind) == (plain, type(plain), type(plain))
            assert read_argument(value) == ScalarInfo(type(plain).__name__)


def test_tuples_hold_constants():
    shape = namedtuple("Shape", "rows columns")(2, (3, None, "x"))
    assert read_argument(shape) == StaticInfo(shape)
    assert signature((shape,))[0] == [(type(shape), shape)]
    for read in (read_argument, lambda value: signature((value,))):
        with pytest.raises(ArgumentError, match="a tuple with a ndarray is no constant"):
            read((1, np.ones(2)))


def test_signature_separates_what_needs_another_plan():
    base = ndarray((4, 8), "float16")
    others = [
        ndarray((5, 8), "float16"),
        ndarray((4, 8), "int16"),
        ndarray((4, 8), "float16", strides=(2, 8)),
        ndarray((4, 8), "float16", pointer=POINTER + 2),
        ndarray((4, 8), "float16", device=1),
        Tensor((4, 8), "float16"),
    ]
    keys = [tuple(signature((array,))[0]) for array in (base, *others)]
    assert len(set(keys)) == len(keys)


def test_signature_ignores_pointers_and_numbers():
    first = signature((ndarray((4,), pointer=POINTER), 2.5, 3, None))
    second = signature((ndarray((4,), pointer=2 * POINTER), 7.5, 4, None))
    assert first[0] == second[0]
    assert (first[1], second[1]) == ([POINTER, 2.5, 3], [2 * POINTER, 7.5, 4])


def test_signature_tells_numbers_of_different_kinds_apart():
    keys = {tuple(signature((value,))[0]) for value in (1, 1.0, True, None, (1,), "1")}
    assert len(keys) == 6
    assert signature((np.float32(1.0),)) == signature((1.0,))


def test_reading_imports_no_framework():
    read_argument(ndarray((4,)))
    read_argument(Tensor((4,)))
    assert "cupy" not in sys.modules
    assert "torch" not in sys.modules
