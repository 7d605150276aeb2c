"""Einsums on the GPU: random equations exactly, and large ones within twice the error of PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import mlirfuse as mf
from tests.support.equations import Einsum, einsums

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

LARGE = [
    ("bijk,bklj->bli", (2, 8, 256, 256), (2, 256, 8, 256)),
    ("bijk,bklj->bli", (3, 5, 260, 72), (3, 72, 7, 260)),
    ("bijk,bklj->bli", (4, 8, 512, 512), (4, 512, 8, 512)),  # threads have tiles of both summed dimensions
    ("ijk,klj->il", (8, 256, 256), (256, 8, 256)),
    ("ik,jk->ij", (8, 262144), (8, 262144)),
    ("bhsd,hde->bse", (2, 8, 128, 64), (8, 64, 512)),
    ("sic,sjd->ijcd", (128, 128, 32), (128, 128, 32)),  # written by a kernel of another order, rounded
    ("gsec,egcm->gsm", (2, 256, 8, 64), (8, 2, 64, 512)),
    ("imae,mebj->iajb", (16, 16, 40, 40), (16, 40, 40, 16)),
    ("xaib,yajb->xiyj", (16, 16, 32, 16), (16, 16, 32, 16)),
    ("pqr,prs->qs", (64, 64, 128), (64, 128, 64)),
    ("ijab,abk->kij", (17, 19, 24, 33), (24, 33, 65)),
    ("abij,jbk->kai", (5, 16, 65, 24), (24, 16, 72)),
    ("bqhd,bkhd->bhqk", (2, 256, 4, 64), (2, 256, 4, 64)),
    ("ij,jk,k->ik", (256, 512), (512, 384), (384,)),
    ("bii->b", (512, 128, 128)),
    ("ki,kj->ij", (65536, 33), (65536, 17)),
    ("ki,kj->ij", (131072, 8), (131072, 8)),  # several blocks an SM share the sums
    ("bk,kr->br", (4096, 2048), (2048, 16)),
    ("bk,rk->rb", (16, 2048), (1024, 2048)),
    ("mbej,imae->iajb", (24, 32, 32, 24), (24, 24, 32, 32)),
    ("bse,hde->bhsd", (2, 512, 512), (8, 64, 512)),
    ("bij,jk->bik", (2, 16, 1), (16, 16)),  # a factor's own sum, in the kernel of the product
    ("bij,jk->bik", (2, 16, 16), (1, 16)),
    ("bijk,bklj->bli", (2, 8, 16, 1), (2, 16, 8, 16)),
    ("bijk,bklj->bli", (2, 8, 16, 16), (2, 1, 8, 16)),
    ("abc,abd->cd", (16, 256, 128), (16, 256, 128)),
]


@settings(max_examples=500, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(einsums(most_operands=3, largest=6))
def test_random_equations(example: Einsum) -> None:
    arrays = example.arrays()
    if example.dtype == "bfloat16":
        given = [torch.from_numpy(x.astype(np.float32)).bfloat16().cuda() for x in arrays]
        actual = mf.fuse(lambda *xs: example.call(mf, xs))(*given).float().cpu().numpy()
    else:
        given = [cupy.asarray(x) for x in arrays]
        actual = cupy.asnumpy(mf.fuse(lambda *xs: example.call(mf, xs))(*given))
    expected = example.expected(arrays)
    assert actual.shape == expected.shape
    np.testing.assert_array_equal(actual, expected.astype(actual.dtype))


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize(("equation", "shapes"), [(e, s) for e, *s in LARGE])
def test_large(equation, shapes, dtype) -> None:
    torch.manual_seed(1)
    arrays = [torch.randn(shape, device="cuda").to(getattr(torch, dtype)) for shape in shapes]
    fused = mf.fuse(lambda *xs: mf.einsum(equation, *xs))
    exact = torch.einsum(equation, *(x.double() for x in arrays))
    size = exact.abs().max()

    def error(result: torch.Tensor) -> float:
        return float((result.double() - exact).abs().max() / size)

    own, theirs = error(fused(*arrays)), error(torch.einsum(equation, *arrays))
    assert own <= 2 * theirs + 1e-6


def test_graphs_capture_einsums() -> None:
    x, y = torch.randn(64, 128, device="cuda"), torch.randn(96, 128, device="cuda")
    fused = mf.fuse(lambda x, y: mf.einsum("ik,jk->ij", x, y))
    fused(x, y)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        fused(x, y)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            result = fused(x, y)
    x.copy_(torch.randn_like(x))
    graph.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(result, torch.einsum("ik,jk->ij", x, y), rtol=1e-4, atol=1e-4)
