"""Convolutions on the GPU: integers exactly, random data within cuDNN's error against double precision."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.passes.groups import pad_channels
from mlirfuse.target import TARGETS
from tests.support.contractions.depthwise import kernel_of, of_filters, sliced_loops
from tests.support.convolutions import (
    PARTS_OF_GRADIENTS,
    PASSES,
    STRIDED_GRADIENTS,
    Case,
    dgrad,
    forward,
    integers,
    part_of_gradient,
    random_case,
    random_programs,
    wgrad,
)
from tests.support.harnesses.compiling import specs_of

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

DTYPES: list[Any] = [np.float16, np.float32, np.int32]

LAYERS = [
    Case(4, (14, 14), 64, 128, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    Case(4, (28, 28), 3, 64, (7, 7), (2, 2), ((3, 3), (3, 3)), (1, 1)),
    Case(2, (17, 15), 24, 40, (3, 3), (2, 2), ((0, 1), (1, 0)), (1, 1)),
    Case(2, (20, 20), 64, 64, (3, 3), (1, 1), ((6, 6), (6, 6)), (6, 6)),
    Case(2, (16, 16), 128, 128, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 8),
    Case(2, (16, 16), 48, 48, (7, 7), (1, 1), ((3, 3), (3, 3)), (1, 1), 48),
]


def passes(case: Case, arrays: tuple[Any, Any, Any], **more: Any) -> list[Any]:
    """The result and both gradients, of CuPy arrays."""
    x, w, dy = arrays
    p = case.parameters | more
    convolve, of_filters, of_images = PASSES[len(case.sizes) - 1]
    return [
        mf.fuse(lambda x, w: convolve(x, w, **p))(x, w),
        mf.fuse(lambda x, dy: of_filters(x, dy, kernel_size=case.taps, **p))(x, dy),
        mf.fuse(lambda dy, w: of_images(dy, w, input_size=case.sizes, **p))(dy, w),
    ]


def check(case: Case, found: list[Any], arrays: tuple[Any, ...]) -> None:
    x, w, dy = (array.astype(np.int64) for array in arrays)
    for got, want in zip(found, (forward(case, x, w), wgrad(case, x, dy), dgrad(case, dy, w)), strict=True):
        np.testing.assert_array_equal(cupy.asnumpy(got).astype(np.float64), want)


@pytest.mark.parametrize("seed", range(300))
def test_random_parameters(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    case = random_case(rng, 1 + seed % 2, 12)
    arrays = tuple(integers(rng, shape, DTYPES[seed % 3]) for shape in case.shapes)
    check(case, passes(case, tuple(map(cupy.asarray, arrays))), arrays)


@pytest.mark.parametrize("seed", range(100))
def test_random_programs(seed: int) -> None:
    """Either layout, "same" padding, and elementwise ops and sums before and behind."""
    for program in random_programs(np.random.default_rng(2000 + seed), 1 + seed // 3 % 3, DTYPES[seed % 3]):
        found = cupy.asnumpy(mf.fuse(program.fn)(*map(cupy.asarray, program.arrays)))
        np.testing.assert_array_equal(found, program.expected.astype(found.dtype))


def _depthwise(size: int, channels: int, taps: int, stride: int) -> Case:
    edge = (taps // 2, taps // 2)
    return Case(3, (size, size), channels, channels, (taps, taps), (stride, stride), (edge, edge), (1, 1), channels)


DEPTHWISE = [
    _depthwise(size, channels, taps, stride)
    for size, channels, taps, stride in (
        (56, 96, 7, 1),
        (14, 384, 7, 1),
        (7, 768, 7, 1),
        (112, 32, 3, 1),
        (112, 64, 3, 2),
        (56, 144, 3, 2),
        (28, 48, 5, 2),
        (33, 40, 7, 3),
        (28, 240, 5, 1),
        (11, 20, 3, 1),
    )
]


@pytest.mark.parametrize("case", DEPTHWISE, ids=str)
def test_depthwise_layers_of_integers(case: Case) -> None:
    """Threads with runs of outputs, whose windows overlap."""
    rng = np.random.default_rng(2)
    arrays = tuple((rng.integers(-1, 2, shape) * (rng.random(shape) < 0.3)).astype(np.float16) for shape in case.shapes)
    check(case, passes(case, tuple(map(cupy.asarray, arrays)), dtype=mf.float32), arrays)


@pytest.mark.parametrize("case", DEPTHWISE, ids=str)
def test_depthwise_layers_of_images_in_nan(case: Case) -> None:
    """Windows that leave an image find zeros there, not what lies beside it in memory."""
    rng = np.random.default_rng(5)
    arrays = tuple((rng.integers(-1, 2, shape) * (rng.random(shape) < 0.3)).astype(np.float16) for shape in case.shapes)
    margin = 1 << 16
    on_device = []
    for array in arrays:
        memory = cupy.full(array.size + 2 * margin, cupy.nan, dtype=array.dtype)
        memory[margin:-margin] = cupy.asarray(array).ravel()
        on_device.append(memory[margin:-margin].reshape(array.shape))
    x, w, dy = on_device
    check(case, passes(case, (x, w, dy), dtype=mf.float32), arrays)


def _grouped(images: int, size: int, channels: int, groups: int, stride: int = 1, filters: int = 0) -> Case:
    edge = ((1, 1), (1, 1))
    return Case(images, (size, size), channels, filters or channels, (3, 3), (stride, stride), edge, (1, 1), groups)


GROUPED = [
    _grouped(8, 56, 128, 32),
    _grouped(8, 28, 256, 32),
    _grouped(4, 56, 512, 32, 2),
    _grouped(8, 14, 1024, 32),
    _grouped(16, 14, 576, 24),
    _grouped(8, 28, 192, 4),
    _grouped(4, 28, 448, 4),
    _grouped(8, 29, 216, 9, 2),
    _grouped(8, 31, 128, 16, 1, 64),
]
"""Groups that are merged, or read in whole lines; one of 48 channels reads the channels behind the last one."""


def check_integers(case: Case, seed: int) -> None:
    """All passes are exact, and have the same bits again."""
    rng = np.random.default_rng(seed)
    arrays = tuple((rng.integers(-1, 2, shape) * (rng.random(shape) < 0.3)).astype(np.float16) for shape in case.shapes)
    on_device = tuple(map(cupy.asarray, arrays))
    found = passes(case, on_device, dtype=mf.float32)
    check(case, found, arrays)
    for first, again in zip(found, passes(case, on_device, dtype=mf.float32), strict=True):
        assert (first == again).all()


@pytest.mark.parametrize("case", GROUPED, ids=str)
def test_groups_of_integers(case: Case) -> None:
    """Merged groups, whose products of other groups' channels are zero, exactly; and the same bits again."""
    check_integers(case, seed=4)


