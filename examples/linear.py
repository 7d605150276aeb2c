"""Matrix products with what surrounds them, each in one kernel: python examples/linear.py

`x @ w.T` contracts on the tensor cores; what follows works on the tile of sums while it is in registers, and what comes
before on the tiles of operands on their way to the product. `explain()` says what was fused, and why.
"""

from __future__ import annotations

import math

import numpy as np
from arrays import on_gpu_or_interpreter

import mlirfuse as mf


def gelu_linear(x, w, b):
    """The product, a bias and an activation."""
    h = mf.matmul(x, w.T, dtype=mf.float32) + b
    return (0.5 * h * (1 + mf.erf(h * math.sqrt(0.5)))).astype(x.dtype)


def add_linear(x, w, r):
    """The product and a residual."""
    return (mf.matmul(x, w.T, dtype=mf.float32) + r).astype(x.dtype)


def linear_with_norm(x, w):
    """The product and its rows' sums of squares: each tile stores its partials, and the last block adds them up."""
    y = x @ w.T
    return y, mf.sum(y.astype(mf.float32) ** 2, axis=-1)


def dequantised_linear(x, q, scale):
    """Weights of bytes with a scale a row: half of float16's traffic, cast and scaled on the way to the product."""
    return x @ (q.astype(x.dtype) * scale[:, None]).T


def activated_linear(x, w):
    """An activation in front of the product."""
    return mf.maximum(x, 0) @ w.T


def gelu(h):
    return 0.5 * h * (1 + np.vectorize(math.erf)(h * math.sqrt(0.5)))


def main() -> None:
    rng = np.random.default_rng(0)
    x, w, r = ((rng.standard_normal(shape) / 8).astype(np.float16) for shape in [(48, 256), (96, 256), (48, 96)])
    b, scale = (rng.standard_normal(96).astype(np.float16) for _ in range(2))
    q = rng.integers(-8, 8, (96, 256)).astype(np.int8)
    product = x.astype(np.float64) @ w.astype(np.float64).T
    cases = [
        (gelu_linear, (x, w, b), [gelu(product + b)]),
        (add_linear, (x, w, r), [product + r]),
        (linear_with_norm, (x, w), [product, (product**2).sum(-1)]),
        (dequantised_linear, (x, q, scale), [x.astype(np.float64) @ (q * scale[:, None].astype(np.float64)).T]),
        (activated_linear, (x, w), [np.maximum(x, 0).astype(np.float64) @ w.astype(np.float64).T]),
    ]
    target, to_device, to_numpy = on_gpu_or_interpreter()
    for function, arguments, expected in cases:
        specs = [mf.TensorSpec(a.shape, a.dtype.name) for a in arguments]
        compiled = mf.fuse(function, target="sm_90a").lower(*specs).compile()
        fused = [
            line for line in compiled.explain().splitlines() if line.startswith(("fuse-segment", "fuse-prologues"))
        ]
        assert len(compiled.binaries) == 1, compiled.explain()
        print("\n".join(fused))
        results = mf.fuse(function, target=target)(*map(to_device, arguments))
        for result, exact in zip(results if isinstance(results, tuple) else (results,), expected, strict=True):
            error = np.abs(to_numpy(result).astype(np.float64) - exact).max() / np.abs(exact).max()
            print(f"{function.__name__}: {result.shape}, largest error {error:.1e} of the largest element, in float64")
            assert error < 2e-3


if __name__ == "__main__":
    main()
