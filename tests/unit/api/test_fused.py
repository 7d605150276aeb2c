"""`mf.fuse` as an object: signatures, results and schedules, in the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier, Event
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.compiler.kernel_info import KernelInfo
from mlirfuse.errors import ArgumentError, MlirFuseError
from mlirfuse.lowering.ptx.to_ptx import KernelBinary
from mlirfuse.runtime.device import cuda
from mlirfuse.runtime.device.module import LoadedKernel
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import target_of
from tests.support.fakes.fake_driver import Driver, ndarray

LAYOUT = BlockedLayout(vector=(1, 4), lanes=(1, 32), warps=(1, 1), repeats=(1, 1), blocks=(1, 1))


def row_sum(x: Any) -> Any:
    return mf.sum(x, axis=-1)


def rows(count: int, dtype: Any = np.float32) -> np.ndarray:
    return np.arange(count * 128).reshape(count, 128).astype(dtype) % 7


def test_one_compile_serves_every_row_count_and_a_new_dtype_compiles_again() -> None:
    traces = []

    def traced(x: Any) -> Any:
        traces.append((x.dtype.name, x.shape))
        return mf.sum(x, axis=-1)

    fused = mf.fuse(traced, target="interpret")
    for count in (3, 5, 3, 70):
        np.testing.assert_array_equal(fused(rows(count)), rows(count).sum(-1))
    assert len(traces) == 1
    fused(rows(3, np.float16))
    fused(rows(4, np.float16))
    assert [dtype for dtype, _ in traces] == ["float32", "float16"]
    fused(rows(1))  # an extent of 1 broadcasts, so it is static
    fused(rows(1))
    assert len(traces) == 3


def test_a_reduced_leading_dimension_stays_dynamic() -> None:
    traces = []

    def traced(x: Any) -> Any:
        traces.append(x.shape)
        return mf.sum(x, axis=0)

    fused = mf.fuse(traced, target="interpret")
    for count in (3, 4, 3):
        np.testing.assert_array_equal(fused(rows(count)), rows(count).sum(0))
    assert len(traces) == 1


def test_an_extent_that_is_needed_as_a_number_is_traced_again_as_static() -> None:
    traces = []

    def traced(x: Any) -> Any:
        traces.append(x.shape)
        return mf.reshape(x, (3, -1, 64))

    fused = mf.fuse(traced, target="interpret")
    for count in (3, 6, 3):
        np.testing.assert_array_equal(fused(rows(count)), rows(count).reshape(3, -1, 64))
    # The first trace finds that the extent is needed; after that each extent is traced with it at once.
    assert len(traces) == 3


def test_an_array_without_dimensions_stays_one() -> None:
    result = mf.fuse(lambda x: x + 1, target="interpret")(np.array(3, np.float32))
    assert (result.shape, result) == ((), 4)


def test_what_is_left_out_before_an_argument_by_name_keeps_its_default() -> None:
    seen = []

    def scaled(x, factor=2, shift=10, *, axis=(1,)):
        seen.append(factor)
        return mf.sum(x * factor + shift, axis=axis)

    fused, x = mf.fuse(scaled, target="interpret"), rows(2)
    np.testing.assert_allclose(fused(x, shift=5), (x * 2 + 5).sum(1), rtol=1e-6)
    assert seen == [2], "a default is a constant"
    np.testing.assert_allclose(fused(x, axis=(0,)), (x * 2 + 10).sum(0), rtol=1e-6)
    np.testing.assert_allclose(fused(x, 3, axis=(0, 1)), (x * 3 + 10).sum(), rtol=1e-6)
    np.testing.assert_allclose(fused(axis=(0,), shift=1, x=x), (x * 2 + 1).sum(0), rtol=1e-6)


def test_arguments_by_name_and_in_any_number() -> None:
    fused = mf.fuse(lambda x, *more, k=1: sum(more, x) * k, target="interpret")
    np.testing.assert_array_equal(fused(rows(2), rows(2)), rows(2) * 2)
    np.testing.assert_array_equal(fused(x=rows(2)), rows(2))
    for wrong in ({"k": 2}, {"x": rows(2), "k": 2}):
        with pytest.raises(ArgumentError, match="cannot be mixed with \\*args"):
            fused(*([rows(2)] if "x" not in wrong else []), **wrong)


def test_keywords_and_defaults() -> None:
    fused = mf.fuse(lambda x, scale=2.0: x * scale, target="interpret")
    np.testing.assert_array_equal(fused(rows(2), scale=3.0), rows(2) * 3)
    np.testing.assert_array_equal(fused(x=rows(2)), rows(2) * 2)


def test_lowering_takes_arguments_by_name() -> None:
    fused, spec = (
        mf.fuse(lambda x, scale=2.0, *, axis=(1,): mf.sum(x * scale, axis=axis)),
        mf.TensorSpec((8, 64), "float32"),
    )
    assert fused.lower(x=spec).as_text() == fused.lower(spec).as_text()
    assert "-> tensor<64xf32>" in fused.lower(spec, axis=(0,)).as_text()
    with pytest.raises(ArgumentError, match="unexpected keyword argument 'y'"):
        fused.lower(spec, y=spec)


def test_results_keep_their_structure() -> None:
    assert isinstance(mf.fuse(lambda x: (x + 1.0, x * 2.0), target="interpret")(rows(2)), tuple)
    assert isinstance(mf.fuse(lambda x: [x + 1.0, x * 2.0], target="interpret")(rows(2)), list)
    assert isinstance(mf.fuse(row_sum, target="interpret")(rows(2)), np.ndarray)


def test_out_is_written_and_returned() -> None:
    out = np.zeros(2, np.float32)
    assert mf.fuse(row_sum, target="interpret")(rows(2), out=out) is out
    np.testing.assert_array_equal(out, rows(2).sum(-1))


def test_a_schedule_overrides_the_heuristics() -> None:
    schedule = Schedule((1, 128), LAYOUT)
    fused = mf.fuse(row_sum, schedule=schedule)
    compiled = fused.lower(mf.TensorSpec((None, 128), mf.float32)).compile()
    assert "known_block_size = array<i32: 32, 1, 1>" in compiled.as_text("gpu")


def test_fast_math_leaves_out_roundings_between_operations() -> None:
    def chain(x: Any) -> Any:
        return mf.exp(mf.sin(x / 3.0))

    spec = mf.TensorSpec((None, 128), mf.float16)
    texts = [mf.fuse(chain, fast_math=fast).lower(spec).compile().as_text("tile") for fast in (False, True)]
    assert [text.count("arith.truncf") for text in texts] == [3, 1]
    x = np.linspace(-4, 4, 256, dtype=np.float16).reshape(2, 128)
    exact = np.exp(np.sin(x.astype(np.float64) / 3))
    errors = [np.abs(mf.fuse(chain, target="interpret", fast_math=fast)(x) - exact).max() for fast in (False, True)]
    assert errors[1] < errors[0]


def test_an_illegal_schedule_says_why() -> None:
    fused = mf.fuse(row_sum, schedule=Schedule((1, 128), replace(LAYOUT, warps=(1, 64))))
    with pytest.raises(MlirFuseError, match="2048 threads exceed the 1024 of a block"):
        fused.lower(mf.TensorSpec((None, 128), mf.float32)).compile()


def test_threads_that_make_the_first_call_together_load_once(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that loaded a kernel again would put it in the place of one that another thread is about to launch."""
    loads: list[str] = []
    start, second = Barrier(2), Event()

    def load(binary: KernelBinary, info: KernelInfo, device: int) -> LoadedKernel:
        loads.append(binary.name)
        if len(loads) > 1:
            second.set()
        second.wait(0.5)  # long enough for the other thread, once it need not wait for the compiler
        return driver.load(info, device)

    def call(pointer: int) -> None:
        start.wait()
        fused(ndarray((6, 128), pointer))

    monkeypatch.setattr("mlirfuse.api.fused.load", load)
    monkeypatch.setattr(cuda, "device_target", lambda device: target_of("sm_90a").with_sms(132))
    monkeypatch.setattr(cuda, "device_name", lambda device: "NVIDIA H200")
    fused = mf.fuse(row_sum)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(call, (1 << 20, 2 << 20)))
    assert loads == ["row_sum_0_kernel"]
    assert [function for function, *_ in driver.launches] == [1, 1]


