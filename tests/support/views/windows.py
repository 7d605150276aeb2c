"""Functions of images whose normalised pixels are shifted, or divided into windows, by name: as written for NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _normalised(xp: Any, x: Any) -> Any:
    mean = xp.mean(x, axis=-1, keepdims=True)
    var = xp.mean((x - mean) ** 2, axis=-1, keepdims=True)
    return (x - mean) / xp.sqrt(var + 1e-3)


def _rolled(xp: Any, x: Any) -> Any:
    x = xp.concat([x[:, 3:], x[:, :3]], axis=1)
    return xp.concat([x[:, :, -2:], x[:, :, :-2]], axis=2)


def _windows(xp: Any, x: Any, side: int = 4) -> Any:
    b, h, w, c = x.shape
    x = x.reshape((b, h // side, side, w // side, side, c))
    return xp.permute_dims(x, (0, 1, 3, 2, 4, 5)).reshape((b * (h // side) * (w // side), side * side, c))


FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    "shifted": (lambda xp, x: _rolled(xp, _normalised(xp, x)), 1),
    "windows": (lambda xp, x: _windows(xp, xp.exp(x)), 1),
    "normalised windows": (lambda xp, x: _windows(xp, _normalised(xp, x)), 1),
    "shifted windows": (lambda xp, x: _windows(xp, _rolled(xp, _normalised(xp, x))), 1),
    "pixels of channels": (
        lambda xp, x: xp.permute_dims((x * 2.0).reshape((*x.shape[:3], 2, 2, -1)), (0, 1, 3, 2, 4, 5)).reshape(
            (x.shape[0], x.shape[1] * 2, x.shape[2] * 2, x.shape[3] // 4)
        ),
        1,
    ),
    "with the means": (
        lambda xp, x: (_rolled(xp, _normalised(xp, x)), xp.mean(x, axis=-1)),
        2,
    ),
    "shifted sums": (lambda xp, x: _rolled(xp, xp.sum(x, axis=-1, keepdims=True)) + x, 3),
}
"""Of an array of batches, rows, columns and channels; and the kernels that each becomes."""