NARROW = [
    Case(8, (32, 32), 48, 96, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    Case(8, (31, 33), 96, 48, (5, 5), (1, 1), ((2, 2), (2, 2)), (1, 1)),
    Case(8, (32, 32), 96, 192, (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)),
    Case(4, (40, 40), 16, 32, (3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1)),
    Case(4, (40, 40), 24, 24, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    Case(4, (40, 40), 18, 18, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    Case(4, (40, 40), 3, 32, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    Case(4, (40, 40), 3, 64, (11, 11), (4, 4), ((2, 2), (2, 2)), (1, 1)),
]
"""Channels that fill no lines: padded where that is predicted faster, or gathered."""


@pytest.mark.parametrize("case", NARROW, ids=str)
@pytest.mark.parametrize("is_padded", [False, True])
def test_narrow_channels_of_integers(case: Case, is_padded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As predicted, and padded whatever is predicted."""
    if is_padded:
        monkeypatch.setattr(pad_channels, "times", lambda *_: (2.0, 1.0))
    check_integers(case, seed=6)


@pytest.mark.parametrize("case", DEPTHWISE, ids=str)
def test_depthwise_gradients_of_filters(case: Case) -> None:
    """Threads with runs of pixels, whose sums leave in half precision: all of them are small whole numbers."""
    rng = np.random.default_rng(3)
    x, _, dy = ((rng.integers(-1, 2, s) * (rng.random(s) < 0.3)).astype(np.float16) for s in case.shapes)
    fused = mf.fuse(lambda x, dy: mf.conv2d_wgrad(x, dy, kernel_size=case.taps, **case.parameters))
    found = [cupy.asnumpy(fused(cupy.asarray(x), cupy.asarray(dy))) for _ in range(2)]
    assert (found[0] == wgrad(case, x.astype(np.float64), dy.astype(np.float64))).all()
    assert (found[0] == found[1]).all()


@pytest.mark.parametrize("case", DEPTHWISE, ids=str)
def test_depthwise_gradients_of_filters_and_a_bias(case: Case) -> None:
    """Both from one kernel: dy is loaded once."""
    rng = np.random.default_rng(7)
    x, _, dy = ((rng.integers(-1, 2, s) * (rng.random(s) < 0.3)).astype(np.float16) for s in case.shapes)

    def gradients(x: Any, dy: Any) -> Any:
        filters = mf.conv2d_wgrad(x, dy, kernel_size=case.taps, dtype=mf.float32, **case.parameters)
        return filters, mf.sum(dy, axis=(0, 1, 2), dtype=mf.float32)

    filters, bias = mf.fuse(gradients)(cupy.asarray(x), cupy.asarray(dy))
    assert (cupy.asnumpy(filters) == wgrad(case, x.astype(np.float64), dy.astype(np.float64))).all()
    assert (cupy.asnumpy(bias) == dy.astype(np.float64).sum((0, 1, 2))).all()


@pytest.mark.parametrize("case", LAYERS, ids=str)
def test_layers_of_integers(case: Case) -> None:
    check_integers(case, seed=0)


@pytest.mark.parametrize("case", [*LAYERS, *GROUPED[:2]], ids=str)
def test_error_against_double(case: Case) -> None:
    rng = np.random.default_rng(1)
    arrays = tuple(rng.standard_normal(shape).astype(np.float16) for shape in case.shapes)
    x, w, dy = (array.astype(np.float64) for array in arrays)
    found = passes(case, tuple(map(cupy.asarray, arrays)))
    for got, want in zip(found, (forward(case, x, w), wgrad(case, x, dy), dgrad(case, dy, w)), strict=True):
        assert np.linalg.norm(cupy.asnumpy(got) - want) <= 1e-3 * np.linalg.norm(want)


STRIDED = [
    Case(8, (56, 56), 64, 128, (3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1)),
    Case(4, (28, 28), 256, 512, (1, 1), (2, 2), ((0, 0), (0, 0)), (1, 1)),
    Case(4, (64, 64), 16, 64, (7, 7), (2, 2), ((3, 3), (3, 3)), (1, 1)),
    Case(4, (28, 28), 128, 256, (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)),
    Case(4, (64, 64), 16, 128, (16, 16), (16, 16), ((0, 0), (0, 0)), (1, 1)),
    Case(4, (64, 64), 3, 128, (4, 4), (4, 4), ((0, 0), (0, 0)), (1, 1)),
    Case(3, (31, 29), 24, 40, (5, 3), (3, 2), ((2, 1), (0, 2)), (2, 1)),
    Case(4, (29, 27), 64, 128, (3, 3), (2, 2), ((1, 1), (0, 2)), (1, 1)),
    Case(2, (30, 30), 128, 64, (7, 5), (2, 3), ((3, 3), (2, 2)), (1, 1)),
    Case(2, (30, 30), 32, 64, (2, 1), (4, 2), ((1, 0), (0, 0)), (1, 1)),
]


@pytest.mark.parametrize("case", STRIDED, ids=str)
def test_strided_data_gradients(case: Case) -> None:
    """One launch stores each residue class at its pixels, scaled and added to another gradient."""
    rng = np.random.default_rng(2)
    _, w, dy = (rng.integers(-1, 2, shape).astype(np.float16) for shape in case.shapes)
    scale, old = (rng.integers(-2, 3, shape).astype(np.float32) for shape in ((case.channels,), case.shapes[0]))
    p = case.parameters | {"input_size": case.sizes, "dtype": mf.float32}
    fused = mf.fuse(lambda dy, w, scale, old: mf.conv2d_dgrad(dy, w, **p) * scale + old)
    arrays = [cupy.asarray(array) for array in (dy, w, scale, old)]
    found = fused(*arrays)
    want = dgrad(case, dy.astype(np.int64), w.astype(np.int64)) * scale + old
    np.testing.assert_array_equal(cupy.asnumpy(found), want)
    assert (fused(*arrays) == found).all()


def test_sum_of_strided_data_gradients() -> None:
    """Of a block with a shortcut: one product stores its classes apart, and the other one reads them there."""
    rng = np.random.default_rng(3)
    main, shortcut = STRIDED[0], Case(8, (56, 56), 64, 256, (1, 1), (2, 2), ((0, 0), (0, 0)), (1, 1))
    arrays = [
        rng.integers(-1, 2, shape).astype(np.float16) for case in (main, shortcut) for shape in case.shapes[:0:-1]
    ]

    def added(dy1: Any, w1: Any, dy2: Any, w2: Any) -> Any:
        first, second = (
            mf.conv2d_dgrad(dy, w, input_size=56, dtype=mf.float32, **case.parameters)
            for case, dy, w in ((main, dy1, w1), (shortcut, dy2, w2))
        )
        return first + second

    found = mf.fuse(added)(*map(cupy.asarray, arrays))
    wide = [array.astype(np.int64) for array in arrays]
    want = dgrad(main, wide[0], wide[1]) + dgrad(shortcut, wide[2], wide[3])
    np.testing.assert_array_equal(cupy.asnumpy(found).astype(np.float64), want)


@pytest.mark.parametrize(("channels", "taps", "stride"), [(88, 3, 2), (96, 7, 1), (240, 5, 1)])
def test_slices_of_channels(channels: int, taps: int, stride: int) -> None:
    """Blocks with a slice of the channels, of which the last one may be a part; the same bits again."""
    case, rng = _depthwise(28, channels, taps, stride), np.random.default_rng(6)
    x, _, dy = ((rng.integers(-1, 2, s) * (rng.random(s) < 0.3)).astype(np.float16) for s in case.shapes)
    function, want = of_filters(case, mf.float32), wgrad(case, x.astype(np.int64), dy.astype(np.int64))
    on_device = (cupy.asarray(x), cupy.asarray(dy))
    name, problem = kernel_of(function, specs_of([x, dy]))
    found = sliced_loops(problem, TARGETS["sm_90a"].with_sms(cupy.cuda.Device().attributes["MultiProcessorCount"]))
    for number in range(0, len(found), max(1, len(found) // 6)):
        fused = mf.fuse(function, schedule={name: found[number]})
        result = fused(*on_device)
        np.testing.assert_array_equal(cupy.asnumpy(result).astype(np.float64), want)
        assert (result == fused(*on_device)).all()


@pytest.mark.parametrize("name", PARTS_OF_GRADIENTS)
@pytest.mark.parametrize("case", STRIDED_GRADIENTS, ids=str)
def test_parts_of_data_gradients(name: str, case: Case) -> None:
    """With strides a gradient's pixels are gathered from their residue classes, of which slices are read."""
    _, w, dy = (integers(np.random.default_rng(case.taps[0]), shape, np.float32) for shape in case.shapes)
    want = PARTS_OF_GRADIENTS[name](np, dgrad(case, dy.astype(np.int64), w.astype(np.int64)))
    found = mf.fuse(partial(part_of_gradient, name, case))(*map(cupy.asarray, (dy, w)))
    np.testing.assert_array_equal(cupy.asnumpy(found).astype(np.float64), want)
