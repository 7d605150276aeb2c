"""tf32, 3xtf32 and float8 products, interpreted at the tile and gpu levels, on the instructions of three targets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.compiler import pipeline
from mlirfuse.interpreter.mutation import MUTATORS, hunt
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.schedule.contractions.families.wgmma import wgmma_schedule
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from tests.support.contractions.precisions import KINDS, PRECISE, PreciseProduct
from tests.support.contractions.precisions import ties as half_way
from tests.support.harnesses.compiling import module_at
from tests.support.pairwise import combined

BUGS = sorted(set(MUTATORS) - {"change-shuffle", "shrink-compare", "shrink-mask", "shorten-loop", "drop-neutral"})
"""Those in synchronisation."""

Strides = tuple[int | None, ...] | None


def run(product: PreciseProduct, inputs: list[np.ndarray], stage: str, target: str) -> tuple[np.ndarray, str]:
    """The result, and the text of the stage."""
    module = mf.fuse(product.fn, target=target).lower(*product.specs).module_with({})
    with module.context:
        run_pipeline(module, pipeline.named(f"fuse-{stage}-pipeline"))
    (result,) = interpreter.run(module, "product", inputs, order="random", seed=1)
    return result, str(module)


@combined({"product": PRECISE}, turns={"stage, target": [("tile", "sm_90a"), ("gpu", "sm_90a"), ("gpu", "sm_90")]})
def test_integers_are_exact(product: PreciseProduct, stage: str, target: str) -> None:
    inputs = product.integers()
    result, _ = run(product, inputs, stage, target)
    np.testing.assert_array_equal(result, product.exact(inputs).astype(result.dtype))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_instructions(kind) -> None:
    """wgmma where k is contiguous and tensor maps can describe both operands; else mma.sync; f32 never by scalars."""
    product = PreciseProduct(64, 32, 128, "nt", *kind)
    by_wgmma = kind[2] != "3xtf32"
    assert ("fuse.warpgroup_mma" in run(product, product.integers(), "gpu", "sm_90a")[1]) == by_wgmma
    for form, target in (("nn", "sm_90a"), ("nt", "sm_90")):
        product = PreciseProduct(64, 32, 128, form, *kind)
        text = run(product, product.integers(), "gpu", target)[1]
        assert '"fuse.mma"' in text
        assert "fuse.warpgroup_mma" not in text


@pytest.mark.parametrize("out", [None, "float8_e5m2"])
def test_views_of_float8(out: str | None) -> None:
    """Operands that are contiguous along either axis, or none; their kernels are compiled too."""
    product = PreciseProduct(64, 80, 96, "nn", "e4m3", "e5m2", out=out)
    x, w = product.integers()
    left, right = np.asfortranarray(x), np.asfortranarray(w)
    views: list[tuple[np.ndarray, np.ndarray, Strides, Strides]] = [
        (left, w, (1, None), None),
        (x, right, None, (1, None)),
        (left, right, (1, None), (1, None)),
        (x[:, ::2], w[::2], (None, None), (None, 1)),
        (x[:, :8], w[:8], (None, 1), None),
    ]
    for left, right, *strides in views:
        inputs = [left, right]
        specs = [mf.TensorSpec(a.shape, a.dtype, strides=s) for a, s in zip(inputs, strides, strict=True)]
        (result,) = interpreter.run(module_at("gpu", product.fn, specs), "product", inputs, order="random", seed=1)
        expected = product.exact(inputs).astype(result.dtype)
        np.testing.assert_array_equal(result.astype(np.float32), expected.astype(np.float32), err_msg=str(strides))
        mf.fuse(product.fn, target="sm_90a").lower(*specs).compile()


@pytest.mark.parametrize(("target", "ties"), [("sm_90a", "even"), ("sm_90", "away")])
def test_operands_are_rounded_to_tf32_as_the_hardware_does(target, ties) -> None:
    product = PreciseProduct(64, 16, 32, "nt", "float32", "float32", "tf32")
    inputs = [half_way(shape) for shape in product.shapes]
    for stage in ("tile", "gpu"):
        result, _ = run(product, inputs, stage, target)
        np.testing.assert_allclose(result, product.in_tf32(inputs, ties), rtol=1e-6, atol=1000)


def test_3xtf32_is_about_as_accurate_as_float32() -> None:
    product = PreciseProduct(64, 32, 512, "nt", "float32", "float32", "3xtf32")
    inputs = product.normal()
    exact = product.exact(inputs)
    scale = abs(exact).max()
    result, _ = run(product, inputs, "gpu", "sm_90a")
    assert abs(result - exact).max() / scale < 4e-7
    coarse, _ = run(PreciseProduct(64, 32, 512, "nt", "float32", "float32", "tf32"), inputs, "gpu", "sm_90a")
    assert 1e-5 < abs(coarse - exact).max() / scale < 1e-3


@pytest.mark.parametrize("promote", [1, 2])
def test_synchronisation_bugs_of_promoted_sums_are_caught(promote: int) -> None:
    """A stage is released only when its products are done, and they are added only when they have been waited for."""
    product = PreciseProduct(192, 32, 1152, "nt", "e4m3", "e5m2")
    problem = ContractionProblem((), 192, 32, 1152, mf.float8_e4m3fn, mf.float32, 16)
    schedule = wgmma_schedule(problem, 64, 32)
    assert schedule.contraction is not None
    schedule = replace(schedule, contraction=replace(schedule.contraction, promote=promote))
    module = module_at("gpu", product.fn, product.specs, schedule)
    rng = np.random.default_rng(0)
    inputs = [rng.integers(1, 4, a.shape).astype(a.dtype) for a in product.integers()]
    expected = product.exact(inputs)

    def run_all(mutant):
        return [interpreter.run(mutant, "product", inputs, order="random", seed=seed)[0] for seed in range(2)]

    def right(results):
        return all(np.array_equal(result, expected) for result in results)

    assert right(run_all(module))
    report = hunt(module, run_all, right, BUGS)
    assert report.caught
    assert not report.survivors


@pytest.mark.parametrize("result", ["int16", "int32", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize(("left", "right"), [("int8", "int8"), ("int16", "int8"), ("int32", "int32")])
def test_integers_are_summed_in_a_wider_result(left: str, right: str, result: str) -> None:
    """As NumPy does: sums of int8 products would wrap around otherwise."""
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-100, 100, shape).astype(dtype) for shape, dtype in (((33, 70), left), ((70, 20), right)))
    dtype = getattr(mf, result)
    y = mf.fuse(lambda x, w: mf.matmul(x, w, dtype=dtype), target="interpret")(x, w)
    common = np.promote_types(left, right)
    is_wider = result.startswith("float") or np.dtype(result).itemsize > common.itemsize
    summed_in = {"float16": "float32"}.get(result, result) if is_wider else common
    with np.errstate(over="ignore"):
        expected = np.matmul(x.astype(summed_in), w.astype(summed_in)).astype(result)
    np.testing.assert_allclose(y, expected, rtol=1e-3)
