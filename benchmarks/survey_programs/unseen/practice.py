"""Layers, image augmentation, bars of prices, motifs, fields and small matrices of a fifth outside set."""

from __future__ import annotations

from typing import Any


def grn_backward(xp: Any, x: Any, gamma: Any, beta: Any, dy: Any) -> Any:
    """ConvNeXt V2 global response norm on NHWC: forward and hand-written backward."""
    c = x.shape[-1]
    gx = xp.sqrt(xp.sum(x * x, axis=(1, 2), keepdims=True) + 1e-06)
    mean = xp.mean(gx, axis=-1, keepdims=True) + 1e-06
    nx = gx / mean
    y = gamma * (x * nx) + beta + x
    dgamma = xp.sum(dy * x * nx, axis=(0, 1, 2))
    dbeta = xp.sum(dy, axis=(0, 1, 2))
    dnx = xp.sum(dy * gamma * x, axis=(1, 2), keepdims=True)
    dgx = dnx / mean - xp.sum(dnx * gx, axis=-1, keepdims=True) / (mean * mean * c)
    dx = dy * (1.0 + gamma * nx) + dgx * x / gx
    return (y, dx, dgamma, dbeta)


def sinkhorn_hyper_connections(xp: Any, s: Any, branch: Any, pre: Any, post: Any, res: Any) -> Any:
    """Manifold hyper-connections: doubly stochastic mixing of four residual streams, and the next branch input."""
    r = xp.astype(res, xp.float32)
    m = xp.exp(r - xp.max(r, axis=(-2, -1), keepdims=True))
    for _ in range(8):
        m = m / (xp.sum(m, axis=-1, keepdims=True) + 1e-06)
        m = m / (xp.sum(m, axis=-2, keepdims=True) + 1e-06)
    f = xp.astype(s, xp.float32)
    mixed = xp.einsum("tij,tjc->tic", m, f)
    out = mixed + 2.0 * xp.sigmoid(post)[:, :, None] * xp.astype(branch, xp.float32)[:, None, :]
    nxt = xp.sum(xp.sigmoid(pre)[:, :, None] * out, axis=1)
    nxt = nxt * xp.rsqrt(xp.mean(nxt * nxt, axis=-1, keepdims=True) + 1e-06)
    return (xp.astype(out, xp.bfloat16), xp.astype(nxt, xp.bfloat16))


def eva_axial_rope(xp: Any, q: Any, k: Any, ys: Any, xs: Any, fi: Any) -> Any:
    """EVA-02 style axial 2D rotary embedding of q and k, leaving the class token alone."""
    n = fi.shape[0]
    inv = xp.exp(xp.astype(fi, xp.float32) * (-4.605170185988092 / n))
    gh, gw = (ys.shape[0], xs.shape[0])
    ay = xp.broadcast_to((xp.astype(ys, xp.float32)[:, None] * inv)[:, None, :], (gh, gw, n))
    ax = xp.broadcast_to((xp.astype(xs, xp.float32)[:, None] * inv)[None, :, :], (gh, gw, n))
    ang = xp.concat([ay, ax], axis=-1).reshape((gh * gw, 2 * n))
    c = xp.cos(ang)
    s = xp.sin(ang)
    outs = []
    for t in (q, k):
        f = xp.astype(t[:, :, 1:], xp.float32)
        a = f[..., : 2 * n]
        b = f[..., 2 * n :]
        r = xp.concat([a * c - b * s, b * c + a * s], axis=-1)
        outs.append(xp.concat([t[:, :, :1], xp.astype(r, xp.bfloat16)], axis=2))
    return (outs[0], outs[1])


def cutmix_normalise(
    xp: Any, img: Any, perm: Any, box: Any, lam: Any, fl: Any, ys: Any, xs: Any, mean: Any, istd: Any
) -> Any:
    """Batch augmentation of signed bytes in NHWC: flip, mixup or cutmix with the partner, normalise, to NCHW half."""
    a = xp.astype(img, xp.float32) + 128.0
    b = xp.astype(perm, xp.float32) + 128.0
    a = xp.where(fl[:, None, None, None], a, xp.flip(a, axis=2))
    y0, x0, y1, x1 = (box[:, 0], box[:, 1], box[:, 2], box[:, 3])
    iny = xp.logical_and(ys[None, :] >= y0[:, None], ys[None, :] < (y0 + y1)[:, None])
    inx = xp.logical_and(xs[None, :] >= x0[:, None], xs[None, :] < (x0 + x1)[:, None])
    inside = xp.logical_and(iny[:, :, None], inx[:, None, :])
    w = xp.sigmoid(lam)[:, None, None]
    keep = xp.where(inside, 0.0, 0.5 + 0.5 * w)[..., None]
    mix = a * keep + b * (1.0 - keep)
    out = (mix * (1.0 / 255.0) - 0.1 * mean) * istd
    ratio = xp.mean(keep, axis=(1, 2, 3))
    return (xp.astype(xp.permute_dims(out, (0, 3, 1, 2)), xp.float16), ratio)


