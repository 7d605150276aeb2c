"""What follows a matrix product, bias and GELU, elementwise in one kernel: python examples/epilogue.py"""

from __future__ import annotations

import math

import numpy as np
from arrays import on_gpu_or_interpreter

import mlirfuse as mf


def bias_gelu(x, bias):
    h = (x + bias).astype(mf.float32)
    return (0.5 * h * (1.0 + mf.erf(h * math.sqrt(0.5)))).astype(x.dtype)


def reference(x, bias):
    h = (x + bias).astype(np.float64)
    return 0.5 * h * (1 + np.vectorize(math.erf)(h * math.sqrt(0.5)))


def main() -> None:
    rng = np.random.default_rng(0)
    x, bias = (rng.standard_normal(shape).astype(np.float16) for shape in [(32, 320), (320,)])
    target, to_device, to_numpy = on_gpu_or_interpreter()
    y = mf.fuse(bias_gelu, target=target)(to_device(x), to_device(bias))
    error = np.abs(to_numpy(y) - reference(x, bias)).max()
    print(f"bias_gelu: {y.shape} {y.dtype}, largest error {error:.1e} against float64")
    assert error < 5e-3


if __name__ == "__main__":
    main()
