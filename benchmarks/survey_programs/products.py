"""Matrix products: the layers of six public models in the three forms of training, batched ones, and epilogues."""
# ruff: noqa: D103  # the formulas say it

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from survey_programs.program import Program

MODELS = {
    "gpt2": ((2304, 768), (768, 768), (3072, 768), (768, 3072)),
    "bert-large": ((3072, 1024), (1024, 1024), (4096, 1024), (1024, 4096)),
    "vit-h": ((3840, 1280), (1280, 1280), (5120, 1280), (1280, 5120)),
    "qwen2.5-7b": ((4608, 3584), (3584, 3584), (37888, 3584), (3584, 18944)),
    "llama3-8b": ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)),
    "llama3-70b": ((10240, 8192), (8192, 8192), (57344, 8192), (8192, 28672)),
}
"""Outputs and inputs of the attention's input and output layers, and of the gate and up, and the down layers."""

SERVED = (1, 16, 200, 4096, 64, 2048, 512, 8192)
TRAINED = (512, 2048, 4096, 8192)


def forward(xp: Any, x: Any, w: Any) -> Any:
    return x @ w.mT


def data_gradient(xp: Any, dy: Any, w: Any) -> Any:
    return dy @ w


def weight_gradient(xp: Any, dy: Any, x: Any) -> Any:
    return dy.mT @ x


def both_transposed(xp: Any, x: Any, w: Any) -> Any:
    return x.mT @ w.mT


def weight_and_bias_gradient(xp: Any, dy: Any, x: Any) -> Any:
    return dy.mT @ x, xp.sum(dy, axis=0, dtype=xp.float32)


def bias(xp: Any, x: Any, w: Any, b: Any) -> Any:
    return x @ w.mT + b


def bias_gelu(xp: Any, x: Any, w: Any, b: Any) -> Any:
    h = xp.astype(x @ w.mT + b, xp.float32)
    return xp.astype(0.5 * h * (1.0 + xp.erf(h * 0.7071067812)), xp.bfloat16)


def bias_gelu_tanh(xp: Any, x: Any, w: Any, b: Any) -> Any:
    h = xp.astype(x @ w.mT + b, xp.float32)
    return xp.astype(0.5 * h * (1.0 + xp.tanh(0.7978845608 * (h + 0.044715 * h * h * h))), xp.bfloat16)


def squared_relu(xp: Any, x: Any, w: Any) -> Any:
    return xp.square(xp.maximum(x @ w.mT, 0.0))


def residual(xp: Any, x: Any, w: Any, r: Any) -> Any:
    return x @ w.mT + r


def bias_dropout_residual(xp: Any, x: Any, w: Any, b: Any, mask: Any, r: Any) -> Any:
    return xp.where(mask, (x @ w.mT + b) * 1.125, 0.0) + r


def gate_and_up(xp: Any, x: Any, gate: Any, up: Any) -> Any:
    g = xp.astype(x @ gate.mT, xp.float32)
    return xp.astype(g * xp.sigmoid(g) * xp.astype(x @ up.mT, xp.float32), xp.bfloat16)


def silu_gated(xp: Any, x: Any, w: Any, gate: Any) -> Any:
    g = xp.astype(gate, xp.float32)
    return xp.astype(xp.astype(x @ w.mT, xp.float32) * g * xp.sigmoid(g), xp.bfloat16)


def soft_capped(xp: Any, x: Any, w: Any) -> Any:
    return xp.astype(xp.tanh(xp.astype(x @ w.mT, xp.float32) / 30.0) * 30.0, xp.bfloat16)


def normalised_input(xp: Any, x: Any, w: Any) -> Any:
    """An RMSNorm before the product."""
    h = xp.astype(x, xp.float32)
    n = xp.astype(h * xp.rsqrt(xp.mean(h * h, axis=-1, keepdims=True) + 1e-5), xp.bfloat16)
    return n @ w.mT


def gated_input(xp: Any, gate: Any, up: Any, w: Any) -> Any:
    g = xp.astype(gate, xp.float32)
    return xp.astype(g * xp.sigmoid(g) * xp.astype(up, xp.float32), xp.bfloat16) @ w.mT


def normalised_result(xp: Any, x: Any, w: Any) -> Any:
    """An RMSNorm of heads of 128 behind the product."""
    h = xp.astype(xp.reshape(x @ w.mT, (x.shape[0], w.shape[0] // 128, 128)), xp.float32)
    return xp.astype(h * xp.rsqrt(xp.mean(h * h, axis=-1, keepdims=True) + 1e-5), xp.bfloat16)


def largest_of_rows(xp: Any, x: Any, w: Any) -> Any:
    return xp.max(x @ w.mT, axis=-1)


def gelu_data_gradient(xp: Any, dy: Any, w: Any, h: Any) -> Any:
    """Through a layer and the GELU before it."""
    v = xp.astype(h, xp.float32)
    s = xp.sigmoid(1.702 * v)
    return xp.astype(xp.astype(dy @ w, xp.float32) * (s + 1.702 * v * s * (1.0 - s)), xp.bfloat16)


def two_layers(xp: Any, x: Any, w1: Any, w2: Any) -> Any:
    return xp.maximum(x @ w1.mT, 0.0) @ w2.mT


def low_rank(xp: Any, x: Any, w: Any, a: Any, b: Any) -> Any:
    """A layer with an adapter of rank 16."""
    return x @ w.mT + (x @ a.mT) @ b.mT


def attention_scores(xp: Any, q: Any, k: Any) -> Any:
    h = xp.astype(q @ k.mT, xp.float32) * 0.0883883476
    e = xp.exp(h - xp.max(h, axis=-1, keepdims=True))
    return xp.astype(e / xp.sum(e, axis=-1, keepdims=True), xp.bfloat16)


def grouped_gelu(xp: Any, x: Any, w: Any, b: Any) -> Any:
    """Experts of equal load: (experts, rows, inputs), (experts, inputs, outputs)."""
    h = xp.astype(x @ w, xp.float32) + b[:, None, :]
    return xp.astype(h * xp.sigmoid(1.702 * h), xp.bfloat16)


def layers() -> Iterator[Program]:
    """Each layer of each model at two numbers of served rows, and its two gradients at one of trained rows."""
    shapes = [(model, n, k) for model, layers in MODELS.items() for n, k in layers]
    for turn, (model, n, k) in enumerate(shapes):
        for rows in (SERVED[turn % 8], SERVED[(3 * turn + 5) % 8]):
            yield layer(forward, "x:bf16[M,K] w:bf16[N,K]", model, rows, n, k)
        rows = TRAINED[turn % 4]
        yield layer(data_gradient, "dy:bf16[M,N] w:bf16[N,K]", model, rows, n, k)
        rows = TRAINED[(turn + turn // 4 + 1) % 4]
        yield layer(weight_gradient, "dy:bf16[M,N] x:bf16[M,K]", model, rows, n, k)


def layer(fn: Any, text: str, model: str, rows: int, n: int, k: int) -> Program:
    """A layer's product; `torch.compile` would call the library that eager PyTorch calls."""
    sizes = {"M": rows, "N": n, "K": k}
    return Program("products", fn, text, sizes, flops="2*M*N*K", compiled=False, label=f"{model} {fn.__name__}")
