"""Pipelines of upstream and mlirfuse passes in one pass manager."""

from __future__ import annotations

import pytest
from mlir import ir

from mlirfuse.errors import IRError, PassError, PipelineError
from mlirfuse.passmanager import registry
from mlirfuse.passmanager.manager import Instrumentation, Pipeline, run_pipeline
from mlirfuse.support.diagnostics import from_error, parse_module
from tests.support.toy_passes import ENTRIES, ToyMark

MODULE = """
func.func @f(%a: i32) -> i32 {
  %0 = arith.constant 0 : i32
  %1 = arith.addi %a, %0 : i32
  return %1 : i32
}
"""
MOMENTS = """
func.func @g(%a: tensor<4x8xf32>) -> tensor<4xf32> {
  %0:2 = "fuse.moments"(%a) {dims = array<i64: 1>} : (tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#1 : tensor<4xf32>
}
"""


@pytest.fixture(autouse=True)
def toy_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "ADDED", ENTRIES)


@pytest.fixture
def module(context: ir.Context) -> ir.Module:
    return parse_module(MODULE, context)


def test_both_kinds_of_pass_run_in_order(module: ir.Module) -> None:
    remarks = run_pipeline(module, "builtin.module(toy-mark{value=2},canonicalize,toy-mark{value=5})")
    assert [entry.message for entry in remarks.entries] == ["marked with 2", "marked with 5"]
    assert "fuse.mark = 5" in str(module)
    assert "arith" not in str(module)


def test_a_pipeline_prints_and_parses_again(module: ir.Module) -> None:
    text = "builtin.module(toy-mark{value=2},func.func(cse,canonicalize{max-iterations=3}),toy-options)"
    pipeline = Pipeline.parse(text)
    assert str(pipeline) == text
    assert Pipeline.parse(str(pipeline)).steps[0] == ToyMark(value=2)


def test_stop_after(module: ir.Module) -> None:
    text = "builtin.module(toy-mark{value=2},canonicalize,toy-mark{value=5},cse)"
    assert str(Pipeline.parse(text, stop_after="canonicalize")) == "builtin.module(toy-mark{value=2},canonicalize)"
    assert str(Pipeline.parse(text, stop_after="toy-mark,2")) == text.replace(",cse", "")
    with pytest.raises(PipelineError, match="'toy-mark,99': toy-mark occurs 2 times"):
        Pipeline.parse(text, stop_after="toy-mark,99")
    for request in ("toy-mark,3", "toy-mark,0", "toy-mark,x", "nowhere"):
        with pytest.raises(PipelineError, match=f"cannot stop after {request!r}"):
            Pipeline.parse(text, stop_after=request)


def test_a_pass_error_comes_out_unchanged_and_the_context_survives(module: ir.Module) -> None:
    with pytest.raises(PassError, match="functions are not allowed") as caught:
        run_pipeline(module, "builtin.module(toy-reject,toy-mark)")
    assert caught.value.__notes__ == ["in pass toy-reject"]
    assert "fuse.mark" not in str(module)
    run_pipeline(module, "builtin.module(toy-mark)")
    assert "fuse.mark" in str(module)


def test_a_bug_in_a_pass_comes_out_as_itself(module: ir.Module) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run_pipeline(module, "builtin.module(toy-reject{bug=true})")
    assert caught.value.__notes__ == ["in pass toy-reject{bug=true}"]


def test_an_upstream_failure_is_a_pass_error_with_its_place(context: ir.Context) -> None:
    module = parse_module("func.func @f() {\n  %0 = ub.poison : !llvm.ptr\n  return\n}", context)
    pipeline = "builtin.module(transform-interpreter{entry-point=nowhere})"
    with pytest.raises(PassError, match="could not find a nested named sequence") as caught:
        run_pipeline(module, pipeline)
    assert from_error(caught.value)[0].severity == "error"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("builtin.module(cse,nosuch)", "column 20: no pass or pipeline is named 'nosuch'"),
        ("builtin.module(toy-mrak)", "did you mean 'toy-mark'"),
        ("builtin.module(canonicalize{foo=1})", "no such option foo"),
        ("builtin.module(cse,toy-mark{vaule=1})", "column 29: toy-mark has no option 'vaule'"),
        ("builtin.module(func.func(cse,toy-mark))", "column 30: toy-mark runs on builtin.module, not on func.func"),
    ],
)
def test_bad_pipelines(module: ir.Module, text: str, message: str) -> None:
    with pytest.raises(PipelineError, match=f"(?s){message}"):
        run_pipeline(module, text)


def test_verify_each_covers_what_irdl_cannot_express(context: ir.Context) -> None:
    with pytest.raises(IRError, match=r"'fuse.moments' op dims \[7\] must be ascending") as caught:
        run_pipeline(parse_module(MOMENTS, context), "builtin.module(toy-break)")
    assert caught.value.__notes__ == ["in pass toy-break"]
    unverified = parse_module(MOMENTS, context)
    run_pipeline(unverified, "builtin.module(toy-break)", instrumentation=Instrumentation(verify_each=False))
    assert "array<i64: 7>" in str(unverified)


def test_printing_and_timing_cover_both_kinds(module: ir.Module, capfd: pytest.CaptureFixture[str]) -> None:
    watch = Instrumentation(print_after_change=True, timing=True)
    run_pipeline(module, "builtin.module(toy-mark,cse,canonicalize)", instrumentation=watch)
    err = capfd.readouterr().err
    assert "IR Dump After ToyMark (toy-mark)" in err
    assert "IR Dump After Canonicalizer (canonicalize)" in err
    assert "IR Dump After CSE" not in err
    assert err.index("Execution time report") < err.rindex("ToyMark") < err.rindex("Canonicalizer")


def test_a_text_that_does_not_parse_names_line_and_column(context: ir.Context) -> None:
    with pytest.raises(IRError, match=r"^-:2:7: custom op 'func.fnc' is unknown"):
        parse_module("\n      func.fnc @f()", context)
