"""Which readers of a kernel's results recompute them."""

from __future__ import annotations

import pytest

from mlirfuse.passes.fusion.recompute import which_recompute


@pytest.mark.parametrize(
    ("gains", "stored", "expected"),
    [
        ([3.0], 0.0, [True]),
        ([-3.0], 5.0, [True]),
        ([-3.0], 2.0, [False]),
        ([-3.0, -4.0], 8.0, [True, True]),
        ([-3.0, -4.0], 6.0, [False, False]),  # the second one would wait for the first in vain
        ([5.0, -4.0], 3.0, [True, False]),  # what is stored for one reader saves nothing if another does not read it
        ([5.0, -4.0], 4.5, [True, True]),
        ([0.0], 0.0, [False]),
    ],
)
def test_all_readers_or_those_that_gain_alone(gains: list[float], stored: float, expected: list[bool]) -> None:
    assert which_recompute(gains, stored) == expected
