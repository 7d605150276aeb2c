"""NumPy arrays on the GPU as PyTorch tensors, and back, bfloat16 included."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

torch = pytest.importorskip("torch")


def to_torch(array: np.ndarray) -> Any:
    """On the GPU; NumPy has no bfloat16 that PyTorch reads, so it goes as bits."""
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).cuda().view(torch.bfloat16)
    return torch.from_numpy(array).cuda()


def to_numpy(tensor: Any) -> np.ndarray:
    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()
