"""Products whose rows and columns only run time knows: one kernel for every number of them."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from tests.support.contractions.products import FUNCTIONS, Product, pinned_schedule
from tests.support.harnesses.compiling import module_at


def _integers(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("form", ["nt", "nn"])
def test_rows(form: str, dtype: str) -> None:
    weight = (48, 40) if form == "nt" else (40, 48)
    module = module_at("gpu", FUNCTIONS[form], [mf.TensorSpec((None, 40), dtype), mf.TensorSpec(weight, dtype)])
    w = _integers(weight, dtype, 0)
    for rows in (1, 63, 130):
        x = _integers((rows, 40), dtype, rows)
        (result,) = interpreter.run(module, form, [x, w], order="random")
        np.testing.assert_array_equal(result, x @ (w.T if form == "nt" else w))


def test_rows_and_columns() -> None:
    specs = [mf.TensorSpec(("m", 40), mf.float16), mf.TensorSpec(("n", 40), mf.float16)]
    module = module_at("gpu", FUNCTIONS["nt"], specs)
    for rows, columns in ((1, 5), (70, 129), (64, 64)):
        x, w = _integers((rows, 40), "float16", rows), _integers((columns, 40), "float16", columns)
        (result,) = interpreter.run(module, "nt", [x, w], order="random")
        np.testing.assert_array_equal(result, x @ w.T)


SCHEDULES = {
    "mma, last block": (32, 32, 2, "last_block", "mma", False),
    "wgmma": (64, 32, 1, "last_block", "wgmma", False),
    "wgmma, swapped": (64, 16, 1, "last_block", "wgmma", True),
    "wgmma, serial reduction": (64, 32, 2, "serial", "wgmma", False),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_what_surrounds_a_product(name: str) -> None:
    """A bias, a residual and sums of rows, of a weight that is computed where the schedule's instruction can."""

    def surrounded(x, w, b, r):
        y = mf.matmul(x, w.T, dtype=mf.float32) + b + r
        return y.astype(x.dtype), mf.sum(y, axis=1)

    m, n, split, reduction, instruction, swapped = SCHEDULES[name]
    schedule = pinned_schedule(Product(64, 48, 136, "nt", "float16"), m, n, split, reduction, instruction, swapped)
    half = [mf.TensorSpec(shape, mf.float16) for shape in (("m", 136), (48, 136), (48,), ("m", 48))]
    module = module_at("gpu", surrounded, half, schedule)
    assert str(module).count("gpu.func") == 1
    for rows in (1, 70):
        x, w, b, r = (_integers(s, "float16", rows) for s in ((rows, 136), (48, 136), (48,), (rows, 48)))
        y, sums = interpreter.run(module, "surrounded", [x, w, b, r], order="random", seed=rows)
        exact = x.astype(np.float64) @ w.T + b + r
        np.testing.assert_array_equal(y, exact)
        np.testing.assert_array_equal(sums, exact.sum(1))


def test_weights_of_bytes() -> None:
    def dequantised(x, q, s):
        return x @ (q.astype(x.dtype) * s[:, None]).T

    specs = [mf.TensorSpec((None, 72), "float16"), mf.TensorSpec((40, 72), "int8"), mf.TensorSpec((40,), "float16")]
    module = module_at("gpu", dequantised, specs, pinned_schedule(Product(64, 40, 72, "nt", "float16"), 32, 32))
    q, s = _integers((40, 72), "int8", 0), _integers((40,), "float16", 1)
    for rows in (3, 33):
        x = _integers((rows, 72), "float16", rows)
        (result,) = interpreter.run(module, "dequantised", [x, q, s], order="random")
        np.testing.assert_array_equal(result, x.astype(np.float64) @ (q * s[:, None]).T)


def test_one_compilation_serves_every_number_of_rows() -> None:
    fn = mf.fuse(FUNCTIONS["nn"], target="interpret", dynamic_products=True)
    w = _integers((24, 16), "float16", 0)
    for rows in (2, 9, 40):
        x = _integers((rows, 24), "float16", rows)
        np.testing.assert_array_equal(fn(x, w), x @ w)
    assert len(fn._compiled) == 1


def test_the_contracted_extent_is_a_number() -> None:
    with pytest.raises(mf.MlirFuseError, match=r"(?s)matmul of .* needs the dynamic extent 'k' to be static"):
        mf.fuse(FUNCTIONS["nn"]).lower(mf.TensorSpec((8, "k"), mf.float16), mf.TensorSpec(("k", 8), mf.float16))


def test_explain_says_what_an_unknown_extent_was_taken_to_be() -> None:
    specs = [mf.TensorSpec((None, 64), mf.float16), mf.TensorSpec((64, 64), mf.float16)]
    explained = mf.fuse(FUNCTIONS["nt"], target="sm_90a").lower(*specs).compile().explain(verbose=True)
    assert "for a result of the expected extents 4096" in explained
