"""Series, lattices and assignments: filters, options, state estimates, paths and fluxes, in both precisions."""
# the formulas say it

from __future__ import annotations

from typing import Any


def _roll(xp: Any, x: Any, n: int) -> Any:
    """Along columns; element i of the result is element i - n."""
    return xp.concat([x[:, -n:], x[:, :-n]], axis=1)


def goertzel_bins(xp: Any, x: Any, angles: Any) -> Any:
    """Amplitudes of 7 frequencies in blocks of 365 samples, after removing each block's line fit."""
    t = 1.0 * angles[7]
    centred = t - xp.mean(t)
    mean = xp.mean(x, axis=1, keepdims=True)
    slope = xp.sum((x - mean) * centred, axis=1, keepdims=True) / xp.sum(centred * centred)
    d = x - mean - slope * centred
    parts = []
    for k in range(7):
        a = xp.sum(d * xp.cos(angles[k]), axis=1)
        b = xp.sum(d * xp.sin(angles[k]), axis=1)
        parts.append(xp.sqrt(a * a + b * b) * (2 / 365))
    return xp.stack(parts, axis=1)


def polyphase_decimate(xp: Any, x: Any, taps: Any) -> Any:
    """By 3, with 13 taps split in phases; the signal is preceded by zeros."""
    channels, length = x.shape
    padded = xp.concat([xp.zeros_like(x[:, :12]), x], axis=1)
    phases = padded.reshape((channels, length // 3 + 4, 3))
    y = 0.0
    for k in range(13):
        at = 12 - k
        y = y + taps[k] * phases[:, at // 3 : at // 3 + length // 3, at % 3]
    return y, xp.sqrt(xp.mean(y * y, axis=1))


def american_put_lattice(xp: Any, spot: Any, strike: Any, vol: Any) -> Any:
    """Cox-Ross-Rubinstein, ten steps, in float64: a list of nodes, each an array of contracts."""
    dt, rate = 0.1, 0.03
    up = xp.exp(0.3 * vol * dt**0.5)
    down = 1.0 / up
    p = xp.clip((1.0 + rate * dt - down) / (up - down), 0.0, 1.0)
    values = []
    price = spot * down**10
    prices = []
    for _ in range(11):
        prices.append(price)
        values.append(xp.maximum(strike - price, 0.0))
        price = price * up * up
    for step in range(9, -1, -1):
        prices = [s * up for s in prices[: step + 1]]
        held = [(p * values[i + 1] + (1.0 - p) * values[i]) / (1.0 + rate * dt) for i in range(step + 1)]
        values = [xp.maximum(h, strike - s) for h, s in zip(held, prices, strict=True)]
    return values[0]


def kalman_local_trend(xp: Any, y: Any, seen: Any) -> Any:
    """Level and slope of many series, seven steps in float64, with gaps; log likelihood."""
    level, slope = y[0], xp.zeros_like(y[0])
    pll, pls, pss = (xp.zeros_like(y[0]) + v for v in (10.0, 0.0, 1.0))
    loglik = xp.zeros_like(y[0])
    for t in range(1, 7):
        level, pll, pls, pss = level + slope, pll + 2 * pls + pss + 0.1, pls + pss, pss + 0.01
        f = pll + 1.0
        v = y[t] - level
        kl, ks = pll / f, pls / f
        loglik = loglik - xp.where(seen[t], 0.5 * (xp.log(f) + v * v / f), 0.0)
        level = xp.where(seen[t], level + kl * v, level)
        slope = xp.where(seen[t], slope + ks * v, slope)
        pss = xp.where(seen[t], pss - ks * pls, pss)
        pls = xp.where(seen[t], pls * (1.0 - kl), pls)
        pll = xp.where(seen[t], pll * (1.0 - kl), pll)
    return xp.stack([level, slope], axis=1), loglik, xp.sum(loglik)


def viterbi_steps(xp: Any, start: Any, transition: Any, emission: Any, index: Any) -> Any:
    """Five max-plus steps with back pointers as int16, of many sequences over 13 states."""
    score = start
    back = []
    for t in range(5):
        all_paths = score[:, :, None] + transition
        best = xp.max(all_paths, axis=1)
        chosen = xp.min(xp.where(all_paths == best[:, None, :], index[:, None], 99), axis=1)
        back.append(xp.astype(chosen, xp.int16))
        score = best + emission[t]
    return score, xp.stack(back, axis=0)


def kmeans_step(xp: Any, x: Any, centres: Any, index: Any) -> Any:
    """Assignments as the first index at the least distance, cluster sizes and sums, and the inertia."""
    d = xp.sum((x[:, None, :] - centres) ** 2, axis=2)
    least = xp.min(d, axis=1)
    label = xp.min(xp.where(d == least[:, None], index, 99), axis=1)
    member = label[:, None] == index
    size = xp.sum(xp.astype(member, xp.int32), axis=0)
    total = xp.sum(xp.where(member[:, :, None], x[:, None, :], 0.0), axis=0)
    return label, size, total, xp.sum(least)


def weno5_advection(xp: Any, u: Any) -> Any:
    """One Euler step of u_t + u_x = 0 on a ring, fifth-order WENO fluxes."""
    a, b, c, d, e = _roll(xp, u, 2), _roll(xp, u, 1), u, _roll(xp, u, -1), _roll(xp, u, -2)
    b0 = 13 / 12 * (a - 2 * b + c) ** 2 + 0.25 * (a - 4 * b + 3 * c) ** 2
    b1 = 13 / 12 * (b - 2 * c + d) ** 2 + 0.25 * (b - d) ** 2
    b2 = 13 / 12 * (c - 2 * d + e) ** 2 + 0.25 * (3 * c - 4 * d + e) ** 2
    w0, w1, w2 = 0.1 / (1e-3 + b0) ** 2, 0.6 / (1e-3 + b1) ** 2, 0.3 / (1e-3 + b2) ** 2
    q0, q1, q2 = (2 * a - 7 * b + 11 * c) / 6, (-b + 5 * c + 2 * d) / 6, (2 * c + 5 * d - e) / 6
    flux = (w0 * q0 + w1 * q1 + w2 * q2) / (w0 + w1 + w2)
    return u - 0.4 * (flux - _roll(xp, flux, 1))
