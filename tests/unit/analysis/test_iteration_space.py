"""Iteration spaces and segments of traced functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mlir import ir

import mlirfuse as mf
from mlirfuse.analysis.kernels import body, functions
from mlirfuse.analysis.loops.iteration_space import Conflict, IterationSpace, _UnionFind, build_iteration_space
from mlirfuse.analysis.segments.segments import segment_ops


@pytest.fixture
def ops_of() -> Callable[..., list[ir.Operation]]:
    """Traces a function for 32-bit tensors of some shapes; returns the ops of its body."""
    alive: list[ir.Module] = []

    def trace(fn: Callable[..., Any], *shapes: tuple[int | None, ...]) -> list[ir.Operation]:
        module = mf.fuse(fn).lower(*(mf.TensorSpec(shape, mf.float32) for shape in shapes)).module
        alive.append(module)
        return body(next(functions(module.operation)))

    return trace


def space_of(ops: list[ir.Operation]) -> IterationSpace:
    space = build_iteration_space(ops)
    assert isinstance(space, IterationSpace)
    return space


def test_producer_and_consumer_loops_are_one_dimension_each(ops_of: Callable[..., list[ir.Operation]]) -> None:
    space = space_of(ops_of(lambda x: x / mf.sum(x, axis=-1, keepdims=True), (None, 64)))
    assert space.extents == (None, 64)
    assert space.reduced_dims == {1}
    assert space.spanned()


def test_broadcast_operands_run_along_the_dimensions_they_have(ops_of: Callable[..., list[ir.Operation]]) -> None:
    space = space_of(ops_of(lambda x, w: x + w, (None, 64), (64,)))
    assert space.extents == (None, 64)
    assert sorted(space.use_axes.values()) == [(0, 1), (1,)]


def test_readings_that_lie_together_are_not_tried_again(
    ops_of: Callable[..., list[ir.Operation]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial copies all nodes, and looks at all ops: 800 ops on 8 arguments compiled for 67 s of the host's time."""

    def chain(x: Any, y: Any) -> Any:
        total = x
        for _ in range(20):
            total = mf.exp(total) + y
        return total

    trials: list[_UnionFind] = []
    copy = _UnionFind.copy
    monkeypatch.setattr(_UnionFind, "copy", lambda sets: trials.append(sets) or copy(sets))
    space_of(ops_of(lambda x: (mf.exp(x), mf.sin(x)), (None, 64)))
    assert len(trials) == 1
    trials.clear()
    space_of(ops_of(chain, (None, 64), (None, 64)))
    assert not trials


def test_a_transpose_renames_dimensions(ops_of: Callable[..., list[ir.Operation]]) -> None:
    space = space_of(ops_of(lambda x: mf.permute_dims(x, (1, 0)) + 1.0, (8, 64)))
    assert space.extents == (8, 64)
    assert (1, 0) in space.value_axes.values()


def test_a_value_that_meets_its_own_transpose_conflicts(ops_of: Callable[..., list[ir.Operation]]) -> None:
    def fn(x: Any) -> Any:
        y = mf.exp(x)
        return y + mf.permute_dims(y, (1, 0))

    conflict = build_iteration_space(ops_of(fn, (64, 64)))
    assert isinstance(conflict, Conflict)
    assert conflict.reason == "two of its loops are one dimension of its producers"


def test_an_argument_may_be_read_along_other_dimensions(ops_of: Callable[..., list[ir.Operation]]) -> None:
    space = space_of(ops_of(lambda x: x + mf.permute_dims(x, (1, 0)), (64, 64)))
    assert space.extents == (64, 64)
    assert set(space.use_axes.values()) == {(0, 1), (1, 0)}


def returns_a_view(x: Any, y: Any) -> Any:
    """The statistic is returned with a dimension more; the second argument is used by itself before both are."""
    mean = mf.mean(x, axis=(0, 1), keepdims=True)
    gate = mf.tanh(y)
    return mean, (x - mean) * gate


def reads_a_view(x: Any, y: Any) -> Any:
    """Both kernels of the last sum cannot be one: what `gate` is computed of is in memory after the first."""
    shifted = x + 1.0
    gate = mf.exp(shifted[:, :1]) * y
    return shifted * gate


@pytest.mark.parametrize(("fn", "count"), [(returns_a_view, 1), (reads_a_view, 2)])
def test_kernels_of_two_arguments(
    ops_of: Callable[..., list[ir.Operation]], fn: Callable[..., Any], count: int
) -> None:
    assert len(segment_ops(ops_of(fn, (32, 64), (32, 1))).segments) == count


@pytest.mark.parametrize(
    ("fn", "count"),
    [
        (lambda x: x - mf.max(x, axis=-1, keepdims=True), 1),
        (lambda x: (mf.sum(x, axis=0), mf.sum(x, axis=1)), 2),
        (lambda x: mf.sum(mf.sum(x, axis=1), axis=0), 2),
        (lambda x: mf.exp(mf.reshape(mf.exp(x), (2, 16, 64))), 2),
        (lambda x: mf.exp(mf.reshape(x, (2, 16, 64))), 1),
        (lambda x: (x + 1.0, x * 2.0), 1),
    ],
    ids=["row-reduction", "two-dimensions", "nested", "reshape-between", "reshape-first", "shared-input"],
)
def test_number_of_segments(ops_of: Callable[..., list[ir.Operation]], fn: Callable[..., Any], count: int) -> None:
    assert len(segment_ops(ops_of(fn, (32, 64))).segments) == count
