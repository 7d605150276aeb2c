"""Tensor maps of gathered views, against a model of the hardware's traversal of windows."""

from __future__ import annotations

from itertools import product
from math import gcd

import numpy as np
import pytest
from mlir import ir

from mlirfuse.analysis.memory.mapped_views import MappedView, mapped_view
from mlirfuse.dialect.gathered_view import Gather
from mlirfuse.interpreter.state.affine import compile_map
from mlirfuse.support.strides import row_major

SOURCE = (2, 9, 8, 64)


def windows(shape, outputs, taps, steps, dilations, before) -> Gather:
    """Windows of images, pixels in the first dimension of the view."""
    n, p, q, r, s, c = (ir.AffineExpr.get_dim(d) for d in range(6))
    places = [
        pixel * step + tap * dilation - pad
        for pixel, tap, step, dilation, pad in zip((p, q), (r, s), steps, dilations, before, strict=True)
    ]
    basis = ((shape[0], *outputs), (*taps, shape[-1]))
    return Gather(basis, ir.AffineMap.get(6, 0, [n, *places, c]))


def visited(mapped: MappedView, shape, taps) -> dict[tuple[int, ...], list[tuple[int, ...]]]:
    """The pixels that copies visit in order, by tap: the box of windows row by row, image by image."""
    assert mapped.im2col is not None
    found = mapped.im2col
    axes = [
        range(low, extent - 1 + high + 1, step)
        for low, high, step, extent in zip(found.lower, found.upper, found.steps, shape[1:3], strict=True)
    ]
    pixels: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for tap in product(*map(range, taps)):
        offset = [
            t * d + (-d * (count - 1) if d < 0 else 0) for t, d, count in zip(tap, found.dilations, taps, strict=True)
        ]
        pixels[tap] = [
            (n, *(place + o for place, o in zip(at, offset, strict=True)))
            for n in range(shape[0])
            for at in product(*axes)
        ]
    return pixels


@pytest.mark.parametrize("seed", range(60))
def test_traversal_is_the_map(context: ir.Context, seed: int) -> None:
    rng = np.random.default_rng(seed)
    taps = tuple(int(n) for n in rng.integers(1, 4, 2))
    steps = tuple(int(n) for n in rng.integers(1, 4, 2))
    dilations = tuple(int(n) * (-1 if rng.random() < 0.3 else 1) for n in rng.integers(1, 4, 2))
    outputs = tuple(int(n) for n in rng.integers(1, 6, 2))
    before = tuple(int(n) for n in rng.integers(-2, 6, 2))
    with context:
        mapped = mapped_view(windows(SOURCE, outputs, taps, steps, dilations, before), SOURCE, 2)
    assert isinstance(mapped, MappedView)
    assert mapped.row == 0
    for tap, pixels in visited(mapped, SOURCE, taps).items():
        want = [
            (n, *(p * s + t * d - b for p, s, t, d, b in zip(at, steps, tap, dilations, before, strict=True)))
            for n in range(SOURCE[0])
            for at in product(*map(range, outputs))
        ]
        assert pixels == want


@pytest.mark.parametrize(
    ("shape", "changes"),
    [
        ((2, 9, 8, 3), {}),
        ((2, 9, 8, 96), {}),
        (SOURCE, {"steps": (9, 1)}),
        (SOURCE, {"before": (129, 0)}),
        (SOURCE, {"dilations": (128, 1)}),
    ],
)
def test_beyond_the_limits(context: ir.Context, shape: tuple[int, ...], changes: dict[str, tuple[int, int]]) -> None:
    given = {"outputs": (4, 4), "taps": (3, 3), "steps": (1, 1), "dilations": (1, 1), "before": (1, 1)} | changes
    with context:
        assert isinstance(mapped_view(windows(shape, **given), shape, 2), str)


