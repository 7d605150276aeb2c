"""Strides of arrays that are not C-contiguous: the entries of `fuse.strides`, and their change by a reshape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import gcd, prod

from mlir import ir

PACKED, NEGATIVE, RUN_TIME = (-(1 << 62) + number for number in range(3))
"""Entries of `fuse.strides` for strides that run time has to say, less than any that is known: a packed one, which is
extent times stride of the next dimension whose extent is not 1, so that both can be merged; one that may be negative;
and one that is not.
"""

WORDS = {PACKED: "packed", NEGATIVE: "negative", RUN_TIME: "?"}
"""What these are in the attribute."""

_ENTRIES = {word: entry for entry, word in WORDS.items()}

Extents = Sequence[int | None]
"""None is an extent known at run time."""
Groups = Iterable[Sequence[int]]
"""For each dimension of one side of a reshape, the neighbouring dimensions of the other side that it stands for."""


def is_known(stride: int) -> bool:
    """Whether an entry is the stride itself, in elements; it is negative where the dimension is reversed."""
    return stride > RUN_TIME


def may_be_reversed(stride: int) -> bool:
    """Whether an entry is of a dimension that is, or at run time may be, reversed."""
    return stride == NEGATIVE or (is_known(stride) and stride < 0)


def attribute_of(strides: Iterable[int]) -> ir.ArrayAttr:
    """`fuse.strides` with these entries."""
    i64 = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get(
        [ir.StringAttr.get(WORDS[s]) if s in WORDS else ir.IntegerAttr.get(i64, s) for s in strides]
    )


def entries_of(attribute: ir.Attribute) -> list[int]:
    """The entries of `fuse.strides`."""
    return [
        entry.value if isinstance(entry, ir.IntegerAttr) else _ENTRIES[entry.value] for entry in ir.ArrayAttr(attribute)
    ]


def contiguous(extents: Extents) -> list[int]:
    """The entries of `fuse.strides` that a C-contiguous array would have."""
    strides, known = [], 1
    for extent in reversed(extents):
        strides.append(known or PACKED)
        known = known * extent if extent is not None else 0
    return strides[::-1]


def split(strides: Sequence[int], groups: Groups, extents: Extents) -> list[int]:
    """The entries of `fuse.strides` after a `tensor.expand_shape`, which always is a view.

    Args:
        strides: the entries before.
        groups: the dimensions of the result that each dimension becomes.
        extents: the extents of the result.
    """
    return [_split_off(stride, extents, d, group) for stride, group in zip(strides, groups, strict=True) for d in group]


def _split_off(stride: int, extents: Extents, dim: int, group: Sequence[int]) -> int:
    inner = [extents[d] for d in group if d > dim]
    if extents[dim] == 1 and len(group) > 1:
        return RUN_TIME  # of one element, nothing follows from it
    known = [extent for extent in inner if extent is not None]
    if is_known(stride) and (len(known) == len(inner) or not stride):
        return stride * prod(known)
    return stride if prod(known) == 1 and len(known) == len(inner) else PACKED


def split_alignment(align: int, strides: Sequence[int], groups: Groups, extents: Extents, element_bytes: int) -> int:
    """The alignment, bytes, of the strides that `split` makes dynamic; `align` is the alignment before."""
    for stride, group in zip(strides, groups, strict=True):
        known = [extents[d] for d in group[1:]]
        if is_known(stride) and stride and None in known:
            align = gcd(align, stride * element_bytes)  # times the extent that is not known
    return align


def merged(strides: Sequence[int], groups: Groups, extents: Extents) -> list[int] | None:
    """The entries of `fuse.strides` after a `tensor.collapse_shape`; None where that may be no view.

    Args:
        strides: the entries before.
        groups: the dimensions that become one, for each dimension of the result.
        extents: the extents before.
    """
    result = []
    for group in groups:
        wide = [d for d in group if extents[d] != 1]
        if not all(_encloses(strides[a], strides[b], extents[b]) for a, b in pairwise(wide)):
            return None
        result.append(strides[wide[-1]] if wide else RUN_TIME)
    return result


def _encloses(outer: int, inner: int, extent: int | None) -> bool:
    """Whether a stride is the extent times the stride of the dimension behind it."""
    return (
        outer == PACKED or outer == inner == 0 or (extent is not None and is_known(inner) and outer == inner * extent)
    )


def view(shape: Sequence[int], strides: Sequence[int], target: Sequence[int]) -> tuple[int, ...] | None:
    """The strides of a view in shape `target` of an array of known extents and strides; None where a copy is needed.

    Strides are in any unit. `target` has as many elements.
    """
    if 0 in shape:
        return tuple(0 for _ in target)
    runs = _runs(shape, strides)
    result: list[int] = []
    extent, step = runs.pop() if runs else (1, 0)
    for size in reversed(target):
        if size == 1:
            result.append(step)
            continue
        if extent == 1:
            extent, step = runs.pop()
        if extent % size:
            return None
        result.append(step)
        extent, step = extent // size, step * size
    return tuple(reversed(result))


def _runs(shape: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    """An array's (extent, stride) pairs with as few dimensions as it can be seen with, and none of extent 1."""
    runs: list[tuple[int, int]] = []
    for extent, stride in zip(shape, strides, strict=True):
        if extent == 1:
            continue
        if runs and runs[-1][1] == extent * stride:
            runs[-1] = (runs[-1][0] * extent, stride)
        else:
            runs.append((extent, stride))
    return runs


def row_major(shape: Sequence[int]) -> list[int]:
    """The strides of a C-contiguous array, in elements."""
    return [prod(shape[d + 1 :]) for d in range(len(shape))]