def test_every_stage_has_a_text() -> None:
    compiled = mf.fuse(row_sum).lower(mf.TensorSpec((None, 128), mf.float32)).compile()
    marks = {"linalg": "linalg.generic", "tile": "scf.forall", "gpu": "gpu.func", "nvvm": "llvm.func", "ptx": ".entry"}
    for stage, mark in marks.items():
        assert mark in compiled.as_text(stage)
    with pytest.raises(ArgumentError, match="unknown stage 'sass'"):
        compiled.as_text("sass")


def test_an_extent_that_is_computed_is_read_from_an_operand() -> None:
    """Kernels take no index that the host computed; where no operand has the extent, its number is asked for."""
    spec = mf.TensorSpec((None, 6), mf.float32)
    assert "arith.muli" not in str(mf.fuse(lambda x: mf.exp(mf.reshape(x, (-1,)))).lower(spec).module)
    with pytest.raises(mf.errors.TraceError, match=r"(?s)extent 6\*x.0, which no operand has.*'x.0' a number"):
        mf.fuse(lambda x: mf.broadcast_to(mf.sum(x), (x.shape[0] * 6,)) * 2).lower(spec)


FILLED: dict[str, tuple[Callable[..., Any], Callable[[np.ndarray], Any]]] = {
    "nothing is read": (mf.zeros_like, np.zeros_like),
    "a gradient of a sum": (lambda x: mf.broadcast_to(mf.sum(x, 0), x.shape), lambda x: x.sum(0) + 0 * x),
    "beside what is read": (lambda x: (mf.max(x, -1), mf.full_like(x, 2)), lambda x: (x.max(-1), np.full_like(x, 2))),
    "sums": (
        lambda x: (mf.sum(one := mf.ones_like(x), 0), mf.sum(one, 1), mf.mean(one)),
        lambda x: (np.full(128, len(x)), np.full(len(x), 128), 1),
    ),
}


