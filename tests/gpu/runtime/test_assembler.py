"""Machine code of the chosen assembler, loaded and run, and what assemblers are known to miscompile."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.lowering.ptx.assembler import DRIVER, VARIABLE, chosen_assembler
from mlirfuse.runtime.device import cuda
from mlirfuse.runtime.device.module import driver_resources
from mlirfuse.runtime.selftest import outcomes

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

FUNCTIONS = {
    "max": (lambda v: mf.max(-v, axis=0), lambda v: (-v).max(0)),
    "min": (lambda v: mf.min(-v, axis=0), lambda v: (-v).min(0)),
    "rows": (lambda v: mf.max(v * -1, axis=1), lambda v: (-v).max(1)),
    "mixed": (lambda v: mf.maximum(mf.maximum(v, -v), 3), lambda v: np.maximum(np.abs(v), 3)),
    "inverted": (lambda v: mf.max(~v + 1, axis=0), lambda v: (-v).max(0)),
    "of an absolute value": (lambda v: mf.min(-abs(v), axis=0), lambda v: (-np.abs(v)).min(0)),
}


def test_no_known_miscompilation_is_emitted():
    """With workarounds every assembler is right; without them each is as its release is known to be."""
    found = list(outcomes())
    assert [str(o.probe) for o in found if o.wrong_with_workaround] == []
    assert {o.assembler for o in found} >= {chosen_assembler(cuda.device_target(0))}


@pytest.mark.filterwarnings("ignore::mlirfuse.errors.MiscompilationWarning")
@pytest.mark.parametrize("assembler", ["", DRIVER])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_extremes_of_negations(name, dtype, assembler, monkeypatch):
    monkeypatch.setenv(VARIABLE, assembler)
    fn, reference = FUNCTIONS[name]
    for shape in ((257, 2), (33, 200), (1025, 31)):
        v = np.random.default_rng(0).integers(-100, 100, shape).astype(dtype)
        np.testing.assert_array_equal(mf.fuse(fn)(cupy.asarray(v)).get(), reference(v))


COMPARED = {
    "absolute value": (lambda m, x: m.abs(x) >= 0),
    "square": (lambda m, x: x * x + 0.5 > 0),
    "clipped": (lambda m, x: m.abs(m.clip(x, -0.5, 1.5)) + 0.5 > 0),
    "exponential": (lambda m, x: m.exp(x) >= 0),
    "less": (lambda m, x: -m.abs(x) < 1),
    "not less": (lambda m, x: ~(m.abs(x) < 0)),
    "sum of squares": (lambda m, x: m.sum(x * x, axis=-1, keepdims=True) + 1e-5 > x * 0),
}


@pytest.mark.filterwarnings("ignore::mlirfuse.errors.MiscompilationWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("assembler", ["", DRIVER])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", COMPARED)
def test_comparisons_of_nan(name, dtype, assembler, monkeypatch):
    monkeypatch.setenv(VARIABLE, assembler)
    for shape in ((257, 2), (33, 200), (1025, 32)):
        x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
        x[::3, ::2] = np.nan
        found = mf.fuse(lambda x: mf.where(COMPARED[name](mf, x), 1, 0))(cupy.asarray(x)).get()
        np.testing.assert_array_equal(found, np.where(COMPARED[name](np, x), 1, 0))


@pytest.mark.filterwarnings("ignore::mlirfuse.errors.MiscompilationWarning")
@pytest.mark.parametrize("assembler", ["", DRIVER])
def test_a_comparison_beside_a_root_and_a_deviation(assembler, monkeypatch):
    """The fuzzer's program 7002000."""
    monkeypatch.setenv(VARIABLE, assembler)

    def program(x, y):
        clipped = mf.clip(y, min=-0.5, max=1.5)
        shifted = mf.abs(clipped) + 0.5
        return mf.where(shifted > 0, x, clipped), x.std(keepdims=True, correction=0.5), mf.sqrt(shifted)

    x, y = np.random.default_rng(0).standard_normal((2, 1, 2049, 31)).astype(np.float32)
    y[..., ::3] = np.nan
    chosen, _, root = mf.fuse(program, grid_reduction="last_block")(cupy.asarray(x), cupy.asarray(y))
    np.testing.assert_array_equal(chosen.get(), np.where(np.isnan(y), np.nan, x))
    np.testing.assert_allclose(root.get(), np.sqrt(np.abs(np.clip(y, -0.5, 1.5)) + np.float32(0.5)), rtol=1e-6)


@pytest.mark.filterwarnings("ignore::mlirfuse.errors.MiscompilationWarning")
def test_the_variable_says_what_is_loaded(monkeypatch):
    """What ptxas counted is what the driver finds in the cubin; PTX is assembled by the driver."""
    x = cupy.arange(8192, dtype=cupy.float32).reshape(8, 1024)
    for assembler in ("", DRIVER):
        monkeypatch.setenv(VARIABLE, assembler)
        fused = mf.fuse(lambda x: x - mf.mean(x, axis=-1, keepdims=True))
        np.testing.assert_allclose(fused(x).get(), x.get() - x.get().mean(-1, keepdims=True), atol=1e-3)
        compiled = next(iter(fused._compiled.values()))
        (loaded,) = next(iter(fused._loaded.values())).values()
        if chosen_assembler().kind != DRIVER:
            assert driver_resources(loaded).registers == compiled.resources[0].registers
        assert f"assembled by {chosen_assembler()}" in compiled.explain(verbose=True)
