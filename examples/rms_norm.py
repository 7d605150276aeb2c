"""RMSNorm with the residual addition, two results from one kernel: python examples/rms_norm.py"""

from __future__ import annotations

import numpy as np
from arrays import on_gpu_or_interpreter

import mlirfuse as mf


def add_rms_norm(x, residual, w, eps):
    s = x + residual
    h = s.astype(mf.float32)
    y = h * mf.rsqrt(mf.mean(h * h, axis=-1, keepdims=True) + eps) * w
    return y.astype(x.dtype), s


def reference(x, residual, w, eps):
    s = x + residual
    h = s.astype(np.float64)
    return h / np.sqrt((h * h).mean(-1, keepdims=True) + eps) * w, s


def main() -> None:
    rng = np.random.default_rng(0)
    x, residual, w = (rng.standard_normal(shape).astype(np.float16) for shape in [(2, 8, 768), (2, 8, 768), (768,)])
    target, to_device, to_numpy = on_gpu_or_interpreter()
    fused = mf.fuse(add_rms_norm, target=target)
    for eps in (1e-5, 1e-3):  # a number is an argument of the kernel: no second compilation
        y, s = fused(to_device(x), to_device(residual), to_device(w), eps)
        expected, expected_sum = reference(x, residual, w, eps)
        error = np.abs(to_numpy(y) - expected).max()
        print(f"add_rms_norm, eps {eps:g}: {y.shape}, largest error {error:.1e} against float64")
        assert error < 1e-2
        assert np.array_equal(to_numpy(s), expected_sum)


if __name__ == "__main__":
    main()
