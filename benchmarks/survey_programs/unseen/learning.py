"""Statistics, losses and optimisers of all kinds, from clustering to finance."""
# ruff: noqa: D103  # the formulas say it

from __future__ import annotations

from typing import Any

from survey_programs.formulas import narrow, softmax, wide


def ppo(xp: Any, lp: Any, old: Any, adv: Any, v: Any, ret: Any, ent: Any) -> Any:
    r = xp.exp(lp - old)
    a = (adv - xp.mean(adv)) / (xp.sqrt(xp.var(adv)) + 1e-8)
    pg = -xp.mean(xp.minimum(r * a, xp.clip(r, 0.8, 1.2) * a))
    vl = xp.mean(xp.square(v - ret))
    return pg + 0.5 * vl - 0.01 * xp.mean(ent), xp.mean(wide(xp, xp.abs(r - 1.0) > 0.2)), xp.mean(old - lp)


def stats_of_three(xp: Any, x: Any, y: Any, z: Any) -> Any:
    """Unrelated sums of arrays of one shape."""
    return xp.mean(x), xp.mean(y * y), xp.max(xp.abs(z))


def row_stats_of_two(xp: Any, x: Any, y: Any) -> Any:
    return xp.sum(x, axis=-1), xp.sum(y * y, axis=-1)


def column_stats_of_two(xp: Any, x: Any, y: Any) -> Any:
    return xp.sum(x, axis=0), xp.sum(y * y, axis=0)


def grad_norms(xp: Any, a: Any, b: Any, c: Any) -> Any:
    n = xp.sqrt(xp.sum(a * a) + xp.sum(b * b) + xp.sum(c * c))
    s = xp.minimum(1.0 / n, 1.0)
    return a * s, b * s, c * s


def kl_distill(xp: Any, s: Any, t: Any) -> Any:
    a, b = wide(xp, s), wide(xp, t)
    a = a - xp.max(a, axis=-1, keepdims=True)
    b = b - xp.max(b, axis=-1, keepdims=True)
    la = a - xp.log(xp.sum(xp.exp(a), axis=-1, keepdims=True))
    lb = b - xp.log(xp.sum(xp.exp(b), axis=-1, keepdims=True))
    return xp.sum(xp.exp(lb) * (lb - la), axis=-1)


def sinkhorn_step(xp: Any, k: Any, u: Any) -> Any:
    v = 1.0 / xp.sum(k * u[:, None], axis=0)
    return v, 1.0 / xp.sum(k * v[None, :], axis=1)


def cosine_sim(xp: Any, a: Any, b: Any) -> Any:
    x, y = wide(xp, a), wide(xp, b)
    return xp.sum(x * y, axis=-1) / (xp.sqrt(xp.sum(x * x, axis=-1)) * xp.sqrt(xp.sum(y * y, axis=-1)) + 1e-8)


def ema_update(xp: Any, p: Any, e: Any, decay: Any) -> Any:
    return e * decay + p * (1.0 - decay)


def rmse_rows_cols(xp: Any, x: Any, y: Any) -> Any:
    d = wide(xp, x) - wide(xp, y)
    return xp.sqrt(xp.mean(d * d, axis=0)), xp.sqrt(xp.mean(d * d, axis=1)), xp.sqrt(xp.mean(d * d))


def focal(xp: Any, x: Any, y: Any) -> Any:
    p = 1.0 / (1.0 + xp.exp(-x))
    pt = xp.where(y > 0.5, p, 1.0 - p)
    return xp.mean(-xp.square(1.0 - pt) * xp.log(xp.maximum(pt, 1e-7)))


def dice(xp: Any, x: Any, y: Any) -> Any:
    p = 1.0 / (1.0 + xp.exp(-x))
    inter, total = xp.sum(p * y, axis=(1, 2)), xp.sum(p + y, axis=(1, 2))
    return 1.0 - (2.0 * inter + 1.0) / (total + 1.0)


