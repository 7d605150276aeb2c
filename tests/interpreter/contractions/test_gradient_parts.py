"""Parts of data gradients with strides, whose pixels are gathered from their residue classes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.convolutions import PARTS_OF_GRADIENTS, STRIDED_GRADIENTS, Case, dgrad, integers, part_of_gradient


@pytest.mark.parametrize("name", PARTS_OF_GRADIENTS)
@pytest.mark.parametrize("case", STRIDED_GRADIENTS, ids=str)
def test_parts_of_data_gradients(name: str, case: Case) -> None:
    _, w, dy = (integers(np.random.default_rng(case.taps[0]), shape, np.float32) for shape in case.shapes)
    want = PARTS_OF_GRADIENTS[name](np, dgrad(case, dy.astype(np.int64), w.astype(np.int64)))
    assert (mf.fuse(partial(part_of_gradient, name, case), target="interpret")(dy, w) == want).all()


def test_a_data_gradient_and_parts_of_it() -> None:
    """Of which each is a view of the product's result of its own."""
    case = Case(2, (21,), 4, 2, (1,), (2,), ((0, 0),), (2,))
    _, w, dy = (integers(np.random.default_rng(0), shape, np.float32) for shape in case.shapes)

    def gradient(dy: Any, w: Any) -> Any:
        dx = mf.conv1d_dgrad(dy, w, input_size=case.sizes, **case.parameters)
        return dx, mf.max(mf.min(dx, axis=0, keepdims=True), axis=-1)

    want = dgrad(case, dy.astype(np.int64), w.astype(np.int64))
    whole, part = mf.fuse(gradient, target="interpret")(dy, w)
    assert (whole == want).all()
    assert (part == want.min(0, keepdims=True).max(-1)).all()
