"""Products that share an operand are one kernel, with exact results, on a GPU."""

from __future__ import annotations

import pytest

import mlirfuse as mf
from tests.support.contractions.shared_operands import CASES, Shared, gated, gated_plain, projections
from tests.support.gpu.torch_arrays import torch

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]

LARGE = {
    "gated": Shared(gated, [(1000, 520), (776, 520), (776, 520)], CASES["gated"].reference),
    "gated_plain": Shared(gated_plain, [(1000, 520), (520, 1544), (520, 1544)], CASES["gated_plain"].reference),
    "few rows": Shared(gated, [(16, 1024), (2048, 1024), (2048, 1024)], CASES["gated"].reference),
    "projections of few rows": Shared(projections, [(16, 1024), *[(512, 1024)] * 3], CASES["projections"].reference),
}


@pytest.mark.parametrize("case", [*CASES.values(), *LARGE.values()], ids=[*CASES, *LARGE])
def test_results_are_exact(case: Shared) -> None:
    arrays = [
        torch.from_numpy(array.astype("float32")).to(getattr(torch, array.dtype.name)).cuda() for array in case.inputs()
    ]
    fused = mf.fuse(case.fn)
    for _ in range(3):
        results = fused(*arrays)
        results = results if isinstance(results, tuple) else (results,)
        for result, expected in zip(results, case.expected(), strict=True):
            assert torch.equal(result.double().cpu(), torch.from_numpy(expected))
