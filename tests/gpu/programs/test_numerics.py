"""Kernels on the GPU against float64, with PyTorch's own error as the yardstick."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.gpu.torch_arrays import to_numpy, to_torch
from tests.support.reductions.numerics import DTYPES, EPSILON, FAMILIES

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

F = torch.nn.functional

TORCH: dict[str, Callable[..., Any]] = {
    "layer_norm": lambda x, w, b: F.layer_norm(x, x.shape[1:], w, b, EPSILON),
    "rms_norm": lambda x, w: F.rms_norm(x, x.shape[1:], w, EPSILON),
    "norm_of_all": lambda x, w: F.rms_norm(x, x.shape, eps=EPSILON) * w,
    "softmax": lambda x: F.softmax(x, -1),
    "log_softmax": lambda x: F.log_softmax(x, -1),
    "variance": lambda x: torch.var(x, -1, correction=0),
    "column_sums": lambda x: torch.sum(x, 0),
    "batch_norm": lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True, eps=EPSILON),
}
COLUMNS = (1, 2, 7, 32, 33, 257, 768, 1000, 1024, 1600, 4096, 4099, 5140, 12288, 16384, 33000, 65536, 131072)


@pytest.fixture(scope="module")
def fused() -> dict[str, mf.Fused]:
    return {name: mf.fuse(family.fn) for name, family in FAMILIES.items()}


def yardstick(name: str, tensors: list[Any]) -> np.ndarray:
    """PyTorch's result."""
    return to_numpy(TORCH[name](*tensors))


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FAMILIES)
def test_sizes(name: str, dtype: str, columns: int, fused: dict[str, mf.Fused]) -> None:
    family = FAMILIES[name]
    for rows in (2, 3, 61) if columns < 20000 else (3,):
        inputs = family.inputs(rows, columns, DTYPES[dtype], seed=rows)
        tensors = [to_torch(a) for a in inputs]
        family.check(to_numpy(fused[name](*tensors)), inputs, yardstick(name, tensors))


@pytest.mark.parametrize("name", ["layer_norm", "softmax", "rms_norm", "variance"])
def test_one_row_and_none(name: str, fused: dict[str, mf.Fused]) -> None:
    family = FAMILIES[name]
    for rows in (0, 1):
        inputs = family.inputs(rows, 1000, DTYPES["float16"])
        family.check(to_numpy(fused[name](*map(to_torch, inputs))), inputs)


@pytest.mark.parametrize("columns", [768, 1000, 5140, 65536])
@pytest.mark.parametrize("name", ["layer_norm", "variance"])
def test_statistics_far_from_zero(name: str, columns: int, fused: dict[str, mf.Fused]) -> None:
    family = FAMILIES[name]
    inputs = family.inputs(4, columns, DTYPES["float16"], mean=1000)
    tensors = [to_torch(a) for a in inputs]
    family.check(to_numpy(fused[name](*tensors)), inputs, yardstick(name, tensors))


@pytest.mark.parametrize("columns", [33, 1000, 4099, 5140])
@pytest.mark.parametrize("name", ["layer_norm", "softmax", "column_sums"])
def test_every_element_of_a_poisoned_output_is_written(name: str, columns: int, fused: dict[str, mf.Fused]) -> None:
    family = FAMILIES[name]
    inputs = family.inputs(37, columns, DTYPES["float16"])
    tensors = [to_torch(a) for a in inputs]
    expected = yardstick(name, tensors)
    guarded = torch.full((expected.size + 64,), float("nan"), dtype=torch.float16, device="cuda")
    out = guarded[32 : 32 + expected.size].view(expected.shape)
    assert fused[name](*tensors, out=out) is out
    family.check(to_numpy(out), inputs, expected)
    assert torch.isnan(guarded[:32]).all(), "written in front of the output"
    assert torch.isnan(guarded[32 + expected.size :]).all(), "written behind the output"


