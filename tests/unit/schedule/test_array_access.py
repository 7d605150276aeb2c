"""Elements that windows of an array have together."""

from __future__ import annotations

import time
from fractions import Fraction
from math import floor

import numpy as np
import pytest

from mlirfuse.schedule.parts.array_access import ArrayAccess

STEPS: list[int | Fraction] = [1, 2, 3, Fraction(1, 2), Fraction(3, 2), Fraction(2, 3), Fraction(5, 4)]


def windows(step: int | Fraction, offsets: tuple[int, ...]) -> ArrayAccess:
    """A row whose windows have these elements."""
    return ArrayAccess((0,), (1,), 4, 16, written=False, is_contiguous=True, windows=((step, offsets),))


@pytest.mark.parametrize("seed", range(300))
def test_each_element_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    step, count = STEPS[rng.integers(len(STEPS))], int(rng.integers(1, 40))
    offsets = tuple(sorted(int(n) for n in rng.choice(np.arange(-20, 60), size=rng.integers(1, 5), replace=False)))
    together = {floor(number * Fraction(step)) + offset for number in range(count) for offset in offsets}
    assert windows(step, offsets).elements([count]) == len(together)


def test_ends_of_a_long_row() -> None:
    """Offsets an array apart, as of joined ends, take no longer than neighbours."""
    began = time.process_time()
    assert windows(1, (0, (1 << 40) - 1)).elements([1 << 40]) == (1 << 41) - 1
    assert time.process_time() - began < 1.0
