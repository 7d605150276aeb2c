"""Statistics over leading axes, in one launch that visits its tiles twice where they need these, and else once."""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir

import mlirfuse as mf
from mlirfuse.compiler import pipeline
from mlirfuse.interpreter import run
from mlirfuse.interpreter.mutation import hunt, site
from mlirfuse.passes.gpu.unroll_loops import FuseUnrollLoops
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.parts.grid_persistent import GridPersistent
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import target_of
from tests.support.harnesses.compiling import module_at
from tests.support.pairwise import combined
from tests.support.reductions.grid_persistent import CASES, ONE_VISIT, check, in_rows

SMS = 8


def _run(name: str, shape: tuple[int, ...], dtype: str, schedule: Schedule, sms: int = SMS) -> None:
    """Runs a case with a given schedule and known extents."""
    case, rng = CASES[name], np.random.default_rng(sum(shape))
    arrays = case.inputs(shape, dtype, rng)
    specs = [mf.TensorSpec(a.shape, getattr(mf, str(a.dtype))) for a in arrays]
    compiled = mf.fuse(case.fn, target="sm_90a", schedule=schedule).lower(*specs).compile_to_interpret()
    results = run(compiled.interpreted, compiled.program.name, arrays, sms=sms, order="random")
    check(case, tuple(results), arrays)
    assert len(compiled.schedules) == 1


@combined(
    {
        "name": ["forward", "backward", "maximum", "softmax"],
        "shape": [(300, 64), (301, 32), (7, 40), (64, 100)],
        "dtype": ["float16", "float32"],
        "kept": [0, 1, 40],
    }
)
def test_rows(name: str, shape: tuple[int, int], dtype: str, kept: int) -> None:
    """Rows that no tile divides, slices that no columns fill, and tiles that stay on chip all, some, or none."""
    vector = 8 if dtype == "float16" and shape[1] % 8 == 0 else 4
    _run(name, shape, dtype, in_rows(shape[1], vector=vector, repeats=1 + kept % 3, kept=kept))


@combined(
    {
        "name": ["moments", "log_sum_exp"],
        "shape": [(300, 64), (301, 32), (7, 40), (64, 100)],
        "dtype": ["float16", "float32"],
        "repeats": [1, 3],
    }
)
def test_one_visit(name: str, shape: tuple[int, int], dtype: str, repeats: int) -> None:
    """Joint statistics that no tile needs, with a result of the same visit or none, by the last block of a slice."""
    vector = 8 if dtype == "float16" and shape[1] % 8 == 0 else 4
    _run(name, shape, dtype, in_rows(shape[1], vector=vector, repeats=repeats))


@pytest.mark.parametrize("sms", [1, 3, 20])
def test_one_visit_of_all_elements(sms: int) -> None:
    """One member, which waits for nobody, and several."""
    layout = BlockedLayout((4,), (32,), (2,), (2,), (1,))
    schedule = Schedule((512,), layout, blocks_per_sm=1, grid_persistent=GridPersistent((0,)))
    _run("moments of all", (4003,), "float32", schedule, sms=sms)


@pytest.mark.parametrize("sms", [2, 3, 64])
def test_members_of_a_slice(sms: int) -> None:
    """One block a slice, which waits for nobody; blocks that no slices divide; and more blocks than tiles."""
    _run("forward", (200, 64), "float16", in_rows(64, vector=8, kept=2), sms=sms)


def test_few_columns() -> None:
    """Three channels, of which threads hold one number each."""
    _run("backward", (200, 3), "float32", in_rows(3, vector=1, kept=1))


def test_more_partial_results_than_a_tile_holds() -> None:
    """Members beyond the rows that a block's threads have, which it combines in several steps."""
    _run("forward", (200, 32), "float32", in_rows(32, vector=1, lanes=32, warps=1, repeats=2), sms=20)