@pytest.mark.parametrize("name", FILLED)
def test_results_of_an_extent_that_their_kernel_does_not_read(name: str) -> None:
    """They are compiled for each extent, and reductions of one number are as any others."""
    fn, reference = FILLED[name]
    for count in (3, 5):
        results, expected = mf.fuse(fn, target="interpret")(rows(count)), reference(rows(count))
        if not isinstance(results, tuple):
            results, expected = (results,), (expected,)
        for result, array in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, array, rtol=1e-6)


def test_products_of_no_rows() -> None:
    """As of an expert that got no tokens; a product of rows has a kernel of its own before and after."""

    def linear(x, w):
        y = x @ w
        return mf.maximum(y, 0), mf.sum(y, axis=0), mf.sum(y, axis=1)

    fused, w = mf.fuse(linear, target="interpret"), rows(128)[:, :32]
    for count in (0, 3, 0):
        x = rows(count)
        for result, expected in zip(fused(x, w), (x @ w, (x @ w).sum(0), (x @ w).sum(1)), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-6)
    assert [result.shape for result in fused(rows(3), w[:, :0])] == [(3, 0), (0,), (3,)]


def test_arguments_without_names_are_explained() -> None:
    """Extents that have to be static are those of arguments of `*arrays` too."""
    fused = mf.fuse(lambda *arrays: mf.max(arrays[1], axis=0), target="interpret")
    assert fused(rows(3), rows(4)).shape == (128,)
