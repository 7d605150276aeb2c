"""Backward functions at every level, interpreted with all checks, against float64."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
from mlir import ir

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.interpreter.mutation import Mutant, mutants, plant, site
from mlirfuse.schedule.parts.persistent_loop import GRID_REDUCTIONS
from mlirfuse.target import target_of
from tests.support.harnesses.compiling import module_at
from tests.support.pairwise import Row, combined, some
from tests.support.reductions.backward import BACKWARD, Backward
from tests.support.reductions.numerics import DTYPES
from tests.support.reductions.persistent_loop_cases import looping

COLUMNS = (257, 384, 1000, 1600, 5140)
NORMS = ("rms_norm_backward", "layer_norm_backward")
F16, BF16 = DTYPES["float16"], DTYPES["bfloat16"]
RUNS: tuple[tuple[int, dict[str, Any]], ...] = (
    (1, {}),
    (7, {"order": "reversed", "sms": 3}),
    (100, {"order": "random", "seed": 3, "sms": 5}),
    (100, {"order": "random", "seed": 4, "sms": 1}),
)
"""Rows, and the order of blocks on a device of some SMs, on which the number of blocks depends."""


def module_of(backward: Backward, columns: int, dtype: np.dtype, stage: str = "gpu") -> ir.Module:
    """The function for any number of rows."""
    return module_at(stage, backward.fn, backward.specs(columns, dtype))


def _has_size(row: Row) -> bool:
    """Functions that are no norm are as a norm is but for what they compute, and take two of its sizes."""
    return not {"name", "columns"} <= row.keys() or row["name"] in NORMS or row["columns"] in (257, 1600)


@combined({"name": BACKWARD, "columns": COLUMNS}, _has_size, turns={"run": RUNS})
def test_sizes(name: str, columns: int, run: tuple[int, dict[str, Any]]) -> None:
    rows, order = run
    backward = BACKWARD[name]
    inputs = backward.inputs(rows, columns, BF16, seed=columns)
    backward.check(interpreter.run(module_of(backward, columns, BF16), name, inputs, **order), inputs)


@combined({"columns": [8192, 16384, 20480]}, turns={"name": NORMS, "order": [{}, {"order": "random", "seed": 5}]})
def test_rows_over_clusters(columns: int, name: str, order: dict[str, Any]) -> None:
    """Several tiles a cluster, so that its blocks exchange sums again and again."""
    backward = BACKWARD[name]
    module = module_of(backward, columns, BF16)
    inputs = backward.inputs(21, columns, BF16)
    backward.check(interpreter.run(module, name, inputs, sms=8, **order), inputs)


@combined({"name": BACKWARD, "dtype": DTYPES}, turns={"stage": ["linalg", "tile", "gpu"]})
def test_levels_and_dtypes(name: str, dtype: str, stage: str) -> None:
    backward = BACKWARD[name]
    inputs = backward.inputs(37, 320, DTYPES[dtype])
    backward.check(interpreter.run(module_of(backward, 320, DTYPES[dtype], stage), name, inputs), inputs)


@combined({"name": BACKWARD}, turns={"rows": [8, 37]})
def test_static_rows(name: str, rows: int) -> None:
    backward = BACKWARD[name]
    inputs = backward.inputs(rows, 384, F16)
    lowered = mf.fuse(backward.fn, target="sm_90a").lower(*(mf.TensorSpec(a.shape, a.dtype) for a in inputs))
    module = lowered.compile().module_at("gpu")  # which refuses what takes too much shared memory
    backward.check(interpreter.run(module, name, inputs), inputs)


@combined({"name": BACKWARD}, turns={"columns": [20480, 32768]})
def test_one_long_row(name: str, columns: int) -> None:
    """A single row is static, so that there is no persistent loop; some of the row may be spilled to shared memory."""
    backward = BACKWARD[name]
    inputs = backward.inputs(1, columns, BF16)
    lowered = mf.fuse(backward.fn, target="sm_90a").lower(*(mf.TensorSpec(a.shape, a.dtype) for a in inputs))
    module = lowered.compile().module_at("gpu")  # which refuses what takes too much shared memory
    backward.check(interpreter.run(module, name, inputs), inputs)


@pytest.mark.parametrize("name", some(BACKWARD, 2))
def test_calls(name: str) -> None:
    """One function, called with several row counts."""
    backward = BACKWARD[name]
    fused = mf.fuse(backward.fn, target="interpret")
    for rows in (1, 7, 33, 100):
        inputs = backward.inputs(rows, 384, F16, seed=rows)
        backward.check(fused(*inputs), inputs)
    for result in fused(*(a[:0] if a.ndim == 2 else a for a in inputs)):
        assert result.shape in ((0, 384), (384,))
        assert not result.any(), "a sum over no rows is 0"


@pytest.mark.parametrize("name", NORMS)
def test_nan_stays_in_its_row_and_column(name: str) -> None:
    backward = BACKWARD[name]
    inputs = backward.inputs(37, 384, F16)
    module = module_of(backward, 384, F16)
    clean = interpreter.run(module, name, inputs)
    inputs[0][20, 300] = np.nan
    dx, *vectors = interpreter.run(module, name, inputs)
    assert np.isnan(dx[20]).all()
    others = np.delete(np.arange(37), 20)
    np.testing.assert_array_equal(dx[others], clean[0][others])
    for vector, expected in zip(vectors, clean[1:], strict=True):
        assert np.flatnonzero(np.isnan(vector)).tolist() == [300]
        np.testing.assert_array_equal(np.delete(vector, 300), np.delete(expected, 300))


ONE_ORDER = ("bias_gelu_backward", "batch_norm_sums")
"""Functions that reduce over rows only."""


@combined({"name": BACKWARD}, turns={"asked": ["auto", "fused", "split"]})
def test_one_kernel_or_several(name: str, asked: str) -> None:
    """One by itself; several where reductions of two orders are to stay apart, with the same results."""
    backward = BACKWARD[name]
    inputs = backward.inputs(33, 384, F16)
    compiled = mf.fuse(backward.fn, mix_order=asked).lower(*backward.specs(384, F16)).compile()
    assert len(compiled.schedules) in ({2, 3, 4} if asked == "split" and name not in ONE_ORDER else {1})
    backward.check(interpreter.run(compiled.module_at("gpu"), name, inputs), inputs)


def deviations(x):
    """The deviations from the columns' means are known when all rows have been read, and then reduced along rows."""
    h = x.astype(mf.float32)
    return mf.sum((h - mf.sum(h, axis=0)) ** 2, axis=-1)


