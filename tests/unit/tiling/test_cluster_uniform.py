"""Which values neighbouring blocks have in common, by the arithmetic that makes them."""

from __future__ import annotations

import pytest
from mlir import ir

from mlirfuse.compiler.context import make_context
from mlirfuse.support.diagnostics import parse_module
from mlirfuse.tiling.contractions.cluster_uniform import is_cluster_uniform, tile_multiple

VALUES = """
func.func @f(%b: index, %n: index) -> (index, index, index, index, index, index, index, index, index, index) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %even = affine.apply affine_map<()[s0] -> ((s0 ceildiv 128) * 4)>()[%n]
  %row = arith.divui %b, %c8 : index
  %column = arith.remui %b, %c8 : index
  %pair = arith.divui %column, %c2 : index
  %third = arith.divui %b, %c3 : index
  %dynamic = arith.divui %b, %n : index
  %dynamic_even = arith.divui %b, %even : index
  %scaled = affine.apply affine_map<(d0) -> (d0 * 128)>(%row)
  %first = arith.muli %row, %c8 : index
  %place = arith.addi %first, %column : index
  %again = arith.divui %place, %c8 : index
  %shifted = arith.addi %row, %column : index
  %other = arith.divui %shifted, %c8 : index
  return %row, %column, %pair, %third, %dynamic, %dynamic_even, %scaled, %n, %again, %other
      : index, index, index, index, index, index, index, index, index, index
}
"""
SHARED_BY_TWO = (True, False, True, False, False, True, True, True, True, False)
SHARED_BY_FOUR = (True, False, False, False, False, True, True, True, True, False)


@pytest.mark.parametrize(("cluster", "expected"), [(2, SHARED_BY_TWO), (4, SHARED_BY_FOUR)])
def test_values_of_neighbours(cluster: int, expected: tuple[bool, ...]) -> None:
    module = parse_module(VALUES, make_context())
    function = module.body.operations[0]
    block = function.regions[0].blocks[0]
    returned = block.operations[len(block.operations) - 1].operands
    assert tuple(is_cluster_uniform(value, block.arguments[0], cluster) for value in returned) == expected


@pytest.mark.parametrize(
    ("bound", "multiple"),
    [
        ("%tiles = affine.apply affine_map<()[s0] -> ((s0 ceildiv 128) * 12)>()[%n]", 12),
        ("%tiles = affine.apply affine_map<()[s0] -> (s0 * 6 + 4)>()[%n]", 2),
        ("%tiles = affine.apply affine_map<()[s0] -> (s0 ceildiv 8)>()[%n]", 1),
        ("%tiles = arith.constant 24 : index", 24),
    ],
)
def test_multiples(bound: str, multiple: int) -> None:
    text = f"func.func @f(%n: index) {{\n{bound}\nscf.forall (%b) in (%tiles) {{\n}}\nreturn\n}}"
    module = parse_module(text, make_context())
    loops = [
        op for op in module.body.operations[0].regions[0].blocks[0].operations if op.operation.name == "scf.forall"
    ]
    assert tile_multiple(loops[0].operation) == multiple


def test_a_static_number_of_tiles() -> None:
    module = parse_module("func.func @f() {\nscf.forall (%b) in (36) {\n}\nreturn\n}", make_context())
    loop: ir.OpView = module.body.operations[0].regions[0].blocks[0].operations[0]
    assert tile_multiple(loop.operation) == 36
