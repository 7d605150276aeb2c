"""Products and sums of their operands are one kernel, with exact results, on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.contractions.operand_sums import CASES, bias_gradient, linear, linear_transposed
from tests.support.contractions.shared_operands import Shared
from tests.support.convolutions import Case, integers, wgrad
from tests.support.gpu.torch_arrays import torch

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]

LARGE = {
    "split": Shared(linear, [(16384, 256), (16384, 128)], CASES["linear"].reference),
    "split, transposed": Shared(linear_transposed, [(16384, 256), (16384, 128)], CASES["linear_transposed"].reference),
    "several waves": Shared(linear, [(2048, 4096), (2048, 4096)], CASES["linear"].reference),
    "ragged": Shared(linear, [(4100, 1000), (4100, 520)], CASES["linear"].reference),
}

LAYERS = [
    Case(8, (14, 14), 256, 256, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    Case(8, (28, 28), 128, 128, (3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1)),
    Case(8, (14, 14), 64, 256, (1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1)),
    Case(4, (19, 17), 24, 40, (3, 3), (1, 1), ((1, 1), (1, 1)), (2, 2)),
]


@pytest.mark.parametrize("case", [*CASES.values(), *LARGE.values()], ids=[*CASES, *LARGE])
def test_results_are_exact(case: Shared) -> None:
    arrays = [
        torch.from_numpy(array.astype("float32")).to(getattr(torch, array.dtype.name)).cuda() for array in case.inputs()
    ]
    fused = mf.fuse(case.fn)
    for _ in range(3):
        for result, expected in zip(fused(*arrays), case.expected(), strict=True):
            assert torch.equal(result.double().cpu(), torch.from_numpy(expected))


@pytest.mark.parametrize("case", LAYERS, ids=str)
def test_gradients_of_filters_and_bias(case: Case) -> None:
    """Both in one kernel, with the same bits on every run."""
    rng = np.random.default_rng(1)
    x, _, dy = (integers(rng, shape, np.float16) for shape in case.shapes)
    fused = mf.fuse(bias_gradient(case))
    found = [fused(torch.from_numpy(x).cuda(), torch.from_numpy(dy).cuda()) for _ in range(3)]
    exact = (wgrad(case, x.astype(np.float64), dy.astype(np.float64)), dy.astype(np.float64).sum((0, 1, 2)))
    for number, expected in enumerate(exact):
        rounded = torch.from_numpy(expected.astype(np.float16))
        assert all(torch.equal(results[number].cpu(), rounded) for results in found)
