"""Statistics of half precision: computed in float32, and rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirfuse as mf
from tests.support.pairwise import combined
from tests.support.reductions.numerics import DTYPES

HALVES = ("float16", "bfloat16")


def _spike(shape: tuple[int, ...]) -> np.ndarray:
    x = np.zeros(shape)
    x.reshape(-1)[::1000] = 300
    return x


DATA = {
    "small": lambda shape: np.random.default_rng(0).standard_normal(shape) * 1e-4,
    "spike": _spike,  # its square is no float16
    "offset": lambda shape: 100 + np.random.default_rng(1).standard_normal(shape),
}
SHAPES = {
    "rows": ((3, 1000), -1),
    "columns": ((1000, 8), 0),
    "all": ((1000,), None),
    "outer and inner": ((5, 3, 200), (0, 2)),
    "one element": ((7, 1), -1),
    "split or chunked rows": ((2, 33000), -1),
    "columns of many rows": ((5000, 4), 0),
}


@combined({"data": DATA, "shape": SHAPES}, turns={"dtype": HALVES})
def test_only_the_result_is_rounded(data: str, shape: str, dtype: str) -> None:
    extents, axis = SHAPES[shape]
    correction = 0 if extents[-1] == 1 else 1
    x = DATA[data](extents).astype(DTYPES[dtype])

    def statistics(x: Any) -> Any:
        deviation = mf.std(x, axis=axis, correction=correction)
        return mf.mean(x, axis=axis), mf.var(x, axis=axis, correction=correction), deviation

    wide = x.astype(np.float64)
    exact = wide.mean(axis), wide.var(axis, ddof=correction), wide.std(axis, ddof=correction)
    for found, expected in zip(mf.fuse(statistics, target="interpret")(x), exact, strict=True):
        rounded = np.asarray(expected).astype(x.dtype)
        assert found.dtype == x.dtype
        ulp = np.abs(np.spacing(np.abs(rounded))).astype(np.float64)
        # float32 leaves an error that moves a result over to the neighbour at most.
        slack = ulp + 1e-5 * np.abs(expected)
        with np.errstate(invalid="ignore"):
            error = np.abs(found.astype(np.float64) - rounded.astype(np.float64))
        assert ((error <= slack) | (found == rounded)).all()
