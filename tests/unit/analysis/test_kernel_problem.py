"""The scheduling problem of a kernel is computed once for kernels of the same IR."""

from __future__ import annotations

from mlir import ir

import mlirfuse as mf
from mlirfuse.analysis.kernels import content, kernels
from mlirfuse.analysis.scheduling.scheduling_problem import kernel_problem
from mlirfuse.compiler import pipeline
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.support.recent import forget_recent
from mlirfuse.support.strides import attribute_of


def _centred(x: mf.Tensor) -> mf.Tensor:
    return x - mf.mean(x, axis=-1, keepdims=True)


def _module(columns: int) -> ir.Module:
    lowered = mf.fuse(_centred, target="sm_90a").lower(mf.TensorSpec((64, columns), "float32"))
    module = lowered.module_with({})
    with module.context:
        run_pipeline(module, pipeline.stage(pipeline.TO_KERNELS))
    return module


def _kernel(module: ir.Module) -> ir.Operation:
    (kernel,) = kernels(module.operation)
    return kernel


def test_kernels_of_the_same_ir_share_a_problem() -> None:
    forget_recent()
    modules = [_module(columns) for columns in (1024, 1024, 2048)]
    first, second, other = map(_kernel, modules)
    assert content(first) == content(second) != content(other)
    assert kernel_problem(first) is kernel_problem(second)
    assert kernel_problem(other).extents[-1] == 2048


def test_a_kernel_that_was_changed_has_another_problem() -> None:
    module = _module(1024)
    kernel = _kernel(module)
    before = kernel_problem(kernel)
    with kernel.context:
        strides = {"fuse.strides": attribute_of([2048, 1])}
        kernel.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(strides)])
    assert kernel_problem(kernel) != before