def instance_whiten(xp: Any, x: Any) -> Any:
    """Covariance of few channels of each image."""
    m = x - xp.mean(x, axis=2, keepdims=True)
    return xp.matmul(m, m.mT)


def tri_stats(xp: Any, x: Any) -> Any:
    """Third and fourth standardised moments by column."""
    m = xp.mean(x, axis=0, keepdims=True)
    d = x - m
    v = xp.mean(d * d, axis=0)
    return xp.mean(d * d * d, axis=0) / (v * xp.sqrt(v)), xp.mean(d * d * d * d, axis=0) / (v * v)


def info_nce(xp: Any, x: Any, y: Any) -> Any:
    s = xp.matmul(x, y.mT, dtype=xp.float32) * 14.0
    m = xp.max(s, axis=1, keepdims=True)
    lse = xp.log(xp.sum(xp.exp(s - m), axis=1)) + m[:, 0]
    return lse - xp.sum(wide(xp, x) * wide(xp, y), axis=1) * 14.0


def kmeans_min(xp: Any, x: Any, c: Any) -> Any:
    d = xp.sum(x * x, axis=1, keepdims=True) - 2.0 * xp.matmul(x, c.mT) + xp.sum(c * c, axis=1)
    return xp.min(d, axis=1)


def rbf(xp: Any, x: Any, y: Any) -> Any:
    d = xp.sum(x * x, axis=1, keepdims=True) - 2.0 * xp.matmul(x, y.mT) + xp.sum(y * y, axis=1)
    return xp.exp(-0.05 * d)


def mixture(xp: Any, x: Any, mu: Any, ls: Any) -> Any:
    d = (x[:, None, :] - mu) * xp.exp(-ls)
    p = -0.5 * xp.sum(d * d, axis=-1) - xp.sum(ls, axis=-1)
    m = xp.max(p, axis=1, keepdims=True)
    return xp.log(xp.sum(xp.exp(p - m), axis=1)) + m[:, 0]


def log_mel(xp: Any, re: Any, im: Any, mel: Any) -> Any:
    return xp.log(xp.matmul(re * re + im * im, mel) + 1e-6)


def gemv(xp: Any, a: Any, x: Any) -> Any:
    return xp.matmul(a, x)


def bilinear(xp: Any, x: Any, a: Any, y: Any) -> Any:
    return xp.sum(xp.matmul(x, a) * y, axis=-1)


def batched_gemv(xp: Any, a: Any, x: Any) -> Any:
    return xp.sum(wide(xp, a) * wide(xp, x)[:, None, :], axis=-1)


def power_step(xp: Any, a: Any, v: Any) -> Any:
    u = xp.sum(a * v[None, :], axis=1)
    return u / xp.sqrt(xp.sum(u * u))


def black_scholes(xp: Any, s: Any, k: Any, t: Any, v: Any) -> Any:
    sq = v * xp.sqrt(t)
    d1 = (xp.log(s / k) + (0.02 + 0.5 * v * v) * t) / sq
    d2 = d1 - sq

    def cdf(a: Any) -> Any:
        return 0.5 * (1.0 + xp.erf(a * 0.70710678))

    return s * cdf(d1) - k * xp.exp(-0.02 * t) * cdf(d2)


def tf_idf(xp: Any, c: Any) -> Any:
    tf = c / xp.maximum(xp.sum(c, axis=1, keepdims=True), 1.0)
    df = xp.sum(wide(xp, c > 0), axis=0)
    return tf * (xp.log((1.0 + c.shape[0]) / (1.0 + df)) + 1.0)


def pagerank(xp: Any, m: Any, r: Any) -> Any:
    return 0.85 * xp.sum(wide(xp, m) * r, axis=1) + 0.15 / m.shape[0]


