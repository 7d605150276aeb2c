"""LLVM compiles each kernel in a module of its own; the canonicalizer leaves out what takes quadratic time."""

from __future__ import annotations

from mlir.passmanager import PassManager

from mlirfuse.compiler.context import make_context
from mlirfuse.lowering.ptx import libdevice, to_ptx
from mlirfuse.support.diagnostics import parse_module
from tests.support.harnesses.lowering_harness import COPY, EXP, compile_text

TWICE = """
func.func @f(%n: index, %x: f32) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %0:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero, %b = %zero) -> (f32, f32) {
    %s = arith.addf %a, %x : f32
    scf.yield %s, %s : f32, f32
  }
  return %0#0, %0#1 : f32, f32
}
"""


def test_libdevice_is_linked_to_kernels_that_call_it_alone(monkeypatch):
    asked = []
    required = libdevice.require
    monkeypatch.setattr(libdevice, "require", lambda functions: asked.append(functions) or required(functions))
    copy = COPY.replace("@k", "@copy")
    binaries = compile_text(EXP + copy)[0]
    assert asked == [("__nv_expf",)]
    assert {name: binary.ptx for name, binary in binaries.items()} == {
        name: binary.ptx for text in (EXP, copy) for name, binary in compile_text(text)[0].items()
    }


def test_values_that_a_loop_carries_twice_are_not_looked_for():
    """Names of patterns are upstream's: where they change, compiling many accumulators takes a quadratic time again."""
    carried = {}
    for text in ("canonicalize{region-simplify=disabled}", to_ptx.CANONICALIZE):
        module = parse_module(TWICE, make_context())
        PassManager.parse(f"builtin.module(func.func({text}))", module.context).run(module.operation)
        carried[text] = str(module).split("iter_args(")[1].split(")")[0].count("=")
    assert list(carried.values()) == [1, 2]
