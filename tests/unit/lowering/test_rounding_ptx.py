"""Which products PTX contracts into a sum, and where subnormal numbers may be flushed."""

from __future__ import annotations

import re

import pytest

import mlirfuse as mf
from tests.support.views.rounding import CONTRACTED, ROUNDED


def ptx_of(fn: object, dtype: str, columns: int = 1024, *, fast_math: bool = False) -> str:
    spec = mf.TensorSpec((4096, columns), dtype)
    return mf.fuse(fn, target="sm_90a", fast_math=fast_math).lower(spec).compile().as_text("ptx")


def fused(text: str, bits: int) -> list[str]:
    """Multiply-adds, and products without a rounding modifier, which ptxas could contract."""
    return re.findall(rf"\t(fma\.rn\.f{bits}|mul\.f{bits})\s", text)


@pytest.mark.parametrize("columns", [1, 1024, 40000])
@pytest.mark.parametrize("name", [name for name in ROUNDED if name != "deviations"])
def test_a_product_that_is_used_elsewhere_is_rounded(name: str, columns: int) -> None:
    assert not fused(ptx_of(ROUNDED[name], "float32", columns), 32)


def test_deviations_of_a_product_are_those_of_one_number() -> None:
    """Of one column: the mean is the number itself, and its deviation the difference of the two. The root of the
    variance takes two multiply-adds.
    """
    text = ptx_of(ROUNDED["deviations"], "float32", 1)
    assert len(fused(text, 32)) == 2 * text.count("rsqrt.approx.ftz.f32")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CONTRACTED)
def test_a_product_that_only_sums_read_is_contracted(name: str, dtype: str) -> None:
    assert fused(ptx_of(CONTRACTED[name], dtype), 32 if dtype == "float32" else 64)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_rounds_every_operation(dtype: str) -> None:
    assert "fma" not in ptx_of(lambda x: x * 0.7 + x, dtype)


def test_exponentials_that_bfloat16_shows_are_not_flushed() -> None:
    """The special unit's result is squared: each is followed by a product."""
    kept, flushed = (ptx_of(mf.exp, "bfloat16", fast_math=fast) for fast in (False, True))
    count = kept.count("ex2.approx.ftz.f32")
    assert count
    assert len(re.findall(r"\tmul\.rn\.f32", kept)) == 2 * count
    assert len(re.findall(r"\tmul\.rn\.f32", flushed)) == flushed.count("ex2.approx.ftz.f32")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_elementwise_operations_flush_nothing(dtype: str) -> None:
    def chain(x):
        y = mf.maximum(x * 0.5, -x) - x / 3
        return mf.where(y > 0, mf.sqrt(mf.abs(y)), y / (x + 2)) + mf.rsqrt(mf.abs(x))

    # Of numbers that are scaled, no operand or result of the special unit is subnormal.
    scaled = re.compile(r"\t(rcp|rsqrt)\.approx\.ftz\.f32")
    assert ".ftz" not in scaled.sub("", ptx_of(chain, dtype))
