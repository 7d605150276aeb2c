"""Trials: what ops are predicted to take as kernels of their own, by the passes that make kernels of them."""

from __future__ import annotations

import pytest
from mlir import ir

import mlirfuse as mf
from mlirfuse.analysis.kernels import body, host_functions
from mlirfuse.passes.trials.trial import MOST_OPS, Trial, surrounded
from mlirfuse.support.rewriting import nested


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


def _two_products(x: mf.Tensor, w: mf.Tensor) -> mf.Tensor:
    h = mf.exp(mf.tanh(x) @ w)
    scaled = h / mf.sum(h, axis=1, keepdims=True)
    return mf.sin(scaled @ w) + scaled


def test_trials_end_at_products_and_at_what_needs_these() -> None:
    """No kernel has what reads the second product together with what this needs, and none what the first one reads."""
    spec = mf.TensorSpec((64, 64), mf.float32)
    lowered = mf.fuse(_two_products, target="sm_90a").lower(spec, spec)
    with lowered.module.context as context, ir.Location.unknown(context):
        (function,) = host_functions(lowered.module.operation)
        by_body = {op: [inner.name for inner in nested(op)] for op in body(function) if op.name == "linalg.generic"}
        (exp,) = [op for op, names in by_body.items() if "math.exp" in names]
        around = {name for op in surrounded([exp]) for name in by_body[op]}
        assert {"math.exp", "arith.divf", "arith.addf"} <= around  # what is divided, and the sum
        assert not {"math.sin", "math.tanh", "arith.mulf"} & around


def test_functions_of_many_ops_are_not_tried() -> None:
    def logarithms(x: mf.Tensor, y: mf.Tensor) -> mf.Tensor:
        a, b = mf.log(x)[:, None, :], y[None, :, :]
        for _ in range(MOST_OPS):
            a = mf.sin(a * 0.5)
        return mf.sum(mf.abs(a - b), axis=2)

    spec = mf.TensorSpec((64, 64), mf.float32)
    _, remarks = mf.fuse(logarithms, target="sm_90a").lower(spec, spec).with_kernels()
    assert any(f"would be tried with over {MOST_OPS} ops" in remark.message for remark in remarks.entries)
