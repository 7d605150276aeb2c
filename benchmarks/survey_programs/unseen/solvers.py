"""Solvers, risk, learning and robust statistics of an eighth outside set."""

from __future__ import annotations

from typing import Any


def _cut(x: Any, axis: int, start: int | None, stop: int | None, step: int | None = None) -> Any:
    return x[(slice(None),) * axis + (slice(start, stop, step),)]


def multigrid_transfer_trilinear(xp: Any, r: Any, u: Any, coarse: Any) -> Any:
    """Multigrid transfer on vertices: full weighting of the residual, trilinear prolongation of the correction."""
    down = r
    for axis in range(3):
        down = 0.25 * (_cut(down, axis, 1, -2, 2) + _cut(down, axis, 3, None, 2)) + 0.5 * _cut(down, axis, 2, -1, 2)
    up = coarse
    for axis in (2, 1, 0):
        start, after = _cut(up, axis, None, -1), _cut(up, axis, 1, None)
        both = xp.stack([start, 0.5 * (start + after)], axis=axis + 1)
        shape = tuple(up.shape)
        both = both.reshape((*shape[:axis], 2 * (shape[axis] - 1), *shape[axis + 1 :]))
        up = xp.concat([both, _cut(up, axis, -1, None)], axis=axis)
    return down, u + up, xp.sqrt(xp.mean(r * r, axis=(0, 2)))


def tke_vertical_diffusion(xp: Any, theta: Any, qv: Any, u: Any, v: Any, tke: Any, dz: Any, flux: Any) -> Any:
    """Boundary layers of weather models: implicit vertical diffusion of two scalars by the Thomas algorithm."""
    levels = theta.shape[0]
    half = 0.5 * (dz[1:] + dz[:-1])[:, None, None]
    shear2 = (xp.square(u[1:] - u[:-1]) + xp.square(v[1:] - v[:-1])) / (half * half)
    e = 0.5 * (tke[1:] + tke[:-1])
    n2 = 0.03 * xp.maximum(theta[1:] - theta[:-1], 0.0) / half
    length = xp.minimum(0.76 * xp.sqrt(e / (n2 + 0.01)), 0.4)
    k = 0.1 * length * xp.sqrt(e)
    exchange = 0.5 * k / half
    a = [exchange[i - 1] / dz[i] if i else None for i in range(levels)]
    c = [exchange[i] / dz[i] if i < levels - 1 else None for i in range(levels)]
    gam, first, second = [], [], []
    for i in range(levels):
        rhs_t, rhs_q = theta[i], qv[i]
        if i == 0:
            inv = 1.0 / (1.0 + c[0])
            rhs_t = rhs_t + 0.5 * flux / dz[0]
        else:
            diagonal = 1.0 + a[i] if i == levels - 1 else 1.0 + a[i] + c[i]
            inv = 1.0 / (diagonal - a[i] * gam[-1])
            rhs_t, rhs_q = rhs_t + a[i] * first[-1], rhs_q + a[i] * second[-1]
        first.append(rhs_t * inv)
        second.append(rhs_q * inv)
        if i < levels - 1:
            gam.append(c[i] * inv)
    for i in range(levels - 2, -1, -1):
        first[i] = first[i] + gam[i] * first[i + 1]
        second[i] = second[i] + gam[i] * second[i + 1]
    production = k * (shear2 - n2)
    return xp.stack(first, axis=0), xp.stack(second, axis=0), production


def frtb_sensitivities_capital(xp: Any, s: Any, weight: Any, correlation: Any, across: Any) -> Any:
    """Market risk capital (FRTB): sensitivities within and across buckets, in three scenarios of correlation."""
    ws = s * weight
    square = xp.sum(ws * ws, axis=-1)
    rho, gamma = xp.sigmoid(correlation), 0.5 * xp.sigmoid(across)
    capital = []
    for scale in (0.75, 1.0, 1.25):
        spread = xp.einsum("pbn,bnm->pbm", ws, xp.minimum(scale * rho, 1.0))
        kb2 = xp.maximum(xp.sum(spread * ws, axis=-1), 0.2 * square)
        kb = xp.sqrt(kb2)
        sb = xp.clip(xp.sum(ws, axis=-1), -kb, kb)
        total = xp.sum(kb2, axis=-1)
        cross = xp.sum((sb @ xp.minimum(scale * gamma, 1.0)) * sb, axis=-1)
        capital.append(xp.sqrt(xp.maximum(total + cross, 0.2 * total)))
    every = xp.stack(capital, axis=1)
    return every, xp.max(every, axis=1)


def c51_projection_loss(xp: Any, following: Any, current: Any, reward: Any, alive: Any, atoms: Any) -> Any:
    """Categorical DQN (C51): the Bellman-shifted distribution projected onto the atoms, and its cross entropy."""
    n = atoms.shape[0]
    last = n - 1
    width = 20.0 / last
    e = xp.exp(following - xp.max(following, axis=1)[:, None])
    p = e / xp.sum(e, axis=1)[:, None]
    discount = xp.astype(alive, xp.float32) * 0.99
    shifted = xp.clip(reward[:, None] + discount[:, None] * (atoms * width - 10.0), -10.0, 10.0)
    place = (shifted + 10.0) * (1 / width)
    near = xp.maximum(1 - xp.abs(place[:, None, :] - atoms[:, None]), 0.0)
    projected = xp.sum(p[:, None, :] * near, axis=2)
    m = xp.max(current, axis=1)[:, None]
    logp = current - m - xp.log(xp.sum(xp.exp(current - m), axis=1))[:, None]
    return projected, -xp.sum(projected * logp, axis=1)


def huber_then_tukey_location(xp: Any, x: Any, scale: Any) -> Any:
    """Robust statistics: Huber's location by reweighting, then Tukey's biweight, along the middle axis."""
    s = scale[:, None, :] + 0.5
    centre = xp.mean(x, axis=1, keepdims=True)
    for _ in range(4):
        w = xp.minimum(1.345 * s / (xp.abs(x - centre) + 1e-3), 1.0)
        centre = xp.sum(w * x, axis=1, keepdims=True) / xp.sum(w, axis=1, keepdims=True)
    for _ in range(2):
        w = xp.square(xp.maximum(1.0 - xp.square((x - centre) / (4.685 * s)), 0.0))
        total = xp.sum(w, axis=1, keepdims=True)
        centre = xp.sum(w * x, axis=1, keepdims=True) / total
    error = xp.sqrt(xp.sum(xp.square(w * (x - centre)), axis=1)) / total[:, 0, :]
    return centre[:, 0, :], error, total[:, 0, :] * (1.0 / x.shape[1])


def capped_simplex_bisection(xp: Any, x: Any, cap: Any) -> Any:
    """Portfolio weights: projection of rows onto the capped simplex by bisections of the multiplier."""
    u = cap * 0.1
    high = xp.max(x, axis=1, keepdims=True)
    low = xp.min(x - u, axis=1, keepdims=True)
    for _ in range(20):
        mid = 0.5 * (low + high)
        over = xp.sum(xp.clip(x - mid, 0.0 * u, u), axis=1, keepdims=True) > 1.0
        low, high = xp.where(over, mid, low), xp.where(over, high, mid)
    mid = 0.5 * (low + high)
    return xp.maximum(xp.minimum(x - mid, u), 0.0), mid[:, 0]
