"""Sums of an operand in the loop of a product: exact and without races, with schedules and splits of every form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from mlir import ir

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.analysis.kernels import kernels
from mlirfuse.compiler import pipeline
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.schedule.contractions.families.fma import fma_schedule
from mlirfuse.schedule.contractions.families.mma import mma_schedule
from mlirfuse.schedule.contractions.families.wgmma import wgmma_schedule
from mlirfuse.schedule.contractions.thread_layouts import with_slices
from mlirfuse.schedule.schedule import Schedule
from tests.support.contractions.operand_sums import CASES, bias_gradient
from tests.support.contractions.shared_operands import Shared, kernels_of, problem_in, scheduled_at, schedules_of
from tests.support.convolutions import Case, integers, wgrad
from tests.support.harnesses.compiling import specs_of
from tests.support.pairwise import combined

SPLITS = ["last_block", "serial", "grid_sync", "flagged", "cluster"]
WAITING = ("grid_sync", "flagged", "cluster")


def run_exactly(case: Shared, module: ir.Module, *, waits: bool = False) -> None:
    """Runs a module with its blocks in random order, and compares all results with the exact ones.

    Blocks that wait for each other are all resident.
    """
    resident = None if waits else 2
    results = interpreter.run(module, case.fn.__name__, case.inputs(), order="random", resident=resident)
    for result, expected in zip(results, case.expected(), strict=True):
        np.testing.assert_array_equal(np.asarray(result).astype(np.float64), expected)


def split_in(schedule: Schedule, split: int, reduction: str) -> Schedule:
    """The schedule with its steps along k spread over blocks."""
    parts = replace(schedule, contraction=replace(schedule.contraction, split=split, reduction=reduction))
    return with_slices(parts, reduction) if reduction in WAITING else parts


@combined(
    {
        "name, target": [
            *((name, "sm_90a") for name in CASES),
            *((name, "sm_80") for name in CASES if name != "linear_transposed"),
        ]
    },
    turns={"candidate": [0, -1]},
)
def test_candidates(name: str, target: str, candidate: int) -> None:
    """The first and the last of the candidates."""
    case = CASES[name]
    schedule = schedules_of(case, target)[candidate]
    assert schedule.contraction is not None
    waits = schedule.contraction.split > 1 and schedule.contraction.reduction in WAITING
    run_exactly(case, scheduled_at("gpu", case, schedule, target), waits=waits)


@combined(
    {"name": ["linear", "linear_transposed", "row_sums", "normalised"], "reduction": SPLITS},
    turns={"stage": ["tile", "gpu"]},
)
def test_splits_of_warpgroups(name: str, reduction: str, stage: str) -> None:
    case = CASES[name]
    swapped = problem_in(kernels_of(case)).operand_sums[1] > 0
    whole = wgmma_schedule(problem_in(kernels_of(case)), 64, 128, stages=3, swapped=swapped)
    given = split_in(whole, 3, reduction)
    run_exactly(case, scheduled_at(stage, case, given), waits=reduction in WAITING)


@pytest.mark.parametrize(
    ("name", "reduction"),
    [
        ("linear", "last_block"),
        ("linear", "serial"),
        ("linear", "grid_sync"),
        ("normalised", "last_block"),
        ("float32", "last_block"),
        ("float32", "flagged"),
    ],
)
def test_splits_of_other_families(name: str, reduction: str) -> None:
    case = CASES[name]
    problem = problem_in(kernels_of(case, "sm_80"))
    whole = (fma_schedule if name == "float32" else mma_schedule)(problem, 32, 64)
    given = scheduled_at("gpu", case, split_in(whole, 3, reduction), "sm_80")
    run_exactly(case, given, waits=reduction in WAITING)


@pytest.mark.parametrize("promote", [1, 2])
def test_promoted_sums(promote: int) -> None:
    case = CASES["linear"]
    whole = wgmma_schedule(problem_in(kernels_of(case)), 64, 64, stages=3)
    given = replace(whole, contraction=replace(whole.contraction, promote=promote, persistent=True))
    run_exactly(case, scheduled_at("gpu", case, given))


def test_long_steps() -> None:
    """Two swizzle atoms a step, of more elements along k than the tile has columns."""
    case = CASES["linear"]
    run_exactly(case, scheduled_at("gpu", case, wgmma_schedule(problem_in(kernels_of(case)), 64, 64, atoms=2)))


@pytest.mark.parametrize("target", ["sm_90a", "sm_80"])
def test_gradient_of_a_bias_shares_the_kernel(target: str) -> None:
    rng = np.random.default_rng(6)
    case = Case(2, (9, 8), 64, 72, (3, 3), (2, 1), ((1, 1), (1, 2)), (1, 1))
    x, _, dy = (integers(rng, shape, np.float16) for shape in case.shapes)
    fn = bias_gradient(case)
    module = mf.fuse(fn, target=target).lower(*specs_of([x, dy])).module
    with module.context:
        run_pipeline(module, pipeline.named("fuse-gpu-pipeline"))
    assert str(module).count("gpu.func") == 1
    dw, db = interpreter.run(module, fn.__name__, [x, dy], order="random", seed=3)
    assert (dw == wgrad(case, x.astype(np.int64), dy.astype(np.int64))).all()
    assert (db == dy.astype(np.int64).sum((0, 1, 2))).all()


def test_other_reductions_stay_apart() -> None:
    """The largest element, and sums of what zeros do not leave alone."""

    def largest(x, dy):
        return dy.mT @ x, mf.max(dy, axis=0)

    def shifted(x, dy):
        return dy.mT @ x, mf.sum(dy + 1, axis=0)

    def both(x, dy):
        return dy.mT @ x, mf.sum(x, axis=0), mf.sum(dy, axis=0)

    for fn, count in ((largest, 2), (shifted, 2), (both, 2)):
        case = Shared(fn, CASES["linear"].shapes, lambda *_: [])
        assert len(list(kernels(kernels_of(case).operation))) == count


def test_sums_of_what_another_kernel_multiplies() -> None:
    """An operand of the product is itself the result of a product, and the sum has no part in that kernel."""

    def chain(x, w, v):
        first = mf.tensordot(x * x, w, axes=1)
        return first[:, ::-1, ::-1], mf.sum(w, axis=(-1, -3), keepdims=True), mf.square(mf.matmul(w, v) + 1)

    rng = np.random.default_rng(7)
    x, w, v = (rng.integers(-3, 4, shape).astype(np.float64) for shape in ((33, 7), (7, 7, 1), (1, 65)))
    module = mf.fuse(chain, target="sm_90a").lower(*specs_of([x, w, v])).module
    with module.context:
        run_pipeline(module, pipeline.named("fuse-gpu-pipeline"))
    flipped, sums, squares = interpreter.run(module, "chain", [x, w, v], order="random", seed=3)
    assert (flipped == np.tensordot(x * x, w, axes=1)[:, ::-1, ::-1]).all()
    assert (sums == w.sum((-1, -3), keepdims=True)).all()
    assert (squares == (w @ v + 1) ** 2).all()


BIASES = {
    "a sum": lambda dy: mf.sum(dy, axis=(0, 1, 2), dtype=mf.float32),
    "of a cast": lambda dy: mf.sum(dy.astype(mf.float32), axis=(0, 1, 2)),
    "of squares of a cast": lambda dy: mf.sum(dy.astype(mf.float32) * dy.astype(mf.float32), axis=(0, 1, 2)),
    "of magnitudes": lambda dy: mf.sum(mf.abs(dy), axis=(0, 1, 2), dtype=mf.float32),
}


@pytest.mark.parametrize("name", BIASES)
def test_gradients_of_biases_as_they_are_written(name: str) -> None:
    """Sums of what a convolution's filters' gradient reads in another shape are in its kernel."""
    shapes = ((2, 8, 8, 64), (2, 8, 8, 64))
    rng = np.random.default_rng(0)
    x, dy = (rng.integers(-2, 3, shape).astype(np.float16) for shape in shapes)

    def gradients(x: mf.Tensor, dy: mf.Tensor) -> tuple[mf.Tensor, mf.Tensor]:
        return mf.conv2d_wgrad(x, dy, kernel_size=3, padding=1, dtype=mf.float32), BIASES[name](dy)

    fused = mf.fuse(gradients, target="interpret")
    _, bias = fused(x, dy)
    wide = dy.astype(np.float64)
    expected = {"of squares of a cast": wide * wide, "of magnitudes": np.abs(wide)}.get(name, wide).sum(axis=(0, 1, 2))
    np.testing.assert_array_equal(np.asarray(bias), expected)
    (compiled,) = fused._compiled.values()
    assert len(compiled.schedules) == 1
