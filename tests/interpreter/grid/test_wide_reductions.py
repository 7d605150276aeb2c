"""Totals over rows too wide for a cluster: by blocks that each reduce some columns, and in persistent loops over parts
of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from tests.support.harnesses.compiling import module_at
from tests.support.reductions.numerics import DTYPES
from tests.support.reductions.wide import (
    CHUNKS,
    COLUMNS,
    WIDE,
    batch_norm,
    check,
    column_sums,
    parts_of_rows,
    sums_of_everything,
)


def arrays(rows: int, columns: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(rows)
    return rng.standard_normal((rows, columns)).astype(DTYPES[dtype]), rng.standard_normal(columns).astype(np.float32)


@pytest.mark.parametrize("stage", ["tile", "gpu"])
@pytest.mark.parametrize("rows", [0, 1, 7, 8, 31, 33, 700])
def test_blocks_reduce_columns_alone(rows: int, stage: str) -> None:
    """Chunks that run time counts, the last of which is masked; more than a group of 32 of them."""
    specs = mf.TensorSpec(("rows", COLUMNS), mf.float16), mf.TensorSpec(COLUMNS, mf.float32)
    module = module_at(stage, column_sums, specs, CHUNKS)
    x, w = arrays(rows, COLUMNS, "float16")
    with np.errstate(invalid="ignore"):
        results = interpreter.run(module, "column_sums", [x, w], order="random", seed=rows)
    check(column_sums, results, x, w)


@pytest.mark.parametrize("stage", ["tile", "gpu"])
@pytest.mark.parametrize(
    ("grid_reduction", "period", "resident"),
    [("grid_sync", 0, None), ("grid_sync", 3, None), ("last_block", 2, 1), ("second_kernel", 3, 1)],
)
@pytest.mark.parametrize("rows", [0, 1, 40])
def test_parts_of_rows_are_looped(
    rows: int, grid_reduction: str, period: int, resident: int | None, stage: str
) -> None:
    specs = mf.TensorSpec(("rows", COLUMNS), mf.bfloat16), mf.TensorSpec(COLUMNS, mf.float32)
    module = module_at(stage, sums_of_everything, specs, parts_of_rows(period, grid_reduction))
    x, w = arrays(rows, COLUMNS, "bfloat16")
    with np.errstate(invalid="ignore"):
        results = interpreter.run(
            module, "sums_of_everything", [x, w], order="random", seed=rows, resident=resident, sms=3
        )
    check(sums_of_everything, results, x, w)


@pytest.mark.parametrize(
    ("fn", "columns", "dtype"),
    [(column_sums, WIDE, "float16"), (batch_norm, WIDE, "float32"), (sums_of_everything, WIDE + 1, "float32")],
)
@pytest.mark.parametrize("rows", [0, 5])
def test_rows_that_fit_no_cluster(rows: int, fn: Callable[..., Any], columns: int, dtype: str) -> None:
    """What the heuristics choose."""
    x, w = arrays(rows, columns, dtype)
    check(fn, list(mf.fuse(fn, target="interpret")(x, w)), x, w)
