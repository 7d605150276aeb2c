"""When a contraction's kernel should compute an operand itself: as measured on an H200 (bytes times scales,
2026-11).
"""

from __future__ import annotations

from dataclasses import replace

import pytest

import mlirfuse as mf
from mlirfuse.machine import shipped_models
from mlirfuse.schedule.choice.contraction_choice import fastest_first
from mlirfuse.schedule.contractions.families.mma import mma_schedule
from mlirfuse.schedule.contractions.thread_layouts import prologue_layout
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.predict import predict_contraction
from mlirfuse.target import target_of

SM_90A = target_of("sm_90a").with_sms(132)
H200 = shipped_models()["h200"]


def _problem(m: int, n: int, k: int, weight_bytes: int | None) -> ContractionProblem:
    """Weights that the kernel computes from others of so many bytes, or reads."""
    plain = ContractionProblem((), m, n, k, mf.float16, mf.float32, 16)
    if weight_bytes is None:
        return plain
    # A conversion, and a product with a scale.
    counts = ((0.0, 0.0), (2.0, 0.0))
    return replace(plain, computed_from=(None, weight_bytes), sources=((), (weight_bytes,)), computing=counts)


@pytest.mark.parametrize(
    ("m", "n", "k", "together", "apart"),
    [(16, 4096, 14336, 28.5, 86.2), (64, 4096, 14336, 50.3, 87.9), (256, 4096, 4096, 45.3, 30.5)],
)
def test_predictions_are_near_what_was_measured(m: int, n: int, k: int, together: float, apart: float) -> None:
    """Of one kernel; of two the second, beside moving weights of three bytes in all at the device's bandwidth."""
    (_, one), (_, two) = (fastest_first(_problem(m, n, k, size), SM_90A, H200)[0] for size in (1, None))
    two += 1e6 * (3 * n * k / H200.dram_bandwidth + H200.graph_launch)
    assert 0.75 < one / together < 1.35
    assert 0.75 < two / apart < 1.35
    assert (one < two) == (together < apart)


@pytest.mark.parametrize("shape", [(128, 64), (16, 32), (64, 16), (1, 96, 40), (33, 7)])
@pytest.mark.parametrize("threads", [32, 128, 256])
def test_layouts_of_computed_tiles_cover_them(shape: tuple[int, ...], threads: int) -> None:
    layout = prologue_layout(shape, 2, threads)
    assert layout.threads == threads
    assert layout.check(shape) is None


MEASURED = {
    (16, 4096, 14336): {(16, 64, 64, 16): 40.6, (16, 64, 128, 8): 28.5, (16, 128, 64, 8): 32.3, (16, 32, 64, 8): 46.2},
    (64, 4096, 14336): {(64, 64, 64, 8): 58.3, (64, 64, 64, 16): 68.6, (64, 128, 64, 8): 50.3, (64, 32, 64, 4): 66.1},
    (256, 4096, 4096): {(64, 128, 64, 1): 54.6, (128, 128, 64, 2): 45.3, (64, 64, 64, 2): 56.0},
    (1024, 4096, 4096): {(128, 128, 32, 1): 157.2, (128, 128, 64, 1): 173.0, (128, 64, 64, 1): 162.8},
}
"""Rows and columns of a tile, elements of k a step, and splits: microseconds, of weights of bytes."""


@pytest.mark.parametrize("extents", MEASURED, ids=str)
def test_predictions_of_tiles_are_near_what_was_measured(extents: tuple[int, int, int]) -> None:
    problem = _problem(*extents, 1)
    for (m, n, k, split), microseconds in MEASURED[extents].items():
        schedule = mma_schedule(problem, m, n, split=split, step_bytes=2 * k)
        assert 0.7 < predict_contraction(schedule, problem, H200).microseconds / microseconds < 1.35


def test_all_sources_and_special_functions_are_counted() -> None:
    """A step copies as much of each array that an operand is computed from, and computes its elements."""
    one = _problem(1024, 1024, 1024, 2)
    two = replace(one, sources=((), (2, 2)))
    heavy = replace(one, computing=((0.0, 0.0), (40.0, 2.0)))
    schedule = mma_schedule(one, 64, 64)
    first, both, computed = (predict_contraction(schedule, each, H200) for each in (one, two, heavy))
    assert both.l2 == pytest.approx(1.5 * first.l2)
    assert both.dram > first.dram
    assert computed.issue > 2 * first.issue
    assert first.special == 0.0
    assert computed.special > 0.0


def test_scattered_sources_take_a_sector_each() -> None:
    one = replace(_problem(1024, 1024, 1024, 2), scattered=(False, True))
    schedule = mma_schedule(one, 64, 64)
    first, both = (
        predict_contraction(schedule, replace(one, sources=((), sources)), H200) for sources in ((2,), (2, 4))
    )
    assert both.l2 - first.l2 == pytest.approx(first.l2 * 16 / 17)
