"""LayerNorm with two bias additions before it, in one kernel: python examples/layer_norm.py"""

from __future__ import annotations

import numpy as np
from arrays import on_gpu_or_interpreter

import mlirfuse as mf


def layer_norm(x, b0, b1, w, b):
    h = (x + b0 + b1).astype(mf.float32)
    mu = mf.mean(h, axis=-1, keepdims=True)
    var = mf.mean((h - mu) ** 2, axis=-1, keepdims=True)
    return ((h - mu) * mf.rsqrt(var + 1e-5) * w + b).astype(x.dtype)


def reference(x, b0, b1, w, b):
    """In float64, after the two sums, which round to half precision in the function too."""
    h = (x + b0 + b1).astype(np.float64)
    return (h - h.mean(-1, keepdims=True)) / np.sqrt(h.var(-1, keepdims=True) + 1e-5) * w + b


def main() -> None:
    rng = np.random.default_rng(0)
    x, *vectors = (rng.standard_normal(shape).astype(np.float16) for shape in [(16, 1600), *[(1600,)] * 4])
    target, to_device, to_numpy = on_gpu_or_interpreter()
    y = mf.fuse(layer_norm, target=target)(to_device(x), *map(to_device, vectors))
    error = np.abs(to_numpy(y) - reference(x, *vectors)).max()
    print(f"layer_norm: {y.shape} {y.dtype}, largest error {error:.1e} against float64")
    assert error < 1e-2


if __name__ == "__main__":
    main()
