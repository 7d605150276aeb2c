"""What the interpreter's tests share besides fixtures: parsing, and types of arrays as text."""

from __future__ import annotations

import numpy as np
from mlir import ir

from mlirfuse.compiler.context import make_context
from mlirfuse.support.dtypes import ALL

_MLIR_NAMES = {dtype.numpy: dtype.mlir_name for dtype in ALL}
SHARED = "#gpu.address_space<workgroup>"


def parse(text: str) -> ir.Module:
    """A module in a context of its own."""
    with make_context():
        return ir.Module.parse(text)


def memref_type(array: np.ndarray) -> str:
    """The static memref type of an array."""
    return f"memref<{''.join(f'{extent}x' for extent in array.shape)}{_MLIR_NAMES[array.dtype]}>"
