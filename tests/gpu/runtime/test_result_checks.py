"""`MLIRFUSE_CHECK_RESULTS` on a GPU: what a kernel leaves unwritten is an error, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.errors import RuntimeLaunchError
from mlirfuse.runtime import plan
from mlirfuse.runtime.arrays import result_checks

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.fixture(autouse=True)
def checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(result_checks.CHECK, "1")


def test_results_that_are_written() -> None:
    x = cupy.arange(5 * 257, dtype=cupy.float32).reshape(5, 257)
    first, second = mf.fuse(lambda x: (x + 1, mf.sum(x, axis=0)))(x)
    np.testing.assert_array_equal(first.get(), x.get() + 1)
    np.testing.assert_array_equal(second.get(), x.get().sum(0))


@pytest.mark.parametrize("poison", result_checks.POISONS)
def test_results_that_equal_the_poison(poison: int) -> None:
    x = cupy.full((7, 33), poison, cupy.uint8).view(cupy.int8)
    (result,) = mf.fuse(lambda x: (x + 0,))(x)
    np.testing.assert_array_equal(result.get(), x.get())


def test_results_that_are_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a host program that launches nothing."""
    monkeypatch.setattr(plan, "_launcher", lambda *_: lambda stream: None)
    x = cupy.ones((4, 8), cupy.float16)
    with pytest.raises(RuntimeLaunchError, match=r"no kernel wrote 32 of the 32 elements of result 0 \(float16, 4x8\)"):
        mf.fuse(lambda x: x * 2)(x)
    with pytest.raises(RuntimeLaunchError, match="no kernel wrote 32 of the 32"):
        mf.fuse(lambda x: x * 2)(x, out=cupy.empty_like(x))