def test_permuted_axes(context: ir.Context) -> None:
    with context:
        r, s, k, c = (ir.AffineExpr.get_dim(d) for d in range(4))
        filters = Gather(((3, 3, 128), (40,)), ir.AffineMap.get(4, 0, [k, r, s, c]))
        assert mapped_view(filters, (128, 3, 3, 40), 2) == MappedView(0, 1, (3, 0, 2, 1), rows=128)
        assert isinstance(mapped_view(filters, (192, 3, 3, 40), 2), str)


def filters_of_classes(count: int, channels: int) -> Gather:
    """Filters by tap and filter, with a column for each residue class of a stride of 2 and channel."""
    j, i, k, a, b, c = (ir.AffineExpr.get_dim(d) for d in range(6))
    return Gather(((2, 2, count), (2, 2, channels)), ir.AffineMap.get(6, 0, [k, j * 2 + a, i * 2 + b, c]))


def test_boxes_of_classes(context: ir.Context) -> None:
    """Boxes are placed by the components that they do not run along, past the filter's end too."""
    with context:
        view = filters_of_classes(128, 64)
        assert mapped_view(view, (128, 3, 3, 64), 2) == MappedView(0, 1, (3, 0, 2, 1), rows=128)
        index_of = compile_map(view.map)
        for row, column in product(range(0, 512, 128), range(0, 256, 64)):
            rows = np.unravel_index(row + np.arange(128)[:, None], (2, 2, 128))
            columns = np.unravel_index(column + np.arange(64)[None, :], (2, 2, 64))
            filter_, r, s, channel = (np.broadcast_to(i, (128, 64)) for i in index_of([*rows, *columns]))
            assert (filter_ == np.arange(128)[:, None]).all()
            assert (channel == np.arange(64)).all()
            assert (r == r[0, 0]).all()
            assert (s == s[0, 0]).all()
        assert isinstance(mapped_view(filters_of_classes(128, 96), (128, 3, 3, 96), 2), str)
        assert isinstance(mapped_view(filters_of_classes(96, 64), (96, 3, 3, 64), 2), str)
        k, r, c = (ir.AffineExpr.get_dim(d) for d in range(3))
        mixed = Gather(((64,), (3, 64)), ir.AffineMap.get(3, 0, [k, r + c, c]))
        assert isinstance(mapped_view(mixed, (64, 66, 64), 2), str)


def test_periods_of_windows(context: ir.Context) -> None:
    """Pixels, and the channels of a tap, read elements of their own; taps read what other pixels read."""
    with context:
        view = windows(SOURCE, (7, 6), (3, 3), (1, 1), (1, 1), (0, 0))
        assert view.period(0) == 2 * 7 * 6
        assert view.period(1) == 64


def windows_of_groups(groups: int, apart: int, channels: int) -> Gather:
    """Windows of groups of so many channels, a copy of which has `channels`."""
    g, n, p, q, r, s, c = (ir.AffineExpr.get_dim(d) for d in range(7))
    basis = ((groups,), (2, 7, 6), (3, 3, channels))
    return Gather(basis, ir.AffineMap.get(7, 0, [n, p + r, q + s, g * apart + c]))


def test_groups_of_channels(context: ir.Context) -> None:
    """Lines of a group's channels, and of channels of the next groups behind them, past the last one too."""
    with context:
        for apart, channels, total in ((64, 64, 128), (48, 64, 96), (112, 128, 224)):
            view = windows_of_groups(2, apart, channels)
            mapped = mapped_view(view, (2, 9, 8, total), 2)
            assert isinstance(mapped, MappedView)
            assert (mapped.batch, mapped.row, mapped.column, mapped.apart) == (0, 1, 2, apart)
            assert view.parts(0, (2, 9, 8, total)) == 2
            assert view.parts(1, (2, 9, 8, total)) == 2  # images; pixels overlap
            assert view.unit((2, 9, 8, total), row_major((2, 9, 8, total))) == (2, gcd(apart, channels))
        assert isinstance(mapped_view(windows_of_groups(2, 48, 48), (2, 9, 8, 96), 2), str)
        assert isinstance(mapped_view(windows_of_groups(1, 64, 64), (2, 9, 8, 64), 2), MappedView)
