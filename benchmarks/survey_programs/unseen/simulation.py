"""Colours, storage, robotics, and steps of differential equations of a seventh outside set."""
# ruff: noqa: E741  # the responses of cones are called l, m and s

from __future__ import annotations

from typing import Any


def _roll(xp: Any, x: Any, shift: int, axis: int) -> Any:
    """The array moved periodically: result[i] = x[i - shift]."""
    shift %= x.shape[axis]
    if shift == 0:
        return x
    tail = [slice(None)] * len(x.shape)
    head = list(tail)
    tail[axis] = slice(x.shape[axis] - shift, None)
    head[axis] = slice(0, x.shape[axis] - shift)
    return xp.concat([x[tuple(tail)], x[tuple(head)]], axis=axis)


def oklab_difference(xp: Any, a: Any, b: Any) -> Any:
    """Colour science: perceptual difference of linear-RGB images in Oklab, with means over images, rows and pixels."""

    def lab(rgb: Any) -> tuple[Any, Any, Any]:
        x = xp.astype(rgb, xp.float32)
        r, g, bl = x[:, 0], x[:, 1], x[:, 2]
        long = 0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * bl
        middle = 0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * bl
        short = 0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * bl
        l, m, s = (xp.exp2(xp.log2(t) * (1.0 / 3.0)) for t in (long, middle, short))
        return (
            0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
            1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
            0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s,
        )

    l1, a1, b1 = lab(a)
    l2, a2, b2 = lab(b)
    c1, c2 = xp.sqrt(a1 * a1 + b1 * b1 + 1e-6), xp.sqrt(a2 * a2 + b2 * b2 + 1e-6)
    dl, dc = l1 - l2, c1 - c2
    hue = xp.maximum((a1 - a2) * (a1 - a2) + (b1 - b2) * (b1 - b2) - dc * dc, 0.0)
    chroma = dc / (1.0 + 0.5 * c1)
    de = xp.sqrt(dl * dl + chroma * chroma + hue + 1e-6)
    return xp.astype(de, xp.float16), xp.mean(de, axis=(1, 2)), xp.max(de, axis=2)


def raid6_pq_scrub(xp: Any, disks: Any, p: Any, q: Any) -> Any:
    """Storage: RAID-6 parity P and Reed-Solomon syndrome Q over GF(256) in packed words, checked against the stored."""

    def twice(x: Any) -> Any:
        carry = (x >> 7) & 0x01010101
        return ((x & 0x7F7F7F7F) << 1) ^ (carry * 0x1D)

    n = disks.shape[0]
    pp, qq = disks[n - 1], disks[n - 1]
    for k in range(n - 2, -1, -1):
        pp = pp ^ disks[k]
        qq = twice(qq) ^ disks[k]
    dp, dq = pp ^ p, qq ^ q
    clean = xp.all((dp == 0) & (dq == 0), axis=-1)
    return pp, qq, clean


def icp_point_to_plane(xp: Any, src: Any, dst: Any, normal: Any, valid: Any) -> Any:
    """Robotics: normal equations of point-to-plane ICP with Huber weights; matrix, vector, cost, inliers."""
    n = normal * xp.rsqrt(xp.sum(normal * normal, axis=1) + 1e-2)[:, None, :]
    r = xp.sum((dst - src) * n, axis=1)
    size = xp.abs(r)
    w = xp.where(valid, xp.minimum(0.5 / (size + 1e-3), 1.0), xp.zeros_like(r))
    x, y, z = src[:, 0], src[:, 1], src[:, 2]
    nx, ny, nz = n[:, 0], n[:, 1], n[:, 2]
    jac = xp.stack([y * nz - z * ny, z * nx - x * nz, x * ny - y * nx, nx, ny, nz], axis=1)
    weighted = jac * w[:, None, :]
    hess = xp.einsum("bin,bjn->bij", weighted, jac)
    grad = xp.sum(weighted * r[:, None, :], axis=2)
    return hess, grad, xp.sum(w * r * r, axis=1), xp.sum(xp.astype(valid, xp.float32), axis=1)


