"""The mlirfuse command: finding the user's function, its specs and target, and reporting what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import mlirfuse
from mlirfuse.builder.spec import TensorSpec
from mlirfuse.lowering.ptx import ptxas
from mlirfuse.lowering.ptx.resources import KernelResources
from mlirfuse.support import dtypes
from mlirfuse.tools import opt
from mlirfuse.tools.cli import main
from mlirfuse.tools.commands import user_function

KERNEL = KernelResources("scale_0", 32, 0, 0, 0, 64, 1, 256, 1)
SPILLING = KernelResources("scale_1", 255, 16, 8, 24, 0, 1, 512, 2)
SOURCE = "from mlirfuse.tools.commands import user_function\n\ndef scale(x):\n    return x * 2\n"


@dataclass
class RecordingCompiler:
    """Stands for `mf.fuse`: remembers what it is asked for, and gives fixed answers."""

    calls: list[tuple[str, str | None, tuple[Any, ...]]] = field(default_factory=list)

    def __call__(self, function: Any, target: str | None = None) -> RecordingCompiler:
        self.function, self.target = function, target
        return self

    def with_options(self, target: str) -> RecordingCompiler:
        return self(self.function, target)

    def lower(self, *specs: Any) -> RecordingCompiler:
        self.calls.append((self.function.__name__, self.target, specs))
        return self

    def compile(self) -> RecordingCompiler:
        return self

    def as_text(self, stage: str) -> str:
        return f"text of {stage}"

    def explain(self, *, verbose: bool = False) -> str:
        return "one kernel"

    @property
    def resources(self) -> list[KernelResources]:
        return [KERNEL, SPILLING]


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> RecordingCompiler:
    recording = RecordingCompiler()
    monkeypatch.setattr(user_function.mf, "fuse", recording, raising=False)
    return recording


def write(directory: Path, text: str) -> str:
    path = directory / "user_file.py"
    path.write_text(text)
    return str(path)


def test_compile_prints_a_stage(
    tmp_path: Path, compiler: RecordingCompiler, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, SOURCE)
    assert main(["compile", f"{file}:scale", "--arg", "f16[?,8]", "--stage", "ptx", "--target", "sm_80"]) == 0
    assert capsys.readouterr().out == "text of ptx\n"
    assert compiler.calls == [("scale", "sm_80", (TensorSpec((None, 8), dtypes.float16),))]


def test_compile_prints_the_resource_table(
    tmp_path: Path, compiler: RecordingCompiler, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", f"{write(tmp_path, SOURCE)}:scale", "--arg", "f16[8]"]) == 0
    cells = [line.split() for line in capsys.readouterr().out.splitlines() if "scale_" in line]
    assert cells == [["scale_0", "256", "1", "32", "64", "0", "0"], ["scale_1", "512", "2", "255", "0", "24", "24"]]


def test_a_stage_goes_into_a_file_without_ptxas_too(
    tmp_path: Path, compiler: RecordingCompiler, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ptxas, "installed", lambda: ())
    arguments = ["compile", f"{write(tmp_path, SOURCE)}:scale", "--arg", "f16[8]", "--stage", "ptx"]
    assert main([*arguments, "-o", str(tmp_path / "out.ptx")]) == 0
    assert (tmp_path / "out.ptx").read_text() == "text of ptx\n"
    assert "No ptxas: pip install" in capsys.readouterr().out


def test_specs_come_from_the_file_where_no_arg_is_given(tmp_path: Path, compiler: RecordingCompiler) -> None:
    file = write(tmp_path, SOURCE + "SPECS = {'scale': ['f32[4]']}\n")
    assert main(["explain", f"{file}:scale"]) == 0
    assert compiler.calls == [("scale", "sm_90a", (TensorSpec((4,), dtypes.float32),))]


def test_a_decorated_function_keeps_its_target_unless_told(tmp_path: Path, compiler: RecordingCompiler) -> None:
    decorated = write(tmp_path, SOURCE + "plain = scale\nscale = user_function.mf.fuse(scale, target='sm_120')\n")
    assert main(["explain", f"{decorated}:scale", "--arg", "f32[4]"]) == 0
    assert compiler.calls[0][:2] == ("scale", "sm_120")


def test_a_decorated_function_keeps_its_options_for_another_target(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decorated = "@mf.fuse(grid_reduction='second_kernel')\ndef sums(x):\n    return mf.sum(x, axis=0)\n"
    file = write(tmp_path, f"import mlirfuse as mf\n\n{decorated}")
    assert main(["explain", f"{file}:sums", "--arg", "f32[?,64]", "--target", "sm_80", "--verbose"]) == 0
    assert "second kernel" in capsys.readouterr().out


def test_fusion_can_be_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, "def scale(x):\n    return x * 2 + 1\n")
    assert main(["explain", f"{file}:scale", "--arg", "f32[?,64]", "--fusion", "off", "--verbose"]) == 0
    assert "fuse-segment: applied: 2 kernel(s)" in capsys.readouterr().out


def test_a_spec_that_is_wrong_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", f"{write(tmp_path, SOURCE)}:scale", "--arg", "f17[4]"]) == 1
    assert "--arg f17[4]: dtype 'f17' is not supported" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "function", "message"),
    [
        (SOURCE, ":shift", "there is no function 'shift'\n  hint: it has scale"),
        (SOURCE, "", "does not name a function\n  hint: write FILE.py:FUNCTION"),
        (SOURCE, ":scale", "the types of the arguments of 'scale' are not given\n  hint: give --arg"),
        ("def scale(x:\n", ":scale", "user_file.py:1: SyntaxError"),
        ("\nimport nosuchmodule\n", ":scale", "user_file.py:2: the file raises ModuleNotFoundError"),
        ("1 / 0\n", ":scale", "user_file.py:1: the file raises ZeroDivisionError"),
        ("raise SystemExit(3)\n", ":scale", "user_file.py:1: the file raises SystemExit: 3"),
        ("class scale:\n    pass\n", ":scale", "there is no function 'scale'\n  hint: it defines no functions"),
        (
            "SPECS = {'f': ['f32[4]']}\ndef f(x):\n    return x + y\n",
            ":f",
            "user_file.py:3: f raises NameError: name 'y'",
        ),
        ("\x00", ":scale", "source code string cannot contain null bytes"),  # a SyntaxError from Python 3.11.4 on
        (SOURCE + "SPECS = 3\n", ":scale", "user_file.py: SPECS is 3\n  hint: SPECS = {'scale': "),
    ],
)
def test_bad_functions(
    tmp_path: Path, source: str, function: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", write(tmp_path, source) + function]) == 1
    err = capsys.readouterr().err
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no command was given"),
        (["compil"], "invalid choice: 'compil'"),
        (["compile"], "required: FILE.py:FUNCTION"),
        (["compile", "nofile.py:f"], "nofile.py: No such file or directory"),
        (["compile", "nofile.py:f", "--target", "sm_1"], "unknown target 'sm_1'"),
        (["compile", "nofile.py:f", "-o", "x"], "--output: --output without --stage has no text to write"),
        (["compile", ":f"], "':f' does not name a function"),
        (["demo", "--columns", "0"], "--columns: 0 is less than 1"),
        (["demo", "--rows", "-1"], "--rows: -1 is less than 0"),
        (["compile", "nofile.py:f", "--target", ""], "unknown target ''"),
        (["tune", "nofile.py:f", "--seconds", "0"], "--seconds: 0 leaves no time to measure"),
        (["run", "nofile.mlir"], "nofile.mlir: No such file or directory"),
        (["run", "nofile.mlir", "--sms", "0"], "--sms: 0 is less than 1"),
        (["run", "nofile.mlir", "--seed", "-1"], "--seed: -1 is less than 0"),
    ],
)
def test_bad_commands(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("tool", [main, opt.main])
def test_version(tool: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        tool(["--version"])
    assert mlirfuse.__version__ in capsys.readouterr().out
