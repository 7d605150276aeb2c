"""Attention and its gradients, projections, gates of experts, scans and packed weights."""
# ruff: noqa: D103  # the formulas say it

from __future__ import annotations

from typing import Any

from survey_programs.formulas import narrow, softmax, wide


def attention_backward(xp: Any, q: Any, k: Any, v: Any, lse: Any, do: Any) -> Any:
    """Of all three arguments, from the logarithms of the sums."""
    s = wide(xp, xp.einsum("bhqd,bhkd->bhqk", q, k)) * 0.125
    p = xp.exp(s - lse[..., None] - 3.0)
    dp = wide(xp, xp.einsum("bhqd,bhkd->bhqk", do, v))
    ds = xp.astype(p * (dp - xp.sum(p * dp, axis=-1, keepdims=True)) * 0.125, xp.float16)
    dq, dk = xp.einsum("bhqk,bhkd->bhqd", ds, k), xp.einsum("bhqk,bhqd->bhkd", ds, q)
    return dq, dk, xp.einsum("bhqk,bhqd->bhkd", xp.astype(p, xp.float16), do)


def low_rank_norm(xp: Any, x: Any, w: Any, a: Any, b: Any, r: Any, g: Any) -> Any:
    """A low-rank adapter, a residual and a layer norm."""
    y = wide(xp, xp.matmul(x, w)) + 0.5 * wide(xp, xp.matmul(xp.matmul(x, a), b)) + wide(xp, r)
    d = y - xp.mean(y, axis=-1, keepdims=True)
    n = d * xp.rsqrt(xp.mean(d**2, axis=-1, keepdims=True) + 1e-5) * wide(xp, g)
    return xp.astype(n, xp.float16), xp.astype(y, xp.float16)


