"""mlirfuse-opt in process: flags to pipelines, remarks, output files, exit codes. test/lit/tools has the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlirfuse.compiler import pipeline
from mlirfuse.passmanager import registry
from mlirfuse.tools.opt import main
from mlirfuse.tools.opt_arguments import parse_arguments
from tests.support.toy_passes import ENTRIES

MODULE = "func.func @f(%a: i32) -> i32 {\n  return %a : i32\n}\n"


@pytest.fixture(autouse=True)
def toy_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "ADDED", ENTRIES)


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "in.mlir"
    path.write_text(MODULE)
    return str(path)


def test_flags_become_a_pipeline_in_their_order() -> None:
    _, text = parse_arguments(["--toy-mark=value=3", "x.mlir", "--canonicalize", "--cse", "--toy-mark"])
    assert text == "builtin.module(toy-mark{value=3},canonicalize,cse,toy-mark)"


def test_a_named_pipeline_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pipeline.NAMED, "toy-pipeline", "cse,toy-options{{label={fast}}}")
    _, text = parse_arguments(["--toy-mark", "--toy-pipeline", "--target=sm_80"])
    assert text == "builtin.module(toy-mark,cse,toy-options{label=false})"


def test_the_target_of_the_command_line_replaces_the_modules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "in.mlir"
    path.write_text('module attributes {fuse.target = {chip = "sm_89", sms = 7 : i64}} {}')
    for arguments, wanted in (
        ([], 'chip = "sm_89", sms = 7 : i64'),
        (["--sms=9"], 'chip = "sm_89", sms = 9 : i64'),
        (["--target=sm_80"], 'chip = "sm_80", sms = 108 : i64'),
    ):
        assert main([str(path), *arguments]) == 0
        assert f"fuse.target = {{{wanted}}}" in capsys.readouterr().out
    assert main([str(path), "--sms=0"]) == 1
    assert "0 SMs of sm_89: a target needs at least one" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ('{chip = "sm_42"}', "unknown target 'sm_42'"),
        ('{chip = "sm_80", sms = 0 : i64}', "0 SMs of sm_80: a target needs at least one"),
        ("{sms = 3 : i64}", "fuse.target of the module is {sms = 3 : i64}"),
        ('{chip = "sm_80", sm = 3 : i64}', "fuse.target of the module is"),
        ('"sm_80"', 'fuse.target is "sm_80", and must be a dictionary'),
    ],
)
def test_a_target_that_is_not_known_is_refused(
    attribute: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "in.mlir"
    path.write_text(f"module attributes {{fuse.target = {attribute}}} {{}}")
    assert main([str(path)]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--lower-attach-target=chip=sm_80", "--fuse-assign-schedule=sms=3"])
def test_an_option_for_the_target_names_the_attribute(
    option: str, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([option, source]) == 1
    assert "fuse.target of the module now: mlirfuse-opt --target=CHIP --sms=N" in capsys.readouterr().err


@pytest.mark.parametrize("name", pipeline.NAMED)
def test_every_named_pipeline_resolves(name: str, source: str) -> None:
    assert main([f"--{name}", source, "-o", "/dev/null"]) == 0


def test_remarks_are_shown_and_can_be_expected(tmp_path: Path, source: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--toy-mark", "--show-remarks", source]) == 0
    captured = capfd.readouterr()
    assert captured.err == f"{source}:1:1: remark: toy-mark: applied: marked with 1\n"
    assert "fuse.mark = 1" in captured.out
    expecting = tmp_path / "expecting.mlir"
    expecting.write_text("// expected-remark @below {{toy-mark: applied: marked}}\n" + MODULE)
    assert main(["--toy-mark", "--verify-diagnostics", str(expecting)]) == 0
    assert main(["--toy-mark", "--verify-diagnostics", source]) == 1
    assert "1:1: error: unexpected remark: toy-mark: applied: marked with 1" in capfd.readouterr().err


def test_remarks_made_before_an_error_are_kept(source: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--toy-mark", "--toy-reject", "--show-remarks", source]) == 1
    captured = capfd.readouterr()
    assert captured.err.splitlines() == [
        f"{source}:1:1: remark: toy-mark: applied: marked with 1",
        f"{source}:1:1: error: functions are not allowed",
    ]
    assert captured.out == ""


def test_an_output_file_is_written_whole_or_not_at_all(tmp_path: Path, source: str) -> None:
    output = tmp_path / "out.mlir"
    assert main(["--toy-mark", source, "-o", str(output)]) == 0
    assert "fuse.mark" in output.read_text()
    assert main(["--toy-reject", source, "-o", str(output)]) == 1
    assert "fuse.mark" in output.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.mlir", "out.mlir"]


def test_a_bug_in_a_pass_is_named_and_exits_with_1(source: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--toy-reject=bug", source]) == 1
    err = capfd.readouterr().err
    assert "internal error: ZeroDivisionError: a bug (in pass toy-reject{bug=true})" in err
    assert "Traceback" not in err


def test_a_variable_asks_for_the_traceback(
    source: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLIRFUSE_TRACEBACK", "1")
    assert main(["--toy-reject=bug", source]) == 1
    assert "Traceback" in (err := capfd.readouterr().err)
    assert "toy_passes.py" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nosuch"], "'--nosuch' is neither an option nor a pass"),
        (["--canonicalise"], "neither an option nor a pass"),
        (["--verify-diagnostic"], "did you mean --verify-diagnostics?"),
        (["-q"], "'-q' is neither"),
        (["--emit=cubin"], "invalid choice: 'cubin'"),
        (["--cse", "--pass-pipeline=builtin.module(cse)"], "--cse cannot be combined with --pass-pipeline"),
        (["--pass-pipeline=builtin.module(cse"], "column 15: '(' is never closed"),
        (["--toy-mark=value=x"], "option 'value' of toy-mark cannot be 'x'"),
        (["--cse", "--stop-after=canonicalize"], "cannot stop after 'canonicalize'"),
        (["--target=sm_1"], "unknown target 'sm_1'"),
        (["--emit=ptx"], "there is no kernel to emit PTX for"),
        (["-o", "/nonexistent/out.mlir"], "/nonexistent/"),
    ],
)
def test_bad_arguments(source: str, arguments: list[str], message: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, source]) == 1
    captured = capfd.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


def test_a_file_that_is_not_text(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "binary.mlir"
    path.write_bytes(b"\xff\xfe\x00")
    assert main([str(path)]) == 1
    assert "not a text file: byte 0 is not UTF-8" in capfd.readouterr().err


def test_list_passes_names_every_pass_and_pipeline(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--list-passes"]) == 0
    listed = capfd.readouterr().out
    assert all(f"  --{name}\n" in listed for name in (*registry.names(), *pipeline.NAMED))
    assert "fast-math=bool, False by default" in listed
