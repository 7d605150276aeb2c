"""Reductions of a product's rows in the kernel that needs them: results on the interpreter, deferred or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.passes.trials import defer_epilogues
from tests.support.contractions.deferred import FUNCTIONS, arguments, reference, traced
from tests.support.harnesses.compiling import module_at, specs_of


@pytest.mark.parametrize("form", ["chosen", "reductions", "computed"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results(name: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is deferred: nothing that is not faster, the reductions, or all behind the narrowest value."""

    def chosen(_module: Any, _function: Any, product: Any, reductions: Any) -> Any:
        narrowest = defer_epilogues._narrowest(product)
        computed = defer_epilogues.behind([narrowest], defer_epilogues.is_elementwise)
        return 2.0, 1.0, reductions if form == "reductions" else [*computed, *reductions]

    if form != "chosen":
        monkeypatch.setattr(defer_epilogues, "_fastest", chosen)
    given = arguments(96, 200)
    module = module_at("gpu", traced(mf, name), specs_of(given))
    found = interpreter.run(module, "call", given, order="random", seed=1)
    for one, expected in zip(found, reference(name, given), strict=True):
        np.testing.assert_allclose(one.astype(np.float64), expected, rtol=4e-3, atol=4e-3)


def test_a_mean_behind_a_residual_is_deferred() -> None:
    """The kernel of the product hands nothing over between its blocks."""
    specs = [mf.TensorSpec(a.shape, a.dtype) for a in arguments(4096, 2048)]
    compiled = mf.fuse(traced(mf, "centred"), target="sm_90a").lower(*specs).compile()
    assert any("fuse-defer-epilogues: applied" in str(remark) for remark in compiled.remarks.entries)
    assert len(compiled.binaries) == 2
    assert "semaphore_arrive" not in str(compiled.module_at("gpu"))