def rotated_heads(xp: Any, q: Any, k: Any, cos: Any, sin: Any, g: Any) -> Any:
    """Heads normalised and rotated, those of the keys repeated for groups of queries."""

    def rotated(x: Any) -> Any:
        h = wide(xp, x)
        h = h * xp.rsqrt(xp.mean(h * h, axis=-1, keepdims=True) + 1e-6) * wide(xp, g)
        half = x.shape[-1] // 2
        a, b, c, s = h[..., :half], h[..., half:], cos[:, None, :], sin[:, None, :]
        return xp.permute_dims(xp.concat([a * c - b * s, b * c + a * s], axis=-1), (0, 2, 1, 3))

    b, t, h, d = q.shape
    keys = k.shape[2]
    repeated = xp.broadcast_to(rotated(k)[:, :, None], (b, keys, h // keys, t, d))
    return narrow(xp, rotated(q)), narrow(xp, xp.reshape(repeated, (b, h, t, d)))


def outer_mean_projected(xp: Any, m: Any, w: Any) -> Any:
    b, s, n, c = m.shape
    outer = xp.reshape(xp.einsum("bsic,bsjd->bijcd", m, m), (b, n, n, c * c))
    return wide(xp, xp.matmul(outer, w)) / s + 0.5


def state_space_scan(xp: Any, x: Any, dt: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Mamba's selective scan, all steps written out."""
    dt = xp.where(dt > 20, dt, xp.log1p(xp.exp(dt)))
    h = xp.zeros_like(x[:, 0, :, None] * a)
    steps = []
    for t in range(x.shape[1]):
        h = h * xp.exp(-dt[:, t, :, None] * a) + (dt[:, t] * x[:, t])[:, :, None] * b[:, t, None, :]
        steps.append(xp.sum(h * c[:, t, None, :], axis=-1) + d * x[:, t])
    return xp.stack(steps, axis=1), h


def gated_units(xp: Any, x: Any, gate: Any, up: Any, g: Any) -> Any:
    """RMS norm, SwiGLU, and statistics of its rows and columns."""
    h = wide(xp, x)
    n = narrow(xp, h * xp.rsqrt(xp.mean(h * h, axis=1, keepdims=True) + 1e-5) * wide(xp, g))
    a = wide(xp, xp.matmul(n, gate))
    y = a * xp.sigmoid(a) * wide(xp, xp.matmul(n, up))
    return narrow(xp, y), xp.sum(y * y, axis=1), xp.max(xp.abs(y), axis=0)


def packed_weights(xp: Any, w: Any, s: Any, x: Any) -> Any:
    """Weights of four bits, two to a byte, with scales of groups, times rows and their negatives."""
    n, k = w.shape
    low, high = (xp.astype(w, xp.int32) & 15) - 8, ((xp.astype(w, xp.int32) >> 4) & 15) - 8
    pairs = xp.reshape(xp.astype(xp.stack([low, high], axis=-1), xp.float16), (n, k // 128, 256))
    weights = xp.reshape(pairs * s[:, :, None], (n, 2 * k))
    return xp.matmul(xp.concat([x, -x], axis=1), weights.mT)


def window_attention(xp: Any, qkv: Any, bias: Any) -> Any:
    """Swin's, in shifted windows of 7 by 7."""
    n, h, w, _, a, d = qkv.shape
    x = xp.concat([qkv[:, 3:], qkv[:, :3]], axis=1)
    x = xp.concat([x[:, :, 3:], x[:, :, :3]], axis=2)
    x = xp.permute_dims(xp.reshape(x, (n, h // 7, 7, w // 7, 7, 3, a, d)), (5, 0, 1, 3, 6, 2, 4, 7))
    q, k, v = (xp.reshape(x[i], (n * (h // 7) * (w // 7), a, 49, d)) for i in range(3))
    s = wide(xp, xp.einsum("nhqd,nhkd->nhqk", q, k)) * d**-0.5 + bias
    y = xp.einsum("nhqk,nhkd->nhqd", xp.astype(softmax(xp, s), xp.float16), v)
    return xp.reshape(xp.permute_dims(y, (0, 2, 1, 3)), (n * (h // 7) * (w // 7), 49, a * d))


def two_experts(xp: Any, x: Any, w: Any, i: Any) -> Any:
    """The best two of each token, their gates, and the losses that balance them."""
    logits = xp.matmul(x, w, dtype=xp.float32)
    m = xp.max(logits, axis=1, keepdims=True)
    e = xp.exp(logits - m)
    z = xp.sum(e, axis=1, keepdims=True)
    p = e / z
    first = xp.min(xp.where(logits == m, i, 1 << 30), axis=1, keepdims=True)
    rest = xp.where(i == first, -1e30, logits)
    second = xp.min(xp.where(rest == xp.max(rest, axis=1, keepdims=True), i, 1 << 30), axis=1, keepdims=True)
    p1 = xp.max(p, axis=1, keepdims=True)
    p2 = xp.max(xp.where(i == first, 0.0, p), axis=1, keepdims=True)
    share = xp.mean(wide(xp, i == first), axis=0)
    balance = xp.sum(share * xp.mean(p, axis=0)) * i.shape[0]
    experts = xp.concat([first, second], axis=1)
    return xp.concat([p1, p2], axis=1) / (p1 + p2), experts, balance, xp.mean((m + xp.log(z)) ** 2)


def orthonormal_rows(xp: Any, x: Any) -> Any:
    """Gram and Schmidt's, and the triangle that they leave."""
    rows: list[Any] = []
    for i in range(x.shape[1]):
        v = x[:, i]
        for u in rows:
            v = v - xp.sum(v * u, axis=1, keepdims=True) * u
        rows.append(v / xp.sqrt(xp.sum(v * v, axis=1, keepdims=True)))
    q = xp.stack(rows, axis=1)
    return q, xp.einsum("nik,njk->nij", q, x)


def kernel_attention(xp: Any, q: Any, k: Any, v: Any) -> Any:
    """Linear attention with ELU + 1 as the kernel."""
    fq, fk = (xp.astype(xp.where(x > 0, wide(xp, x) + 1, xp.exp(wide(xp, x))), xp.float16) for x in (q, k))
    kv = xp.einsum("bshd,bshe->bhde", fk, v)
    z = 1.0 / (xp.einsum("bshd,bhd->bsh", wide(xp, fq), xp.sum(wide(xp, fk), axis=1)) + 1e-3)
    return xp.astype(wide(xp, xp.einsum("bshd,bhde->bshe", fq, kv)) * z[..., None], xp.float16)


def softmax_backward_bias(xp: Any, s: Any, dp: Any) -> Any:
    """With the gradient of a bias that all batches share."""
    p, dp = softmax(xp, wide(xp, s)), wide(xp, dp)
    ds = p * (dp - xp.sum(p * dp, axis=-1, keepdims=True))
    return narrow(xp, ds), xp.sum(ds, axis=0), xp.sum(ds * ds, axis=(0, 2, 3))
