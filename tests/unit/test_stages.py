"""The text of every stage, given to the same pipeline again, goes on to the same PTX."""

from __future__ import annotations

from pathlib import Path

import pytest

import mlirfuse as mf
from mlirfuse.tools.opt import main


def shifted(x: mf.TensorSpec) -> object:
    return x - mf.mean(x, axis=-1, keepdims=True)


@pytest.mark.parametrize("stage", ["linalg", "tile", "gpu"])
def test_any_stage_goes_on_to_the_same_ptx(stage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compiled = mf.fuse(shifted).lower(mf.TensorSpec((None, 512), mf.float32)).compile()
    path = tmp_path / f"{stage}.mlir"
    path.write_text(compiled.as_text(stage))
    assert main([str(path), "--fuse-lower-pipeline", "--emit=ptx"]) == 0
    assert capsys.readouterr().out.strip() == compiled.as_text("ptx").strip()
