"""Windows, losses, caches, optimisers, flow, lattices, resampling and codecs of a sixth outside set."""

from __future__ import annotations

import math
from typing import Any


def swin_shift_partition(xp: Any, x: Any, w: Any, b: Any) -> Any:
    """Swin: LayerNorm, cyclic shift by 3, partition into 7x7 windows."""
    batch, rows, columns, channels = x.shape
    h = xp.astype(x, xp.float32)
    mu = xp.mean(h, axis=-1, keepdims=True)
    var = xp.var(h, axis=-1, keepdims=True)
    h = xp.astype((h - mu) * xp.rsqrt(var + 1e-5) * w + b, xp.float16)
    h = xp.concat([h[:, 3:], h[:, :3]], axis=1)
    h = xp.concat([h[:, :, 3:], h[:, :, :3]], axis=2)
    h = h.reshape((batch, rows // 7, 7, columns // 7, 7, channels))
    return xp.permute_dims(h, (0, 1, 3, 2, 4, 5)).reshape((batch * (rows // 7) * (columns // 7), 49, channels))


def mae_patch_loss(xp: Any, img: Any, pred: Any, masked: Any) -> Any:
    """Masked autoencoder: patchify 16x16, per-patch normalised target, loss on masked patches, pred gradient."""
    batch, channels, rows, columns = img.shape
    p = 16
    t = img.reshape((batch, channels, rows // p, p, columns // p, p))
    t = xp.permute_dims(t, (0, 2, 4, 3, 5, 1)).reshape((batch, (rows // p) * (columns // p), p * p * channels))
    mu = xp.mean(t, axis=-1, keepdims=True)
    c = t - mu
    var = xp.sum(c * c, axis=-1, keepdims=True) / (p * p * channels - 1)
    t = c * xp.rsqrt(var + 1e-6)
    d = xp.astype(pred, xp.float32) - t
    per = xp.mean(d * d, axis=-1)
    m = xp.astype(masked, xp.float32)
    n = xp.sum(m) + 1.0
    loss = xp.sum(per * m) / n
    g = d * (m * (2.0 / (p * p * channels)) / n)[:, :, None] * 65536.0
    return loss, per, xp.astype(g, xp.bfloat16)


def decode_attention_int4_cache(xp: Any, q: Any, kp: Any, ks: Any, vp: Any, vs: Any, pos: Any, lens: Any) -> Any:
    """One decoding step of grouped-query attention over an int4 cache (two values in an int8)."""
    batch, heads, group, width = q.shape
    kb = xp.astype(kp, xp.int32)
    k = xp.concat([(kb << 28) >> 28, kb >> 4], axis=-1)
    k = xp.astype(xp.astype(k, xp.float32) * xp.astype(ks, xp.float32)[..., None], xp.bfloat16)
    vb = xp.astype(vp, xp.int32)
    v = xp.concat([(vb << 28) >> 28, vb >> 4], axis=-1)
    v = xp.astype(xp.astype(v, xp.float32) * xp.astype(vs, xp.float32)[..., None], xp.bfloat16)
    s = xp.astype(xp.matmul(q, xp.matrix_transpose(k)), xp.float32) * (0.1 / math.sqrt(width))
    live = pos[None, :] <= lens[:, None]
    s = xp.where(live[:, None, None, :], s, -1e30)
    s = s - xp.max(s, axis=-1, keepdims=True)
    e = xp.exp(s)
    z = xp.sum(e, axis=-1, keepdims=True)
    o = xp.astype(xp.matmul(xp.astype(e, xp.bfloat16), v), xp.float32) / z
    return xp.astype(o, xp.bfloat16).reshape((batch, heads * group, width))


def adam8bit_blockwise(xp: Any, p: Any, g: Any, qm: Any, sm: Any, qv: Any, sv: Any) -> Any:
    """8-bit Adam: signed-square codes in blocks of 256 are decoded, updated, and encoded again."""
    gf = xp.astype(g, xp.float32)
    cm = xp.astype(qm, xp.float32) * (1.0 / 127.0)
    m = 0.9 * cm * xp.abs(cm) * sm[:, None] + 0.1 * gf
    cv = xp.astype(qv, xp.float32) * (1.0 / 127.0)
    v = 0.99 * cv * cv * sv[:, None] + 0.01 * gf * gf
    pn = xp.astype(p, xp.float32) - 1e-2 * m / (xp.sqrt(v) + 1e-2)
    smn = xp.max(xp.abs(m), axis=1)
    svn = xp.max(v, axis=1)
    rm = m / smn[:, None]
    qmn = xp.astype(xp.round(127.0 * xp.sign(rm) * xp.sqrt(xp.abs(rm))), xp.int8)
    qvn = xp.astype(xp.round(127.0 * xp.sqrt(v / svn[:, None])), xp.int8)
    return xp.astype(pn, xp.bfloat16), qmn, smn, qvn, svn


def gae_unrolled(xp: Any, rewards: Any, values: Any, done: Any) -> Any:
    """Generalised advantage estimation over 16 steps, backwards, then normalised advantages and returns."""
    steps = rewards.shape[0]
    gamma, lam = 0.99, 0.95
    cont = 1.0 - xp.astype(done, xp.float32)
    last = xp.zeros_like(rewards[0])
    out = []
    for t in range(steps - 1, -1, -1):
        delta = rewards[t] + gamma * values[t + 1] * cont[t] - values[t]
        last = delta + gamma * lam * cont[t] * last
        out.append(last)
    adv = xp.stack(out[::-1], axis=0)
    norm = (adv - xp.mean(adv)) / (xp.std(adv) + 1e-8)
    return norm, adv + values[:-1]


def _roll(xp: Any, a: Any, s: Any, axis: Any) -> Any:
    """np.roll by slices."""
    n = a.shape[axis]
    s = s % n
    if s == 0:
        return a
    pre = (slice(None),) * axis
    return xp.concat([a[(*pre, slice(n - s, None))], a[(*pre, slice(0, n - s))]], axis=axis)


def _qmul(a: Any, b: Any) -> Any:
    """Hamilton product on tuples of components."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return (
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )


def euler_rusanov_2d(xp: Any, rho: Any, u: Any, v: Any, p: Any) -> Any:
    """Finite volume step of the 2-D Euler equations, Rusanov fluxes in x and y, interior cells only."""
    gamma = 1.4
    e = p / (gamma - 1.0) + 0.5 * rho * (u * u + v * v)
    c = xp.sqrt(gamma * p / rho)
    cons = [rho, rho * u, rho * v, e]
    fx = [rho * u, rho * u * u + p, rho * u * v, u * (e + p)]
    fy = [rho * v, rho * u * v, rho * v * v + p, v * (e + p)]
    sx = xp.abs(u) + c
    sy = xp.abs(v) + c
    ax = xp.maximum(sx[1:-1, :-1], sx[1:-1, 1:])
    ay = xp.maximum(sy[:-1, 1:-1], sy[1:, 1:-1])
    res = []
    for q, f, g in zip(cons, fx, fy, strict=True):
        hx = 0.5 * (f[1:-1, :-1] + f[1:-1, 1:]) - 0.5 * ax * (q[1:-1, 1:] - q[1:-1, :-1])
        hy = 0.5 * (g[:-1, 1:-1] + g[1:, 1:-1]) - 0.5 * ay * (q[1:, 1:-1] - q[:-1, 1:-1])
        res.append(q[1:-1, 1:-1] - 0.02 * (hx[:, 1:] - hx[:, :-1]) - 0.03 * (hy[1:, :] - hy[:-1, :]))
    return (*res, xp.max(xp.maximum(sx, sy)))


def ssim_blocks(xp: Any, a: Any, b: Any) -> Any:
    """SSIM of RGB images on luma in 8x8 blocks: the block map and the mean and worst of each image."""

    def luma(i: Any) -> Any:
        f = xp.astype(i, xp.float32)
        y = 0.299 * f[..., 0] + 0.587 * f[..., 1] + 0.114 * f[..., 2]
        return y.reshape((y.shape[0], y.shape[1] // 8, 8, y.shape[2] // 8, 8))

    x, y = luma(a), luma(b)
    mx = xp.mean(x, axis=(2, 4), keepdims=True)
    my = xp.mean(y, axis=(2, 4), keepdims=True)
    vx = xp.mean((x - mx) ** 2, axis=(2, 4))
    vy = xp.mean((y - my) ** 2, axis=(2, 4))
    cov = xp.mean((x - mx) * (y - my), axis=(2, 4))
    ux, uy = mx[:, :, 0, :, 0], my[:, :, 0, :, 0]
    s = (2 * ux * uy + 0.01) * (2 * cov + 0.03) / ((ux * ux + uy * uy + 0.01) * (vx + vy + 0.03))
    return s, xp.mean(s, axis=(1, 2)), xp.min(s, axis=(1, 2))


def poisson_bootstrap(xp: Any, w: Any, x: Any) -> Any:
    """Poisson bootstrap from integer weights: replicate means, their standard errors and bias."""
    cnt = xp.abs(xp.astype(w, xp.int32)) % 4
    wf = xp.astype(cnt, xp.float32)
    n = xp.sum(wf, axis=1, keepdims=True)
    rep = (wf @ x) / xp.maximum(n, 1.0)
    centre = xp.mean(x, axis=0)
    avg = xp.mean(rep, axis=0)
    se = xp.sqrt(xp.sum((rep - avg) ** 2, axis=0) / (w.shape[0] - 1))
    return rep, se, avg - centre


def for_bitpack(xp: Any, v: Any) -> Any:
    """Frame-of-reference packing of rows of small integers, six of five bits to a word; minima, widths and parities."""
    lo = xp.min(v, axis=1, keepdims=True)
    off = v - lo
    grp = off.reshape((v.shape[0], v.shape[1] // 6, 6))
    word = grp[:, :, 0]
    for i in range(1, 6):
        word = word | (grp[:, :, i] << (5 * i))
    span = xp.max(off, axis=1)
    width = xp.zeros_like(span)
    for b in range(5):
        width = width + xp.astype(span >= (1 << b), xp.int32)
    fold = word ^ (word >> 15)
    fold = fold & 0x7FFF
    odd = fold ^ (fold >> 8)
    odd = odd ^ (odd >> 4)
    odd = odd ^ (odd >> 2)
    odd = (odd ^ (odd >> 1)) & 1
    return word, lo[:, 0], xp.astype(width, xp.int8), xp.sum(odd, axis=1)


def lifting53_2d(xp: Any, img: Any) -> Any:
    """Reversible 5/3 wavelet of JPEG 2000 on integer images: four subbands with symmetric edges."""

    def lift_last(a: Any) -> Any:
        even, odd = a[..., 0::2], a[..., 1::2]
        nxt = xp.concat([even[..., 1:], even[..., -1:]], axis=-1)
        hi = odd - ((even + nxt) >> 1)
        prv = xp.concat([hi[..., :1], hi[..., :-1]], axis=-1)
        return even + ((prv + hi + 2) >> 2), hi

    def swap(a: Any) -> Any:
        return xp.permute_dims(a, (0, 2, 1))

    a = xp.astype(img, xp.int32)
    lo, hi = lift_last(a)
    ll, lh = lift_last(swap(lo))
    hl, hh = lift_last(swap(hi))
    return tuple(xp.astype(swap(b), xp.int16) for b in (ll, lh, hl, hh))


def su2_plaquettes(xp: Any, links: Any) -> Any:
    """Average plaquettes of an SU(2) gauge field in 3-D, links kept as quaternions, and the action density."""
    n = xp.rsqrt(xp.sum(links * links, axis=-1, keepdims=True) + 1e-3)
    u = links * n
    dens = None
    means = []
    for mu in range(3):
        for nu in range(mu + 1, 3):
            a = u[mu]
            b = _roll(xp, u[nu], -1, mu)
            c = _roll(xp, u[mu], -1, nu)
            d = u[nu]
            ab = _qmul(tuple(a[..., k] for k in range(4)), tuple(b[..., k] for k in range(4)))
            dc = _qmul(tuple(d[..., k] for k in range(4)), tuple(c[..., k] for k in range(4)))
            tr = ab[0] * dc[0] + ab[1] * dc[1] + ab[2] * dc[2] + ab[3] * dc[3]
            means.append(xp.mean(tr))
            dens = (1.0 - tr) if dens is None else dens + (1.0 - tr)
    return xp.stack(means), 2.3 * dens, xp.sum(dens, axis=(1, 2))