def smoothed_loss(xp: Any, x: Any, y: Any) -> Any:
    h = wide(xp, x)
    m = xp.max(h, axis=1, keepdims=True)
    lse = xp.log(xp.sum(xp.exp(h - m), axis=1)) + m[:, 0]
    return lse - 0.9 * xp.sum(xp.where(y, h, 0.0), axis=1) - 0.1 * xp.mean(h, axis=1)


def normalised_adamw(xp: Any, p: Any, g: Any, m: Any, v: Any) -> Any:
    n = xp.sqrt(xp.sum(g * g))
    g = g * xp.minimum(1.0 / (n + 1e-6), 1.0)
    m2, v2 = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - 1e-3 * (m2 / (xp.sqrt(v2) + 1e-8) + 0.01 * p), m2, v2


def muon_step(xp: Any, x: Any) -> Any:
    a = xp.matmul(x, x.mT)
    b = -4.775 * wide(xp, a) + 2.0315 * wide(xp, xp.matmul(a, a))
    return narrow(xp, 3.4445 * wide(xp, x) + wide(xp, xp.matmul(narrow(xp, b), x)))


def logistic_gradient(xp: Any, x: Any, w: Any, y: Any) -> Any:
    p = xp.sigmoid(xp.sum(x * w, axis=1)) - y
    return xp.sum(x * p[:, None], axis=0)


def mahalanobis(xp: Any, x: Any, mu: Any, s: Any) -> Any:
    d = x - mu
    return xp.sum(xp.matmul(d, s) * d, axis=1)


def correlation(xp: Any, x: Any) -> Any:
    d = x - xp.mean(x, axis=0, keepdims=True)
    s = xp.sqrt(xp.mean(d * d, axis=0, keepdims=True) + 1e-6)
    z = d / s
    return xp.matmul(z.mT, z) / x.shape[0]


def responsibilities(xp: Any, x: Any, mu: Any, w: Any) -> Any:
    d = xp.sum(x * x, axis=1, keepdims=True) - 2.0 * xp.matmul(x, mu.mT) + xp.sum(mu * mu, axis=1)
    r = softmax(xp, w - 0.5 * d)
    return xp.matmul(r.mT, x) / xp.sum(r, axis=0)[:, None]


def kde(xp: Any, x: Any, g: Any) -> Any:
    d = (x[:, None] - g) * 4.0
    return xp.mean(xp.exp(-0.5 * d * d), axis=0)


def soft_histogram(xp: Any, x: Any, c: Any) -> Any:
    return xp.sum(xp.sigmoid(8.0 * (x[:, :, None] - c + 0.5)) - xp.sigmoid(8.0 * (x[:, :, None] - c - 0.5)), axis=1)


def huber(xp: Any, x: Any, y: Any) -> Any:
    d = x - y
    a = xp.abs(d)
    return xp.mean(xp.where(a < 1.0, 0.5 * d * d, a - 0.5), axis=1)


def triplet(xp: Any, a: Any, p: Any, n: Any) -> Any:
    dp, dn = wide(xp, a) - wide(xp, p), wide(xp, a) - wide(xp, n)
    return xp.mean(xp.maximum(xp.sqrt(xp.sum(dp * dp, axis=1)) - xp.sqrt(xp.sum(dn * dn, axis=1)) + 0.2, 0))


def lamb(xp: Any, p: Any, g: Any, m: Any, v: Any) -> Any:
    m2, v2 = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    u = m2 / (xp.sqrt(v2) + 1e-6) + 0.01 * p
    r = xp.sqrt(xp.sum(p * p)) / (xp.sqrt(xp.sum(u * u)) + 1e-6)
    return p - 1e-3 * r * u, m2, v2


def shampoo(xp: Any, g: Any, left: Any, right: Any) -> Any:
    return 0.95 * left + 0.05 * xp.matmul(g, g.mT), 0.95 * right + 0.05 * xp.matmul(g.mT, g)


def polynomial(xp: Any, x: Any) -> Any:
    y = 0.0 * x + 1.0
    for k in range(12):
        y = y * x * 0.5 + (1.0 / (k + 1))
    return y
