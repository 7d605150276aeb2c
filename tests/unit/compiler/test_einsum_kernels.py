"""How many kernels einsums become, with the views and the arithmetic around them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mlirfuse as mf
from mlirfuse.analysis.kernels import host_function
from mlirfuse.compiler import pipeline
from mlirfuse.passes.kernels.host import callee, calls
from mlirfuse.passmanager.manager import run_pipeline

THUNDER = [
    ("bij,jk->bik", (2, 16, 16), (16, 16)),
    ("bij,jk->bik", (2, 16, 1), (1, 16)),
    ("bij,jk->bik", (2, 16, 1), (16, 16)),
    ("bij,jk->bik", (2, 16, 16), (1, 16)),
    ("bijk,bklj->bli", (2, 8, 16, 16), (2, 16, 8, 16)),
    ("bij,jk->bik", (2, 128, 128), (128, 128)),
    ("bij,jk->bik", (2, 512, 512), (512, 512)),
]
"""Of lightning-thunder's issue 193; the case at n = 512 of the third equation has a copy, which is faster."""

B, S, H, D, E = 2, 128, 4, 64, 256
HEADS, FLAT, WEIGHT = (B, S, H, D), (B, S, E), (H, D, E)


def kernels_of(fn: Callable[..., Any], *shapes: tuple[int, ...], dtype: str = "bfloat16") -> list[str]:
    """The kernels that a function's host launches."""
    lowered = mf.fuse(fn, target="sm_90a").lower(*(mf.TensorSpec(shape, dtype) for shape in shapes))
    module = lowered.module_with({})
    with module.context:
        run_pipeline(module, pipeline.stage(pipeline.TO_KERNELS))
        return [callee(call) for call in calls(host_function(module.operation))]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("equation", "shapes"), [(e, s) for e, *s in THUNDER])
def test_an_einsum_is_one_kernel(equation: str, shapes: list[tuple[int, ...]], dtype: str) -> None:
    assert len(kernels_of(lambda x, y: mf.einsum(equation, x, y), *shapes, dtype=dtype)) == 1


def test_a_factor_is_summed_by_itself_where_that_is_faster() -> None:
    """Half precision rounds the sum before it is a matrix's; large factors would be read for every row again."""
    broadcast = ((2, 8, 16, 1), (2, 16, 8, 16))
    assert len(kernels_of(lambda x, y: mf.einsum("bijk,bklj->bli", x, y), *broadcast, dtype="float32")) == 1
    assert len(kernels_of(lambda x, y: mf.einsum("bijk,bklj->bli", x, y), *broadcast)) == 2
    assert len(kernels_of(lambda x, y: mf.einsum("bij,jk->bik", x, y), (2, 512, 1), (512, 512))) == 2
    assert len(kernels_of(lambda x, y: x * mf.sum(y, axis=0), (16, 16), (16, 16), dtype="float32")) == 2


CHAINS: dict[str, tuple[Callable[..., Any], ...]] = {
    "scores": (lambda q, k: mf.exp(mf.einsum("bqhd,bkhd->bhqk", q, k) * 0.125), HEADS, HEADS),
    "mask": (lambda q, k, m: mf.einsum("bqhd,bkhd->bhqk", q, k) * 0.125 + m, HEADS, HEADS, (B, 1, S, S)),
    "from heads": (lambda t, w: mf.einsum("bshd,hde->bse", t.reshape(HEADS), w), (B, S, H * D), WEIGHT),
    "to heads": (
        lambda x, w: mf.permute_dims(mf.einsum("bse,hde->bshd", x, w), (0, 2, 1, 3)).reshape((B * H, S, D)),
        FLAT,
        WEIGHT,
    ),
    "bias": (lambda x, w, b: mf.maximum(mf.einsum("bse,hde->bshd", x, w) + b, 0), FLAT, WEIGHT, (H, D)),
    "scaled sums": (lambda x, g, w: mf.einsum("bi,i,ij->bj", x, g, w), (64, 128), (128,), (128, 64)),
    "scaled results": (lambda x, g, w: mf.einsum("bi,j,ij->bj", x, g, w), (64, 128), (64,), (128, 64)),
}


@pytest.mark.parametrize("name", CHAINS)
def test_what_surrounds_an_einsum_is_in_its_kernel(name: str) -> None:
    assert len(kernels_of(*CHAINS[name])) == 1


def test_views_are_no_kernels() -> None:
    def views(x: Any) -> tuple[Any, ...]:
        return mf.permute_dims(x, (0, 2, 1, 3)), x.reshape((B * S, H * D)), mf.einsum("bshd->dhsb", x), x[:, ::2]

    assert kernels_of(views, HEADS) == []
    assert kernels_of(lambda x: mf.einsum("ii->i", x), (64, 64)) == []


def test_operands_are_computed_in_the_order_that_their_product_reads() -> None:
    awkward, wide = ((4, 8, 512, 512), (4, 512, 8, 512)), (64, 16, 32, 16)
    found = kernels_of(lambda x, y: mf.einsum("bijk,bklj->bli", x, mf.exp(y)), *awkward)
    assert len(found) == 2
    found = kernels_of(lambda x, y: mf.einsum("xaib,yajb->xiyj", mf.maximum(x, 0), y * 2) + 1, wide, wide)
    assert len(found) == 3
