"""The shared memory that spilled to shared memory rows are chosen by, against what their kernels allocate."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import pytest
from mlir import ir

import mlirfuse as mf
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.scheduling.problem import problem_of
from mlirfuse.compiler import pipeline
from mlirfuse.dialect.attributes import SCHEDULE
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.schedule.model.residency import SHARED_RESERVE
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import nested
from mlirfuse.target import target_of
from tests.support.harnesses.compiling import module_at


def early_results(x: Any) -> Any:
    """Two results that are known before the reductions, and are written behind them, with one that is not."""
    a = mf.exp(-mf.abs(x))
    b = a / (mf.abs(x) + 1)
    return a, mf.abs(x), b * mf.var(b, axis=-1, keepdims=True)


def other_values_each_round(x: Any) -> Any:
    """What lives across one reduction is another tile than what lives across the next."""
    a = mf.tanh(x - mf.max(x, axis=-1, keepdims=True))
    b = mf.sin(a * mf.sum(a, axis=-1, keepdims=True))
    return b - mf.min(b, axis=-1, keepdims=True)


def reductions_side_by_side(x: Any) -> Any:
    """A tile that two reductions read of which neither needs the other: one comes first."""
    h = x.astype(mf.float32)
    m = mf.max(h, axis=-1, keepdims=True)
    logs = h - m - mf.log(mf.sum(mf.exp(h - m), axis=-1, keepdims=True))
    return mf.sum(logs * h, axis=-1), mf.mean(logs, axis=-1)


def softmax(x: Any) -> Any:
    e = mf.exp(x - mf.max(x, axis=-1, keepdims=True))
    return e / mf.sum(e, axis=-1, keepdims=True)


@pytest.mark.parametrize("fn", [early_results, other_values_each_round, reductions_side_by_side, softmax])
@pytest.mark.parametrize("columns", [20480, 33000, 65536, 98304])
def test_no_more_is_allocated_than_was_estimated(fn: Callable[..., Any], columns: int) -> None:
    spec, target = mf.TensorSpec((None, columns), mf.bfloat16), target_of("sm_90a")
    module = mf.fuse(fn, target="sm_90a").lower(spec).module
    with module.context:
        run_pipeline(module, pipeline.named("fuse-graph-pipeline"))
        (kernel,) = [op.operation for op in module.body.operations if SCHEDULE in op.attributes]
        schedule = schedule_of(kernel)
        if schedule.persistence != "registers":
            pytest.skip(f"rows of {columns} columns do not stay in registers")
        layout = schedule.layout
        problem = problem_of(kernel, *kernel_space(kernel))
        estimated = (
            schedule.shared_spill * layout.threads * max(layout.vector) * problem.shared_spill_bytes + SHARED_RESERVE
        )
    module = module_at("gpu", fn, [spec])
    with module.context:
        (function,) = [op for op in nested(module.operation) if op.name == "gpu.func"]
        arguments = function.regions[0].blocks[0].arguments
        buffers = [ir.MemRefType(a.type) for a in arguments if "workgroup" in str(a.type)]
        allocated = sum(prod(b.shape) * from_mlir(b.element_type).bytes for b in buffers)
    assert estimated - SHARED_RESERVE <= allocated <= estimated <= target.shared_per_block


def four_reductions(x: Any) -> Any:
    total, largest, smallest, factor = (
        reduction(x, axis=0, keepdims=True) for reduction in (mf.sum, mf.max, mf.min, mf.prod)
    )
    return x * total + largest - smallest * factor


@pytest.mark.parametrize(
    ("target", "shape", "dtype"),
    [("sm_89", (1908, 16), "float64"), ("sm_89", (3494, 16), "float32"), ("sm_90a", (2823, 16), "float64")],
)
def test_spilled_rows_leave_room_for_every_reduction(target: str, shape: tuple[int, int], dtype: str) -> None:
    compiled = mf.fuse(four_reductions, target=target).lower(mf.TensorSpec(shape, dtype)).compile()
    assert compiled.binaries  # or `lower-shared-memory` would have refused what the schedule asks for
