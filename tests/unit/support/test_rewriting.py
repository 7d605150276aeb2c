"""Walks over IR: every operation, or those of some names."""

from __future__ import annotations

import pytest

from mlirfuse.compiler.context import make_context
from mlirfuse.errors import PassError
from mlirfuse.support.diagnostics import parse_module
from mlirfuse.support.rewriting import erase, integer_of, nested, ops_named

TEXT = """
func.func @f(%n: index, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = "fuse.optimization_barrier"(%x, %x) : (f32, f32) -> f32
  %1 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %0) -> f32 {
    %2 = arith.addf %a, %x : f32
    %3 = "fuse.optimization_barrier"(%2, %x) : (f32, f32) -> f32
    scf.yield %3 : f32
  }
  %4 = arith.addf %1, %x : f32
  return %4 : f32
}
"""


def test_nested_is_in_program_order_with_the_root() -> None:
    module = parse_module(TEXT, make_context())
    names = [op.name for op in nested(module.operation)]
    assert names == [
        "builtin.module", "func.func", "arith.constant", "arith.constant",
        "fuse.optimization_barrier", "scf.for", "arith.addf",
        "fuse.optimization_barrier", "scf.yield", "arith.addf", "func.return",
    ]  # fmt: skip


def test_named_ops_are_those_of_the_names_wherever_they_are() -> None:
    module = parse_module(TEXT, make_context())
    everything = nested(module.operation)
    assert ops_named(module.operation, "fuse.optimization_barrier") == [
        op for op in everything if op.name == "fuse.optimization_barrier"
    ]
    found = ops_named(module.operation, "scf.for", "arith.addf", "memref.load")
    assert [op.name for op in found] == ["arith.addf", "scf.for", "arith.addf"]
    assert ops_named(module.operation, "memref.load") == []


def test_named_ops_can_be_erased_while_they_are_gone_through() -> None:
    module = parse_module(TEXT, make_context())
    for op in ops_named(module.operation, "fuse.optimization_barrier"):
        op.results[0].replace_all_uses_with(op.operands[0])
        op.erase()
    assert not ops_named(module.operation, "fuse.optimization_barrier")
    assert module.operation.verify()


def test_integers_are_those_of_constants() -> None:
    text = "func.func @g(%n: index) { %c = arith.constant 7 : index\n %f = arith.constant 1.0 : f32\n return }"
    module = parse_module(text, make_context())
    function, seven, one = nested(module.operation)[1:4]
    values = [function.regions[0].blocks[0].arguments[0], seven.results[0], one.results[0]]
    assert [integer_of(value) for value in values] == [None, 7, None]


def test_what_is_used_outside_is_not_erased() -> None:
    """MLIR aborts the process at that; the module stays as it was."""
    module = parse_module(TEXT, make_context())
    (loop,) = ops_named(module.operation, "scf.for")
    with pytest.raises(PassError, match="scf.for cannot be erased: arith.addf still uses scf.for"):
        erase(loop)
    assert module.operation.verify()
    loop.results[0].replace_all_uses_with(loop.operands[3])
    erase(loop)
    assert not ops_named(module.operation, "scf.for")
    assert module.operation.verify()
