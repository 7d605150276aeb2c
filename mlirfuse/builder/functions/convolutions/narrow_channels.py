"""Convolutions of any channels: inputs of few are copied first, so that products read them in wide accesses."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from mlirfuse.builder.functions.convolutions import window_products
from mlirfuse.builder.functions.convolutions.window_products import ACCESS, Problem, with_channels
from mlirfuse.builder.functions.convolutions.window_rows import window_rows
from mlirfuse.builder.functions.products.sums_of_products import ProductTypes
from mlirfuse.builder.state import TensorBase


def forward(problem: Problem, x: TensorBase, w: TensorBase, types: ProductTypes) -> TensorBase:
    """The unrounded output (n, p..., g, k); x has shape (n, h..., c) and w (k, r..., c)."""
    wide = _accessible_channels(problem, x)
    if wide == problem.channels:
        return window_products.forward(problem, x, w, types)
    if (rows := window_rows(problem, wide, x.dtype.bytes)) is not None:
        return rows.forward(x, w, types)
    whole = replace(problem, channels=wide)
    return window_products.forward(whole, with_channels(x, wide), with_channels(w, wide), types)


def wgrad(problem: Problem, x: TensorBase, dy: TensorBase, types: ProductTypes) -> TensorBase:
    """The unrounded gradient (g, k, r..., c) of filters; x has shape (n, h..., c) and dy (n, p..., k)."""
    wide = _accessible_channels(problem, x)
    if wide == problem.channels:
        return window_products.wgrad(problem, x, dy, types)
    if (rows := window_rows(problem, wide, x.dtype.bytes)) is not None:
        return rows.wgrad(x, dy, types)
    gradient = window_products.wgrad(replace(problem, channels=wide), with_channels(x, wide), dy, types)
    return with_channels(gradient, problem.channels)


def _accessible_channels(problem: Problem, x: TensorBase) -> int:
    """Channels that the input is copied with, so that products gather it in 8 bytes at least.

    Each tap reads the input again, mostly from a cache, in as many accesses as the copies are narrow. One copy with
    channels of zeros costs a single pass. Patches whose pixels are neighbours, and groups, are left as they are.
    """
    whole = max(1, ACCESS // x.dtype.bytes)
    windows = problem.windows
    apart = windows[-1].dilation > 1 or windows[-1].before > 0 or windows[-1].after > 0
    overlap = any(w.taps > w.stride for w in windows)
    if problem.groups > 1 or problem.channels % whole == 0 or not (apart or overlap) or prod(problem.taps) == 1:
        return problem.channels
    return -(-problem.channels // whole) * whole
