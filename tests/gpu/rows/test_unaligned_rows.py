"""Rows that start anywhere, or inside of sectors, on a GPU: numbers against float64, and what is around the result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.gpu.torch_arrays import to_numpy, to_torch
from tests.support.harnesses.compiling import row_schedule
from tests.support.reductions.numerics import DTYPES, FAMILIES

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

NAMES = ("layer_norm", "rms_norm", "softmax")
ANYWHERE = (33, 257, 1001, 1002, 4097, 5139, 32769, 131071)
IN_SECTORS = (260, 1004, 3500, 5140, 10004, 40004, 131060)
"""Rows that start anywhere, and rows of whole vectors that start inside of sectors."""
GUARD, MARK = 64, 7.0
LAYOUTS: dict[str, dict[str, Any]] = {
    "one warp": {},
    "rows over lanes": {"lanes": 8, "row_warps": 2},
    "several warps": {"warps": 3},
    "cluster": {"warps": 2, "cluster": 4},
}
WAYS = [
    (how, layout) for how in ("shifted", "realigned") for layout in LAYOUTS if (how, layout) != ("realigned", "cluster")
]


def run_guarded(fused: mf.Fused, inputs: list[np.ndarray], guard: int = GUARD) -> np.ndarray:
    """The result, written between elements that must stay what they are."""
    tensors = [to_torch(a) for a in inputs]
    rows, columns = inputs[0].shape
    memory = torch.full((guard + rows * columns + guard,), MARK, dtype=tensors[0].dtype, device="cuda")
    out = memory[guard : guard + rows * columns].view(rows, columns)
    fused(*tensors, out=out)
    assert bool((memory[:guard] == MARK).all())
    assert bool((memory[guard + rows * columns :] == MARK).all())
    return to_numpy(out)


@pytest.mark.parametrize("columns", [*ANYWHERE, *IN_SECTORS])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_sizes(name: str, dtype: str, columns: int) -> None:
    """The schedules that are chosen, which shift or move rows in most cases, those of whole vectors to lines."""
    family, fused = FAMILIES[name], mf.fuse(FAMILIES[name].fn)
    for rows in (1, 9, 300) if columns < 20000 else (9,):
        inputs = family.inputs(rows, columns, DTYPES[dtype], seed=rows)
        family.check(run_guarded(fused, inputs), inputs)


@pytest.mark.parametrize("guard", [8, 24])
@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "rows over lanes"])
def test_results_inside_of_lines(layout: str, guard: int) -> None:
    """Shifted rows whose array begins anywhere in a line, behind `guard` elements of 2 bytes."""
    family, kind = FAMILIES["layer_norm"], DTYPES["float16"]
    schedule = row_schedule(5140, vector=4, shifted=True, shift_to=64, **LAYOUTS[layout])
    inputs = family.inputs(77, 5140, kind)
    family.check(run_guarded(mf.fuse(family.fn, schedule=schedule), inputs, guard), inputs)


@pytest.mark.parametrize(("how", "layout"), WAYS)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("name", NAMES)
def test_layouts(name: str, dtype: str, how: str, layout: str) -> None:
    family, kind = FAMILIES[name], DTYPES[dtype]
    for columns in (65, 513, 1006, 3001):
        schedule = row_schedule(columns, vector=16 // kind.itemsize, **{how: True}, **LAYOUTS[layout])
        schedule = replace(schedule, rematerialize_addresses=columns % 2 == 0)
        inputs = family.inputs(77, columns, kind, seed=columns)
        family.check(run_guarded(mf.fuse(family.fn, schedule=schedule), inputs), inputs)