@pytest.mark.parametrize("kept", [0, 2])
def test_channels_outside(kept: int) -> None:
    """Statistics over the first and last dimensions, in tiles of one channel each."""
    ones = (1, 1, 1, 1)
    layout = BlockedLayout((1, 1, 1, 2), (1, 1, 2, 16), (1, 1, 2, 1), ones, ones)
    schedule = Schedule((1, 1, 4, 30), layout, blocks_per_sm=1, grid_persistent=GridPersistent((0, 2, 3), kept))
    _run("channels", (3, 5, 12, 30), "float16", schedule, sms=13)


@pytest.mark.parametrize("kept", [0, 1])
def test_a_sum_of_everything(kept: int) -> None:
    layout = BlockedLayout((4,), (32,), (2,), (2,), (1,))
    schedule = Schedule((512,), layout, blocks_per_sm=1, grid_persistent=GridPersistent((0,), kept))
    _run("norm", (4003,), "float32", schedule)


def test_special_values() -> None:
    """An infinity makes its column's mean infinite and the variance NaN, as two passes would."""
    schedule = in_rows(32, vector=4, lanes=8)
    x = np.ones((100, 32), np.float32)
    x[50, 3], x[10, 4], x[20, 5] = np.inf, np.nan, 1e30
    w = np.ones(32, np.float32)
    specs = [mf.TensorSpec(a.shape, mf.float32) for a in (x, w, w)]
    compiled = mf.fuse(CASES["forward"].fn, target="sm_90a", schedule=schedule).lower(*specs).compile_to_interpret()
    _, mean, variance = run(compiled.interpreted, compiled.program.name, (x, w, w), sms=SMS)
    assert mean[3] == np.inf
    assert np.isnan(mean[4])
    assert np.isnan(variance[[3, 4]]).all()
    np.testing.assert_allclose(mean[[0, 5]], [1, 1e28], rtol=1e-5)
    assert variance[0] == 0
    assert variance[5] == np.inf


def test_special_values_of_exponentials() -> None:
    """Infinities as two passes have them: of a column of nothing but -inf, and of one that begins with it."""
    schedule = in_rows(32, vector=4, lanes=8)
    x = np.random.default_rng(0).standard_normal((100, 32)).astype(np.float32)
    x[:, 3], x[:90, 4], x[50, 5], x[7, 6], x[:, 7] = -np.inf, -np.inf, np.inf, np.nan, -200
    specs = [mf.TensorSpec(x.shape, mf.float32)]
    compiled = mf.fuse(CASES["softmax"].fn, target="sm_90a", schedule=schedule).lower(*specs).compile_to_interpret()
    (found,) = run(compiled.interpreted, compiled.program.name, (x,), sms=SMS)
    with np.errstate(all="ignore"):
        (expected,) = CASES["softmax"].expected(x.astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-7)
    assert np.isnan(found[0, 3])


def test_bits_do_not_depend_on_the_order_of_blocks() -> None:
    case = CASES["forward"]
    arrays = case.inputs((300, 64), "float32", np.random.default_rng(0))
    specs = [mf.TensorSpec(a.shape, mf.float32) for a in arrays]
    schedule = in_rows(64, vector=4, kept=1)
    compiled = mf.fuse(case.fn, target="sm_90a", schedule=schedule).lower(*specs).compile_to_interpret()
    found = [
        run(compiled.interpreted, compiled.program.name, arrays, sms=SMS, order=order)
        for order in ("launch", "reversed", "random")
    ]
    for others in found[1:]:
        for result, other in zip(found[0], others, strict=True):
            np.testing.assert_array_equal(result, other)


FEW_SMS = target_of("sm_90a").with_sms(8)


