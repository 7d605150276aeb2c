"""Long epilogues, whose loops move accumulators from register to register, on a GPU."""

from __future__ import annotations

import pytest

import mlirfuse as mf
from mlirfuse.passes.gpu import roll_stores
from tests.support.contractions.heavy_epilogues import FUNCTIONS, SCHEDULES, inputs_of
from tests.support.gpu.torch_arrays import torch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0), reason="no Hopper GPU"
    ),
]

TOLERANCE = {torch.float16: 2e-3, torch.float32: 2e-4}
"""The product is rounded to half precision in between: sums in another order may round to its other neighbour."""

LONG = 2e-3
"""The same of sums of 520 products, which are larger, and more of which round to their other neighbour."""


def exact(name, x, w, third):
    """The function in double precision, of a product that is rounded as the kernel's is."""
    y, h = (x.double() @ w.double().mT).to(x.dtype).double(), third.double()
    if name == "gelu_bias":
        return (y + h) * (1 + torch.erf((y + h) * 0.70710678))
    if name == "gelu_gradient":
        return y * (torch.erf(h) + h * torch.exp(-h * h))
    return torch.tanh(y / 3 + h) * 3 if name == "capped" else torch.sin(y + h / 2)


@pytest.mark.parametrize("schedule", [None, *SCHEDULES], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_loops_over_accumulators(name, schedule, monkeypatch):
    given = None if schedule is None else SCHEDULES[schedule]
    for m, n, k in ((648, 200, 72),) if given else ((648, 200, 72), (4104, 2048, 520)):
        arrays = [torch.from_numpy(array).cuda() for array in inputs_of(name, m, n, k)]
        found = []
        for long in (0, 10**9):
            monkeypatch.setattr(roll_stores, "LONG", long)
            fused = mf.fuse(FUNCTIONS[name], schedule=given)
            found.append(fused(*arrays))
            torch.cuda.synchronize()
        rolled, unrolled = (result.double() for result in found)
        units = torch.finfo(found[0].dtype).eps * unrolled.abs().clamp(min=1e-2)
        assert (rolled - unrolled).abs().le(4 * units).all()  # ptxas may fuse other products into sums
        want = exact(name, *arrays)
        error = torch.linalg.vector_norm(found[0].double() - want) / torch.linalg.vector_norm(want)
        assert error < (LONG if k > 72 else TOLERANCE[found[0].dtype]), (m, n, k)


@pytest.mark.parametrize("n", [512, 520])
def test_gates_of_a_recurrent_cell(n):
    """Four slices of two products; beside their accumulators threads have few registers for what they load."""

    def cell(x, h, c, w, u, b):
        g = mf.matmul(x, w).astype(mf.float32) + mf.matmul(h, u).astype(mf.float32) + b
        i, f, o, z = g[:, :n], g[:, n : 2 * n], g[:, 2 * n : 3 * n], g[:, 3 * n :]
        c2 = mf.sigmoid(f) * c + mf.sigmoid(i) * mf.tanh(z)
        return (mf.sigmoid(o) * mf.tanh(c2)).astype(mf.bfloat16), c2

    torch.manual_seed(n)
    shapes = ((256, n), (256, n), (256, n), (n, 4 * n), (n, 4 * n), (4 * n,))
    x, h, c, w, u, b = (torch.randn(shape, device="cuda") for shape in shapes)
    x, h, w, u = x.bfloat16(), h.bfloat16(), (w / 16).bfloat16(), (u / 16).bfloat16()
    y, c2 = mf.fuse(cell)(x, h, c, w, u, b)
    g = (x.double() @ w.double()).bfloat16().double() + (h.double() @ u.double()).bfloat16().double() + b.double()
    i, f, o, z = g.split(n, dim=1)
    wanted = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(z)
    for found, exact in ((c2, wanted), (y, torch.sigmoid(o) * torch.tanh(wanted))):
        assert torch.linalg.vector_norm(found.double() - exact) / torch.linalg.vector_norm(exact) < 5e-3
