"""The shared memory that persistent loops are chosen by, against what their kernels allocate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from mlirfuse.schedule.model.shared_memory import persistent_loop_bytes
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import nested
from mlirfuse.target import target_of
from tests.support.harnesses.compiling import module_at
from tests.support.pairwise import combined
from tests.support.reductions.backward import BACKWARD
from tests.support.reductions.numerics import DTYPES

SAMPLE = (1, 7, 40, 257, 384, 768, 1600, 3000, 5140, 8192, 12288, 12345, 16384, 20480, 32768, 49152, 65536)
SLACK = 4096
"""Bytes that an estimate may be above what is allocated."""


def _bytes(
    fn: Callable[..., Any], specs: Sequence[mf.TensorSpec], grid_reduction: str = "auto"
) -> tuple[int, int] | None:
    """Bytes of shared memory that are allocated, and estimated; None where no persistent loop was chosen."""
    module = mf.fuse(fn, target="sm_90a", grid_reduction=grid_reduction).lower(*specs).module
    with module.context:
        run_pipeline(module, pipeline.named("fuse-graph-pipeline"))
        kernel, *others = [op.operation for op in module.body.operations if SCHEDULE in op.attributes]
        schedule, (space, structures) = schedule_of(kernel), kernel_space(kernel)
        if others or schedule.persistent_loop is None:
            return None
        estimated = persistent_loop_bytes(
            problem_of(kernel, space, structures), schedule.layout, schedule.persistent_loop
        )
    module = module_at("gpu", fn, specs, schedule)
    with module.context:
        function, *_ = [op for op in nested(module.operation) if op.name == "gpu.func"]  # and a second stage
        arguments = function.regions[0].blocks[0].arguments
        buffers = [ir.MemRefType(a.type) for a in arguments if "workgroup" in str(a.type)]
        return sum(-(-prod(b.shape) * from_mlir(b.element_type).bytes // 16) * 16 for b in buffers), estimated


@combined(
    {"columns": SAMPLE},
    turns={"name": ["rms_norm_backward", "layer_norm_backward"], "dtype": ["bfloat16", "float32"]},
)
def test_estimates(columns: int, name: str, dtype: str) -> None:
    """Of loops whose blocks meet: a second stage that is another kernel has shared memory of its own."""
    backward = BACKWARD[name]
    bytes_ = _bytes(backward.fn, backward.specs(columns, DTYPES[dtype]), "grid_sync")
    if bytes_ is not None:
        allocated, estimated = bytes_
        assert allocated <= estimated <= allocated + SLACK


def steps(x):
    h = x.astype(mf.float32)
    largest = mf.max(h, axis=2, keepdims=True)
    return mf.sum(mf.abs(h - largest), axis=1) * mf.min(largest, axis=1), mf.sum(h)


def moments(x):
    return mf.var(x.astype(mf.float32), axis=1), mf.sum(x, axis=0)


def totals_of_parts(x):
    return mf.max(x, axis=2), mf.sum(x, axis=(0, 1))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("fn", [steps, moments, totals_of_parts], ids=lambda fn: fn.__name__)
def test_reductions_of_parts_of_rows(fn: Callable[..., Any], dtype: str) -> None:
    """Each keeps a result for every element of some dimensions, of which warps and blocks have parts."""
    for shape in ((33, 500), (64, 1024), (165, 100)):
        bytes_ = _bytes(fn, [mf.TensorSpec((None, *shape), dtype)])
        assert bytes_ is None or bytes_[0] <= bytes_[1], (shape, bytes_)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(64, 8, 128), (33, 5, 100), (16, 16, 256)], ids=str)
def test_two_steps_and_a_total_fit(shape: tuple[int, ...], dtype: str) -> None:
    """Once it was more shared memory than a block has."""
    target = target_of("sm_90a")
    fused = mf.fuse(lambda x: (mf.min(mf.max(x, axis=2), axis=1), mf.sum(x)), target="sm_90a")
    compiled = fused.lower(mf.TensorSpec((None, *shape), dtype)).compile()
    assert all(r.shared_bytes <= target.shared_per_block for r in compiled.resources)


@combined(
    {"columns": [*SAMPLE[::4], 24577, 100000, 131072]},
    turns={"name": ["rms_norm_backward", "layer_norm_backward"], "dtype": ["bfloat16", "float16", "float32"]},
)
def test_rows_of_any_size_compile(columns: int, name: str, dtype: str) -> None:
    """As persistent loops as far as a cluster holds a row, and as kernels apart beyond."""
    target, backward = target_of("sm_90a"), BACKWARD[name]
    compiled = mf.fuse(backward.fn, target="sm_90a").lower(*backward.specs(columns, DTYPES[dtype])).compile()
    assert all(r.shared_bytes <= target.shared_per_block for r in compiled.resources)
