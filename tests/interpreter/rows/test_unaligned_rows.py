"""Rows that start anywhere, shifted to aligned vectors or to lines, or moved: phases, ends, what all rows share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from tests.support.harnesses.compiling import module_at, row_schedule
from tests.support.pairwise import combined
from tests.support.reductions.numerics import DTYPES, FAMILIES

LAYOUTS: dict[str, dict[str, Any]] = {
    "one warp": {},
    "rows over lanes": {"lanes": 8},
    "rows over warps": {"row_warps": 3},
    "several warps": {"warps": 3},
    "cluster": {"warps": 2, "cluster": 2},
}
COLUMNS = (37, 130, 257, 1001, 1006)
NAMES = ("layer_norm", "rms_norm", "softmax")
WAYS = [
    (how, layout) for how in ("shifted", "realigned") for layout in LAYOUTS if (how, layout) != ("realigned", "cluster")
]


@combined({"name": NAMES, "dtype": ["float16", "float32"], "how, layout": WAYS, "columns": COLUMNS})
def test_layouts(name: str, dtype: str, how: str, layout: str, columns: int) -> None:
    """Nine rows have every phase, and the last one ends where the memory does: nothing looks beyond it."""
    family, kind = FAMILIES[name], DTYPES[dtype]
    vector = 16 // kind.itemsize
    schedule = row_schedule(columns, vector=vector, **{how: True}, **LAYOUTS[layout])
    schedule = replace(schedule, rematerialize_addresses=columns % 2 == 0)
    module = module_at("gpu", family.fn, family.specs(None, columns, kind), schedule)
    for rows in (1, 9):
        inputs = family.inputs(rows, columns, kind, seed=columns)
        (result,) = interpreter.run(module, name, inputs, order="random", seed=rows)
        family.check(result, inputs)


@combined(
    {
        "name": NAMES,
        "dtype, vector": [("float16", 4), ("float16", 8), ("bfloat16", 2), ("float32", 2)],
        "layout": [name for name in LAYOUTS if name != "rows over lanes"],
        "least": (200, 520, 1032),
    }
)
def test_lines(name: str, dtype: str, vector: int, layout: str, least: int) -> None:
    """Rows of whole vectors, each of which begins elsewhere in a line of 128 bytes."""
    family, kind = FAMILIES[name], DTYPES[dtype]
    unit = min(128 // kind.itemsize, 32 * vector)
    columns = least + vector
    schedule = row_schedule(columns, vector=vector, shifted=True, shift_to=unit, **LAYOUTS[layout])
    schedule = replace(schedule, rematerialize_addresses=columns > 1000, order="depth" if columns < 520 else "breadth")
    module = module_at("gpu", family.fn, family.specs(None, columns, kind), schedule)
    for rows in (1, 9):
        inputs = family.inputs(rows, columns, kind, seed=columns)
        (result,) = interpreter.run(module, name, inputs, order="random", seed=rows)
        family.check(result, inputs)


ILLEGAL = [
    ("shift_to", 8, 24, 1, "a shifted row of 24 elements holds fewer than 4 vectors of 8"),
    ("realigned", 1, 24, 1, "a realigned row of 24 elements holds fewer than 4 vectors of 8"),
    ("shift_to", 8, 257, 1, "covers 256 of the tile's 257 elements, shifted by 7"),
    ("shift_to", 64, 208, 1, "covers 256 of the tile's 208 elements, shifted by 56"),
    ("shift_to", 1, 200, 1, "shifted to multiples of 1, no power of two from the vector's 8 on"),
    ("shift_to", 48, 200, 1, "shifted to multiples of 48, no power of two from the vector's 8 on"),
    ("shift_to", 512, 200, 1, "shifted to multiples of 512, more than a warp's 256 in dimension 1"),
    ("shift_to", 64, 101, 1, "rows of 101 are no whole vectors of 8, and are shifted to multiples of these"),
    ("realigned", 8, 201, 1, r"realigned \(0, 8\) must be 0 or 1 in each of 2 dimensions"),
    ("realigned", 1, 201, 2, "realigned inside of a block, and may not be spread over a cluster"),
]


@pytest.mark.parametrize(("how", "along", "columns", "cluster", "message"), ILLEGAL)
def test_illegal_schedules(how: str, along: int, columns: int, cluster: int, message: str) -> None:
    layout = mf.BlockedLayout((1, 8), (1, 32), (1, 1), (1, 1), (1, cluster), **{how: (0, along)})
    family = FAMILIES["softmax"]
    with pytest.raises(mf.MlirFuseError, match=message):
        module_at("gpu", family.fn, family.specs(None, columns, DTYPES["float16"]), mf.Schedule((1, columns), layout))


def scaled(x, r):
    """A number a row is read beside the row."""
    return x - mf.mean(x * r, axis=-1, keepdims=True)


def test_lines_beside_a_number_a_row() -> None:
    rng = np.random.default_rng(0)
    x, r = rng.standard_normal((9, 5140)).astype(np.float32), rng.standard_normal((9, 1)).astype(np.float32)
    specs = [mf.TensorSpec(("n", 5140), x.dtype), mf.TensorSpec(("n", 1), r.dtype)]
    assert "shift_to = array<i64: 0, 32>" in mf.fuse(scaled, target="sm_90a").lower(*specs).as_text("tile")
    (result,) = interpreter.run(module_at("gpu", scaled, specs), "scaled", [x, r])
    np.testing.assert_allclose(result, x - (x * r).mean(-1, keepdims=True), rtol=1e-5, atol=1e-5)


def test_a_single_row_begins_at_a_line() -> None:
    lowered = mf.fuse(scaled, target="sm_90a").lower(
        mf.TensorSpec((1, 5140), "float32"), mf.TensorSpec((1, 1), "float32")
    )
    assert "shift_to = array<i64: " not in lowered.as_text("tile")
