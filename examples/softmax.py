"""Softmax over rows of any length: in registers, in shared memory, or read again: python examples/softmax.py"""

from __future__ import annotations

import numpy as np
from arrays import on_gpu_or_interpreter

import mlirfuse as mf


def softmax(x):
    h = x.astype(mf.float32)
    e = mf.exp(h - mf.max(h, axis=-1, keepdims=True))
    return (e / mf.sum(e, axis=-1, keepdims=True)).astype(x.dtype)


def reference(x):
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def main() -> None:
    rng = np.random.default_rng(0)
    target, to_device, to_numpy = on_gpu_or_interpreter()
    fused = mf.fuse(softmax, target=target)
    for columns in (5, 1000, 5140):  # one compilation for each, whatever the number of rows
        x = rng.standard_normal((4, columns)).astype(np.float16)
        y = to_numpy(fused(to_device(x)))
        error = np.abs(y - reference(x)).max()
        print(f"softmax over {columns}: largest error {error:.1e} against float64")
        assert error < 1e-3
    chosen = fused.lower(mf.TensorSpec((None, 131072), mf.float16)).compile().explain()
    print("\nfor 131072 columns the compiler says:\n" + chosen)


if __name__ == "__main__":
    main()
