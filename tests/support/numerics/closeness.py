"""How far results may be from the same computation in float64."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def check_results(results: Sequence[np.ndarray], expected: np.ndarray | tuple[np.ndarray, ...], bound: float) -> None:
    """Fails where a result differs from what is expected by `bound` or more of the largest expected element."""
    wanted = expected if isinstance(expected, tuple) else (expected,)
    assert len(results) == len(wanted)
    for result, exact in zip(results, wanted, strict=True):
        error = np.abs(result.astype(np.float64) - exact).max() / np.abs(exact).max()
        assert error < bound, error
