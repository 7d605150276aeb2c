"""What is called in the CUDA driver itself, against a driver made of Python functions."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from types import SimpleNamespace

import pytest

from mlirfuse.errors import RuntimeLaunchError
from mlirfuse.runtime.device import driver


@pytest.fixture
def functions(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The driver's functions, to be set by a test; each returns a `CUresult`."""
    made = SimpleNamespace()
    monkeypatch.setattr(driver, "library", lambda: made)
    return made


def store(pointer, value) -> int:
    """Writes through a `byref` argument, as the driver does."""
    pointer._obj.value = value
    return 0


def test_no_driver(monkeypatch: pytest.MonkeyPatch):
    driver.library.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: (_ for _ in ()).throw(OSError(f"no {name}")))
    with pytest.raises(RuntimeLaunchError, match="the CUDA driver cannot be loaded: no libcuda"):
        driver.library()
    driver.library.cache_clear()


def test_a_driver_that_is_too_old(functions):
    with pytest.raises(RuntimeLaunchError, match="the CUDA driver has no cuStreamGetId\n.*update it"):
        driver.stream_id(5)


def test_a_call_that_fails(functions):
    functions.cuStreamGetId = lambda stream, number: 900
    with pytest.raises(RuntimeLaunchError, match=r"cuStreamGetId fails \(CUresult 900\)"):
        driver.stream_id(5)


def test_stream_id(functions):
    functions.cuStreamGetId = lambda stream, number: store(number, stream.value + 1)
    assert driver.stream_id(1 << 40) == (1 << 40) + 1


@pytest.mark.parametrize(("status", "graph"), [(0, None), (1, None), (2, 77)])
def test_a_capture_that_is_none(functions, status, graph):
    functions.cuStreamGetCaptureInfo_v2 = lambda stream, state, number, made, *_: (
        store(state, status) + store(number, 3) + store(made, graph)
    )
    with pytest.raises(RuntimeLaunchError, match="the capture of the stream has failed"):
        driver.capture(5)


def test_a_capture(functions):
    functions.cuStreamGetCaptureInfo_v2 = lambda stream, state, number, made, *_: (
        store(state, 1) + store(number, 3) + store(made, 77)
    )
    assert driver.capture(5) == driver.Capture(3, 77)


def test_the_end_of_a_graph(functions):
    """The driver calls the destructor, a function of the C library, with the semaphore."""
    destroy = []

    def create(owned, semaphore, destructor, count, flags) -> int:
        assert (count, flags) == (1, 1)
        destroy.append(lambda: ctypes.CFUNCTYPE(None, ctypes.c_void_p)(destructor.value)(semaphore.value))
        return store(owned, 11)

    functions.cuUserObjectCreate = create
    functions.cuGraphRetainUserObject = lambda graph, owned, count, flags: int(
        (graph.value, owned.value, count, flags) != (77, 11, 1, 1)
    )
    end = driver.GraphEnd(77)
    assert not end.is_over()
    destroy[0]()
    assert end.is_over()
    assert not end.is_over(), "only once"


def test_the_mode_of_captures_is_restored(functions):
    modes = [0]

    def exchange(mode) -> int:
        modes.append(mode._obj.value)
        return store(mode, modes[-2])

    functions.cuThreadExchangeStreamCaptureMode = exchange
    with suppress(ValueError), driver.relaxed_capture():
        assert modes[-1] == 2
        raise ValueError
    assert modes[-1] == 0


def test_clusters_that_fit(functions):
    def fit(count, kernel, config) -> int:
        asked = config._obj
        assert (list(asked.grid), list(asked.block), asked.shared_bytes) == ([4, 1, 1], [128, 1, 1], 1024)
        return store(count, 33) if kernel.value == 5 else 1

    functions.cuOccupancyMaxActiveClusters = fit
    assert driver.max_active_clusters(5, 128, 4, 1024) == 33


def test_the_launch_configuration_is_laid_out_as_in_c():
    config = driver._LaunchConfig
    assert (config.block.offset, config.shared_bytes.offset, config.stream.offset) == (12, 24, 32)
    assert (config.attributes.offset, config.attribute_count.offset, ctypes.sizeof(config)) == (40, 48, 56)
