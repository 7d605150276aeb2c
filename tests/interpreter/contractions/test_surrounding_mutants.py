"""Planted bugs in what surrounds products in their kernels: operands in shared memory, reductions over tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.interpreter.mutation import MUTATORS, hunt
from tests.support.contractions.products import Product, pinned_schedule
from tests.support.harnesses.compiling import module_at, specs_of

NOT_SYNCHRONISATION = {"change-shuffle", "shrink-compare", "shrink-mask", "shorten-loop", "drop-neutral"}
KINDS = sorted(set(MUTATORS) - NOT_SYNCHRONISATION)


def dequantised(x, q, s):
    return mf.matmul(x, ((q.astype(x.dtype) + 1) * s[:, None]).T, dtype=mf.float32)


def maxima_of_rows(x, w):
    y = mf.matmul(x, w.T, dtype=mf.float32) - 1000
    return mf.max(y, axis=1)


def sums_of_rows(x, w):
    y = mf.matmul(x, w.T, dtype=mf.float32)
    return y, mf.sum(y, axis=1)


def _integers(*shapes: tuple[int, ...], dtypes: tuple[str, ...] = ()) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    names = [*dtypes, *["float16"] * (len(shapes) - len(dtypes))]
    return [rng.integers(1, 4, shape).astype(name) for shape, name in zip(shapes, names, strict=True)]


CASES: dict[str, tuple[Callable[..., Any], list[np.ndarray], tuple[Any, ...]]] = {
    "computed operand": (
        dequantised,
        _integers((32, 112), (64, 112), (64,), dtypes=("float16", "int8")),  # threads read what others have copied
        (32, 64, 1, "last_block", "mma"),
    ),
    "maxima": (maxima_of_rows, _integers((32, 64), (120, 64)), (32, 64, 1, "last_block", "mma")),
    "sums over staged tiles": (sums_of_rows, _integers((192, 1152), (64, 1152)), (64, 32, 1, "last_block", "wgmma")),
}


def reference(fn: Callable[..., Any], arrays: list[np.ndarray]) -> list[np.ndarray]:
    x, w, *s = (a.astype(np.float64) for a in arrays)
    if fn is dequantised:
        return [x @ ((w + 1) * s[0][:, None]).T]
    y = x @ w.T
    return [(y - 1000).max(1)] if fn is maxima_of_rows else [y, y.sum(1)]


@pytest.mark.parametrize("name", CASES)
def test_planted_bugs_are_caught(name: str) -> None:
    fn, inputs, (m, n, split, reduction, instruction) = CASES[name]
    product = Product(inputs[0].shape[0], inputs[1].shape[0], inputs[0].shape[1], "nt", "float16")
    schedule = pinned_schedule(product, m, n, split, reduction, instruction)
    module = module_at("gpu", fn, specs_of(inputs), schedule)
    expected = reference(fn, inputs)

    def run(mutant: Any) -> Iterator[list[np.ndarray]]:  # one after the other, as the first wrong result tells
        return (interpreter.run(mutant, fn.__name__, inputs, order="random", seed=seed) for seed in range(3))

    def right(runs: Iterator[list[np.ndarray]]) -> bool:
        return all(np.array_equal(r, e) for results in runs for r, e in zip(results, expected, strict=True))

    assert right(run(module))
    report = hunt(module, run, right, KINDS)
    assert report.caught
    assert [f"{mutant.kind}: {mutant.where}" for mutant in report.survivors] == []
