"""Every family's candidates compute the same as NumPy, the slow ones too: a sample of each, on small arrays."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from mlir import ir

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.scheduling.problem import problem_of
from mlirfuse.compiler import pipeline
from mlirfuse.dialect.attributes import SCHEDULE
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.schedule.choice.proposals import Proposal, proposals
from mlirfuse.schedule.problem import Problem
from mlirfuse.support.diagnostics import parse_module
from mlirfuse.target import target_of
from tests.support.pairwise import FULL

TARGET = target_of("sm_90a").with_sms(4)
SAMPLED = 12 if FULL else 3
"""Candidates of each family of a function."""


def softmax(xp: Any, x: Any) -> Any:
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def deviations(xp: Any, x: Any, w: Any) -> Any:
    centred = x - xp.mean(x, axis=-1, keepdims=True)
    return centred * w / xp.sqrt(xp.mean(centred * centred, axis=-1, keepdims=True) + 1)


def columns(xp: Any, x: Any, y: Any) -> Any:
    return xp.sum(x * y, axis=0), xp.max(x, axis=0)


def standardised(xp: Any, x: Any) -> Any:
    return (x - xp.mean(x, axis=0, keepdims=True)) * xp.sum(x * x, axis=0, keepdims=True)


def turned(xp: Any, x: Any, y: Any) -> Any:
    return xp.permute_dims(x, (1, 0)) + y if hasattr(xp, "permute_dims") else x.T + y


def channels(xp: Any, x: Any, w: Any) -> Any:
    return x * w[:, None] + 1


def colours(xp: Any, x: Any) -> Any:
    return xp.sum(x * x, axis=-1)


def both(xp: Any, x: Any, w: Any) -> Any:
    return xp.sum(x, axis=-1), xp.sum(x * w, axis=0)


def distances(xp: Any, x: Any, y: Any) -> Any:
    return xp.sum(xp.abs(x[:, None, :] - y[None, :, :]), axis=-1)


def pairs_of_columns(xp: Any, x: Any, y: Any) -> Any:
    return xp.sum(xp.abs(x[:, :, None] - y[:, None, :]), axis=0)


def total(xp: Any, x: Any) -> Any:
    return xp.sum(x * x)


def normalised_pairs(xp: Any, x: Any, w: Any) -> Any:
    y = x / xp.sqrt(xp.mean(x * x, axis=-1, keepdims=True) + 1)
    half = x.shape[-1] // 2
    left, right = y[..., :half], y[..., half:]
    return (xp.concatenate if xp is np else xp.concat)([left * w - right, right * w + left], axis=-1)


def gated_pairs(xp: Any, x: Any, w: Any) -> Any:
    return (xp.concatenate if xp is np else xp.concat)([x * w, x - w], axis=-1)


CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "rows": (softmax, ((13, 256),)),
    "odd rows": (softmax, ((3, 40, 49),)),
    "unaligned rows": (deviations, ((9, 1001), (1001,))),
    "wide rows": (deviations, ((3, 4096), (4096,))),
    "columns": (columns, ((300, 64), (300, 64))),
    "columns again": (standardised, ((512, 128),)),
    "transposed": (turned, ((96, 70), (70, 96))),
    "elements": (channels, ((2, 24, 64), (24,))),
    "elements of odd rows": (channels, ((2, 64, 33), (64,))),
    "colours": (colours, ((500, 3),)),
    "rows and columns": (both, ((150, 128), (128,))),
    "pairs": (distances, ((40, 24), (33, 24))),
    "pairs of few columns": (pairs_of_columns, ((300, 8), (300, 4))),
    "pairs of odd columns": (pairs_of_columns, ((129, 3), (129, 5))),
    "a number": (total, ((70, 129),)),
    "joined rows": (normalised_pairs, ((13, 512), (256,))),
    "joined elements": (gated_pairs, ((70, 48), (70, 48))),
}


EXPECTED = {
    "rows": {"rows", "chunked", "grid_persistent"},
    "odd rows": {"rows", "flat", "chunked"},
    "columns again": {"column_tiles", "grid_persistent"},
    "transposed": {"transposed", "ordered"},
    "elements of odd rows": {"elementwise", "flat"},
    "colours": {"windows"},
    "columns": {"columns", "streamed", "loop"},
    "rows and columns": {"loop"},
    "pairs": {"register_tiles"},
    "pairs of few columns": {"loop"},
    "joined rows": {"rows", "grid_persistent"},
    "joined elements": {"elementwise"},
}
"""Families that some cases are for."""


def kernel_of(module: ir.Module) -> ir.Operation:
    """The only kernel, in one piece, with the schedule that is chosen for it."""
    with module.context:
        run_pipeline(module, pipeline.named("fuse-graph-pipeline").replace("fuse-split-reductions,", ""))
        (kernel,) = [op.operation for op in module.body.operations if SCHEDULE in op.attributes]
    return kernel


def sample(given: Problem) -> Iterator[Proposal]:
    """Some candidates of each family, the same on every run."""
    families: dict[str, list[Proposal]] = {}
    for proposal in proposals(given, TARGET):
        families.setdefault(proposal.family, []).append(proposal)
    for number, found in enumerate(families.values()):
        yield from random.Random(number).sample(found, min(SAMPLED, len(found)))


@pytest.mark.parametrize("name", CASES)
def test_candidates(name: str) -> None:
    function, shapes = CASES[name]
    rng = np.random.default_rng(len(name))
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    exact = function(np, *(array.astype(np.float64) for array in arrays))
    exact = exact if isinstance(exact, tuple) else (exact,)

    def program(*xs: Any) -> Any:
        return function(mf, *xs)

    lowered = mf.fuse(program, target="sm_90a").lower(*(mf.TensorSpec(shape, mf.float32) for shape in shapes))
    kernel = kernel_of(lowered.module)
    families = set()
    for proposal in sample(problem_of(kernel, *kernel_space(kernel))):
        families.add(proposal.family)
        copy = parse_module(str(lowered.module), lowered.module.context)
        with copy.context, ir.Location.unknown():
            (own,) = [op.operation for op in copy.body.operations if SCHEDULE in op.attributes]
            own.attributes[SCHEDULE] = proposal.schedule.attribute()
            run_pipeline(copy, pipeline.named("fuse-kernel-pipeline"))
        found = interpreter.run(copy, "program", arrays, sms=TARGET.sms)
        for one, other in zip(found, exact, strict=True):
            np.testing.assert_allclose(np.asarray(one), other, rtol=2e-4, atol=2e-4, err_msg=str(proposal))
    assert families >= EXPECTED.get(name, set()), families
