"""Convolutions as kernels: every pass with random parameters, prologues and epilogues, and every split along k."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import BlockedLayout, Schedule, interpreter
from mlirfuse.analysis.kernels import kernels, symbol
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.scheduling.problem import problem_of
from mlirfuse.compiler import pipeline
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.schedule.orders.sliding import sliding_schedules
from mlirfuse.schedule.problem import Problem
from mlirfuse.target import TARGETS
from tests.support.contractions.products import Product, pinned_schedule
from tests.support.convolutions import (
    PASSES,
    Case,
    dgrad,
    forward,
    integers,
    random_case,
    random_programs,
    wgrad,
)
from tests.support.harnesses.compiling import module_at, specs_of
from tests.support.pairwise import combined, some

DTYPES: list[Any] = [np.float16, np.float32, np.int32]


def run(fn: Any, *arrays: Any) -> Any:
    return mf.fuse(fn, target="interpret")(*arrays)


def check_three_passes(case: Case, rng: np.random.Generator, dtype: Any) -> None:
    """The result and both gradients of whole numbers, exactly."""
    x, w, dy = (integers(rng, shape, dtype) for shape in case.shapes)
    wide = [array.astype(np.int64) for array in (x, w, dy)]
    p = case.parameters
    convolve, of_filters, of_images = PASSES[len(case.sizes) - 1]
    assert (run(lambda x, w: convolve(x, w, **p), x, w) == forward(case, wide[0], wide[1])).all()
    found = run(lambda x, dy: of_filters(x, dy, kernel_size=case.taps, **p), x, dy)
    assert (found == wgrad(case, wide[0], wide[2])).all()
    found = run(lambda dy, w: of_images(dy, w, input_size=case.sizes, **p), dy, w)
    assert (found == dgrad(case, wide[2], wide[1])).all()


@pytest.mark.parametrize("seed", some(range(300), 18))
def test_random_parameters(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank = 1 + seed // 3 % 3
    case = random_case(rng, rank, 7 if rank < 3 else 4)
    check_three_passes(case, rng, DTYPES[seed % 3])


def test_views_that_lie_beside_their_source() -> None:
    """No tap meets the second pixel: its residue class reads nothing of the results."""
    case = Case(2, (1, 2), 4, 2, (3, 1), (3, 4), ((2, 1), (2, 1)), (1, 1))
    check_three_passes(case, np.random.default_rng(0), np.float16)


@pytest.mark.parametrize("seed", some(range(100), 25))
def test_random_programs(seed: int) -> None:
    """Either layout, "same" padding, and elementwise ops and sums before and behind."""
    for program in random_programs(np.random.default_rng(seed), 1 + seed // 3 % 3, DTYPES[seed % 3]):
        found = run(program.fn, *program.arrays)
        np.testing.assert_array_equal(np.asarray(found), program.expected.astype(found.dtype))


ALIGNED = Case(2, (6, 7), 16, 24, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1))


@pytest.mark.parametrize("channels", [1, 3, 4, 8, 16, 20])
def test_channels(channels: int) -> None:
    """Copies of 16 bytes and less, and through registers."""
    rng = np.random.default_rng(channels)
    case = Case(2, (6, 7), channels, 24, (3, 3), (2, 1), ((1, 1), (1, 2)), (1, 1))
    x, w, dy = (integers(rng, shape, np.float16) for shape in case.shapes)
    p = case.parameters
    wide = [array.astype(np.int64) for array in (x, w, dy)]
    assert (run(lambda x, w: mf.conv2d(x, w, **p), x, w) == forward(case, wide[0], wide[1])).all()
    found = run(lambda x, dy: mf.conv2d_wgrad(x, dy, kernel_size=3, **p), x, dy)
    assert (found == wgrad(case, wide[0], wide[2])).all()


def epilogue(x: Any, w: Any, b: Any, r: Any) -> Any:
    return mf.maximum(mf.conv2d(x, w, padding=1) + b, 0) + r


def test_epilogue_shares_the_kernel() -> None:
    rng = np.random.default_rng(3)
    x, w, r = (integers(rng, shape, np.float16) for shape in ALIGNED.shapes)
    b = integers(rng, (24,), np.float16)
    module = module_at("gpu", epilogue, specs_of([x, w, b, r]))
    assert str(module).count("gpu.func") == 1
    (found,) = interpreter.run(module, "epilogue", [x, w, b, r])
    want = np.maximum(forward(ALIGNED, x.astype(np.int64), w.astype(np.int64)) + b, 0) + r
    assert (found == want).all()


def of_small_filters(x: Any, dy: Any) -> Any:
    return mf.conv2d_wgrad(x, dy, kernel_size=3, padding=1, dtype=mf.float32)


def accumulated(x: Any, dy: Any, dw: Any) -> Any:
    return dw + mf.conv2d_wgrad(x, dy, kernel_size=3, padding=1, dtype=mf.float32)


LONG = Case(4, (24, 24), 8, 8, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1))
"""Its weight gradient has 72 steps of 32."""


@combined({"split": [1, 4, 8, 16, 32, 64]}, turns={"reduction": ["last_block", "serial", "grid_sync"]})
def test_every_split_is_exact(split: int, reduction: str) -> None:
    rng = np.random.default_rng(split)
    x, _, dy = (integers(rng, shape, np.float16) for shape in LONG.shapes)
    product = Product(8, 72, 2304, "tn", "float16")
    schedule = pinned_schedule(product, 16, 32, split, reduction if split > 1 else "last_block", "mma")
    module = module_at("gpu", of_small_filters, specs_of([x, dy]), schedule)
    (found,) = interpreter.run(module, "of_small_filters", [x, dy], order="random", seed=split)
    assert (found == wgrad(LONG, x.astype(np.int64), dy.astype(np.int64))).all()


@pytest.mark.parametrize(
    ("split", "reduction"), [(1, "last_block"), (2, "last_block"), (3, "serial"), (3, "grid_sync")]
)
def test_splits_of_a_weight_gradient(split: int, reduction: str) -> None:
    rng = np.random.default_rng(4)
    x, w, dy = (integers(rng, shape, np.float16) for shape in ALIGNED.shapes)
    dw = w.astype(np.float32)
    product = Product(24, 144, 84, "tn", "float16")
    schedule = pinned_schedule(product, 32, 32, split, reduction, "mma")
    module = module_at("gpu", accumulated, specs_of([x, dy, dw]), schedule)
    assert str(module).count("gpu.func") == 1
    want = dw + wgrad(ALIGNED, x.astype(np.int64), dy.astype(np.int64))
    for order, seed in (("launch", 0), ("random", 5)):
        (found,) = interpreter.run(module, "accumulated", [x, dy, dw], order=order, seed=seed)
        assert (found == want).all()


def test_computed_input_is_padded_with_zeros() -> None:
    """exp of the input is zero in the padding, and not one."""
    rng = np.random.default_rng(5)
    x, w, _ = (integers(rng, shape, np.int32) for shape in ALIGNED.shapes)
    found = run(lambda x, w: mf.conv2d(x * x + 1, w, padding=1), x, w)
    assert (found == forward(ALIGNED, (x * x + 1).astype(np.int64), w.astype(np.int64))).all()


@pytest.mark.parametrize(("stride", "dilation", "padding"), [(2, 2, 1), (4, 2, 2), (3, 3, 0)])
def test_pixels_that_meet_no_tap_have_no_gradient(stride: int, dilation: int, padding: int) -> None:
    """Zeros, and not NaN, where filters are infinite."""
    case = Case(1, (13,), 8, 8, (3,), (stride,), ((padding, padding),), (dilation,))
    ones = [np.ones(shape, np.float16) for shape in case.shapes]
    met = dgrad(case, ones[2].astype(np.float64), ones[1].astype(np.float64)) > 0
    reached = {h for h in range(13) for r in range(3) if (h + padding - r * dilation) % stride == 0}
    found = run(
        lambda dy, w: mf.conv1d_dgrad(dy, w, input_size=13, **case.parameters), ones[2], ones[1] * np.float16(np.inf)
    )
    apart = [h for h in range(13) if h not in reached]
    assert apart
    assert (found[:, apart] == 0).all()
    assert np.isinf(found[met & ~np.isnan(found)]).all()


def test_views_of_arguments() -> None:
    """Arguments that are not contiguous: channels last of an array with channels first, and every other image."""
    rng = np.random.default_rng(7)
    x, w, _ = (integers(rng, shape, np.float16) for shape in ALIGNED.shapes)
    want = forward(ALIGNED, x.astype(np.int64), w.astype(np.int64))
    moved = np.ascontiguousarray(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)
    assert (run(lambda x, w: mf.conv2d(x, w, padding=1), moved, w) == want).all()
    apart = np.zeros((4, *x.shape[1:]), np.float16)
    apart[::2] = x
    assert (run(lambda x, w: mf.conv2d(x, w, padding=1), apart[::2], w) == want).all()


WIDE = Case(2, (6, 5), 64, 128, (3, 2), (1, 1), ((1, 1), (1, 0)), (1, 1))
STEPS = Case(2, (7, 6), 64, 64, (3, 3), (2, 2), ((1, 1), (0, 1)), (1, 1))


def convolved(x: Any, w: Any) -> Any:
    return mf.conv2d(x, w, padding=((1, 1), (1, 0)))


def strided(x: Any, w: Any) -> Any:
    return mf.conv2d(x, w, padding=((1, 1), (0, 1)), stride=2)


def of_filters(x: Any, dy: Any) -> Any:
    return mf.conv2d_wgrad(x, dy, kernel_size=(3, 2), padding=((1, 1), (1, 0)), dtype=mf.float32)


def of_images(dy: Any, w: Any) -> Any:
    return mf.conv2d_dgrad(dy, w, input_size=(6, 5), padding=((1, 1), (1, 0)))


@pytest.mark.parametrize(
    ("function", "case", "product", "split"),
    [
        (convolved, WIDE, Product(60, 128, 384, "nt", "float16"), 1),
        (convolved, WIDE, Product(60, 128, 384, "nt", "float16"), 2),
        (strided, STEPS, Product(24, 64, 576, "nt", "float16"), 1),
        (of_filters, WIDE, Product(128, 384, 60, "tn", "float16"), 1),
        (of_images, WIDE, Product(60, 64, 768, "nn", "float16"), 1),
    ],
)
def test_copies_by_tensor_maps(function: Any, case: Case, product: Product, split: int) -> None:
    rng = np.random.default_rng(8)
    x, w, dy = (integers(rng, shape, np.float16) // 2 for shape in case.shapes)
    arrays, want = {
        "of_filters": ((x, dy), wgrad(case, x.astype(np.int64), dy.astype(np.int64))),
        "of_images": ((dy, w), dgrad(case, dy.astype(np.int64), w.astype(np.int64))),
    }.get(function.__name__, ((x, w), forward(case, x.astype(np.int64), w.astype(np.int64))))
    schedule = pinned_schedule(product, 64, 64, split, instruction="wgmma")
    module = module_at("gpu", function, specs_of(arrays), schedule)
    assert "fuse.async_load" in str(module)
    (found,) = interpreter.run(module, function.__name__, arrays, order="random", seed=1)
    assert (found == want).all()


@pytest.mark.parametrize("seed", range(6))
def test_depthwise(seed: int) -> None:
    """Sums over taps that are unrolled; with two filters a channel they are products."""
    rng = np.random.default_rng(100 + seed)
    groups = (2, 8, 3, 16, 8, 8)[seed]
    case = replace(random_case(rng, 1 + seed % 2), channels=groups, filters=groups * (1 + seed // 5), groups=groups)
    check_three_passes(case, rng, DTYPES[seed % 3])


@pytest.mark.parametrize("taps", [(3, 3), (4, 1), (7, 7)])
def test_depthwise_without_strides(taps: tuple[int, int]) -> None:
    """The data gradient's filters are views that are reversed, of which each term is a view."""
    pads = tuple((n // 2, n // 2) for n in taps)
    case = Case(2, (9, 8), 16, 16, taps, (1, 1), pads, (1, 1), 16)
    check_three_passes(case, np.random.default_rng(7), np.float16)


def depthwise(x: Any, w: Any) -> Any:
    return mf.conv2d(x, w, padding=1, groups=16)


def test_a_thread_loads_overlapping_windows_once() -> None:
    """Two rows of 4 outputs a thread: 4 rows of 6 elements in place of 9 times 8; and 9 taps of each of 8 channels."""
    rng = np.random.default_rng(5)
    case = Case(2, (8, 16), 16, 16, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 16)
    x, w, _ = (integers(rng, shape, np.float16) // 2 for shape in case.shapes)
    ones = (1, 1, 1, 1)
    layout = BlockedLayout((1, 1, 1, 8), (1, 4, 4, 2), ones, ones, ones, run=(1, 2, 4, 1))
    schedules = {"depthwise_0": Schedule((1, 8, 16, 16), layout)}
    module = module_at("gpu", depthwise, specs_of([x, w]), schedules)
    kernel = str(module).split("gpu.module @depthwise_0_kernel")[1]
    assert kernel.count("vector.load") + kernel.count("vector.maskedload") == 4 * 6
    assert kernel.count("memref.load") == 9 * 8
    (found,) = interpreter.run(module, "depthwise", [x, w], order="random", seed=1)
    assert (found == forward(case, x.astype(np.int64), w.astype(np.int64))).all()


def last_problem(function: Any, arrays: list[np.ndarray]) -> tuple[str, Problem]:
    """The last kernel of a function: its name, and what its schedule is chosen for."""
    module = mf.fuse(function, target="sm_90a").lower(*specs_of(arrays)).module
    with module.context:
        run_pipeline(module, f"builtin.module({pipeline.TO_KERNELS.format(fast='false')})")
        *_, kernel = kernels(module.operation)
        return symbol(kernel), problem_of(kernel, *kernel_space(kernel))


@pytest.mark.parametrize("seed", some(range(60), 8))
def test_runs_of_any_windows(seed: int) -> None:
    """Schedules that prediction chooses for large images, of small ones: runs along one dimension and two."""
    rng = np.random.default_rng(300 + seed)
    taps, stride, dilation = (tuple(map(int, rng.integers(1, most, 2))) for most in (5, 3, 3))
    pads = tuple((int(a), int(b)) for a, b in rng.integers(0, 3, (2, 2)))
    counts = [int(n) for n in rng.choice([4, 6, 8], 2)]  # of outputs, which runs divide
    sizes = tuple(
        max(1, (count - 1) * s + (r - 1) * d + 1 - sum(pad))
        for count, s, r, d, pad in zip(counts, stride, taps, dilation, pads, strict=True)
    )
    case = Case(2, sizes, 16, 16, taps, stride, pads, dilation, 16)
    x, w, _ = (integers(rng, shape, np.float16) // 2 for shape in case.shapes)

    def convolved(x: Any, w: Any) -> Any:
        return mf.conv2d(x, w, **case.parameters)

    name, problem = last_problem(convolved, [x, w])
    schedules = list(islice(sliding_schedules(problem, 64, 1600, TARGETS["sm_90a"]), 3))
    overlaps = any((r - 1) * d >= s and d % s == 0 for r, d, s in zip(taps, dilation, stride, strict=True))
    assert schedules or not overlaps
    for schedule in schedules:
        gpu = module_at("gpu", convolved, specs_of([x, w]), {name: schedule})
        (found,) = interpreter.run(gpu, "convolved", [x, w], order="random", seed=seed)
        assert (found == forward(case, x.astype(np.int64), w.astype(np.int64))).all(), schedule.layout.run


@pytest.mark.parametrize(("channels", "stride"), [(40, 1), (72, 2)])
def test_lanes_past_the_end_of_the_channels(channels: int, stride: int) -> None:
    """A warp lies along the channels, of which the last ones have no whole warp."""
    rng = np.random.default_rng(channels)
    case = Case(1, (8, 8), channels, channels, (3, 3), (stride, stride), ((1, 1), (1, 1)), (1, 1), channels)
    x, w, _ = (integers(rng, shape, np.float16) // 2 for shape in case.shapes)

    def convolved(x: Any, w: Any) -> Any:
        return mf.conv2d(x, w, **case.parameters)

    name, problem = last_problem(convolved, [x, w])
    problem = replace(problem, vector=channels // 36)
    found = sliding_schedules(problem, 96, 1600, TARGETS["sm_90a"])
    inner = problem.vector_dim
    ragged = [s for s in found if channels % s.layout.extents[inner] and s.layout.lanes[inner] == 32]
    assert ragged
    for schedule in ragged[-2:]:
        gpu = module_at("gpu", convolved, specs_of([x, w]), {name: schedule})
        (result,) = interpreter.run(gpu, "convolved", [x, w], order="random", seed=1)
        assert (result == forward(case, x.astype(np.int64), w.astype(np.int64))).all(), schedule.layout


@pytest.mark.parametrize("seed", some(range(60), 8))
def test_runs_of_pixels_of_any_residue_classes(seed: int) -> None:
    """A data gradient with strides is one kernel in the order of pixels, whose threads have runs of them or not."""
    rng = np.random.default_rng(400 + seed)
    dtype = [np.float16, np.float32, mf.bfloat16.numpy][seed % 3]
    taps, stride, pads = (tuple(map(int, rng.integers(low, high, 2))) for low, high in ((2, 6), (2, 4), (0, 3)))
    dilation = tuple(int(rng.integers(1, 3)) if seed % 2 else 1 for _ in range(2))
    sizes = tuple(
        max(int(n), (r - 1) * d + 1) for n, r, d in zip(rng.choice([6, 8, 9, 12], 2), taps, dilation, strict=True)
    )
    case = Case(2, sizes, 16, 16, taps, stride, tuple((n, n) for n in pads), dilation, 16)
    _, w, dy = (integers(rng, shape, np.float32).astype(dtype) // 2 for shape in case.shapes)

    def gradient(dy: Any, w: Any) -> Any:
        return mf.conv2d_dgrad(dy, w, input_size=case.sizes, **case.parameters)

    want = dgrad(case, dy.astype(np.int64), w.astype(np.int64))
    assert (run(gradient, dy, w).astype(np.int64) == want).all()
    name, problem = last_problem(gradient, [dy, w])
    assert problem.extents == (2, *sizes, 16)
    assert not problem.reduced
    for schedule in list(sliding_schedules(problem, 64, 1600, TARGETS["sm_90a"]))[-2:]:
        gpu = module_at("gpu", gradient, specs_of([dy, w]), {name: schedule})
        (found,) = interpreter.run(gpu, "gradient", [dy, w], order="random", seed=seed)
        assert (found.astype(np.int64) == want).all(), schedule.layout.run


def statistics(x: Any, w: Any) -> Any:
    y = mf.conv2d(x, w, padding=1, dtype=mf.float32)
    return y, mf.sum(y, axis=(0, 1, 2)), mf.sum(y * y, axis=(0, 1, 2))


def test_statistics_share_the_kernel() -> None:
    """What a batch norm needs of a convolution's result: its channels' sums and sums of squares."""
    rng = np.random.default_rng(9)
    x, w, _ = (integers(rng, shape, np.float16) // 2 for shape in ALIGNED.shapes)
    module = module_at("gpu", statistics, specs_of([x, w]))
    assert str(module).count("gpu.func") == 1
    want = forward(ALIGNED, x.astype(np.int64), w.astype(np.int64))
    y, total, squares = interpreter.run(module, "statistics", [x, w])
    assert (y == want).all()
    assert (total == want.sum((0, 1, 2))).all()
    assert (squares == (want * want).sum((0, 1, 2))).all()


@pytest.mark.parametrize(("channels", "taps"), [(3, 16), (3, 4), (2, 4), (4, 2)])
def test_patches(channels: int, taps: int) -> None:
    """Patches without padding: several pixels of a row are one run of memory."""
    rng = np.random.default_rng(taps)
    case = Case(2, (2 * taps + 1, 3 * taps), channels, 16, (taps, taps), (taps, taps), ((0, 0), (0, 0)), (1, 1))
    x, w, dy = (integers(rng, shape, np.float16) // 2 for shape in case.shapes)
    wide = [array.astype(np.int64) for array in (x, w, dy)]
    found = run(lambda x, w: mf.conv2d(x, w, stride=taps, dtype=mf.float32), x, w)
    assert (found == forward(case, wide[0], wide[1])).all()
    found = run(lambda x, dy: mf.conv2d_wgrad(x, dy, kernel_size=taps, stride=taps), x, dy)
    assert (found == wgrad(case, wide[0], wide[2])).all()
    found = run(lambda dy, w: mf.conv2d_dgrad(dy, w, input_size=case.sizes, stride=taps), dy, w)
    assert (found == dgrad(case, wide[2], wide[1])).all()


def test_readers_of_a_gradient_that_take_shapes_alone() -> None:
    """Whole numbers are finite: an op that says so reads nothing of them, in the kernel that reads the gradient."""
    rng = np.random.default_rng(7)
    x, dy = integers(rng, (2, 20, 11), np.float16), integers(rng, (2, 10, 2), np.float16)
    numbers = np.arange(11) - 4

    def function(x: Any, dy: Any, numbers: Any) -> Any:
        gradient = mf.abs(mf.conv1d_wgrad(x, dy, kernel_size=2, stride=2, padding=((0, 1),)))
        return dy @ gradient, numbers * 1 >= gradient, mf.isinf(numbers)

    products, compared, infinite = mf.fuse(function, target="interpret")(x, dy, numbers)
    case = Case(2, (20,), 11, 2, (2,), (2,), ((0, 1),), (1,))
    gradient = np.abs(wgrad(case, x.astype(np.int64), dy.astype(np.int64)))
    assert (compared == (numbers >= gradient)).all()
    assert not infinite.any()
    assert (products == dy.astype(np.int64) @ gradient).all()
