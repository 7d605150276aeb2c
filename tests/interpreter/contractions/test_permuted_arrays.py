"""Contractions whose arrays lie in other orders: orders that `fuse-permute-operands` considers, chosen or not."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.passes.fusion import order_choice
from mlirfuse.passes.fusion.permuted_product import PermutedProduct
from tests.support.contractions.stored_operands import (
    SMALL,
    StoredOperands,
    one_array,
    one_kernel_for_both,
    shared_inputs,
)
from tests.support.harnesses.compiling import module_at, specs_of

EXTENTS = {
    "a": 3,
    "b": 2,
    "d": 8,
    "e": 8,
    "h": 4,
    "i": 5,
    "j": 3,
    "k": 6,
    "l": 4,
    "m": 3,
    "q": 5,
    "s": 9,
    "x": 2,
    "y": 4,
}

EQUATIONS = ("bijk,bklj->bli", "xaib,yajb->xiyj", "imae,mebj->iajb", "bse,hde->bhsd", "bqhd,qkd->bhqk", "iae,jbe->ijab")

TRIED = 3
"""Orders of each equation, evenly spaced, that are run."""


def arrays_of(equation: str, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    terms = equation.split("->")[0].split(",")
    return [rng.integers(-3, 4, [EXTENTS[i] for i in term]).astype(dtype) for term in terms]


def force(monkeypatch: pytest.MonkeyPatch, number: int) -> list[int]:
    """Has the pass take the order of that number in a contraction's list; returns a list that gets their count."""
    counts: list[int] = []
    listed = PermutedProduct.orders

    def one(product: PermutedProduct):
        found = list(listed(product))
        counts.append(len(found))
        return iter(found[number : number + 1])

    monkeypatch.setattr(PermutedProduct, "orders", one)
    monkeypatch.setattr(PermutedProduct, "total", lambda *_, **__: 0.0)
    monkeypatch.setattr(order_choice, "microseconds", lambda *_, **__: inf)
    return counts


def count_of(equation: str, dtype: type) -> int:
    with pytest.MonkeyPatch.context() as patch:
        counts = force(patch, 1000)
        mf.fuse(lambda x, y: mf.einsum(equation, x, y), target="interpret")(*arrays_of(equation, dtype))
    return counts[0]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_orders(equation: str) -> None:
    dtype = np.float32 if EQUATIONS.index(equation) % 2 else np.float16
    arrays = arrays_of(equation, dtype)
    expected = np.einsum(equation, *(x.astype(np.float64) for x in arrays))
    functions = {
        "plain": (lambda x, y: mf.einsum(equation, x, y), expected),
        "between": (
            lambda x, y: mf.einsum(equation, -x, mf.exp(y * 0) + y) * 2 + 1,
            2 * -np.einsum(equation, arrays[0].astype(np.float64), arrays[1].astype(np.float64) + 1) + 1,
        ),
    }
    total = count_of(equation, dtype)
    assert total
    for turn, number in enumerate(range(0, total, -(-total // TRIED))):
        name = "plain" if turn % 2 else "between"
        fn, wanted = functions[name]
        with pytest.MonkeyPatch.context() as patch:
            force(patch, number)
            actual = np.asarray(mf.fuse(fn, target="interpret")(*arrays))
        np.testing.assert_array_equal(actual, wanted, err_msg=f"{name}, order {number}")


@pytest.mark.parametrize("layout", ["transposed", "reversed", "every other"])
def test_strided_arguments_are_copied(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = arrays_of("xaib,yajb->xiyj", np.float32)
    wide = np.repeat(x, 2, axis=1)[:, ::2]
    x = {"transposed": np.asfortranarray(x), "reversed": x[:, ::-1], "every other": wide}[layout]
    force(monkeypatch, 0)
    fused = mf.fuse(lambda x, y: mf.einsum("xaib,yajb->xiyj", x, y), target="interpret")
    np.testing.assert_array_equal(np.asarray(fused(x, y)), np.einsum("xaib,yajb->xiyj", x, y))


def test_what_computes_an_operand_writes_the_other_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product's kernel, or an elementwise one."""
    x, y = arrays_of("xaib,yajb->xiyj", np.float32)
    w = np.random.default_rng(1).integers(-2, 3, (EXTENTS["b"], EXTENTS["b"])).astype(np.float32)
    cases = {
        "product": lambda m, x, y, w: m.einsum("xaib,yajb->xiyj", m.einsum("xaic,cb->xaib", x, w), y),
        "elementwise": lambda m, x, y, w: m.einsum("xaib,yajb->xiyj", x * 2, y) * m.sum(w),
    }
    for name, fn in cases.items():
        for number in (0, 4):
            with pytest.MonkeyPatch.context() as patch:
                force(patch, number)
                actual = np.asarray(mf.fuse(lambda *xs, fn=fn: fn(mf, *xs), target="interpret")(x, y, w))
            np.testing.assert_array_equal(actual, fn(np, x, y, w), err_msg=f"{name} {number}")


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_computed_operands_are_stored_in_another_order(case: StoredOperands) -> None:
    """A kernel of its own computes them, unlike a prologue in the order that their sources have."""
    inputs = case.inputs()
    module = module_at("gpu", case.fn, specs_of(inputs))
    assert str(module).count("call @") > 1
    (result,) = interpreter.run(module, "fn", inputs, order="random", seed=1)
    np.testing.assert_array_equal(result.astype(np.float64), case.expected(*inputs))


@pytest.mark.parametrize("fn", [one_kernel_for_both, one_array])
def test_what_computes_both_operands_writes_the_other_order(fn) -> None:
    inputs, expected = shared_inputs(fn, (64, 64, 32))
    module = module_at("gpu", fn, specs_of(inputs))
    assert not any(f"_operand{number}" in str(module) for number in (0, 1))  # no copies
    (result,) = interpreter.run(module, fn.__name__, inputs, order="random", seed=1)
    np.testing.assert_array_equal(result.astype(np.float64), expected)


@pytest.mark.parametrize("rows", [40, 17])
def test_bytes_are_copied_to_be_contiguous_along_k(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Either operand, or both."""
    rng = np.random.default_rng(2)
    x, w = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((rows, 64), (64, 48)))
    counts = force(monkeypatch, 0)
    fused = mf.fuse(lambda x, w: mf.matmul(x, w, dtype=mf.int32) * 2, target="interpret")
    wanted = 2 * (x.astype(np.int64) @ w)
    for left, right in ((x, w), (np.asfortranarray(x), w), (np.asfortranarray(x), np.asfortranarray(w))):
        np.testing.assert_array_equal(np.asarray(fused(left, right)), wanted)
    assert len(counts) == 3
    assert all(counts)
