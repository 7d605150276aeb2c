"""What the choice of a schedule knows of a product that scatters its result."""

from __future__ import annotations

from typing import Any

import mlirfuse as mf
from mlirfuse.analysis.kernels import kernels
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.scheduling.scheduling_problem import scheduling_problem
from mlirfuse.compiler import pipeline
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem


def problem(stride: int) -> ContractionProblem:
    """That of a data gradient with a stride, which is added to another one."""

    def accumulated(dy: Any, w: Any, old: Any) -> Any:
        return old + mf.conv2d_dgrad(dy, w, input_size=56, stride=stride, padding=1)

    pixels = -(-56 // stride)
    shapes = [(8, pixels, pixels, 128), (128, 3, 3, 64), (8, 56, 56, 64)]
    lowered = mf.fuse(accumulated, target="sm_90a").lower(*(mf.TensorSpec(shape, "float16") for shape in shapes))
    module = lowered.module_with({})
    with module.context:
        run_pipeline(module, pipeline.stage(pipeline.TO_KERNELS))
        (kernel,) = kernels(module.operation)
        found = scheduling_problem(kernel, *kernel_space(kernel))
    assert isinstance(found, ContractionProblem)
    return found


def test_results_in_their_own_order_share_subtiles_with_a_residual() -> None:
    found = problem(1)
    assert not found.scattered_results
    assert found.residual_bytes == 2


def test_scattered_results_have_no_subtiles() -> None:
    found = problem(2)
    assert found.scattered_results
    assert found.residual_bytes == 0
    assert found.work.arguments == 1
    assert (found.m, found.n, found.k) == (8 * 29 * 29, 4 * 64, 4 * 128)
    assert not found.unmapped
