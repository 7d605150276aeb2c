"""Iteration spaces of growing segments: ops that are added without unifying all loops do not change the space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mlir import ir

import mlirfuse as mf
from mlirfuse.analysis.kernels import body, functions
from mlirfuse.analysis.loops.iteration_space import IterationSpace, space_of_structures
from mlirfuse.analysis.loops.structure import OpStructure, structure_of
from mlirfuse.analysis.segments import segments
from mlirfuse.analysis.segments.incremental_space import IncrementalSpace
from mlirfuse.analysis.segments.segments import segment_ops
from tests.fuzzing.generation.generator import program_from_seed
from tests.fuzzing.running.backends import specs_of


def traced(fn: Callable[..., Any], *specs: mf.TensorSpec) -> tuple[ir.Module, list[ir.Operation]]:
    """The module of a function, to be kept alive, and the ops of its body."""
    module = mf.fuse(fn).lower(*specs).module
    return module, body(next(functions(module.operation)))


def structures_of(fn: Callable[..., Any], *shapes: tuple[int | None, ...]) -> tuple[ir.Module, list[OpStructure]]:
    module, ops = traced(fn, *(mf.TensorSpec(shape, mf.float32) for shape in shapes))
    return module, [s for op in ops if (s := structure_of(op)) is not None]


def taken(structures: list[OpStructure]) -> bool:
    """Whether the last op is added to the space of the others at once."""
    space = space_of_structures(structures[:-1])
    assert isinstance(space, IterationSpace)
    return IncrementalSpace.of(space, structures[:-1]).try_add(structures[-1])


@pytest.mark.parametrize(
    ("fn", "shapes", "expected"),
    [
        (lambda x: mf.exp(mf.exp(x)), [(None, 64)], True),
        (lambda x, w: mf.exp(x) + w, [(None, 64), (64,)], True),
        (lambda x: mf.exp(x) + mf.sum(x, axis=1, keepdims=True), [(8, 64)], True),
        (lambda x: mf.sum(mf.exp(x), axis=1), [(None, 64)], False),  # reduces
        (lambda x, y: mf.exp(x) + y, [(64,), (8, 64)], False),  # adds a dimension
        (lambda x: mf.exp(x) + mf.permute_dims(x, (1, 0)), [(64, 64)], False),  # reads x in two ways
        (lambda x, w: mf.exp(x @ w), [(64, 64), (64, 64)], False),  # follows a contraction
        (lambda x: mf.exp(mf.sum(x, axis=0)), [(None, 64)], False),  # follows a sum of unknown length
    ],
    ids=["chain", "weight", "row", "reduction", "dimension", "transpose", "product", "grid"],
)
def test_only_ops_that_change_nothing_are_added_at_once(
    fn: Callable[..., Any], shapes: list[tuple[int | None, ...]], expected: bool
) -> None:
    _alive, structures = structures_of(fn, *shapes)
    assert taken(structures) == expected


def test_segments_are_those_of_spaces_unified_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(150):
        program = program_from_seed(seed, "small")
        _alive, ops = traced(program.function(), *specs_of(program, program.arguments()))
        grown = segment_ops(ops)
        with monkeypatch.context() as patch:
            patch.setattr(IncrementalSpace, "try_add", lambda *_: False)
            unified = segment_ops(ops)
        assert [s.ops for s in grown.segments] == [s.ops for s in unified.segments], program.text
        assert grown.declined == unified.declined, program.text


def test_a_chain_is_unified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unified anew for each op, 800 of them compiled for 8.5 s, and for 1.2 s so."""

    def chain(x: Any, y: Any) -> Any:
        total = x
        for _ in range(20):
            total = mf.exp(total) + y
        return total

    calls = []
    unify = segments.space_of_structures
    monkeypatch.setattr(segments, "space_of_structures", lambda ops: calls.append(len(ops)) or unify(ops))
    spec = mf.TensorSpec((None, 64), mf.float32)
    _alive, ops = traced(chain, spec, spec)
    assert len(segment_ops(ops).segments) == 1
    assert sum(calls) < 10
