"""Addresses of clamped rows: a pointer to the tile, and an offset of 32 bits for each access."""

from __future__ import annotations

import re
from typing import Any

import mlirfuse as mf

SPECS = [mf.TensorSpec(("n", "h", 49), mf.bfloat16, hints=(128, 2048, None)), mf.TensorSpec(("h",), mf.float32)]


def scaled(x: Any, w: Any) -> Any:
    return mf.astype(mf.astype(x, mf.float32) * w[:, None], mf.bfloat16)


def compiled(repeats: int) -> str:
    layout = mf.BlockedLayout((1, 1, 1), (1, 1, 32), (1, 4, 2), (1, repeats, 1), (1, 1, 1))
    schedule = mf.Schedule((1, 4 * repeats, 49), layout)
    lowered = mf.fuse(scaled, target="sm_90a", schedule=schedule).lower(*SPECS)
    return lowered.compile(choose_again=False).as_text("ptx")


def test_rows_are_clamped_by_one_instruction_each() -> None:
    """Both arrays are as long, so that they share what rows are clamped to."""
    text = compiled(8)
    assert len(re.findall(r"min\.u32", text)) in (8, 9)  # columns are clamped too
    assert len(re.findall(r"min\.u64", text)) <= 4


def test_few_rows_are_clamped_as_whole_indices() -> None:
    assert "min.u32" not in compiled(1)
