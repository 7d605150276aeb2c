"""Results in arrays that the caller gives as `out=`, against a driver that only notes what it is given."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from mlirfuse.errors import ArgumentError
from mlirfuse.runtime.device import cuda
from tests.support.fakes.fake_driver import dispatcher, ndarray, x_and_y
from tests.support.harnesses.lowering_harness import TRANSPOSED, VIEWS


@pytest.fixture
def copies(driver, monkeypatch):
    """What results are copied to that no kernel writes: (stream, source, pointer, strides, bytes around it)."""
    noted, streams = [], []

    @contextmanager
    def on_stream(pointer):
        streams.append(pointer)
        yield

    monkeypatch.setattr(cuda, "on_stream", on_stream)
    monkeypatch.setattr(cuda, "bits", lambda shape, size: ndarray(shape, 1 << 40, f"u{size}"))
    monkeypatch.setattr(cuda, "copy_bits", lambda source, *where: noted.append((streams[-1], source, *where)))
    return noted


@pytest.mark.parametrize(
    ("strides", "offset", "span"),
    [((4, 24), 0, (0, 12288)), ((-2048, 4), 5 * 2048, (-10240, 2048)), ((2048, 4), 4, (0, 12288)),
     ((2056, -4), 2044, (-2044, 10284))],
)  # fmt: skip
def test_out_that_no_kernel_writes_gets_a_copy(driver, copies, strides, offset, span):
    run, pointer = dispatcher(driver), (1 << 26) + offset
    out = ndarray((6, 512), pointer, strides=strides)
    for _ in range(2):
        assert run((*x_and_y(), 1.0), out=out, stream=17) is out
    assert [launch[5][5] for launch in driver.launches] == [1 << 40] * 2
    stream, source, *where = copies[0]
    assert (stream, source.shape, source.dtype) == (17, (6, 512), np.uint32)
    assert where == [pointer, tuple(s // 4 for s in strides), span]


def test_a_stream_is_made_current_by_the_stream_protocol(monkeypatch):
    """CuPy 14 deprecates `ExternalStream`, and takes any object that has `__cuda_stream__` (version 0, pointer)."""
    current = []

    @contextmanager
    def from_external(stream):
        current.append(stream.__cuda_stream__())
        yield
        current.pop()

    cupy = SimpleNamespace(cuda=SimpleNamespace(Stream=SimpleNamespace(from_external=from_external)))
    monkeypatch.setattr(cuda, "cupy", lambda: cupy)
    with cuda.on_stream(17):
        assert current == [(0, 17)]
    assert not current


def test_out_in_the_order_that_a_transposed_result_has_not_gets_a_copy(driver, copies):
    dispatcher(driver, TRANSPOSED)((*x_and_y(), 1.0), out=ndarray((512, 6), 1 << 26))
    _, source, pointer, strides, _ = copies[0]
    assert (source.shape, source.strides, pointer, strides) == ((512, 6), (4, 2048), 1 << 26, (6, 1))


@pytest.mark.parametrize(
    ("offset", "strides", "overlaps"),
    [(0, (-2048, 4), True), (5 * 2048, (-2048, 4), True), (-2048, (-2048, 4), False), (6 * 2048, (-2048, 4), True),
     (11 * 2048, (-2048, 4), False)],
)  # fmt: skip
def test_where_reversed_memory_overlaps(driver, copies, offset, strides, overlaps):
    x, y = x_and_y()
    out = ndarray((6, 512), x.data.ptr + offset, strides=strides)
    if not overlaps:
        dispatcher(driver)((x, y, 1.0), out=out)
        return
    with pytest.raises(ArgumentError, match="out: overlaps an argument"):
        dispatcher(driver)((x, y, 1.0), out=out)


def test_memory_between_the_rows_of_an_argument_does_not_overlap(driver, copies):
    x, y = ndarray((6, 512), 1 << 24, strides=(4096, 4)), ndarray((6, 512), 1 << 25)
    beside = ndarray((6, 512), (1 << 24) + 2048, strides=(4096, 4))
    dispatcher(driver)((x, y, 1.0), out=beside)
    with pytest.raises(ArgumentError, match="out: overlaps an argument"):
        dispatcher(driver)((x, y, 1.0), out=ndarray((6, 512), (1 << 24) + 2044, strides=(4096, 4)))


def test_out_with_a_view_result(driver):
    x = ndarray((6, 512), 1 << 24)
    out = (ndarray((3072,), 1 << 26), ndarray((6, 512), 1 << 27))
    with pytest.raises(ArgumentError, match="a result is a view"):
        dispatcher(driver, VIEWS)((x,), out=out)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (ndarray((5, 512), 1 << 26), r"expected float32 \(6, 512\), got float32 \(5, 512\)"),
        (ndarray((6, 512), 1 << 26, "float16"), r"got float16 \(6, 512\)"),
        (ndarray((6, 512), 1 << 26, strides=(0, 4)), "several elements are one in memory"),
        (ndarray((6, 512), (1 << 26) + 2), "the pointer is not aligned to float32"),
        (ndarray((6, 512), 1 << 26, device=1), "is on device 1"),
        ((ndarray((6, 512), 1 << 26), ndarray((6, 512), 1 << 27)), "expected 1 arrays, got 2"),
        (3.0, "expected an array"),
        ([ndarray((6, 512), 1 << 26)], "a list is no array\n  hint: give a tuple"),
    ],
)
def test_out_that_does_not_fit(driver, out, message):
    with pytest.raises(ArgumentError, match=message):
        dispatcher(driver)((*x_and_y(), 1.0), out=out)
    assert driver.launches == []


@pytest.mark.parametrize("offset", [0, 6 * 2048 - 16, -(6 * 2048 - 16)])
def test_out_that_overlaps_an_argument(driver, offset):
    x, y = x_and_y()
    with pytest.raises(ArgumentError, match="out: overlaps an argument"):
        dispatcher(driver)((x, y, 1.0), out=ndarray((6, 512), x.data.ptr + offset))
    assert driver.launches == []


def test_out_beside_an_argument(driver):
    x, y = x_and_y()
    dispatcher(driver)((x, y, 1.0), out=ndarray((6, 512), x.data.ptr + 6 * 2048))
    assert len(driver.launches) == 1
