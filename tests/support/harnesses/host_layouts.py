"""What a host would make of a function's views, as a call on a GPU does before it launches anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import mlirfuse as mf
from mlirfuse.runtime.arrays.arrays import ArrayInfo
from mlirfuse.runtime.arrays.layout import CallLayout, lay_out
from mlirfuse.support.dtypes import dtype_of
from tests.support.harnesses.compiling import specs_of


def host_layout(fn: Callable[..., Any], arrays: Sequence[np.ndarray]) -> CallLayout:
    """The buffers, launches and results of a call; raises `ArgumentError` where a view is none of memory."""
    compiled = mf.fuse(fn, target="sm_90a").lower(*specs_of(arrays)).compile(choose_again=False)
    infos = [
        ArrayInfo(0, a.shape, tuple(s // a.itemsize for s in a.strides), dtype_of(a.dtype), 0, "cupy") for a in arrays
    ]
    return lay_out(compiled.program, infos)
