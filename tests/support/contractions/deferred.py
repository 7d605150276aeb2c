"""Functions that need reductions of a product's rows along the same rows: norms, softmaxes and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def centred(xp: Any, product: Any, r: Any, g: Any) -> Any:
    """A residual, and rows less their mean."""
    y = product + r
    return y - xp.mean(y, axis=-1, keepdims=True)


def normalised(xp: Any, product: Any, r: Any, g: Any) -> Any:
    """A layer norm behind a gate and a residual, and what it normalises."""
    y = product * g + r
    d = y - xp.mean(y, axis=-1, keepdims=True)
    return d / xp.sqrt(xp.mean(d * d, axis=-1, keepdims=True) + 1e-3), y


def softmax_gradient(xp: Any, product: Any, r: Any, g: Any) -> Any:
    """Rows of a product's exponentials times what is left of another array without their mean."""
    p = xp.exp(0.1 * product)
    return p * (r - xp.sum(p * r, axis=-1, keepdims=True)), p


def spread(xp: Any, product: Any, r: Any, g: Any) -> Any:
    """Residuals, and how large those of a column are."""
    e = r - product
    return e, xp.sqrt(xp.mean(g * g * e * e, axis=0))


_ALL = (centred, normalised, softmax_gradient, spread)
FUNCTIONS: dict[str, Callable[..., Any]] = {each.__name__: each for each in _ALL}
"""Functions of a namespace, a product in f32, and two arrays of its shape."""


def arguments(rows: int, columns: int, seed: int = 0) -> list[Any]:
    """x, w, and two arrays of the product's shape, in half precision."""
    rng = np.random.default_rng(seed)
    shapes = ((rows, 64), (64, columns), (rows, columns), (rows, columns))
    return [(rng.standard_normal(shape) / 4).astype(np.float16) for shape in shapes]


def reference(name: str, given: list[Any]) -> list[Any]:
    """The results in double precision; the product is rounded to half precision, as that of f16 arrays is."""
    x, w, r, g = (each.astype(np.float64) for each in given)
    found = FUNCTIONS[name](np, (x @ w).astype(np.float16).astype(np.float64), r, g)
    return list(found) if isinstance(found, tuple) else [found]


def traced(xp: Any, name: str) -> Callable[..., Any]:
    """The function of arrays in half precision, with results in that too."""

    def call(x: Any, w: Any, r: Any, g: Any) -> Any:
        wide = [xp.astype(each, xp.float32) for each in (x @ w, r, g)]
        found = FUNCTIONS[name](xp, *wide)
        found = found if isinstance(found, tuple) else (found,)
        return tuple(xp.astype(each, xp.float16) for each in found)

    return call
