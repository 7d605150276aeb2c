"""What the interpreter's tests share besides fixtures: parsing, types of arrays as text, and orders of blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from mlir import ir

from mlirfuse.compiler.context import make_context
from mlirfuse.dialect.attributes import COOPERATIVE
from mlirfuse.support.dtypes import ALL

_MLIR_NAMES = {dtype.numpy: dtype.mlir_name for dtype in ALL}
SHARED = "#gpu.address_space<workgroup>"


def parse(text: str) -> ir.Module:
    """A module in a context of its own."""
    with make_context():
        return ir.Module.parse(text)


def order_for(module: ir.Module, order: Mapping[str, Any]) -> dict[str, Any]:
    """An order of blocks without a bound on how many are resident where blocks wait for each other."""
    waits = COOPERATIVE in str(module)
    return {name: value for name, value in order.items() if not (waits and name == "resident")}


def memref_type(array: np.ndarray) -> str:
    """The static memref type of an array."""
    return f"memref<{''.join(f'{extent}x' for extent in array.shape)}{_MLIR_NAMES[array.dtype]}>"
