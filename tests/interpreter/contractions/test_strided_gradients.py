"""Data gradients with strides, whose residue classes one product stores at their pixels: whole numbers, exactly."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from tests.support.contractions.products import Product, pinned_schedule
from tests.support.convolutions import PASSES, Case, dgrad, integers
from tests.support.harnesses.compiling import module_at, specs_of
from tests.support.pairwise import combined


def fits(row: Any) -> bool:
    """Whether the padded input, of 9 elements at least, holds the filter."""
    return (row.get("taps", 1) - 1) * row.get("dilation", 1) < 9


def check(case: Case, dtype: Any, *, stage: str = "gpu", kernels: int = 1, seed: int = 0) -> None:
    """The gradient, scaled, with a bias, and added to another one, in so many kernels."""
    rng = np.random.default_rng(seed)
    _, w, dy = (integers(rng, shape, dtype) for shape in case.shapes)
    old, scale = integers(rng, case.shapes[0], dtype), integers(rng, (case.channels,), dtype)
    of_images = PASSES[len(case.sizes) - 1][2]

    def accumulated(dy: Any, w: Any, scale: Any, old: Any) -> Any:
        return old + (of_images(dy, w, input_size=case.sizes, **case.parameters) * scale + 3)

    arrays = [dy, w, scale, old]
    module = module_at(stage, accumulated, specs_of(arrays))
    assert str(module).count("gpu.func" if stage == "gpu" else "scf.forall (") == kernels
    (found,) = interpreter.run(module, "accumulated", arrays, order="random", seed=seed)
    wide = [array.astype(np.int64) for array in arrays]
    want = wide[3] + dgrad(case, wide[0], wide[1]) * wide[2] + 3
    assert (found == want.astype(dtype)).all()


@combined(
    {
        "stride": [1, 2, 3, 4],
        "taps": [1, 2, 3, 4, 5, 6, 7],
        "dilation": [1, 2, 3],
        "padding": [(0, 0), (1, 0), (2, 3), (0, 2)],
        "size": [9, 12, 14],
    },
    fits,
    turns={"dtype": [np.float32, np.int32], "stage": ["gpu", "gpu", "tile"]},
)
def test_one_dimension(
    stride: int, taps: int, dilation: int, padding: tuple[int, int], size: int, dtype: Any, stage: str
) -> None:
    check(Case(2, (size,), 16, 8, (taps,), (stride,), (padding,), (dilation,)), dtype, stage=stage)


@combined(
    {
        "stride": [(2, 2), (2, 1), (1, 3), (4, 3)],
        "taps": [(1, 1), (3, 3), (2, 5), (7, 4)],
        "padding": [((0, 0), (0, 0)), ((1, 1), (1, 1)), ((2, 0), (1, 3))],
        "channels": [8, 16, 24],
    },
    turns={"dilation": [(1, 1), (2, 1)], "stage": ["gpu", "tile"]},
)
def test_two_dimensions(
    stride: tuple[int, int],
    taps: tuple[int, int],
    padding: Any,
    channels: int,
    dilation: tuple[int, int],
    stage: str,
) -> None:
    case = Case(2, (13, 10), channels, 8, taps, stride, padding, dilation)
    check(case, np.float32, stage=stage)


def test_three_dimensions() -> None:
    case = Case(1, (5, 4, 6), 8, 8, (3, 1, 2), (2, 2, 3), ((1, 0), (0, 0), (1, 1)), (1, 1, 1))
    check(case, np.float32)


@pytest.mark.parametrize("groups", [2, 4])
def test_groups(groups: int) -> None:
    """Channels of all groups lie side by side, and each group is a product of the batch."""
    case = Case(2, (9, 7), 16 * groups, 8 * groups, (3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1), groups)
    check(case, np.float32)


@pytest.mark.parametrize(
    ("case", "kernels"),
    [
        (Case(2, (9,), 16, 8, (3,), (2,), ((1, 1),), (1,)), 1),  # 32 bytes a pixel
        (Case(2, (9,), 8, 8, (3,), (2,), ((1, 1),), (1,)), 1),  # 16 bytes
        (Case(2, (9,), 4, 8, (3,), (2,), ((1, 1),), (1,)), 2),  # 8 bytes
        (Case(2, (2,), 16, 8, (3,), (2,), ((1, 1),), (1,)), 1),  # a pixel a class
        (Case(2, (1, 9), 16, 8, (1, 3), (2, 2), ((0, 0), (1, 1)), (1, 1)), 1),  # classes without a pixel
    ],
    ids=lambda value: f"{value.sizes}x{value.channels}" if isinstance(value, Case) else None,
)
def test_few_channels_and_pixels(case: Case, kernels: int) -> None:
    check(case, np.float16, kernels=kernels)


@pytest.mark.parametrize("reduction", ["last_block", "serial", "grid_sync"])
@pytest.mark.parametrize(
    ("dilation", "product"),
    [
        (1, Product(84, 64, 256, "nn", "float16")),  # classes are columns
        (3, Product(70, 16, 256, "nn", "float16", ((4,), (4,)))),  # a product a class
    ],
)
def test_splits(dilation: int, product: Product, reduction: str) -> None:
    """The blocks that share k store at the pixels what they have combined."""
    rng = np.random.default_rng(1)
    case = Case(2, (13, 10), 16, 64, (3, 3), (2, 2), ((1, 1), (1, 1)), (dilation, dilation))
    _, w, dy = (integers(rng, shape, np.float16) // 2 for shape in case.shapes)

    def split(dy: Any, w: Any) -> Any:
        return mf.conv2d_dgrad(dy, w, input_size=case.sizes, dtype=mf.float32, **case.parameters)

    schedule = pinned_schedule(product, 32, 16, 2, reduction, "mma")
    module = module_at("gpu", split, specs_of([dy, w]), schedule)
    assert str(module).count("gpu.func") == 1
    want = dgrad(case, dy.astype(np.int64), w.astype(np.int64))
    for order, seed in (("launch", 0), ("random", 5)):
        (found,) = interpreter.run(module, "split", [dy, w], order=order, seed=seed)
        assert (found == want).all()


def test_the_next_kernel_reads_the_pixels() -> None:
    """A reduction of the gradient is a kernel behind the one that puts the pixels in order."""
    rng = np.random.default_rng(2)
    case = Case(2, (9, 7), 16, 8, (3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1))
    _, w, dy = (integers(rng, shape, np.float32) for shape in case.shapes)

    def sums(dy: Any, w: Any) -> Any:
        dx = mf.conv2d_dgrad(dy, w, input_size=case.sizes, **case.parameters)
        return dx, mf.sum(dx, axis=(0, 1, 2))

    want = dgrad(case, dy.astype(np.int64), w.astype(np.int64))
    dx, total = mf.fuse(sums, target="interpret")(dy, w)
    assert (dx == want).all()
    assert (total == want.sum((0, 1, 2))).all()


def test_channels_first() -> None:
    """Neighbouring channels are apart in the result, which a second kernel transposes."""
    rng = np.random.default_rng(3)
    case = Case(2, (9, 7), 16, 8, (3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1))
    _, w, dy = (integers(rng, shape, np.float32) for shape in case.shapes)
    first = (0, 3, 1, 2)
    found = mf.fuse(
        lambda dy, w: mf.conv2d_dgrad(dy, w, input_size=case.sizes, layout="NCHW", **case.parameters),
        target="interpret",
    )(*(np.ascontiguousarray(array.transpose(first)) for array in (dy, w)))
    assert (found == dgrad(case, dy.astype(np.int64), w.astype(np.int64)).transpose(first)).all()


COLUMNS = [
    Case(2, (6, 8), 32, 64, (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)),  # all plain
    Case(2, (7, 5), 32, 64, (2, 2), (2, 2), ((0, 1), (1, 0)), (1, 1)),  # pixels that no output meets, and a shift
    Case(2, (6, 8), 3, 64, (2, 4), (2, 4), ((0, 0), (0, 0)), (1, 1)),  # rows of 24 bytes
    Case(1, (12,), 16, 64, (4,), (4,), ((0, 0),), (1,)),
    Case(2, (7, 6), 64, 64, (3, 3), (2, 2), ((1, 1), (1, 0)), (1, 1)),  # classes that meet one tap or two
    Case(1, (8, 8), 64, 128, (1, 1), (2, 2), ((0, 0), (0, 0)), (1, 1)),  # classes that meet none
    Case(1, (9, 8), 64, 64, (4, 5), (2, 1), ((1, 1), (2, 2)), (1, 2)),
]


@combined(
    {"case": COLUMNS, "swapped": [False, True], "tile": [(64, 64), (128, 64)]},
    turns={"order": ["launch", "random"]},
)
def test_columns_on_warpgroups(case: Case, swapped: bool, tile: tuple[int, int], order: str) -> None:
    """Classes are columns of one product, which tensor maps and wgmma compute."""
    rng = np.random.default_rng(4)
    _, w, dy = (integers(rng, shape, np.float16) // 2 for shape in case.shapes)
    old = integers(rng, case.shapes[0], np.float32)
    of_images = PASSES[len(case.sizes) - 1][2]

    def gradient(dy: Any, w: Any, old: Any) -> Any:
        return of_images(dy, w, input_size=case.sizes, dtype=mf.float32, **case.parameters) * 2 + old

    shifted = [(n + pad[0] % s + s - 1) // s for n, pad, s in zip(case.sizes, case.padding, case.stride, strict=True)]
    taps = prod(-(-r // s) for r, s in zip(case.taps, case.stride, strict=True))
    rows, columns = case.images * prod(shifted), prod(case.stride) * case.channels
    product = Product(rows, columns, case.filters * taps, "nn", "float16")
    schedule = pinned_schedule(product, *tile, instruction="wgmma", swapped=swapped)
    module = module_at("gpu", gradient, specs_of([dy, w, old]), schedule)
    assert str(module).count("gpu.func") == 1
    assert "fuse.async_load" in str(module)
    (found,) = interpreter.run(module, "gradient", [dy, w, old], order=order, seed=3)
    assert (found == dgrad(case, dy.astype(np.int64), w.astype(np.int64)) * 2 + old).all()


@pytest.mark.parametrize(
    "other",
    [
        Case(2, (9, 7), 16, 24, (3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1)),
        Case(2, (9, 7), 16, 24, (1, 1), (2, 2), ((0, 0), (0, 0)), (1, 1)),
        Case(2, (9, 7), 16, 24, (3, 2), (3, 1), ((2, 0), (0, 1)), (2, 1)),
        Case(2, (9, 7), 16, 24, (1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1)),
    ],
    ids=lambda case: f"{case.taps}, stride {case.stride}",
)
def test_a_sum_of_two_gradients(other: Case) -> None:
    """The product that adds the other one's classes reads them where it stores its own: two launches, not three."""
    rng = np.random.default_rng(6)
    cases = [Case(2, (9, 7), 16, 8, (3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1)), other]
    arrays = [integers(rng, shape, np.float32) for case in cases for shape in case.shapes[:0:-1]]

    def added(dy1: Any, w1: Any, dy2: Any, w2: Any) -> Any:
        first, second = (
            mf.conv2d_dgrad(dy, w, input_size=case.sizes, **case.parameters)
            for case, dy, w in zip(cases, (dy1, dy2), (w1, w2), strict=True)
        )
        return first + second

    module = module_at("gpu", added, specs_of(arrays))
    assert str(module).count("gpu.func") == 2
    wide = [array.astype(np.int64) for array in arrays]
    want = dgrad(cases[0], wide[0], wide[1]) + dgrad(cases[1], wide[2], wide[3])
    for order, seed in (("launch", 0), ("random", 5)):
        (found,) = interpreter.run(module, "added", arrays, order=order, seed=seed)
        assert (found == want).all()
