"""Element types, and what names them elsewhere."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.support.dtypes import ALL, DType


@pytest.mark.parametrize("dtype", ALL, ids=lambda dtype: dtype.name)
def test_equal_to_what_names_it(dtype: DType) -> None:
    others = [other for other in ALL if other is not dtype]
    for same in (dtype.numpy, dtype.name, dtype.numpy.type, copy.deepcopy(dtype)):
        assert dtype == same
        assert (dtype != same) is False
        assert not any(other == same for other in others)
    assert hash(dtype) == hash(copy.deepcopy(dtype))
    assert dtype in (others[0].numpy, dtype.numpy)


@pytest.mark.parametrize("other", [None, 3, "nonsense", [1.0], object()])
def test_equal_to_nothing_else(other: object) -> None:
    assert mf.float32 != other


def test_numpy_takes_it() -> None:
    assert np.dtype(mf.float32) == np.float32
    assert np.finfo(mf.float16).max == 65504
    assert np.issubdtype(mf.int32, np.integer)
    assert mf.bfloat16.itemsize == 2


def test_branches_on_the_dtype_of_a_traced_array() -> None:
    fused = mf.fuse(lambda x: x * 2 if x.dtype == np.float32 else x * 3, target="interpret")
    for dtype, factor in ((np.float32, 2), (np.float64, 3)):
        np.testing.assert_array_equal(np.asarray(fused(np.ones(4, dtype))), factor)
