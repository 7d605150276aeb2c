"""`MLIRFUSE_CHECK_RESULTS`: elements that no kernel writes are an error; those that only look so are none."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from mlirfuse.errors import RuntimeLaunchError
from mlirfuse.runtime.arrays import result_checks
from mlirfuse.runtime.arrays.result_checks import POISONS
from mlirfuse.runtime.device import cuda
from tests.support.fakes.fake_driver import Driver, dispatcher, install, ndarray

ROWS, COLUMNS = 6, 512


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    """A driver over the host's memory: what is filled and read is real."""
    driver = install(monkeypatch)
    runtime = driver.runtime
    runtime.memsetAsync = lambda pointer, value, nbytes, stream: ctypes.memset(pointer, value, nbytes)
    runtime.memcpyAsync = lambda target, source, nbytes, kind, stream: ctypes.memmove(target, source, nbytes)
    monkeypatch.setattr(result_checks, "cupy", cuda.cupy)
    monkeypatch.setenv(result_checks.CHECK, "1")
    return driver


def arguments() -> tuple[ndarray, ndarray, float]:
    return (*(ndarray((ROWS, COLUMNS), 1 << bit) for bit in (24, 25)), 1.0)


class Kernel:
    """Launches write what `values` has into an output, but for elements that are not to be written."""

    def __init__(self, driver: Driver, values: np.ndarray, written: np.ndarray):
        self.memory = np.zeros(values.shape, values.dtype)
        self.launches = 0
        self._values, self._written = values, written
        driver.launchKernel = self.launch

    def launch(self, *_: object) -> None:
        self.launches += 1
        self.memory[self._written] = self._values[self._written]

    @property
    def out(self) -> ndarray:
        return ndarray(self.memory.shape, self.memory.ctypes.data)


def values() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(ROWS, COLUMNS)).astype(np.float32)


def test_written_results_are_launched_once(driver: Driver) -> None:
    kernel = Kernel(driver, values(), np.ones((ROWS, COLUMNS), bool))
    dispatcher(driver)(arguments(), out=kernel.out)
    np.testing.assert_array_equal(kernel.memory, values())
    assert kernel.launches == 1


def test_unwritten_elements_are_counted_and_placed(driver: Driver) -> None:
    written = np.ones((ROWS, COLUMNS), bool)
    written[2, 100:] = written[5] = False
    kernel = Kernel(driver, values(), written)
    count = np.count_nonzero(~written)
    what = (
        rf"no kernel wrote {count} of the 3072 elements of result 0 \(float32, 6x512\), the first at index \(2, 100\)"
    )
    with pytest.raises(RuntimeLaunchError, match=what):
        dispatcher(driver)(arguments(), out=kernel.out)


@pytest.mark.parametrize("poison", POISONS)
def test_results_that_equal_the_poison(driver: Driver, poison: int) -> None:
    wanted = np.full((ROWS, COLUMNS), poison, np.uint32) * np.uint32(0x01010101)
    kernel = Kernel(driver, wanted.view(np.float32), np.ones((ROWS, COLUMNS), bool))
    dispatcher(driver)(arguments(), out=kernel.out)
    np.testing.assert_array_equal(kernel.memory.view(np.uint32), wanted)


def test_results_that_equal_the_poison_beside_one_that_is_not_written(driver: Driver) -> None:
    wanted = (np.full((ROWS, COLUMNS), POISONS[0], np.uint32) * np.uint32(0x01010101)).view(np.float32)
    written = np.ones((ROWS, COLUMNS), bool)
    written[4, 7] = False
    kernel = Kernel(driver, wanted, written)
    with pytest.raises(RuntimeLaunchError, match=r"no kernel wrote 1 of the 3072 .* index \(4, 7\)"):
        dispatcher(driver)(arguments(), out=kernel.out)


def test_no_elements(driver: Driver) -> None:
    none = ndarray((0, COLUMNS), 1 << 24)
    dispatcher(driver)((none, ndarray((0, COLUMNS), 1 << 25), 1.0), out=ndarray((0, COLUMNS), 1 << 26))


def test_captures_are_not_checked(driver: Driver) -> None:
    kernel = Kernel(driver, values(), np.zeros((ROWS, COLUMNS), bool))
    dispatcher(driver)(arguments(), out=kernel.out, stream=99)
    assert kernel.launches == 1
    assert not kernel.memory.any()


def test_it_is_off_by_default(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(result_checks.CHECK)
    kernel = Kernel(driver, values(), np.zeros((ROWS, COLUMNS), bool))
    dispatcher(driver)(arguments(), out=kernel.out)
    assert not kernel.memory.any()


def test_transposed_results_are_placed_as_the_caller_sees_them(driver: Driver) -> None:
    from types import SimpleNamespace

    from mlirfuse.support.dtypes import float32

    layout = SimpleNamespace(program=SimpleNamespace(name="f"))
    unwritten = np.zeros((2, 3), bool)
    unwritten[1, 2] = True
    error = result_checks._unwritten(layout, 3, result_checks._Buffer(float32, (2, 3), (1, 0)), unwritten)
    assert "result 3 (float32, 3x2), the first at index (2, 1)" in str(error)
