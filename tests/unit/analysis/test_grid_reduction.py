"""What grid that loops over rows runs before, in, and after its tiles; and why it cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mlir import ir

import mlirfuse as mf
from mlirfuse.analysis.grid_reduction import GridReduction, grid_reduction, kept_dims, needs_grid
from mlirfuse.analysis.kernels import body, functions
from mlirfuse.analysis.loops.iteration_space import Conflict, IterationSpace, space_of_structures
from mlirfuse.analysis.loops.structure import OpStructure, structure_of
from mlirfuse.compiler.context import make_context
from mlirfuse.support.diagnostics import parse_module

Shape = tuple[int | None, ...]
Planned = tuple[IterationSpace, GridReduction | Conflict]
Plan = Callable[..., Planned]


@pytest.fixture
def plan() -> Plan:
    """Traces a function for 32-bit tensors, or parses text; returns its space and its grid reduction."""
    alive: list[ir.Module] = []

    def make(fn: Callable[..., Any] | str, *shapes: Shape) -> Planned:
        if isinstance(fn, str):
            module = parse_module(fn, make_context())
        else:
            module = mf.fuse(fn).lower(*(mf.TensorSpec(shape, mf.float32) for shape in shapes)).module
        alive.append(module)
        *ops, terminator = body(next(functions(module.operation)))
        structures = [s for op in ops if (s := structure_of(op)) is not None]
        space = space_of_structures(structures)
        assert isinstance(space, IterationSpace)
        return space, grid_reduction(space, structures, terminator.operands)

    return make


def grid_reduction_of(planned: Planned) -> tuple[IterationSpace, GridReduction]:
    space, found = planned
    assert isinstance(found, GridReduction), found.reason
    return space, found


def computes(group: tuple[OpStructure, ...]) -> list[str]:
    """The scalar op of each op that has one, reductions in capitals."""
    names = []
    for s in group:
        inner = s.op.regions[0].blocks[0].operations[0].operation.name.split(".")[1] if s.op.regions else s.op.name
        names.append(inner.upper() if s.reduction_loops else inner)
    return names


def test_when_the_ops_of_a_backward_function_run(plan: Plan) -> None:
    def fn(g: Any, x: Any, w: Any) -> Any:
        c = mf.sum(g * mf.sqrt(w) * x, axis=-1, keepdims=True)
        return x - c, mf.exp(mf.sum(g * x, axis=0))

    space, found = grid_reduction_of(plan(fn, (None, 64), (None, 64), (64,)))
    assert needs_grid(space)
    assert found.outer_dims == (0,)
    assert computes(found.column) == ["sqrt"]
    assert sorted(computes(found.tile)) == ["ADDF", "mulf", "mulf", "mulf", "subf", "tensor.expand_shape"]
    assert computes(found.reductions) == ["ADDF"]
    assert computes(found.second_stage) == ["exp"]
    assert kept_dims(space, found.reductions[0]) == [1]


def test_columns_that_the_reductions_meet_run_in_the_second_stage_too(plan: Plan) -> None:
    def fn(x: Any, w: Any) -> Any:
        bias = mf.sqrt(w)
        return x + bias, mf.sum(x, axis=0) * bias

    _, found = grid_reduction_of(plan(fn, (None, 64), (64,)))
    assert computes(found.column) == ["sqrt"]
    assert computes(found.second_stage) == ["sqrt", "mulf"]


def test_columns_that_leave_the_kernel_are_written_by_the_second_stage(plan: Plan) -> None:
    """It runs even where there are no rows."""
    _, found = grid_reduction_of(plan(lambda x, w: (mf.sum(x * w, axis=0), mf.sqrt(w)), (None, 64), (64,)))
    assert computes(found.second_stage) == ["sqrt"]


@pytest.mark.parametrize(
    ("fn", "shape", "outer_dims", "kept"),
    [
        (lambda x: mf.sum(x, axis=0), (None, 64), (0,), [1]),
        (lambda x: mf.sum(x, axis=(0, 1)), (None, 8, 64), (0, 1), [2]),
        (lambda x: mf.sum(x, axis=(0, 2)), (16, 8, 64), (0,), [1]),
        (lambda x: mf.sum(x), (16, 64), (0,), []),
        (lambda x: (mf.sum(x, axis=(0, 1)), mf.sum(x, axis=1)), (8, 16, 64), (0,), [2]),
        (lambda x: (mf.sum(x, axis=(0, 1)), mf.sum(x, axis=0)), (8, 16, 64), (0,), [2]),
        (lambda x: mf.sum(x / mf.sum(x, axis=0, keepdims=True), axis=1), (8, 64), (1,), [0]),
    ],
)
def test_what_is_looped(
    plan: Plan, fn: Callable[..., Any], shape: Shape, outer_dims: tuple[int, ...], kept: Any
) -> None:
    """The outer reductions' common dimensions, without the innermost and without those of inner reductions; of which
    one is outer, dependences say.
    """
    space, found = grid_reduction_of(plan(fn, shape))
    assert (found.outer_dims, kept_dims(space, found.reductions[0])) == (outer_dims, kept)


@pytest.mark.parametrize(
    ("fn", "shape", "needed"),
    [
        (lambda x: mf.sum(x, axis=-1), (None, 64), False),
        (
            lambda x: mf.exp(x - mf.max(x, axis=-1, keepdims=True)) / mf.sum(x, axis=-1, keepdims=True),
            (None, 64),
            False,
        ),
        (lambda x: mf.sum(x, axis=0), (128, 64), False),
        (lambda x: mf.sum(x, axis=0), (None, 64), True),
        (lambda x: (mf.sum(x, axis=0), mf.sum(x, axis=1)), (128, 64), True),
        (lambda x: mf.exp(x), (None, 64), False),
    ],
)
def test_who_needs_a_grid(plan: Plan, fn: Callable[..., Any], shape: Shape, needed: bool) -> None:
    assert needs_grid(plan(fn, shape)[0]) == needed


MOMENTS = """
func.func @f(%x: tensor<?x64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %sum, %m2 = "fuse.moments"(%x) {dims = array<i64: 0>} : (tensor<?x64xf32>) -> (tensor<64xf32>, tensor<64xf32>)
  return %sum, %m2 : tensor<64xf32>, tensor<64xf32>
}"""

START = """
func.func @f(%x: tensor<?x64xf32>, %w: tensor<64xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  %v = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>], iterator_types = ["parallel"]}
       ins(%w : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (b)>],
                        iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<?x64xf32>) outs(%v : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %out, %a : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}"""

INNER = """
func.func @f(%x: tensor<?x?x64xf32>) -> (tensor<64xf32>, tensor<?x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x?x64xf32>
  %e = tensor.empty() : tensor<64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %all = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (c)>],
                         iterator_types = ["reduction", "reduction", "parallel"]}
         ins(%x : tensor<?x?x64xf32>) outs(%i : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %out, %in : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %er = tensor.empty(%m) : tensor<?x64xf32>
  %ir = linalg.fill ins(%zero : f32) outs(%er : tensor<?x64xf32>) -> tensor<?x64xf32>
  %rows = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, c)>],
                          iterator_types = ["parallel", "reduction", "parallel"]}
         ins(%x : tensor<?x?x64xf32>) outs(%ir : tensor<?x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %out, %in : f32
    linalg.yield %s : f32
  } -> tensor<?x64xf32>
  return %all, %rows : tensor<64xf32>, tensor<?x64xf32>
}"""


@pytest.mark.parametrize(
    ("fn", "shapes", "reason"),
    [
        (lambda x: mf.exp(x), [(None, 64)], "it reduces nothing"),
        (INNER, [], "a reduction within a tile runs over a dynamic extent"),
        (
            lambda x: mf.sum(mf.sum(x, axis=0) ** 2),
            [(None, 64)],
            "it reduces a value that depends on a reduction over the grid",
        ),
        (lambda x: x - mf.sum(x, axis=0), [(None, 64)], "it uses a reduction over the grid in every tile"),
        (
            lambda x, y: (mf.sum(y, axis=0), x + y),
            [(None, None, 64), (None, 64)],
            "a tile would have to cover a dynamic extent entirely",
        ),
        (START, [], "its initial value is computed in the kernel"),
        (MOMENTS, [], "fuse.moments cannot be accumulated from tile to tile"),
        (
            lambda x, w: mf.sum(x * w, axis=0) * mf.sum(w),
            [(None, 64), (64,)],
            "it reduces, within a row, a value that does not vary over rows",
        ),
    ],
)
def test_conflicts(plan: Plan, fn: Any, shapes: list[Shape], reason: str) -> None:
    _, found = plan(fn, *shapes)
    assert isinstance(found, Conflict)
    assert reason in found.reason
