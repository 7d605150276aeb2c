"""Gathered views whose tiles tensor maps copy: windows of images (im2col mode), and boxes of filters.

The limits are those of `cuTensorMapEncodeIm2col` and of `cp.async.bulk.tensor` (PTX ISA).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from math import gcd

from mlir import ir

from mlirfuse.dialect.gathered_view import Gather, gather_of, source_of
from mlirfuse.schedule.model.machine import MAX_RANK, SWIZZLE_BYTES
from mlirfuse.support.affine_expressions import coefficients

CORNERS = {1: (1 << 15, 1 << 16), 2: (1 << 7, 1 << 8), 3: (1 << 4, 1 << 5)}
"""By the number of spatial dimensions: bounds of the corners' size, and of offsets."""

LONGEST_STEP = 8
"""The largest traversal stride of a tensor map."""

STEP_ROWS = (64, 128)
"""Rows of a tile along k, which must not straddle two values of a component: the least, and the most."""


@dataclass(frozen=True)
class Im2col:
    """The windows that a tensor map in im2col mode describes; spatial dimensions from the outside in.

    Attributes:
        lower: the first pixel of a window's first tap.
        upper: the last pixel of a window's first tap, less the image's last pixel.
        steps: pixels between neighbouring windows.
        dilations: pixels between neighbouring taps; the first tap of negative ones is the last component.
    """

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    steps: tuple[int, ...]
    dilations: tuple[int, ...]


@dataclass(frozen=True)
class MappedView:
    """How tensor maps describe a gathered view of two dimensions; windows of groups of channels have a batch as well.

    Attributes:
        row: the view's dimension along which a copy has rows.
        column: the view's dimension along which it has columns.
        axes: the source's axes, from the inside out; for boxes that of the columns, that of the rows, and the others.
        im2col: the windows; None where copies are boxes.
        rows: what the rows of a box must divide; 0 for windows, which may have any rows.
        batch: the view's dimension of groups of channels; None where there are no groups.
        apart: channels from a group's first one to the next group's.
    """

    row: int
    column: int
    axes: tuple[int, ...]
    im2col: Im2col | None = None
    rows: int = 0
    batch: int | None = None
    apart: int = 0


def mapped_view(gather: Gather, shape: Sequence[int], element_bytes: int) -> MappedView | str:
    """How tensor maps copy tiles of a view of a source of that shape, contiguous along its last axis; or why not."""
    if len(gather.basis) not in (2, 3):
        return "the view has not two dimensions, and a batch at most"
    count = len(gather.components)
    linear = [coefficients(expr, count) for expr in gather.map.results]
    if not 2 < len(shape) <= MAX_RANK or any(entry is None for entry in linear):
        return "the source's rank, or the map, is not that of windows"
    known = [entry for entry in linear if entry is not None]
    numbers = [[c for c, of in enumerate(gather.dims) if of == dim] for dim in range(len(gather.basis))]
    for row, column, *batch in permutations(range(len(gather.basis))):
        outer, inner = numbers[row], numbers[column]
        group = numbers[batch[0]] if batch else []
        found = _windows(gather, shape, element_bytes, known, outer, inner, group)
        if found is not None:
            apart = known[-1][0][group[0]] if group else 0
            axes = tuple(reversed(range(len(shape))))
            return MappedView(row, column, axes, found, batch=batch[0] if batch else None, apart=apart)
        boxes = None if batch else _boxes(gather, shape, element_bytes, known, outer, inner)
        if boxes is not None:
            return MappedView(row, column, boxes[0], rows=boxes[1])
    return "the map is neither that of windows, within the hardware's limits, nor that of boxes along two axes"


Linear = tuple[list[int], int]


def _is_component(entry: Linear, component: int) -> bool:
    return entry[1] == 0 and all(c == int(d == component) for d, c in enumerate(entry[0]))


def _windows(
    gather: Gather,
    shape: Sequence[int],
    element_bytes: int,
    linear: Sequence[Linear],
    outer: Sequence[int],
    inner: Sequence[int],
    group: Sequence[int],
) -> Im2col | None:
    """Windows of all channels, or of whole 128-byte rows from a group's first channel on, past the last one too."""
    spatial, extents = len(shape) - 2, gather.components
    if len(outer) != spatial + 1 or len(inner) != spatial + 1 or len(group) > 1 or spatial not in CORNERS:
        return None
    channels = extents[inner[-1]]
    whole = extents[outer[0]] == shape[0] and (group or channels >= shape[-1])
    if not whole or channels * element_bytes % SWIZZLE_BYTES:
        return None
    apart = [linear[-1][0][g] for g in group]
    of_channels = [apart[0] if d in group else int(d == inner[-1]) for d in range(len(extents))]
    if not _is_component(linear[0], outer[0]) or linear[-1] != (of_channels, 0) or min(apart, default=1) < 1:
        return None
    corner, offset = CORNERS[spatial]
    parts: list[tuple[int, int, int, int]] = []
    for axis in range(spatial):
        pixel, tap = outer[axis + 1], inner[axis]
        terms, start = linear[axis + 1]
        if any(c for d, c in enumerate(terms) if d not in (pixel, tap)):
            return None
        step, dilation = terms[pixel], terms[tap]
        reach = dilation * (extents[tap] - 1)
        lower = start + min(0, reach)
        upper = lower + step * (extents[pixel] - 1) - (shape[axis + 1] - 1)
        if not 0 < step <= LONGEST_STEP or abs(reach) >= offset:
            return None
        if not -corner <= min(lower, upper) <= max(lower, upper) < corner:
            return None
        parts.append((lower, upper, step, dilation))
    lowers, uppers, steps, dilations = zip(*parts, strict=True)
    return Im2col(lowers, uppers, steps, dilations)


def _boxes(
    gather: Gather,
    shape: Sequence[int],
    element_bytes: int,
    linear: Sequence[Linear],
    outer: Sequence[int],
    inner: Sequence[int],
) -> tuple[tuple[int, ...], int] | None:
    """The source's axes, and what rows must divide, of boxes whose columns and rows run along an axis each, by the last
    component; the others only say where they are.

    The hardware fills boxes with zeros that lie outside along the other axes, as the view has them.
    """
    extents, (column, step) = gather.components, (inner[-1], outer[-1])
    axes = [
        axis
        for component in (column, step)
        for axis, entry in enumerate(linear)
        if _is_component(entry, component) and extents[component] == shape[axis]
    ]
    if len(axes) != 2 or axes[0] != len(shape) - 1 or extents[step] % STEP_ROWS[0]:
        return None
    if len(inner) > 1 and extents[column] * element_bytes % SWIZZLE_BYTES:  # a copy's columns lie in one run
        return None
    others = [axis for axis in reversed(range(len(shape))) if axis not in axes]
    if any(linear[axis][0][component] for axis in others for component in (column, step)):
        return None
    return (*axes, *others), gcd(extents[step], STEP_ROWS[1])


def mapped_argument(attributes: ir.DictAttr, element_bytes: int) -> MappedView | str:
    """`mapped_view` of a `fuse.gather` attribute, whose source must be contiguous along its last axis."""
    if "strides" in attributes:
        return "the view's source is not contiguous"
    shape = list(source_of(attributes).shape)
    return mapped_view(gather_of(attributes), shape, element_bytes)