def fdtd_e_update(xp: Any, ex: Any, ey: Any, ez: Any, hx: Any, hy: Any, hz: Any, eps: Any) -> Any:
    """Yee update of the three electric components from the curl of H; the low faces stay as they were."""
    c = 0.5 / eps[1:, 1:, 1:]
    cx = hz[1:, 1:, 1:] - hz[1:, :-1, 1:] - (hy[1:, 1:, 1:] - hy[1:, 1:, :-1])
    cy = hx[1:, 1:, 1:] - hx[1:, 1:, :-1] - (hz[1:, 1:, 1:] - hz[:-1, 1:, 1:])
    cz = hy[1:, 1:, 1:] - hy[:-1, 1:, 1:] - (hx[1:, 1:, 1:] - hx[1:, :-1, 1:])

    def put(e: Any, inner: Any) -> Any:
        rows = xp.concat([e[1:, 1:, :1], inner], axis=2)
        planes = xp.concat([e[1:, :1, :], rows], axis=1)
        return xp.concat([e[:1], planes], axis=0)

    return (put(ex, ex[1:, 1:, 1:] + c * cx), put(ey, ey[1:, 1:, 1:] + c * cy), put(ez, ez[1:, 1:, 1:] + c * cz))


def ohlc_bars(xp: Any, price: Any, shares: Any) -> Any:
    """Five-minute open/high/low/close bars and the volume weighted price from minute data."""
    s, days = (price.shape[0], price.shape[1] // 390)
    p = price.reshape((s, days, 78, 5))
    v = xp.abs(shares).reshape((s, days, 78, 5)) + 1
    bars = xp.stack([p[..., 0], xp.max(p, axis=3), xp.min(p, axis=3), p[..., -1]], axis=-1)
    vf = xp.astype(v, xp.float32)
    volume = xp.astype(xp.sum(v, axis=3), xp.int32)
    vwap = xp.sum(p * vf, axis=3) / xp.sum(vf, axis=3)
    day_range = xp.max(p, axis=(2, 3)) - xp.min(p, axis=(2, 3))
    return (bars, volume, vwap, day_range)


def pwm_scan(xp: Any, seq: Any, pwm: Any) -> Any:
    """Best and soft-summed motif score on both strands; the reverse strand is flipped and complemented."""
    fwd = seq & 3
    rev = 3 - xp.flip(fwd, axis=1)
    out = []
    n = seq.shape[1] - 7
    for s in (fwd, rev):
        score = None
        for j in range(8):
            c = s[:, j : j + n]
            lo = xp.where(c == 0, pwm[j, 0], pwm[j, 1])
            hi = xp.where(c == 2, pwm[j, 2], pwm[j, 3])
            term = xp.where(c < 2, lo, hi)
            score = term if score is None else score + term
        top = xp.max(score, axis=1, keepdims=True)
        soft = top[:, 0] + xp.log(xp.sum(xp.exp(score - top), axis=1))
        out.append(xp.stack([top[:, 0], soft], axis=1))
    return xp.concat(out, axis=1)


def cholesky4_soa(xp: Any, g: Any, rhs: Any) -> Any:
    """Factor and solve 4x4 systems (G G^T + 2I) x = b, the batch on the last axis, with log determinants."""
    a = [[xp.sum(g[i] * g[j], axis=0) + (2.0 if i == j else 0.0) for j in range(i + 1)] for i in range(4)]
    low: list[list[Any]] = []
    for i in range(4):
        row: list[Any] = []
        for j in range(i + 1):
            s = a[i][j]
            for k in range(j):
                s = s - row[k] * (low[j][k] if j < i else row[k])
            row.append(xp.sqrt(s) if i == j else s / low[j][j])
        low.append(row)
    y: list[Any] = []
    for i in range(4):
        s = rhs[i]
        for k in range(i):
            s = s - low[i][k] * y[k]
        y.append(s / low[i][i])
    x: list[Any] = [None] * 4
    for i in (3, 2, 1, 0):
        s = y[i]
        for k in range(i + 1, 4):
            s = s - low[k][i] * x[k]
        x[i] = s / low[i][i]
    logdet = 2.0 * xp.log(low[0][0] * low[1][1] * low[2][2] * low[3][3])
    return (xp.stack(x, axis=0), logdet)


def gram_power_iter(xp: Any, x: Any) -> Any:
    """Leading direction of each small group of samples: Gram matrix, ten power steps, Rayleigh quotient."""
    c = x - xp.mean(x, axis=1, keepdims=True)
    gram = xp.einsum("bmi,bmj->bij", c, c) / c.shape[1]
    v = xp.zeros_like(gram[:, 0]) + 0.5
    for _ in range(10):
        w = xp.sum(gram * v[:, None, :], axis=2)
        v = w * xp.rsqrt(xp.sum(w * w, axis=1, keepdims=True) + 1e-06)
    lam = xp.sum(v * xp.sum(gram * v[:, None, :], axis=2), axis=1)
    trace = xp.sum(xp.mean(c * c, axis=1), axis=1)
    return (v, lam, lam / trace)
