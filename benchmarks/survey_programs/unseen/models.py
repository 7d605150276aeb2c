"""Parts of models: attention, mixing of tokens and channels, gates, quantised layers."""
# ruff: noqa: D103  # the formulas say it

from __future__ import annotations

from typing import Any

from survey_programs.formulas import narrow, softmax, wide


def shifted_tokens(xp: Any, x: Any, mix: Any) -> Any:
    """RWKV's token shift that keeps the length."""
    h = wide(xp, x)
    before = xp.concat([xp.zeros_like(h[:, :1]), h[:, :-1]], axis=1)
    return xp.astype(h * mix + before * (1.0 - mix), xp.bfloat16)


def class_token(xp: Any, x: Any, c: Any, pos: Any) -> Any:
    """ViT: a class token before the patches and positions added."""
    h = xp.concat([c + xp.zeros_like(x[:, :1]), x], axis=1)
    return xp.astype(wide(xp, h) + pos, xp.bfloat16)


def class_token_norm(xp: Any, x: Any, c: Any, pos: Any, w: Any) -> Any:
    h = wide(xp, xp.concat([c + xp.zeros_like(x[:, :1]), x], axis=1)) + pos
    h = h - xp.mean(h, axis=-1, keepdims=True)
    return xp.astype(h / xp.sqrt(xp.mean(h * h, axis=-1, keepdims=True) + 1e-5) * w, xp.bfloat16)


def triangle_out(xp: Any, z: Any, gz: Any, w: Any, gw: Any) -> Any:
    a = wide(xp, z) * (1.0 / (1.0 + xp.exp(-wide(xp, gz))))
    b = wide(xp, w) * (1.0 / (1.0 + xp.exp(-wide(xp, gw))))
    return xp.einsum("ikc,jkc->ijc", xp.astype(a, xp.bfloat16), xp.astype(b, xp.bfloat16))


def outer_mean(xp: Any, a: Any, b: Any, m: Any) -> Any:
    return xp.einsum("sic,sjd->ijcd", xp.astype(wide(xp, a) * m, xp.bfloat16), b)


def plain_triangle(xp: Any, a: Any, b: Any) -> Any:
    return xp.einsum("ikc,jkc->ijc", a, b)


def triangle_of_planes(xp: Any, a: Any, b: Any) -> Any:
    return xp.einsum("cik,cjk->ijc", a, b)


def triangle_norm(xp: Any, a: Any, b: Any, w: Any) -> Any:
    h = wide(xp, xp.einsum("ikc,jkc->ijc", a, b))
    h = h - xp.mean(h, axis=-1, keepdims=True)
    return xp.astype(h / xp.sqrt(xp.mean(h * h, axis=-1, keepdims=True) + 1e-5) * w, xp.bfloat16)


def softmax_long(xp: Any, x: Any, t: Any) -> Any:
    h = wide(xp, x) / t
    e = xp.exp(h - xp.max(h, axis=-1, keepdims=True))
    return xp.astype(e / xp.sum(e, axis=-1, keepdims=True), xp.bfloat16)


