"""Sectors of results that two tiles write parts of: rows of memory that are no whole sectors long have these."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import gcd, prod

from mlirfuse.schedule.parts.array_access import ArrayAccess
from mlirfuse.target import SECTOR


@lru_cache(maxsize=4096)
def split_sectors(array: ArrayAccess, tile: tuple[int, ...], extents: tuple[int, ...]) -> tuple[int, float] | None:
    """The dimension along which neighbouring tiles share sectors of an array, and how many they share in all, about.

    None where tiles consist of whole sectors.

    Args:
        array: the array.
        tile: sides of a tile of the space.
        extents: of the space.
    """
    steps = array.steps(extents)
    split = next((d for d in array.order if tile[d] < extents[d]), None)
    if split is None or array.windows:
        return None
    run = array.run(tile, extents)
    apart = [tile[d] * steps[d] if d == split else steps[d] for d in array.dims if extents[d] > 1 and steps[d] >= run]
    aligned = gcd(SECTOR, *(elements * array.bytes for elements in apart))
    if aligned == SECTOR:
        return None
    return split, prod(extents[d] for d in array.dims) / run * (1 - aligned / SECTOR)


def follows(order: Sequence[int], dim: int) -> list[int]:
    """The dimensions along which blocks follow one another before they do so along another one, by the grid's order."""
    return list(order[list(order).index(dim) + 1 :])