def test_what_cannot_be_one_pass_is_split_and_says_so() -> None:
    x = mf.TensorSpec(("rows", 384), mf.float16)
    compiled = mf.fuse(deviations, mix_order="auto").lower(x).compile()
    reason = "it uses a reduction over the grid in every tile, which takes a second pass"
    assert len(compiled.schedules) == 2
    assert reason in compiled.explain(verbose=True)
    with pytest.raises(mf.MlirFuseError, match=reason):
        mf.fuse(deviations, mix_order="fused").lower(x).compile()
    with pytest.raises(mf.MlirFuseError, match="mix_order is 'never'"):
        mf.fuse(deviations, mix_order="never")


def test_a_device_too_small_for_the_cluster_of_a_row_has_a_kernel_for_each_order() -> None:
    """One SM, as small partitions of a device have few."""
    backward = BACKWARD["rms_norm_backward"]
    fused = mf.fuse(backward.fn, target=target_of("sm_90a").with_sms(1))
    assert len(fused.lower(*backward.specs(20480, F16)).compile().schedules) == 1
    compiled = fused.lower(*backward.specs(65536, F16)).compile()
    assert len(compiled.schedules) > 1  # predicted: the statistics of so long rows are a kernel too
    assert "no cluster of 1 holds a row of 65536 elements" in compiled.explain(verbose=True)
    inputs = backward.inputs(2, 65536, F16)
    backward.check(interpreter.run(compiled.module_at("tile"), backward.name, inputs, sms=1), inputs)


@combined(
    {"grid_reduction, launches": [("grid_sync", 1), ("last_block", 1), ("second_kernel", 2), ("atomics", 1)]},
    turns={"name": [*NORMS, "batch_norm_sums"]},
)
def test_who_combines_can_be_asked_for(grid_reduction: Any, launches: int, name: str) -> None:
    backward = BACKWARD[name]
    inputs = backward.inputs(150, 64, F16)
    compiled = mf.fuse(backward.fn, grid_reduction=grid_reduction).lower(*backward.specs(64, F16)).compile()
    assert len(compiled.program.launches) == launches
    assert f"combined by {GRID_REDUCTIONS[grid_reduction]}" in compiled.explain(verbose=True)
    backward.check(interpreter.run(compiled.module_at("gpu"), name, inputs, sms=2), inputs)


