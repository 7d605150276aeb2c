"""Which dimensions of a kernel are merged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mlirfuse as mf
from mlirfuse.analysis.kernels import kernels
from mlirfuse.analysis.loops.collapsing import mergeable_pairs, runs
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.compiler import pipeline
from mlirfuse.passmanager.manager import run_pipeline


def pairs_of(fn: Callable[..., Any], *shapes: tuple[Any, ...]) -> set[tuple[int, int]]:
    lowered = mf.fuse(fn).lower(*[mf.TensorSpec(shape, "float32") for shape in shapes])
    with lowered.module.context:
        run_pipeline(lowered.module, pipeline.stage("fuse-views,cse,fuse-segment"))
        (kernel,) = kernels(lowered.module.operation)
        return set(mergeable_pairs(*kernel_space(kernel), {}))


@pytest.mark.parametrize(
    ("fn", "shapes", "expected"),
    [
        (lambda x: mf.exp(x), [(4, 5, 6)], {(0, 1), (1, 2)}),
        (lambda x: mf.exp(x), [("a", "b", 6)], {(0, 1), (1, 2)}),
        (lambda x: mf.sum(x, axis=-1), [("a", "b", 6)], {(0, 1)}),
        (lambda x: mf.sum(x, axis=(1, 2)), [("a", 5, 6)], {(1, 2)}),
        (lambda x: mf.sum(x, axis=1), [("a", 5, 6)], set()),
        (lambda x, w: x + w, [("a", "b", 6), (6,)], {(0, 1)}),
        (lambda x, w: x + w, [("a", 5, 6), (5, 6)], {(1, 2)}),
        (lambda x, w: x + w, [("a", "b", 5, 6), ("b", 5, 6)], {(2, 3)}),  # not b: it would hide the 6
        (lambda x, s: x * s, [("a", "b", 5, 6), ("a", 1, 1, 1)], {(2, 3)}),
        (lambda x: x + mf.permute_dims(x, (1, 0, 2)), [(4, 4, 6)], set()),
        (lambda x: x + mf.permute_dims(x, (2, 0, 1)), [(4, 4, 4)], set()),
        (lambda x, y: mf.permute_dims(x, (1, 2, 0)) * y, [(3, 4, 5), (4, 5, 3)], {(1, 2)}),
    ],
)
def test_pairs(fn: Callable[..., Any], shapes: list[tuple[Any, ...]], expected: set[tuple[int, int]]) -> None:
    assert pairs_of(fn, *shapes) == expected


def test_runs_group_neighbouring_axes() -> None:
    assert runs((0, 1, None, 2, 3), {(0, 1), (2, 3)}) == [[0, 1], [2], [3, 4]]
    assert runs((None,), {(0, 1)}) == [[0]]
    assert runs((), set()) == []