def group_query(xp: Any, q: Any, k: Any) -> Any:
    """Mean of pairs of heads, scaled."""
    b, t, h, d = q.shape
    g = xp.mean(xp.reshape(wide(xp, q), (b, t, h // 4, 4, d)), axis=3)
    return xp.astype(g * wide(xp, k), xp.bfloat16)


def alibi_softmax(xp: Any, s: Any, slope: Any, pos: Any) -> Any:
    h = wide(xp, s) + slope[:, None, None] * pos
    h = h - xp.max(h, axis=-1, keepdims=True)
    e = xp.exp(h)
    return xp.astype(e / xp.sum(e, axis=-1, keepdims=True), xp.bfloat16)


def rope_neox_partial(xp: Any, x: Any, cos: Any, sin: Any) -> Any:
    """Only a quarter of the head rotates; the rest passes."""
    n = x.shape[-1] // 8
    a, b, rest = wide(xp, x[..., :n]), wide(xp, x[..., n : 2 * n]), x[..., 2 * n :]
    left, right = xp.astype(a * cos - b * sin, xp.bfloat16), xp.astype(b * cos + a * sin, xp.bfloat16)
    return xp.concat([left, right, rest], axis=-1)


def qkv_split_norm(xp: Any, x: Any, w: Any) -> Any:
    """Packed q, k, v: q and k normalised by head, v passes; one array again."""
    y = wide(xp, x)
    q, k, v = y[:, :, 0], y[:, :, 1], y[:, :, 2]
    q = q / xp.sqrt(xp.mean(q * q, axis=-1, keepdims=True) + 1e-6) * w
    k = k / xp.sqrt(xp.mean(k * k, axis=-1, keepdims=True) + 1e-6) * w
    return xp.astype(xp.stack([q, k, v], axis=2), xp.bfloat16)


def geglu_back(xp: Any, x: Any, dy: Any) -> Any:
    n = x.shape[-1] // 2
    g, u, d = wide(xp, x[:, :n]), wide(xp, x[:, n:]), wide(xp, dy)
    c = 0.5 * (1.0 + xp.erf(g * 0.70710678))
    dg = d * u * (c + g * 0.39894228 * xp.exp(-0.5 * g * g))
    return xp.astype(xp.concat([dg, d * g * c], axis=-1), xp.bfloat16), xp.sum(d * g * c, axis=0)


def causal_mean(xp: Any, x: Any, mask: Any) -> Any:
    return xp.sum(wide(xp, x) * mask[:, :, None], axis=1) / xp.maximum(xp.sum(mask, axis=1), 1.0)[:, None]


def layer_scale_pool(xp: Any, x: Any, g: Any) -> Any:
    h = wide(xp, x) * g
    return xp.mean(h, axis=(1, 2)), xp.max(h, axis=(1, 2))


def moe_combine(xp: Any, y: Any, w: Any) -> Any:
    """Weighted sum of experts' outputs (tokens, k, channels)."""
    return xp.astype(xp.sum(wide(xp, y) * w[:, :, None], axis=1), xp.bfloat16)


def score_matmul_mask(xp: Any, q: Any, k: Any, m: Any) -> Any:
    s = xp.matmul(q, k.mT, dtype=xp.float32) * 0.125
    return xp.astype(xp.where(m, s, -1e9), xp.bfloat16)


def hadamard_pairs(xp: Any, x: Any) -> Any:
    """A butterfly of neighbours 2**3 apart."""
    r, c = x.shape
    y = xp.reshape(wide(xp, x), (r, c // 16, 2, 8))
    a, b = y[:, :, 0], y[:, :, 1]
    return xp.astype(xp.reshape(xp.stack([a + b, a - b], axis=2), (r, c)), xp.bfloat16)


def attention(xp: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    s = xp.matmul(q, k.mT, dtype=xp.float32) * 0.125 + mask
    return xp.matmul(narrow(xp, softmax(xp, s)), v)


def lstm_cell(xp: Any, x: Any, h: Any, c: Any, w: Any, u: Any, b: Any) -> Any:
    g = wide(xp, xp.matmul(x, w)) + wide(xp, xp.matmul(h, u)) + b
    n = c.shape[1]
    i, f, o, z = g[:, :n], g[:, n : 2 * n], g[:, 2 * n : 3 * n], g[:, 3 * n :]
    c2 = xp.sigmoid(f) * c + xp.sigmoid(i) * xp.tanh(z)
    return narrow(xp, xp.sigmoid(o) * xp.tanh(c2)), c2


def mlp(xp: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    h = xp.maximum(wide(xp, xp.matmul(x, w1)) + b1, 0)
    return narrow(xp, wide(xp, xp.matmul(narrow(xp, h), w2)) + b2)


def lora(xp: Any, x: Any, w: Any, a: Any, b: Any) -> Any:
    return narrow(xp, wide(xp, xp.matmul(x, w)) + 0.5 * wide(xp, xp.matmul(xp.matmul(x, a), b)))


def norm_project(xp: Any, x: Any, g: Any, w: Any) -> Any:
    h = wide(xp, x)
    h = h / xp.sqrt(xp.mean(h * h, axis=-1, keepdims=True) + 1e-6) * g
    return xp.matmul(narrow(xp, h), w)


def cosine_matrix(xp: Any, x: Any, y: Any) -> Any:
    def unit(a: Any) -> Any:
        h = wide(xp, a)
        return narrow(xp, h / xp.sqrt(xp.sum(h * h, axis=-1, keepdims=True)))

    return xp.matmul(unit(x), unit(y).mT)


def linear_attention(xp: Any, q: Any, k: Any, v: Any) -> Any:
    fq = xp.where(q > 0, q + 1, xp.exp(xp.minimum(q, 0)))
    fk = xp.where(k > 0, k + 1, xp.exp(xp.minimum(k, 0)))
    kv = xp.matmul(fk.mT, v)
    z = xp.sum(fk, axis=-2, keepdims=True)
    return xp.matmul(fq, kv) / xp.sum(fq * z, axis=-1, keepdims=True)


def squeeze_excite(xp: Any, x: Any, w1: Any, w2: Any) -> Any:
    m = xp.mean(wide(xp, x), axis=(1, 2))
    g = xp.sigmoid(xp.matmul(xp.maximum(xp.matmul(m, w1), 0), w2))
    return narrow(xp, wide(xp, x) * g[:, None, None, :])


def int4_dequant(xp: Any, p: Any, s: Any) -> Any:
    """Two numbers a byte."""
    v = xp.astype(p, xp.int32) + 128
    lo, hi = v % 16, v // 16
    n, k = p.shape
    w = xp.reshape(xp.stack([lo, hi], axis=-1), (n, 2 * k))
    h = xp.astype(w, xp.float32) - 8.0
    return narrow(xp, xp.reshape(xp.reshape(h, (n, 2 * k // 128, 128)) * s[:, :, None], (n, 2 * k)))


def swiglu_mlp(xp: Any, x: Any, w1: Any, w3: Any, w2: Any) -> Any:
    g = wide(xp, xp.matmul(x, w1))
    h = g * xp.sigmoid(g) * wide(xp, xp.matmul(x, w3))
    return xp.matmul(narrow(xp, h), w2)


def clip_logits(xp: Any, x: Any, y: Any, scale: Any) -> Any:
    def unit(a: Any) -> Any:
        h = wide(xp, a)
        return narrow(xp, h * xp.rsqrt(xp.sum(h * h, axis=-1, keepdims=True)))

    return xp.matmul(unit(x), unit(y).mT, dtype=xp.float32) * scale


def gqa_scores(xp: Any, q: Any, k: Any) -> Any:
    b, h, t, d = q.shape
    g = h // k.shape[1]
    s = xp.einsum("bkgtd,bksd->bkgts", xp.reshape(q, (b, h // g, g, t, d)), k)
    return narrow(xp, softmax(xp, wide(xp, s) * 0.125))


def moe_gate(xp: Any, x: Any, w: Any) -> Any:
    """The largest of softmax's gates, kept; and the balance of experts."""
    p = softmax(xp, xp.matmul(x, w, dtype=xp.float32))
    top = xp.max(p, axis=-1, keepdims=True)
    g = xp.where(p >= top, p, 0.0)
    return g, xp.mean(wide(xp, g > 0), axis=0) * xp.mean(p, axis=0)


def soft_capped(xp: Any, q: Any, k: Any, pos: Any) -> Any:
    s = xp.tanh(xp.matmul(q, k.mT, dtype=xp.float32) * 0.02) * 50.0
    d = pos[:, None] - pos
    return narrow(xp, softmax(xp, xp.where((d >= 0) & (d < 256), s, -1e9)))


def rwkv_mix(xp: Any, x: Any, last: Any, mk: Any, mv: Any, mr: Any, wk: Any, wv: Any, wr: Any) -> Any:
    prev = xp.concat([last[:, None], x[:, :-1]], axis=1)
    xf, pf = wide(xp, x), wide(xp, prev)

    def mixed(m: Any) -> Any:
        return narrow(xp, xf * m + pf * (1.0 - m))

    return (
        xp.matmul(mixed(mk), wk),
        xp.matmul(mixed(mv), wv),
        narrow(xp, xp.sigmoid(wide(xp, xp.matmul(mixed(mr), wr)))),
    )


def fake_quant(xp: Any, x: Any) -> Any:
    s = xp.max(xp.abs(x), axis=1, keepdims=True) / 127.0 + 1e-8
    return xp.clip(xp.round(x / s), -127.0, 127.0) * s


def quant_linear(xp: Any, x: Any, w: Any, sw: Any) -> Any:
    """Quantised on the fly by row, multiplied in int8."""
    h = wide(xp, x)
    s = xp.max(xp.abs(h), axis=1, keepdims=True) / 127.0 + 1e-8
    q = xp.astype(xp.clip(xp.round(h / s), -127.0, 127.0), xp.int8)
    return narrow(xp, wide(xp, xp.matmul(q, w, dtype=xp.int32)) * s * sw)


def interaction(xp: Any, e: Any) -> Any:
    """DLRM: pairs of embeddings."""
    return xp.matmul(e, e.mT)


def token_stats(xp: Any, x: Any, mask: Any) -> Any:
    h, m = wide(xp, x), wide(xp, mask)[:, :, None]
    n = xp.maximum(xp.sum(m, axis=1), 1.0)
    mu = xp.sum(h * m, axis=1) / n
    d = (h - mu[:, None]) * m
    return mu, xp.sqrt(xp.sum(d * d, axis=1) / n)


def path_features(xp: Any, a: Any, b: Any, w: Any) -> Any:
    """Bilinear scores of all pairs of a batch."""
    return xp.einsum("bid,de,bje->bij", a, w, b)


def weight_standard(xp: Any, w: Any) -> Any:
    m = xp.mean(w, axis=(0, 1, 2), keepdims=True)
    d = w - m
    return d / xp.sqrt(xp.mean(d * d, axis=(0, 1, 2), keepdims=True) + 1e-5)


def bn_relu_backward(xp: Any, x: Any, dy: Any, w: Any, b: Any, mean: Any, rstd: Any) -> Any:
    n = (x - mean) * rstd
    d = xp.where(n * w + b > 0, dy, 0.0)
    axes, count = (0, 1, 2), x.shape[0] * x.shape[1] * x.shape[2]
    db, dw = xp.sum(d, axis=axes), xp.sum(d * n, axis=axes)
    return w * rstd * (d - (db + n * dw) / count), dw, db


def gcn_layer(xp: Any, a: Any, x: Any, w: Any) -> Any:
    d = xp.rsqrt(xp.sum(a, axis=1) + 1.0)
    n = narrow(xp, a * d[:, None] * d[None, :])
    return xp.maximum(wide(xp, xp.matmul(n, xp.matmul(x, w))), 0)
