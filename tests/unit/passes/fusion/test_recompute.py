"""Which readers of a kernel's results recompute them."""

from __future__ import annotations

from typing import Any

import pytest

import mlirfuse as mf
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


def test_views_of_one_array_cost_a_trial_what_they_cost_a_kernel() -> None:
    """Differences of neighbours on a torus: the second kernel reads all of them in one array's sectors, as the first
    one does, and only what it reads at other places is stored for it.
    """

    def moved(x: Any, by: int, axis: int) -> Any:
        first, rest = [x[(slice(None),) * axis + (part,)] for part in (slice(-by, None), slice(None, -by))]
        return mf.concat([first, rest], axis=axis)

    def tendency(x: Any) -> Any:
        n, s, w, e = moved(x, 1, 1), moved(x, -1, 1), moved(x, 1, 2), moved(x, -1, 2)
        curl = n + s + w + e - 4.0 * x
        around = moved(curl, 1, 1) + moved(curl, -1, 1) + moved(curl, 1, 2) + moved(curl, -1, 2)
        return (e - w) * (n - s) - 0.1 * around, mf.mean(x * curl, axis=(1, 2))

    shape = (6, 1024, 1024)
    program = mf.fuse(tendency, target="sm_90a").lower(mf.TensorSpec(shape, mf.float64)).compile().program
    results = {value.position for value in program.results}
    stored = [b for n, b in enumerate(program.buffers) if n not in results and len(b.shape) == len(shape)]
    assert len(stored) == 1
