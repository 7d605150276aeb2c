"""Trials: what ops are predicted to take as kernels of their own, by the passes that make kernels of them."""

from __future__ import annotations

import pytest
from mlir import ir

import mlirfuse as mf
from mlirfuse.analysis.kernels import body, host_functions
from mlirfuse.passes.trials.trial import Trial


def _einsum(x: mf.Tensor, y: mf.Tensor) -> mf.Tensor:
    return mf.einsum("ikc,jkc->ijc", mf.maximum(x, 0), y)


def test_arrays_of_products_lie_in_the_order_that_is_chosen_later() -> None:
    """No tensor map takes tiles of either operand in its own order, which `fuse-permute-operands` changes."""
    spec = mf.TensorSpec((384, 384, 128), mf.bfloat16)
    lowered = mf.fuse(_einsum, target="sm_90a").lower(spec, spec)
    module = lowered.module.operation
    with lowered.module.context as context, ir.Location.unknown(context):
        (function,) = host_functions(module)
        ops = [op for op in body(function) if op.name == "linalg.generic"]
        tried = Trial(module, function, ops).microseconds()
    predicted = lowered.compile().explain().splitlines()[0]
    assert tried == pytest.approx(float(predicted.split("predicted ")[1].split(" us")[0]), rel=0.1)


def _scores(q: mf.Tensor, k: mf.Tensor) -> mf.Tensor:
    return mf.matmul(q, mf.matrix_transpose(k))


def test_merged_dimensions_are_expected_to_have_the_product_of_what_is() -> None:
    """Batches of a number that is expected, and heads: together they are as many as those of known extents."""
    known = mf.TensorSpec((4, 16, 1024, 64), mf.bfloat16)
    expected = mf.TensorSpec(("b", 16, 1024, 64), mf.bfloat16, hints=(4, None, None, None))
    times = []
    for spec in (known, expected):
        lowered = mf.fuse(_scores, target="sm_90a").lower(spec, spec)
        module = lowered.module.operation
        with lowered.module.context as context, ir.Location.unknown(context):
            (function,) = host_functions(module)
            ops = [op for op in body(function) if op.name == "linalg.generic"]
            times.append(Trial(module, function, ops).microseconds())
    assert times[1] == pytest.approx(times[0], rel=0.05)