@pytest.mark.parametrize("grid_reduction", list(GRID_REDUCTIONS))
def test_who_combines_can_be_asked_for_whatever_the_number_of_rows(grid_reduction: Any) -> None:
    """A single row has no partials: a requested second stage is declined, and no error."""
    backward = BACKWARD["rms_norm_backward"]
    fused = mf.fuse(backward.fn, target="interpret", grid_reduction=grid_reduction)
    for rows in (0, 1, 2):
        inputs = backward.inputs(rows, 64, F16)
        backward.check(fused(*inputs), inputs)
    one = [mf.TensorSpec(a.shape, a.dtype.name) for a in backward.inputs(1, 64, F16)]
    explained = mf.fuse(backward.fn, grid_reduction=grid_reduction).lower(*one).compile().explain(verbose=True)
    assert f"grid_reduction='{grid_reduction}' has nothing to combine" in explained


def test_a_second_stage_that_nothing_has_is_an_error() -> None:
    x = mf.TensorSpec(("rows", 384), mf.float16)
    rows = mf.fuse(lambda x: mf.sum(x, axis=-1), grid_reduction="second_kernel")
    with pytest.raises(mf.MlirFuseError, match="grid_reduction='second_kernel' was asked for, but no kernel") as error:
        rows.lower(x).compile()
    assert 'leave grid_reduction at "auto"' in str(error.value)
    with pytest.raises(mf.MlirFuseError, match="grid_reduction is 'somebody'"):
        mf.fuse(deviations, grid_reduction="somebody")


@pytest.mark.parametrize(
    ("function", "dtype", "why"),
    [
        (lambda x: (mf.max(x, axis=0), mf.sum(x, axis=1)), mf.float32, "combines f32 by arith.maximumf"),
        (lambda x: (mf.sum(x, axis=0), mf.sum(x, axis=1)), mf.float64, "combines f64 by arith.addf"),
        (lambda x: (mf.sum(x, axis=0), mf.sum(x, axis=1)), mf.int32, "combines i.. by arith.addi"),
    ],
)
def test_only_sums_of_f32_are_added_atomically(function: Any, dtype: Any, why: str) -> None:
    fused = mf.fuse(function, grid_reduction="atomics")
    with pytest.raises(mf.MlirFuseError, match=why):
        fused.lower(mf.TensorSpec((4096, 384), dtype)).compile()


SYNCHRONISATION = ("drop-barrier", "drop-store", "relax-arrive", "raise-limit", "drop-wait", "early-wait", "late-wait")
"""Kinds of bugs in the synchronisation of blocks; those in arithmetic and bounds are in test_compiled_kernels.py."""
HARMLESS = Counter({"raise-limit": 2, "drop-barrier": 1})
"""How many may survive: the limits of arrivals with a tile and without, which are never reached before blocks leave,
and a barrier before the departure, after which the launch reads nothing."""


def test_planted_bugs_in_synchronisation_are_found() -> None:
    backward = BACKWARD["rms_norm_backward"]
    module = looping(backward, "gpu", F16)
    cases = []
    for rows in (1100, 1):  # blocks have several tiles, and one has none
        inputs = backward.inputs(rows, 64, F16)
        cases.append((inputs, interpreter.run(module, backward.name, inputs, sms=2)))
        backward.check(cases[-1][1], inputs)

    def survives(mutant: Mutant) -> bool:
        planted = plant(module, mutant)
        try:
            for (inputs, right), order in product(cases, ({"order": "reversed"}, {"order": "random", "seed": 1})):
                results = interpreter.run(planted, backward.name, inputs, sms=2, **order)
                if not all(np.allclose(a, b, rtol=2e-3, atol=2e-3) for a, b in zip(results, right, strict=True)):
                    return False
        except mf.MlirFuseError:
            return False
        return True

    tried = [mutant for mutant in mutants(module) if mutant.kind in SYNCHRONISATION]
    survivors = [mutant for mutant in tried if survives(mutant)]
    listed = "\n".join(f"{m}: {site(module, m)}" for m in survivors)
    assert Counter(m.kind for m in survivors) <= HARMLESS, f"survivors:\n{listed}"
    assert {m.kind for m in tried} == set(SYNCHRONISATION)
