"""Flagged buffers: what keeps their protocol, and what breaks it is found."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from mlir import ir

from mlirfuse import interpreter
from mlirfuse.errors import InterpreterError
from mlirfuse.support.rewriting import nested
from tests.support.contractions.products import Product, pinned_schedule
from tests.support.harnesses.compiling import module_at

PRODUCT = Product(24, 32, 384, "nt", "float16")


def broken(stage: str, name: str, change: Callable[[ir.Operation], None]) -> ir.Module:
    """A product whose four partials are exchanged through a flagged buffer, with the first op of that name changed."""
    module = module_at(stage, PRODUCT.fn, PRODUCT.specs, pinned_schedule(PRODUCT, 16, 32, 4, "flagged"))
    with module.context, ir.Location.unknown():
        change(next(op for op in nested(module.operation) if op.name == name))
    return module


def again(op: ir.Operation) -> None:
    op.clone(ir.InsertionPoint(op))


STAGES = pytest.mark.parametrize("stage", ["tile", "gpu"])


@STAGES
@pytest.mark.parametrize("seed", range(3))
def test_parts_come_in_any_order(stage: str, seed: int) -> None:
    module = broken(stage, "fuse.flagged_store", lambda _: None)
    inputs = PRODUCT.inputs()
    (result,) = interpreter.run(module, PRODUCT.form, inputs, order="random", seed=seed)
    np.testing.assert_array_equal(result, PRODUCT.expected(inputs))


@STAGES
def test_a_word_that_nobody_posts_is_waited_for(stage: str) -> None:
    module = broken(stage, "fuse.flagged_store", lambda op: op.erase())
    with pytest.raises(InterpreterError, match=r"words of .* are empty"):
        interpreter.run(module, PRODUCT.form, PRODUCT.inputs())


@STAGES
def test_a_word_is_posted_once(stage: str) -> None:
    module = broken(stage, "fuse.flagged_store", again)
    with pytest.raises(InterpreterError, match="stores to a word that is not empty"):
        interpreter.run(module, PRODUCT.form, PRODUCT.inputs())


@STAGES
def test_a_word_is_collected_once(stage: str) -> None:
    module = broken(stage, "fuse.flagged_load", again)
    with pytest.raises(InterpreterError, match=r"words of .* are empty"):
        interpreter.run(module, PRODUCT.form, PRODUCT.inputs())


@STAGES
def test_all_blocks_must_be_resident(stage: str) -> None:
    module = broken(stage, "fuse.flagged_store", lambda _: None)
    with pytest.raises(InterpreterError):
        interpreter.run(module, PRODUCT.form, PRODUCT.inputs(), resident=2)


def test_every_number_can_be_posted() -> None:
    """Zeros, infinities and NaN of any sign: none of them is taken for an empty word."""
    x = np.zeros((24, 384), np.float16)
    w = np.ones((32, 384), np.float16)
    x[0], x[1, 0], x[2, 0], x[3, :2] = -0.0, np.inf, -np.inf, (np.inf, -np.inf)
    x[4] = np.array(0xFFFF, np.uint16).view(np.float16)
    module = broken("gpu", "fuse.flagged_store", lambda _: None)
    (result,) = interpreter.run(module, PRODUCT.form, [x, w])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(result, (x.astype(np.float32) @ w.T.astype(np.float32)).astype(np.float16))