def test_cupy_arrays_give_cupy_arrays(fused: dict[str, mf.Fused]) -> None:
    family = FAMILIES["layer_norm"]
    inputs = family.inputs(33, 1000, DTYPES["float16"])
    result = fused["layer_norm"](*map(cupy.asarray, inputs))
    assert isinstance(result, cupy.ndarray)
    family.check(cupy.asnumpy(result), inputs)


@pytest.mark.parametrize("name", ["layer_norm", "softmax"])
def test_pointers_that_are_not_aligned(name: str, fused: dict[str, mf.Fused]) -> None:
    family = FAMILIES[name]
    inputs = family.inputs(9, 1024, DTYPES["float16"])
    tensors = [to_torch(a) for a in inputs]
    flat = torch.empty(9 * 1024 + 1, dtype=torch.float16, device="cuda")
    tensors[0] = flat[1:].view(9, 1024).copy_(tensors[0])
    assert tensors[0].data_ptr() % 16 == 2
    family.check(to_numpy(fused[name](*tensors)), inputs)


@pytest.mark.parametrize("name", ["layer_norm", "softmax", "column_sums"])
@pytest.mark.parametrize("layout", ["every other row", "columns of a wider array", "transposed"])
def test_strided_inputs(name: str, layout: str, fused: dict[str, mf.Fused]) -> None:
    family = FAMILIES[name]
    inputs = family.inputs(24, 1000, DTYPES["float16"])
    tensors = [to_torch(a) for a in inputs]
    x = tensors[0]
    if layout == "transposed":
        tensors[0] = x.t().contiguous().t()
    else:
        rows, columns = (48, 1000) if layout == "every other row" else (24, 1003)
        wide = torch.full((rows, columns), float("nan"), dtype=x.dtype, device="cuda")
        tensors[0] = (wide[::2] if layout == "every other row" else wide[:, 2:1002]).copy_(x)
    assert not tensors[0].is_contiguous()
    family.check(to_numpy(fused[name](*tensors)), inputs)


@pytest.mark.parametrize("special", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("name", ["layer_norm", "softmax", "log_softmax", "variance"])
def test_nan_and_infinity_spread_as_in_torch(name: str, special: float, fused: dict[str, mf.Fused]) -> None:
    family = FAMILIES[name]
    tensors = [to_torch(a) for a in family.inputs(3, 1000, DTYPES["float16"])]
    tensors[0][1, 500] = special
    result, expected = to_numpy(fused[name](*tensors)), yardstick(name, tensors)
    assert np.array_equal(np.isnan(result), np.isnan(expected))
    assert np.array_equal(np.isinf(result), np.isinf(expected))


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("columns", [3, 257, 1024, 4096, 70000])
@pytest.mark.parametrize("dtype", [torch.bool, torch.int8, torch.int64], ids=str)
def test_bools_and_integers(dtype: Any, columns: int, axis: int | None) -> None:
    """Sums in 64 bits, and whether something or everything is not zero: over rows, columns, and all."""
    values = torch.tensor([0, 1, 1, 1, 1, 100, -100], device="cuda")
    x = values[torch.randint(7, (70, columns), device="cuda")].to(dtype)
    results = mf.fuse(lambda x: (mf.sum(x, axis=axis), mf.any(x, axis=axis), mf.all(x, axis=axis)))(x)
    expected = (x.sum(axis), *((x.any(), x.all()) if axis is None else (x.any(axis), x.all(axis))))
    for result, wanted in zip(results, expected, strict=True):
        assert result.dtype == wanted.dtype
        assert torch.equal(result, wanted)


def test_numbers_are_arguments_of_one_kernel() -> None:
    @mf.fuse
    def scaled(x, factor, shift):
        return x * factor + shift

    x = torch.arange(1000, dtype=torch.float32, device="cuda").view(10, 100)
    for factor, shift in ((2.0, 1.0), (0.5, -3.0)):
        assert torch.equal(scaled(x, factor, shift), x * factor + shift)