@combined(
    {
        "name": ["forward", "backward", "maximum", *ONE_VISIT],
        "rows": [0, 1, 5, 600, 3001],
        "columns": [3, 64, 100],
        "dtype": ["float16", "float32"],
    }
)
def test_chosen_for_any_number_of_rows(name: str, rows: int, columns: int, dtype: str) -> None:
    """One kernel for all row counts, as it is chosen, on a device of few SMs."""
    case = CASES[name]
    if rows == 0 and name != "backward":
        pytest.skip("a mean or a maximum of nothing")
    arrays = case.inputs((rows, columns), dtype, np.random.default_rng(rows))
    specs = [
        mf.TensorSpec(("n", columns), getattr(mf, str(a.dtype)), hints=(1_000_000 // columns, None))
        if a.ndim == 2
        else mf.TensorSpec(a.shape, mf.float32)
        for a in arrays
    ]
    compiled = mf.fuse(case.fn, target=FEW_SMS).lower(*specs).compile_to_interpret()
    (schedule,) = compiled.schedules.values()
    assert schedule.grid_persistent is not None
    with np.errstate(all="ignore"):
        check(case, tuple(run(compiled.interpreted, compiled.program.name, arrays, sms=8, order="random")), arrays)


def test_chosen_for_channels_outside() -> None:
    """Few channels of many images, which no block and no cluster holds."""
    case = CASES["channels"]
    arrays = case.inputs((6, 2, 40, 44), "float16", np.random.default_rng(0))
    results = mf.fuse(case.fn, target="interpret")(*arrays)
    check(case, results, arrays)


def test_a_request_for_another_second_stage_is_heard() -> None:
    """A kernel that combines partial results otherwise is not joined with what needs them."""
    arrays = CASES["backward"].inputs((50, 32), "float32", np.random.default_rng(0))
    fused = mf.fuse(CASES["backward"].fn, target="interpret", grid_reduction="last_block")
    check(CASES["backward"], fused(*arrays), arrays)


def test_statistics_far_from_zero() -> None:
    """Mean 1000 and deviation 1: a variance taken as a difference of squares has no correct digit."""
    case, rng = CASES["forward"], np.random.default_rng(0)
    x = (rng.standard_normal((900, 64)) + 1000).astype(np.float32)
    w = np.ones(64, np.float32)
    specs = [mf.TensorSpec(a.shape, mf.float32) for a in (x, w, w)]
    schedule = in_rows(64, vector=4, repeats=2, kept=2)
    compiled = mf.fuse(case.fn, target="sm_90a", schedule=schedule).lower(*specs).compile_to_interpret()
    _, _, variance = run(compiled.interpreted, compiled.program.name, (x, w, w), sms=SMS)
    np.testing.assert_allclose(variance, x.astype(np.float64).var(0), rtol=1e-4)


HARMLESS = {"forward": 8, "backward": 7, "moments": 8}
"""Mutants that change nothing here: bounds that no tile of the kernel reaches, masks of partial results that are zero
where there is no member, and the limit of arrivals that are not the last."""


@pytest.mark.parametrize("name", HARMLESS)
def test_planted_bugs_are_found(name: str) -> None:
    """Such as a barrier, a wait for copies, or a mask that is missing. Loops are as they are before they are unrolled:
    a bound that no tile reaches changes nothing in any copy of it.
    """
    case, rng = CASES[name], np.random.default_rng(0)
    arrays = list(case.inputs((45, 8), "float16", rng))
    rows = 1 if name == "backward" else 0
    arrays[rows] = (arrays[rows] + rng.choice([0, 0, 0, 0, 30], (45, 8))).astype(np.float16)
    specs = [mf.TensorSpec(a.shape, getattr(mf, str(a.dtype))) for a in arrays]
    module = module_at("tile", case.fn, specs, in_rows(8, vector=4, lanes=2, warps=1, kept=1))
    *passes, last = pipeline.GPU.split(",")
    assert last == FuseUnrollLoops.name
    with module.context:
        run_pipeline(module, pipeline.stage(",".join(passes)))

    def outcome(mutant: ir.Module) -> list[np.ndarray]:
        return run(mutant, case.fn.__name__, arrays, sms=2, order="random")

    right = [result.astype(np.float64) for result in outcome(module)]

    def close(found: list[np.ndarray]) -> bool:
        return all(
            np.allclose(a.astype(np.float64), b, rtol=2e-3, atol=1e-3) for a, b in zip(found, right, strict=True)
        )

    report = hunt(module, outcome, close)
    assert len(report.survivors) <= HARMLESS[name], "\n".join(str(site(module, m)) for m in report.survivors)
    assert len(report.caught) > 80
