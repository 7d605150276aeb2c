"""Lower bounds hold for every schedule that is proposed."""

from __future__ import annotations

import pytest

import mlirfuse as mf
from mlirfuse.analysis.kernels import kernels
from mlirfuse.analysis.scheduling.scheduling_problem import kernel_problem
from mlirfuse.compiler import pipeline
from mlirfuse.machine import machine_of
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.schedule.choice.proposals import proposals
from mlirfuse.schedule.predict import predict
from mlirfuse.schedule.predict.counts.space import with_extents
from mlirfuse.schedule.predict.predict import issue_microseconds
from mlirfuse.schedule.problem import Problem
from mlirfuse.target import target_of

TARGET = target_of("sm_90a")
FUNCTIONS = {
    "softmax": lambda x: mf.exp(x) / mf.sum(mf.exp(x), axis=-1, keepdims=True),
    "columns": lambda x: mf.sum(mf.exp(x) * mf.tanh(x), axis=0),
    "normalised columns": lambda x: x - mf.mean(x, axis=0),
    "elementwise": lambda x: mf.tanh(mf.sin(x)) * mf.exp(x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", [(64, 128), (4096, 2048), (2, 1 << 20)])
def test_no_schedule_issues_its_instructions_in_less_time(name: str, shape: tuple[int, ...]) -> None:
    machine = machine_of(TARGET)
    module = mf.fuse(FUNCTIONS[name], target="sm_90a").lower(mf.TensorSpec(shape, "float32")).module_with({})
    with module.context:
        run_pipeline(module, pipeline.stage(pipeline.TO_KERNELS))
        problems = [kernel_problem(kernel) for kernel in kernels(module.operation)]
    for problem in problems:
        assert isinstance(problem, Problem)
        bound, sized = issue_microseconds(problem, machine), with_extents(problem)
        assert bound > 0.0 or not problem.instructions
        assert all(predict(p.schedule, sized, machine).microseconds >= bound for p in proposals(problem, TARGET))
