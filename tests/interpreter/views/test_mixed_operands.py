"""Operands of other shapes than the tile's beside reductions: shared by all rows, broadcast, tall, or of bools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from mlir import ir

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.analysis.kernels import functions, symbol
from mlirfuse.compiler import pipeline
from mlirfuse.passes.kernels.host import calls
from mlirfuse.passmanager.manager import run_pipeline
from tests.support.harnesses.compiling import module_at, row_schedule, specs_of

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-5, "float64": 1e-12}
ALWAYS = "fuse-split-reductions{always=true}"

Case = tuple[Callable[..., Any], Callable[..., Any]]
"""The function, and what it is in NumPy."""


def quarters(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    """Numbers that every type holds exactly."""
    return (np.random.default_rng(seed).integers(-8, 9, shape) / 4).astype(dtype)


def check(case: Case, *inputs: np.ndarray) -> None:
    """Compares a call with NumPy in double precision; what is no floating point must be equal."""
    fn, reference = case
    results = mf.fuse(fn, target="interpret")(*inputs)
    expected = reference(*(x.astype(np.float64) for x in inputs))
    tolerance = max(TOLERANCE[x.dtype.name] for x in inputs)
    for result, exact in zip(results, expected, strict=True):
        assert result.shape == exact.shape
        rtol = tolerance if np.asarray(exact).dtype.kind == "f" else 0.0
        np.testing.assert_allclose(np.asarray(result).astype(exact.dtype), exact, rtol=rtol, atol=rtol)


SHARED: dict[str, Case] = {
    "bool beside a sum": (lambda x, w: (x == w, mf.sum(w, axis=-1)), lambda x, w: (x == w, w.sum(-1))),
    "int8 beside a maximum": (
        lambda x, w: (mf.astype(x > w, mf.int8), mf.max(w, axis=-1)),
        lambda x, w: ((x > w).astype(np.int8), w.max(-1)),
    ),
    "bool beside a softmax": (
        lambda x, w: (x < w, w / mf.sum(mf.abs(w), axis=-1, keepdims=True)),
        lambda x, w: (x < w, w / np.abs(w).sum(-1, keepdims=True)),
    ),
    "bool beside a norm": (
        lambda x, w: (x < w, w * mf.rsqrt(mf.mean(w * w, axis=-1) + 1)),
        lambda x, w: (x < w, w / np.sqrt((w * w).mean(-1) + 1)),
    ),
    "int16 of a comparison": (
        lambda x, w: (mf.astype(x > w, mf.int16), mf.min(x, axis=-1)),
        lambda x, w: ((x > w).astype(np.int16), x.min(-1)),
    ),
}


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((3, 7), np.float16), ((3, 7), BFLOAT16), ((2, 33), np.float16), ((1, 1025), np.float32), ((3, 31), np.float64)],
)
def test_results_beside_reductions_of_what_all_rows_share(name: str, shape: tuple[int, ...], dtype: Any) -> None:
    check(SHARED[name], quarters(shape, dtype), quarters(shape[1:], dtype, 1))


@pytest.mark.parametrize("stage", ["tile", "gpu"])
def test_later_passes_read_arrays_that_the_first_did_not(stage: str) -> None:
    """Chunks in shared memory: only the second pass reads `x`, which the first did not load."""

    def added(x, w):
        return x + w, mf.max(w, axis=-1)

    x, w = quarters((3, 300), np.float32), quarters((300,), np.float32, 1)
    schedule = row_schedule(300, vector=4, warps=2, chunk_repeats=1, persistence="shared")
    results = interpreter.run(module_at(stage, added, specs_of([x, w]), schedule), "added", [x, w])
    for result, exact in zip(results, (x + w, w.max()), strict=True):
        np.testing.assert_array_equal(result, exact)


COLUMNS: dict[str, Case] = {
    "min-max scaling": (
        lambda x: ((x - mf.min(x, axis=0)) / (mf.max(x, axis=0) - mf.min(x, axis=0) + 1),),
        lambda x: ((x - x.min(0)) / (np.ptp(x, 0) + 1),),
    ),
    "standardisation": (
        lambda x: ((x - mf.mean(x, axis=0)) / (mf.std(x, axis=0) + 1),),
        lambda x: ((x - x.mean(0)) / (x.std(0) + 1),),
    ),
    "three in a row": (
        lambda x: (mf.exp(x - mf.max(x, axis=0)) - mf.min(x, axis=0) * mf.sum(mf.abs(x), axis=0),),
        lambda x: (np.exp(x - x.max(0)) - x.min(0) * np.abs(x).sum(0),),
    ),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((1000, 1), np.float32), ((257, 2), np.float16), ((1025, 7), np.float32), ((257, 33), np.float64)],
)
def test_columns_that_are_needed_again(name: str, shape: tuple[int, int], dtype: Any) -> None:
    check(COLUMNS[name], quarters(shape, dtype))


def kernels_of_columns(stage: str, fn: Callable[..., Any], x: np.ndarray, split: bool) -> ir.Module:
    """Columns that one block holds, some of each in shared memory; if `split`, reduced by a kernel of their own."""
    layout = mf.BlockedLayout((1, 4), (16, 2), (8, 1), (32, 1), (1, 1))
    held = mf.Schedule(x.shape, layout, order="depth", blocks_per_sm=2, shared_spill=16)
    module = mf.fuse(fn, target="sm_90a", schedule=None if split else held).lower(*specs_of([x])).module
    text = pipeline.named(f"fuse-{stage}-pipeline").replace("fuse-split-reductions", ALWAYS)
    assert ALWAYS in text
    with module.context:
        run_pipeline(module, text)
    return module


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("name", COLUMNS)
def test_long_columns_of_known_number(name: str, split: bool) -> None:
    """Reduced by the whole grid, or held by one block, which spills some of each column to shared memory."""
    fn, reference = COLUMNS[name]
    x = quarters((4096, 8), np.float32)
    for stage in ("tile", "gpu"):
        module = kernels_of_columns(stage, fn, x, split)
        host = next(functions(module.operation))
        assert (len(calls(host)) > 1) == split
        if stage == "tile":
            assert ("fuse.spill_to_shared" in str(module)) != split
        (result,) = interpreter.run(module, symbol(host), [x])
        np.testing.assert_allclose(result, reference(x.astype(np.float64))[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "dtype"), [((257,), np.float32), ((2, 257), np.float16), ((3, 1025), np.float16), ((257, 3), np.float32)]
)
def test_reductions_of_what_is_broadcast(shape: tuple[int, ...], dtype: Any) -> None:
    def both(x):
        wide = mf.broadcast_to(x, shape)
        return mf.sum(wide, axis=-1), mf.max(wide), mf.mean(wide, axis=0)

    def reference(x):
        wide = np.broadcast_to(x, shape)
        return wide.sum(-1), wide.max(), wide.mean(0)

    for source in ((1,), shape[-1:], (1,) * len(shape)):
        check((both, reference), quarters(source, dtype))


@pytest.mark.parametrize(("columns", "rows"), [(129, (5, 2, 1)), (3, (40, 1, 1)), (1, (7, 3, 1)), (33, (1, 5, 1))])
def test_rows_and_columns_of_an_outer_product(columns: int, rows: tuple[int, ...]) -> None:
    """No operand has all dimensions, and those of the longer one come first, whose extents are known."""

    def reductions(w, c):
        h = w * mf.square(c)
        return mf.max(h, axis=-1, keepdims=True), mf.sum(h, axis=(0, 1), keepdims=True)

    def reference(w, c):
        h = w * c * c
        return h.max(-1, keepdims=True), h.sum((0, 1), keepdims=True)

    check((reductions, reference), quarters((columns,), np.float32), quarters(rows, np.float32, 1))


def test_what_is_computed_of_weights_has_a_place_in_shared_memory_too() -> None:
    """`e` waits there for the maximum, as `h` does: long rows of both have to fit."""

    def weighted(x, w):
        e = mf.exp(w)
        return (x - mf.max(x * e, axis=-1, keepdims=True)) * e

    specs = [mf.TensorSpec((None, 65536), mf.float32), mf.TensorSpec((65536,), mf.float32)]
    mf.fuse(weighted, target="sm_90a").lower(*specs).compile()
