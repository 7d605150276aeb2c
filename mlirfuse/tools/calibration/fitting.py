"""What timings say: cost of an iteration, rate and bytes in flight at which a memory is busy; no GPU is needed here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from statistics import median

from mlirfuse.errors import RuntimeLaunchError

LEAST_SECONDS = 1e-3
MOST_ITERATIONS = 1 << 26
BUSY = 0.95
"""Share of the highest rate from which on a memory counts as busy."""


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The slope of the line through points (x, y): the median over all pairs, which a few outliers do not move.

    Raises:
        RuntimeLaunchError: it is not positive.
    """
    found = median((b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(points, 2))
    if found <= 0:
        raise RuntimeLaunchError(f"timings do not grow with the work: {_shown(points)}")
    return found


def per_iteration(seconds: Callable[[int], float], *, least: int = 16, least_seconds: float = LEAST_SECONDS) -> float:
    """Seconds of one iteration, without what a launch takes besides: the slope over one, two and three times as many.

    Args:
        seconds: the time of a launch of so many iterations.
        least: iterations of the shortest launch, at least.
        least_seconds: that its time must reach, as far as `MOST_ITERATIONS` allow.
    """
    count = least
    while (taken := seconds(count)) < least_seconds and count < MOST_ITERATIONS:
        # The launch itself counts as work here, so that the guess is low rather than high.
        count = int(count * min(16.0, max(2.0, least_seconds / max(taken, 1e-9))))
    return slope([(n, seconds(n)) for n in (count, 2 * count, 3 * count)])


def saturation(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Highest rate, and the bytes in flight from which on `BUSY` of it is reached, between points by a straight line.

    Args:
        points: pairs of bytes in flight and the rate with them, in rising order of bytes.

    Raises:
        RuntimeLaunchError: there are fewer than two points, or the rate is reached by the first one already.
    """
    highest = max((rate for _, rate in points), default=0.0)
    wanted = BUSY * highest
    for (bytes_before, before), (bytes_after, after) in pairwise(points):
        if before < wanted <= after:
            share = (wanted - before) / (after - before)
            return highest, bytes_before + share * (bytes_after - bytes_before)
    raise RuntimeLaunchError(f"the rate does not rise with the bytes in flight: {_shown(points)}")


def spread(values: Sequence[float]) -> float:
    """The distance between the least and the largest of values, to their median."""
    return (max(values) - min(values)) / median(values)


def _shown(points: Sequence[tuple[float, float]]) -> str:
    return ", ".join(f"{x:g}: {y:.3g}" for x, y in points)
