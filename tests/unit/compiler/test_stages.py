"""The text of every stage, given to the same pipeline again, goes on to the same PTX."""

from __future__ import annotations

from pathlib import Path

import pytest

import mlirfuse as mf
from mlirfuse.tools.opt import main
from tests.support.reductions.backward import BACKWARD
from tests.support.reductions.numerics import DTYPES


def shifted(x: mf.TensorSpec) -> object:
    return x - mf.mean(x, axis=-1, keepdims=True)


def cases() -> dict[str, mf.Lowered]:
    """A kernel of one block a tile, one with a persistent loop through shared memory and a grid reduction, that
    with requests of the caller's, a kernel an operation, and a product.
    """
    persistent_loop = BACKWARD["rms_norm_backward"]
    return {
        "tiles": mf.fuse(shifted).lower(mf.TensorSpec((None, 512), mf.float32)),
        "persistent_loop": mf.fuse(persistent_loop.fn).lower(*persistent_loop.specs(384, DTYPES["bfloat16"])),
        "requests": mf.fuse(persistent_loop.fn, mix_order="fused", grid_reduction="atomics").lower(
            *persistent_loop.specs(384, DTYPES["bfloat16"])
        ),
        "operations": mf.fuse(shifted, fusion="off").lower(mf.TensorSpec((None, 512), mf.float32)),
        "product": mf.fuse(lambda x, w: x @ w.T).lower(*[mf.TensorSpec((256, 512), mf.float16)] * 2),
    }


@pytest.mark.parametrize("name", ["tiles", "persistent_loop", "requests", "operations", "product"])
@pytest.mark.parametrize("stage", ["linalg", "tile", "gpu"])
def test_any_stage_goes_on_to_the_same_ptx(
    stage: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compiled = cases()[name].compile()
    path = tmp_path / f"{stage}.mlir"
    path.write_text(compiled.as_text(stage))
    assert main([str(path), "--fuse-lower-pipeline", "--emit=ptx"]) == 0
    assert capsys.readouterr().out.strip() == compiled.as_text("ptx").strip()
