"""What a loop could compute of values that unrolled code computes alike."""

from __future__ import annotations

from mlir import ir

from mlirfuse.analysis.rolling import Computed, Copied, Node, Same, Step, held_registers, instructions, ordered
from tests.support.kernels import parse

TEXT = """
func.func @f(%i: index, %x: memref<?xf32>, %y: memref<?xf32>, %a: f32, %b: f32, %c: f32) {
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %i8 = arith.addi %i, %c8 : index
  %i16 = arith.addi %c16, %i : index
  %l0 = memref.load %x[%i] : memref<?xf32>
  %l1 = memref.load %x[%i8] : memref<?xf32>
  %l2 = memref.load %x[%i16] : memref<?xf32>
  %e0 = math.erf %a : f32
  %e1 = math.erf %b : f32
  %e2 = math.erf %c : f32
  %s0 = arith.addf %e0, %l0 : f32
  %s1 = arith.addf %e1, %l1 : f32
  %s2 = arith.addf %e2, %l2 : f32
  %d = arith.mulf %s0, %a : f32
  %t0 = arith.truncf %a : f32 to f16
  %t1 = arith.truncf %b : f32 to f16
  return
}
"""


def _values(names: str) -> tuple[ir.Module, list[ir.Value]]:
    """Values of `TEXT` by their numbers in the order of the ops; arguments are a, b, c."""
    module = parse(TEXT)
    block = module.body.operations[0].regions[0].blocks[0]
    known = dict(zip("abc", list(block.arguments)[3:], strict=True))
    order = ["c8", "c16", "i8", "i16", "l0", "l1", "l2", "e0", "e1", "e2", "s0", "s1", "s2", "d", "t0", "t1"]
    known |= {name: op.results[0] for name, op in zip(order, block.operations, strict=False)}
    return module, [known[name] for name in names.split()]


def _node(names: str, *, loads_ahead: bool = False) -> tuple[ir.Module, Node]:
    module, values = _values(names)
    return module, Copied(module.body.operations[0].regions[0].blocks[0], loads_ahead=loads_ahead).node(values)


def test_ops_that_are_alike_are_computed_from_what_differs() -> None:
    module, node = _node("s0 s1 s2")
    assert isinstance(node, Computed)
    nodes = ordered([node])
    assert nodes[-1] is node
    held = [n for n in nodes if type(n) is Node]
    assert len(held) == 2  # the arguments, and what is loaded
    assert held_registers(nodes) == 6
    assert held_registers(nodes, loaded=True) == 3
    assert instructions(nodes) == 31
    del module


def test_loads_of_what_is_only_read_may_move_into_the_loop() -> None:
    module, node = _node("s0 s1 s2", loads_ahead=True)
    nodes = ordered([node])
    assert held_registers(nodes) == 3
    (load,) = [n for n in nodes if isinstance(n, Computed) and n.ahead]
    assert load.ops[0].name == "memref.load"
    assert isinstance(load.operands[1], Step)
    del module


def test_values_that_all_copies_share_and_indices_that_grow() -> None:
    module, node = _node("a a a")
    assert isinstance(node, Same)
    del module
    module, node = _node("i8 i16")
    assert isinstance(node, Step)
    assert (node.start, node.step) == (8, 8)
    assert node.root is not None
    del module
    module, node = _node("c8 c16")
    assert isinstance(node, Step)
    assert node.root is None
    del module


def test_other_ops_and_narrowed_registers_are_held() -> None:
    for names in ("s0 d", "e0 s1", "t0 t1", "s0 s0 s1"):
        module, node = _node(names)
        assert type(node) is Node, names
        del module
