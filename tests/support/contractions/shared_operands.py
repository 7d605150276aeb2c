"""Functions whose products share an operand, and their kernel at a stage with any of its candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from mlir import ir

import mlirfuse as mf
from mlirfuse.analysis.kernels import kernels
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.scheduling.scheduling_problem import scheduling_problem
from mlirfuse.compiler import pipeline
from mlirfuse.dialect.attributes import SCHEDULE
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.schedule.contractions.candidates import candidates
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import target_of
from tests.support.harnesses.compiling import specs_of

BF16 = np.dtype(ml_dtypes.bfloat16)


def gated(x, gate, up):
    """The gate and up projections of a transformer."""
    g = mf.astype(x @ gate.mT, mf.float32)
    return mf.astype(mf.maximum(g, 0.0) * mf.astype(x @ up.mT, mf.float32), mf.bfloat16)


def gated_plain(x, gate, up):
    """The same with weights that are contiguous along their results."""
    g = mf.astype(x @ gate, mf.float32)
    return mf.astype(mf.maximum(g, 0.0) * mf.astype(x @ up, mf.float32), mf.bfloat16)


def projections(x, q, k, v):
    """Three products of one input, and three results."""
    return x @ q.mT, x @ k.mT, x @ v.mT


def two_inputs(a, b, w):
    """Products that share operand B."""
    return mf.maximum(a @ w.mT, b @ w.mT)


def batched(x, gate, up):
    """Products of each of several matrices."""
    return (x @ gate) * (x @ up)


@dataclass(frozen=True)
class Shared:
    """A function, the shapes of its arguments, and what it computes from float64."""

    fn: Callable[..., Any]
    shapes: Sequence[tuple[int, ...]]
    reference: Callable[..., Sequence[np.ndarray]]
    dtype: np.dtype = BF16

    def inputs(self) -> list[np.ndarray]:
        """Small integers, of which all products and sums are exact."""
        rng = np.random.default_rng(len(self.shapes))
        return [rng.integers(-2, 3, shape).astype(self.dtype) for shape in self.shapes]

    def expected(self) -> list[np.ndarray]:
        return list(self.reference(*(array.astype(np.float64) for array in self.inputs())))


def _t(array: np.ndarray) -> np.ndarray:
    return np.swapaxes(array, -1, -2)


def _bf16(array: np.ndarray) -> np.ndarray:
    return array.astype(BF16).astype(np.float64)


CASES = {
    "gated": Shared(
        gated,
        [(72, 136), (104, 136), (104, 136)],
        lambda x, g, u: [_bf16(np.maximum(_bf16(x @ g.T), 0) * _bf16(x @ u.T))],
    ),
    "gated_plain": Shared(
        gated_plain,
        [(72, 136), (136, 136), (136, 136)],
        lambda x, g, u: [_bf16(np.maximum(_bf16(x @ g), 0) * _bf16(x @ u))],
    ),
    "projections": Shared(
        projections,
        [(40, 136), (104, 136), (104, 136), (104, 136)],
        lambda x, q, k, v: [_bf16(x @ w.T) for w in (q, k, v)],
    ),
    "two_inputs": Shared(
        two_inputs,
        [(72, 136), (72, 136), (104, 136)],
        lambda a, b, w: [np.maximum(_bf16(a @ w.T), _bf16(b @ w.T))],
    ),
    "batched": Shared(
        batched,
        [(3, 40, 72), (3, 72, 136), (3, 72, 136)],
        lambda x, g, u: [_bf16(_bf16(x @ g) * _bf16(x @ u))],
    ),
    "float32": Shared(
        batched,
        [(3, 40, 20), (3, 20, 36), (3, 20, 36)],
        lambda x, g, u: [(x @ g) * (x @ u)],
        np.dtype(np.float32),
    ),
}


def kernels_of(case: Shared, target: str = "sm_90a") -> ir.Module:
    """The function as kernels without schedules."""
    module = mf.fuse(case.fn, target=target).lower(*specs_of(case.inputs())).module_with({})
    with module.context:
        run_pipeline(module, pipeline.stage(pipeline.TO_KERNELS))
    return module


def problem_in(module: ir.Module) -> ContractionProblem:
    """The problem of the module's only kernel."""
    (kernel,) = kernels(module.operation)
    problem = scheduling_problem(kernel, *kernel_space(kernel))
    assert isinstance(problem, ContractionProblem)
    return problem


def schedules_of(case: Shared, target: str = "sm_90a") -> list[Schedule]:
    """All distinct candidates of the function's only kernel."""
    return list(dict.fromkeys(candidates(problem_in(kernels_of(case, target)), target_of(target))))


def scheduled_at(stage: str, case: Shared, schedule: Schedule, target: str = "sm_90a") -> ir.Module:
    """The function at the `tile` or `gpu` stage, whose only kernel has the schedule."""
    module = kernels_of(case, target)
    with module.context, ir.Location.unknown():
        (kernel,) = kernels(module.operation)
        kernel.attributes[SCHEDULE] = schedule.attribute()
        stages = [pipeline.ASSIGN, pipeline.TILE, *([pipeline.GPU] if stage == "gpu" else [])]
        run_pipeline(module, pipeline.stage(",".join(stages)))
    return module
