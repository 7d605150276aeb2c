"""What is chosen after spills computes the same: each family with one to three schedules passed over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.analysis.kernels import kernels
from mlirfuse.analysis.scheduling.scheduling_problem import kernel_problem
from mlirfuse.compiler import pipeline
from mlirfuse.compiler.feedback import without_spills
from mlirfuse.interpreter import run
from mlirfuse.lowering.ptx.resources import KernelResources
from mlirfuse.lowering.ptx.to_ptx import KernelBinary
from mlirfuse.machine import machine_of
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.schedule.choice.contraction_choice import choose_contraction
from tests.support.pairwise import combined


def _norm(x):
    return (x - mf.mean(x, axis=-1, keepdims=True)) * mf.rsqrt(mf.var(x, axis=-1, keepdims=True) + 1e-5)


def _columns(x):
    return (x - mf.mean(x, axis=0)) / (mf.std(x, axis=0) + 1)


def _both(x):
    return x - mf.max(x, axis=-1, keepdims=True), mf.sum(x, axis=0)


FUNCTIONS = {
    "elementwise": lambda x: mf.exp(-x * x),
    "rows": _norm,
    "columns": _columns,
    "persistent_loop": _both,
    "product": lambda x: mf.exp(-(x @ mf.matrix_transpose(x))),
}


def _spilling(bytes_: int, times: int):
    """An assembler by which the first so many codes of each kernel spill."""
    seen: dict[str, list[str]] = {}

    def assemble(binaries: Sequence[KernelBinary]) -> list[KernelResources]:
        reports = []
        for binary in binaries:
            codes = seen.setdefault(binary.name, [])
            codes.extend([binary.ptx] if binary.ptx not in codes else [])
            spilled = bytes_ if codes.index(binary.ptx) < times else 0
            reports.append(KernelResources(binary.name, 64, spilled, spilled, 0, 0, 0, 128, 1))
        return reports

    return assemble


@combined({"name": FUNCTIONS, "dtype": ["float32", "float64", "float16"], "times": [1, 3]})
def test_same_results(name, dtype, times):
    fn = mf.fuse(FUNCTIONS[name], target="sm_90a")
    x = np.random.default_rng(0).uniform(0.1, 1, (33, 136)).astype(dtype)
    lowered = fn.lower(mf.TensorSpec(x.shape, x.dtype))
    first = lowered.compile(choose_again=False)
    again = without_spills(lowered._compile, _spilling(400, times))
    assert again.attempts
    wanted, got = (run(c.module_at("gpu"), c.program.name, [x]) for c in (first, again))
    for a, b in zip(wanted, got, strict=True):
        np.testing.assert_allclose(
            a.astype(np.float64), b.astype(np.float64), rtol=2e-2 if dtype == "float16" else 1e-5, atol=1e-3
        )


@pytest.mark.parametrize("times", [2, 3, 5])
def test_reductions_of_one_element_beside_chunks(times):
    """A chunk has them whole, and carries none to the next."""

    def beside(x):
        wide = x.astype(mf.float64)[:, :, None]
        power = mf.exp2(wide)
        low = mf.minimum(power, 2)
        same = mf.all(mf.abs(wide), axis=2)
        return mf.any(same, axis=0), mf.logical_not(same), power, mf.cos(low), mf.ceil(low)

    x = np.random.default_rng(0).random((255, 129)) > 0.5
    lowered = mf.fuse(beside, target="sm_90a").lower(mf.TensorSpec((None, 129), "bool"))
    again = without_spills(lowered._compile, _spilling(400, times))
    assert len(again.attempts) == 1
    any_, inverted, *_ = run(again.module_at("gpu"), again.program.name, [x])
    np.testing.assert_array_equal(any_, x.any(axis=0))
    np.testing.assert_array_equal(inverted, ~x)


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_same_results_of_shorter_steps(dtype):
    """Products that no tile leaves more registers: a thread copies fewer elements along k at once."""
    fn = mf.fuse(lambda x, w: mf.abs(x) @ mf.matrix_transpose(w + 2), target="sm_90a")
    rng = np.random.default_rng(0)
    x, w = rng.uniform(0.1, 1, (33, 129)).astype(dtype), rng.uniform(0.1, 1, (63, 129)).astype(dtype)
    lowered = fn.lower(mf.TensorSpec(x.shape, x.dtype), mf.TensorSpec(w.shape, w.dtype))
    again = without_spills(lowered._compile, _spilling(400, 5))
    (tried,) = again.attempts.values()
    assert len({attempt.schedule.contraction.k for attempt in tried}) > 1
    (got,) = run(again.module_at("gpu"), again.program.name, [x, w])
    wanted = x.astype(np.float64) @ (w.astype(np.float64) + 2).T
    np.testing.assert_allclose(got.astype(np.float64), wanted, rtol=2e-3 if dtype == "float16" else 1e-12)


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_steps_of_one_element_of_batches_that_lie_innermost(dtype):
    """Rows of a step then lie together, but a vector along them would leave its only element along k."""
    x = np.random.default_rng(0).integers(-2, 3, (128, 128, 3)).astype(dtype).T
    w = np.random.default_rng(1).integers(-2, 3, (3, 128, 93)).astype(dtype)
    specs = mf.TensorSpec(x.shape, x.dtype, align=8, strides=(1, None, None)), mf.TensorSpec(w.shape, w.dtype)
    fn = mf.fuse(mf.matmul, target="sm_90a")
    lowered = fn.lower(*specs)
    module = lowered.module_with({})
    with module.context:  # a reduction over rows is predicted to be faster
        in_place = pipeline.TO_KERNELS.replace("fuse-permute-operands,", "")
        run_pipeline(module, pipeline.stage(in_place, fast_math=False))
        (kernel,) = kernels(module.operation)
        schedule = choose_contraction(kernel_problem(kernel), lowered.target, machine_of(lowered.target))
    assert max(schedule.layout.run) > 1
    short = replace(schedule, contraction=replace(schedule.contraction, k=1))
    compiled = fn.with_options(schedule=short).lower(*specs).compile(choose_again=False)
    (got,) = run(compiled.module_at("gpu"), compiled.program.name, [x, w])
    np.testing.assert_array_equal(got, x @ w)