def dormand_prince_lorenz96(xp: Any, y: Any, h: Any, forcing: Any) -> Any:
    """ODE integration: an adaptive Dormand-Prince 5(4) step of ensembles of Lorenz 96; state, error, next step size."""
    table = (
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    )
    error = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
    step = (0.05 * h)[:, None]

    def slope(x: Any) -> Any:
        return (_roll(xp, x, -1, 1) - _roll(xp, x, 2, 1)) * _roll(xp, x, 1, 1) - x + 4.0 * forcing[:, None]

    k = [slope(y)]
    new = y
    for coefs in table:
        acc = None
        for c, s in zip(coefs, k, strict=True):
            if c:
                acc = c * s if acc is None else acc + c * s
        new = y + step * acc
        k.append(slope(new))
    err = None
    for c, s in zip(error, k, strict=True):
        if c:
            err = c * s if err is None else err + c * s
    ratio = step * err / (1e-3 + 1e-3 * xp.maximum(xp.abs(y), xp.abs(new)))
    norm = xp.sqrt(xp.mean(ratio * ratio, axis=1))
    return new, norm, h * xp.clip(0.9 * xp.exp(-0.2 * xp.log(norm + 1e-3)), 0.2, 5.0)


def multigrid_two_level(xp: Any, u: Any, f: Any) -> Any:
    """Two-level multigrid for the periodic 2D Poisson equation: Jacobi, restriction, coarse Jacobi, prolongation."""

    def neighbours(v: Any) -> Any:
        return _roll(xp, v, 1, 0) + _roll(xp, v, -1, 0) + _roll(xp, v, 1, 1) + _roll(xp, v, -1, 1)

    def smooth(v: Any, b: Any, h2: float) -> Any:
        return v + 0.8 * (0.25 * (neighbours(v) + h2 * b) - v)

    n, m = u.shape[0], u.shape[1]
    u = smooth(smooth(u, f, 1.0), f, 1.0)
    r = f - (4.0 * u - neighbours(u))
    coarse = 0.25 * (r[0::2, 0::2] + r[1::2, 0::2] + r[0::2, 1::2] + r[1::2, 1::2])
    coarse = coarse - xp.mean(coarse)
    e = coarse
    for _ in range(3):
        e = smooth(e, coarse, 4.0)
    fine = xp.reshape(xp.broadcast_to(e[:, None, :, None], (n // 2, 2, m // 2, 2)), (n, m))
    u = smooth(u + fine, f, 1.0)
    r = f - (4.0 * u - neighbours(u))
    return u, xp.sqrt(xp.mean(r * r))


def rtm_acoustic_step(xp: Any, p: Any, prev: Any, vel: Any, damp: Any, source: Any, image: Any) -> Any:
    """Seismic reverse time migration: eighth-order acoustic step with a sponge, and the cross-correlation image."""
    coef = (-205.0 / 72.0, 8.0 / 5.0, -1.0 / 5.0, 8.0 / 315.0, -1.0 / 560.0)
    nz, ny, nx = prev.shape
    c = p[4 : 4 + nz, 4 : 4 + ny, 4 : 4 + nx]
    lap = (3.0 * coef[0]) * c
    for k in range(1, 5):
        z = p[4 + k : 4 + k + nz, 4 : 4 + ny, 4 : 4 + nx] + p[4 - k : 4 - k + nz, 4 : 4 + ny, 4 : 4 + nx]
        y = p[4 : 4 + nz, 4 + k : 4 + k + ny, 4 : 4 + nx] + p[4 : 4 + nz, 4 - k : 4 - k + ny, 4 : 4 + nx]
        x = p[4 : 4 + nz, 4 : 4 + ny, 4 + k : 4 + k + nx] + p[4 : 4 + nz, 4 : 4 + ny, 4 - k : 4 - k + nx]
        lap = lap + coef[k] * (x + y + z)
    eta = 0.05 * damp[:, None, None]
    new = ((2.0 - eta) * c - (1.0 - eta) * prev + 0.01 * vel * vel * lap) / (1.0 + eta)
    image = image + source * new
    return new, image, xp.sum(source * source, axis=0)
