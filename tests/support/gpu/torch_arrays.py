"""NumPy arrays on the GPU as PyTorch tensors, and back, with the dtypes that NumPy itself has not."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

torch = pytest.importorskip("torch")

BITS = {"bfloat16": np.int16, "float8_e4m3fn": np.uint8, "float8_e5m2": np.uint8}
"""For dtypes that PyTorch does not read from NumPy, the integers that they travel as."""


def to_torch(array: np.ndarray) -> Any:
    """On the GPU."""
    name = array.dtype.name
    if name in BITS:
        return torch.from_numpy(array.view(BITS[name])).cuda().view(getattr(torch, name))
    return torch.from_numpy(array).cuda()


def to_numpy(tensor: Any) -> np.ndarray:
    tensor = tensor.detach().cpu()
    name = str(tensor.dtype).removeprefix("torch.")
    if name in BITS:
        bits = getattr(torch, np.dtype(BITS[name]).name)
        return tensor.view(bits).numpy().view(getattr(ml_dtypes, name))
    return tensor.numpy()
