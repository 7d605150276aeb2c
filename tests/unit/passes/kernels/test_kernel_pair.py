"""Which pairs of kernels are asked about again once one of them has changed, and what later merges save."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import combinations

from mlir import ir

from mlirfuse.analysis.kernels import body, functions, symbol
from mlirfuse.compiler.context import make_context
from mlirfuse.passes.kernels.host import launches
from mlirfuse.passes.kernels.kernel_pair import KernelPair, Names, later_gain, merge_pairs

KERNEL = """
func.func private @NAME(%x: tensor<8xf32>) -> tensor<8xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
                       iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.negf %v : f32
    linalg.yield %r : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
CHAIN = """
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = call @a(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %b = call @b(%a) : (tensor<8xf32>) -> tensor<8xf32>
  %c = call @c(%b) : (tensor<8xf32>) -> tensor<8xf32>
  return %c : tensor<8xf32>
}
"""
STAR = """
func.func @f(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %a = call @a(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %b = call @b(%a) : (tensor<8xf32>) -> tensor<8xf32>
  %c = call @c(%a) : (tensor<8xf32>) -> tensor<8xf32>
  %d = call @d(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %b, %c, %d : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
"""


def _module(host: str, names: str) -> ir.Module:
    """A host function, and a kernel of each name."""
    return ir.Module.parse(host + "".join(KERNEL.replace("NAME", name) for name in names))


def _reading(module: ir.Operation, function: ir.Operation, declined: Collection[Names]) -> Iterator[KernelPair]:
    for (call, kernel), (later, reader) in combinations(launches(module, function).items(), 2):
        pair = KernelPair(call, later, kernel, reader)
        if pair.names not in declined and set(call.results) & set(later.operands):
            yield pair


def _negations(kernel: ir.Operation) -> int:
    return sum(op.name == "linalg.generic" for op in body(kernel))


def test_what_was_declined_is_asked_about_again_once_a_kernel_has_changed() -> None:
    """The second kernel is too small for the first one, until the third one has joined it."""
    with make_context(), ir.Location.unknown():
        module, asked = _module(CHAIN, "abc"), []

        def obstacle(pair: KernelPair) -> str | None:
            asked.append(pair.names)
            return "too small" if pair.names == ("a", "b") and _negations(pair.second) < 2 else None

        merge_pairs(module.operation, _reading, obstacle, lambda pair, reason: None)
        assert asked == [("a", "b"), ("b", "c"), ("a", "b")]
        (kernel,) = [f for f in functions(module.operation) if symbol(f) == "a"]
        assert _negations(kernel) == 3


def test_later_merges_save_what_each_saves_and_change_nothing() -> None:
    """One that costs time is left out, and one that is no kernel."""
    with make_context(), ir.Location.unknown():
        module = _module(STAR, "abcd")
        before = str(module)
        found = {"b": 9.0, "c": 2.0, "d": -1.0}
        (pair,) = [p for p in _reading(module.operation, _host(module), ()) if p.names == ("a", "b")]
        tried = []

        def gain(other: KernelPair) -> float | None:
            tried.append((other.names, _negations(other.first)))
            return found[other.names[1]]

        assert later_gain(pair, _reading, gain) == 2.0
        assert tried == [(("a", "c"), 2), (("a", "d"), 3)]
        assert later_gain(pair, _reading, lambda other: None) == 0.0
        assert str(module) == before


def _host(module: ir.Module) -> ir.Operation:
    return next(f for f in functions(module.operation) if symbol(f) == "f")
