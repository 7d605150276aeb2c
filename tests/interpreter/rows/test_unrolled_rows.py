"""Persistent loops whose threads have several unrolled rows, which a block's warps reduce together."""

from __future__ import annotations

from typing import Any

import pytest
from mlir import ir

from mlirfuse import interpreter
from tests.support.pairwise import combined
from tests.support.reductions.backward import BACKWARD
from tests.support.reductions.numerics import DTYPES
from tests.support.reductions.persistent_loop_cases import ORDERS, check_mutants, looping

BF16 = DTYPES["bfloat16"]
COLUMNS = 512
NAMES = ("rms_norm_backward", "layer_norm_backward", "softmax_backward")


def unrolled_rows(name: str, stage: str, rows: int, **changes: Any) -> ir.Module:
    """The function at a stage, unrolled over so many rows of four warps."""
    layout = {"vector": (1, 4), "lanes": (1, 32), "warps": (1, 4), "repeats": (rows, 1)}
    persistent_loop: dict[str, Any] = {"peeled": True, "row_values": "registers"}
    return looping(BACKWARD[name], stage, BF16, COLUMNS, layout, **persistent_loop | changes)


@combined({"name": NAMES, "rows": [2, 3, 4], "stage": ["tile", "gpu"]})
def test_results(name: str, rows: int, stage: str) -> None:
    """No tile, one with a single row, ragged ones, whole ones, and several a block."""
    backward, module = BACKWARD[name], unrolled_rows(name, stage, rows)
    for number, count in enumerate((0, 1, rows + 1, 2 * rows, 43)):
        inputs = backward.inputs(count, COLUMNS, BF16, seed=count)
        order = ORDERS[number % len(ORDERS)]
        backward.check(interpreter.run(module, name, inputs, sms=2, **order), inputs)


@pytest.mark.parametrize(
    "changes",
    [
        {"grid_reduction": "last_block"},
        {"grid_reduction": "second_kernel", "blocks": 5},
        {"period": 2, "peeled": False},
    ],
)
def test_second_stages(changes: dict[str, Any]) -> None:
    """All second stages, and a partial every few tiles."""
    backward, module = BACKWARD["layer_norm_backward"], unrolled_rows("layer_norm_backward", "gpu", 3, **changes)
    for count, order in zip((1, 5, 67), ORDERS, strict=True):
        inputs = backward.inputs(count, COLUMNS, BF16, seed=count)
        backward.check(interpreter.run(module, backward.name, inputs, sms=2, **order), inputs)


def test_a_thread_carries_sums_of_one_row() -> None:
    text = str(unrolled_rows("layer_norm_backward", "tile", 4))
    assert "-> (vector<1x512xf32>, vector<1x512xf32>)" in text
    assert "vector<4x512xbf16>" in text


def test_missing_stores_are_noticed() -> None:
    backward = BACKWARD["layer_norm_backward"]
    cases = [backward.inputs(n, COLUMNS, BF16, seed=n) for n in (0, 5, 43)]
    check_mutants(unrolled_rows(backward.name, "gpu", 3), backward, cases, ["drop-store"])
