"""What timings say: slopes and saturation, of synthetic timings with noise and outliers."""

from __future__ import annotations

import numpy as np
import pytest

from mlirfuse.errors import RuntimeLaunchError
from mlirfuse.tools.calibration import fitting


def test_a_slope_is_not_moved_by_one_outlier() -> None:
    points = [(n, 5e-6 + 2e-6 * n) for n in (100, 200, 300, 400, 500)]
    assert fitting.slope(points) == pytest.approx(2e-6)
    points[2] = (300, 1.0)
    assert fitting.slope(points) == pytest.approx(2e-6)


def test_timings_that_do_not_grow_are_refused() -> None:
    with pytest.raises(RuntimeLaunchError, match="do not grow with the work: 1: 2, 2: 1"):
        fitting.slope([(1, 2.0), (2, 1.0)])


@pytest.mark.parametrize("each", [3e-9, 7e-7, 2e-4])
@pytest.mark.parametrize("launch", [2e-6, 5e-5])
def test_the_time_of_an_iteration_has_no_launch_in_it(each: float, launch: float) -> None:
    rng = np.random.default_rng(0)
    asked = []

    def seconds(count: int) -> float:
        asked.append(count)
        return (launch + each * count) * (1 + 0.002 * float(rng.standard_normal()))

    assert fitting.per_iteration(seconds, least_seconds=1e-3) == pytest.approx(each, rel=0.02)
    assert max(asked) * each < 1.0, "no launch may take long"


def test_launches_have_as_many_iterations_as_asked() -> None:
    asked = []

    def seconds(count: int) -> float:
        asked.append(count)
        return 1e-6 * count

    fitting.per_iteration(seconds, least=5000)
    assert asked == [5000, 5000, 10000, 15000]


def test_iterations_that_take_no_time_end() -> None:
    with pytest.raises(RuntimeLaunchError, match="do not grow"):
        fitting.per_iteration(lambda _: 1e-6)


def test_saturation_finds_the_bytes_in_flight_of_littles_law() -> None:
    """A memory of 4 TB/s and 800 ns, of which one SM of 132 has its share."""
    sms, bandwidth, latency = 132, 4e12, 8e-7
    points = [(n * 1024.0, min(bandwidth, n * 1024 * sms / latency)) for n in (1, 2, 4, 8, 16, 24, 32, 64, 128)]
    highest, needed = fitting.saturation(points)
    assert highest == bandwidth
    assert needed == pytest.approx(bandwidth * latency / sms, rel=0.1)


@pytest.mark.parametrize("points", [[], [(1.0, 1.0)], [(1.0, 5.0), (2.0, 4.0)]])
def test_rates_that_do_not_rise_are_refused(points: list[tuple[float, float]]) -> None:
    with pytest.raises(RuntimeLaunchError, match="does not rise"):
        fitting.saturation(points)


def test_spread() -> None:
    assert fitting.spread([1.0, 1.1, 0.9]) == pytest.approx(0.2)
    assert fitting.spread([2.0]) == 0
