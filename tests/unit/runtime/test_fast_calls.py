"""Warm calls by a generated function: the launches and results of a first call, and other calls left to other paths."""

from __future__ import annotations

from threading import Thread

import pytest

from mlirfuse.errors import ArgumentError, RuntimeLaunchError
from mlirfuse.runtime.fast_calls import MISSED
from tests.support.fakes.fake_driver import SCALE, dispatcher, install, ndarray

VIEW = """
func.func @view(%x: tensor<?x8xf32>, %n: f64) -> (tensor<8x?xf32>, tensor<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%m) : tensor<8x?xf32>
  %0 = linalg.transpose ins(%x : tensor<?x8xf32>) outs(%e : tensor<8x?xf32>) permutation = [1, 0]
  return %0, %x : tensor<8x?xf32>, tensor<?x8xf32>
}
"""


@pytest.fixture
def driver(monkeypatch):
    return install(monkeypatch)


def arguments(rows=6, number=1.5, pointer=1 << 24):
    return ndarray((rows, 512), pointer), ndarray((rows, 512), pointer + (1 << 22)), number


def warm(driver, text=SCALE, args=None, out=None):
    """A dispatcher that has a generated function for its calls."""
    run = dispatcher(driver, text)
    for _ in range(3):
        run(args or arguments(), out=out)
    assert run._last.fast is not None
    return run


def test_a_warm_call_launches_and_returns_as_the_first(driver):
    run = dispatcher(driver)
    (first,) = run(arguments())
    launched = driver.launches[-1]
    run = warm(driver)
    fast = run._last.fast
    (result,) = fast(arguments(number=2.5, pointer=1 << 25), None, None)
    assert (result.shape, result.dtype) == (first.shape, first.dtype)
    words = driver.launches[-1][5]
    assert driver.launches[-1][1:5] == launched[1:5]
    assert 1 << 25 in words
    assert 2.5 in words
    assert result.data.ptr in words
    fast(arguments(), None, 99)
    assert driver.launches[-1][4] == 99


@pytest.mark.parametrize(
    "args",
    [arguments(rows=7), arguments(number=1), arguments(number=True), arguments(pointer=(1 << 24) + 4), arguments()[:2]],
)
def test_other_calls_are_missed(driver, args):
    assert warm(driver)._last.fast(args, None, None) is MISSED


def test_a_call_with_outputs_is_another_kind(driver):
    run = warm(driver)
    out = (ndarray((6, 512), 1 << 26),)
    assert run._last.fast(arguments(), out, None) is MISSED
    run = warm(driver, out=out)
    assert run(arguments(), out=out) is out
    assert 1 << 26 in driver.launches[-1][5]
    with pytest.raises(ArgumentError, match="overlaps an argument"):
        run(arguments(), out=(ndarray((6, 512), 1 << 24),))
    assert run(arguments(), out=out) is out


def test_views_are_made_without_a_launch(driver):
    x = ndarray((6, 8), 1 << 24)
    run = warm(driver, VIEW, (x, 1.0))
    turned, same = run._last.fast((x, 2.0), None, None)
    assert (turned.shape, turned.strides, turned.data.ptr) == ((8, 6), (4, 32), x.data.ptr)
    assert same is x
    assert driver.launches == []


def test_refused_launches_and_threads(driver):
    run = warm(driver)
    driver.errors.append("no")
    with pytest.raises(RuntimeLaunchError, match="the driver refuses the launch: no"):
        run(arguments())
    run(arguments())
    count, found = len(driver.launches), []
    thread = Thread(target=lambda: found.append(run(arguments())))
    thread.start()
    thread.join()
    assert found
    assert len(driver.launches) == count + 1


def test_a_stream_that_is_none_is_refused(driver):
    run = warm(driver)
    with pytest.raises(ArgumentError, match="is no stream"):
        run(arguments(), stream="left")
