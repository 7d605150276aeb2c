"""Constant offsets of accesses that are farther than MLIR's `llvm.getelementptr` has bits for."""

from __future__ import annotations

from typing import Any

import pytest

import mlirfuse as mf


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_rows_far_apart_compile(dtype: str) -> None:
    """A thread that reads rows 0.3 GB apart has the distance as a constant, which aborted the process."""
    extents = (1024, 3, 768, 33) if dtype == "float64" else (1024, 1000, 2, 128)

    def centred(x: Any) -> Any:
        return x - mf.var(x, axis=0)

    compiled = mf.fuse(centred, target="sm_90a").lower(mf.TensorSpec(extents, dtype)).compile()
    assert compiled.binaries
