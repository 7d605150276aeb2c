"""Operands that are summed up beside a product, or joined of halves: results on the interpreter."""

from __future__ import annotations

import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from tests.support.contractions.summed_operands import FUNCTIONS, check, inputs
from tests.support.harnesses.compiling import module_at, specs_of


@pytest.mark.parametrize("stage", ["tile", "gpu"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results(name: str, stage: str) -> None:
    def call(q: mf.builder.Tensor, x: mf.builder.Tensor) -> object:
        return FUNCTIONS[name](mf, q, x)

    arrays = inputs(33, 48, 24)
    module = module_at(stage, call, specs_of(arrays))
    check(interpreter.run(module, "call", arrays, order="random", seed=1), name, arrays)


def test_what_a_product_widens_is_not_stored() -> None:
    """At sizes at which storing it takes longer."""
    specs = [mf.TensorSpec((512, 100000), "int8"), mf.TensorSpec((100000, 8), "float32")]
    compiled = mf.fuse(lambda q, x: FUNCTIONS["weighted"](mf, q, x), target="sm_90a").lower(*specs).compile()
    assert compiled.predicted().workspace_bytes < 512 * 100000
