"""IR and options that are wrong, given to the two commands: one clear error, nothing half done."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlirfuse.tools.cli import main as mlirfuse
from mlirfuse.tools.opt import main as mlirfuse_opt

FOREIGN = 'func.func @f(%x: tensor<4xf32>) {\n  "toy.op"(%x) : (tensor<4xf32>) -> ()\n  return\n}\n'
ENDLESS = """func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
NO_RULE = """func.func @g(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tensor.empty() : tensor<4xf32>
  %1 = linalg.exp ins(%x : tensor<4xf32>) outs(%0 : tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""


@pytest.mark.parametrize(
    ("flags", "text", "message"),
    [
        ([], FOREIGN, "in.mlir:2:11: error: "),
        ([], "this is no mlir", "in.mlir:1:1: error: "),
        (["--pass-pipeline=builtin.module(cse,"], NO_RULE, "pipeline, column 20: expected a pass"),
        (["--pass-pipeline=builtin.module(nopass)"], NO_RULE, "'nopass'"),
        (["--nopass"], NO_RULE, "'--nopass' is neither an option nor a pass"),
        (["--fuse-assign-schedule=foo=1"], NO_RULE, "fuse-assign-schedule has no option 'foo'"),
        (["--fuse-gpu-pipeline", "--target=sm_1"], NO_RULE, "unknown target 'sm_1'"),
    ],
)
def test_mlirfuse_opt(
    tmp_path: Path, flags: list[str], text: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    source, output = tmp_path / "in.mlir", tmp_path / "out.mlir"
    source.write_text(text)
    output.write_text("what was there")
    assert mlirfuse_opt([*flags, str(source), "-o", str(output)]) == 1
    captured = capfd.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""
    assert output.read_text() == "what was there"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.mlir", "out.mlir"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FOREIGN, "in.mlir:2:11: "),
        ("this is no mlir", "in.mlir:1:1: "),
        (NO_RULE, "in.mlir:3:8: no rule for op linalg.exp"),
        (ENDLESS, "@f recurses too deeply"),
    ],
)
def test_mlirfuse_run(tmp_path: Path, text: str, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "in.mlir"
    source.write_text(text)
    assert mlirfuse(["run", str(source), "--input", "ones:f32[4]"]) == 1
    err = capfd.readouterr().err
    assert message in err
    assert "Traceback" not in err
