"""Products of int8 in int32: on tensor cores of each family, exact."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.compiler import pipeline
from mlirfuse.passmanager.manager import run_pipeline
from tests.support.contractions.int8_products import CASES, Case
from tests.support.pairwise import combined


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("target", ["sm_90a", "sm_80"])
def test_products_of_int8_are_exact(case: Case, target: str) -> None:
    inputs = case.inputs(1)
    found = mf.fuse(case.fn, target="interpret")(*inputs) if target == "sm_90a" else _run(case, target, inputs)
    np.testing.assert_array_equal(found, case.expected(inputs))


def _run(case: Case, target: str, inputs: list[np.ndarray]) -> np.ndarray:
    module = mf.fuse(case.fn, target=target).lower(*case.specs).module
    with module.context:
        run_pipeline(module, pipeline.named("fuse-gpu-pipeline"))
    (result,) = interpreter.run(module, case.fn.__name__, inputs, order="random", seed=3)
    return result


@combined({"case": CASES}, turns={"target": ["sm_90a", "sm_80", "sm_120"]})
def test_tensor_cores_multiply_int8(case: Case, target: str) -> None:
    compiled = mf.fuse(case.fn, target=target).lower(*case.specs).compile()
    used = {s.contraction.instruction for s in compiled.schedules.values() if s.contraction is not None}
    assert len(compiled.schedules) == 1
    aligned = case.k % 16 == 0 and target == "sm_90a"
    assert used == {"wgmma" if aligned else "mma"}


def test_wider_sums_are_left_to_cuda_cores() -> None:
    def wide(x, w):
        return mf.matmul(x, w.mT, dtype=mf.int64)

    specs = [mf.TensorSpec((64, 128), "int8")] * 2
    compiled = mf.fuse(wide, target="sm_90a").lower(*specs).compile()
    assert {s.contraction.instruction for s in compiled.schedules.values() if s.contraction} == {"fma"}
