"""An einsum and a softmax in a CUDA graph, captured once and replayed on new values: python examples/cuda_graph.py"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from arrays import on_gpu_or_interpreter

import mlirfuse as mf


def attention_weights(q, k):
    scores = mf.einsum("bqd,bkd->bqk", q, k) / q.shape[-1] ** 0.5
    e = mf.exp(scores - mf.max(scores, axis=-1, keepdims=True))
    return e / mf.sum(e, axis=-1, keepdims=True)


def reference(q, k):
    scores = np.einsum("bqd,bkd->bqk", q.astype(np.float64), k) / q.shape[-1] ** 0.5
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def captured(call: Callable[[], Any]) -> Callable[[], None]:
    """Captures the launches of a call on a stream; returns a function that replays them and waits."""
    import cupy

    call()  # compiles, and allocates workspaces: a capture can do neither
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        call()
        graph = stream.end_capture()

    def replay() -> None:
        # A stream that does not block waits for no other: what wrote the arguments may still be under way.
        stream.wait_event(cupy.cuda.get_current_stream().record())
        graph.launch(stream)
        stream.synchronize()

    return replay


def main() -> None:
    rng = np.random.default_rng(0)
    target, to_device, to_numpy = on_gpu_or_interpreter()
    fused = mf.fuse(attention_weights, target=target)
    q, k = (to_device(rng.standard_normal((4, 16, 32)).astype(np.float32)) for _ in range(2))
    out = to_device(np.zeros((4, 16, 16), np.float32))

    def call() -> None:
        fused(q, k, out=out)

    replay = captured(call) if target is None else call  # the interpreter has no graphs, and calls
    for step in range(3):
        values = rng.standard_normal((4, 16, 32)).astype(np.float32)
        q[...] = to_device(values)  # a graph reads the memory that was captured
        replay()
        error = np.abs(to_numpy(out) - reference(values, to_numpy(k))).max()
        print(f"replay {step}: largest error {error:.1e} against float64")
        assert error < 1e-5


if __name__ == "__main__":
    main()
