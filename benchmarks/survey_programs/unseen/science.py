"""Fields, wavelets, hidden states, kernels of samples, regressions and sound."""

from __future__ import annotations

from typing import Any

from survey_programs.formulas import wide


def _cut(x: Any, axis: int, start: int, stop: int | None, step: int | None = None) -> Any:
    return x[(*(slice(None),) * axis, slice(start, stop, step))]


def _roll(xp: Any, x: Any, n: int, axis: int) -> Any:
    """As np.roll."""
    return xp.concat([_cut(x, axis, -n, None), _cut(x, axis, 0, -n)], axis=axis)


def gray_scott_3d(xp: Any, u: Any, v: Any) -> Any:
    """Reaction and diffusion of two fields on a torus, 19-point stencils, and both fields' means a plane."""

    def laplacian(f: Any) -> Any:
        near, far = 0.0, 0.0
        for axis in range(3):
            pair = _roll(xp, f, 1, axis) + _roll(xp, f, -1, axis)
            near = near + pair
            other = (axis + 1) % 3
            far = far + _roll(xp, pair, 1, other) + _roll(xp, pair, -1, other)
        return (2.0 * near + far - 24.0 * f) / 6.0

    react = 0.1 * u * v * v
    a = u + 0.05 * laplacian(u) - react + 0.02 * (1.0 - u)
    b = v + 0.025 * laplacian(v) + react - 0.06 * v
    return a, b, xp.mean(a, axis=(0, 2)), xp.mean(b, axis=(0, 2))


def daubechies_2d(xp: Any, x: Any) -> Any:
    """Periodic Daubechies 4 both ways, details shrunk by half their mean size, the four bands in one image."""
    c = (0.48296291, 0.8365163, 0.22414387, -0.12940952)

    def split(v: Any, axis: int) -> tuple[Any, Any]:
        even, odd = _cut(v, axis, 0, None, 2), _cut(v, axis, 1, None, 2)
        next_even, next_odd = _roll(xp, even, -1, axis), _roll(xp, odd, -1, axis)
        low = c[0] * even + c[1] * odd + c[2] * next_even + c[3] * next_odd
        return low, c[3] * even - c[2] * odd + c[1] * next_even - c[0] * next_odd

    low, high = split(x, 2)
    (ll, lh), (hl, hh) = split(low, 1), split(high, 1)
    bands, sizes = [ll], []
    for v in (lh, hl, hh):
        size = xp.abs(v)
        limit = 0.5 * xp.mean(size, axis=(1, 2), keepdims=True)
        bands.append(xp.sign(v) * xp.maximum(size - limit, 0.0))
        sizes.append(limit[:, 0, 0])
    top, bottom = xp.concat([bands[0], bands[2]], axis=2), xp.concat([bands[1], bands[3]], axis=2)
    return xp.concat([top, bottom], axis=1), xp.stack(sizes, axis=1)


def hmm_forward(xp: Any, start: Any, transition: Any, emission: Any) -> Any:
    """Five scaled forward steps, the log-likelihood, and expected occupancy of the last."""
    a = transition / xp.sum(transition, axis=1, keepdims=True)
    alpha = start / xp.sum(start, axis=1, keepdims=True)
    loglik = 0.0
    for t in range(5):
        alpha = (alpha @ a) * emission[t]
        scale = xp.sum(alpha, axis=1, keepdims=True)
        alpha = alpha / scale
        loglik = loglik + xp.log(scale[:, 0])
    return alpha, loglik, xp.mean(alpha, axis=0), -xp.sum(alpha * xp.log(alpha + 1e-9), axis=1)


def mmd_kernels(xp: Any, x: Any, y: Any, scale: Any) -> Any:
    """Two samples under a mixture of three Gaussian kernels: the discrepancy and the witness at all points."""

    def kernel(a: Any, b: Any) -> Any:
        d = xp.sum(a * a, axis=1)[:, None] + xp.sum(b * b, axis=1) - 2.0 * (a @ b.mT)
        e = xp.exp(-0.125 * xp.maximum(d, 0.0) / a.shape[1])
        e2 = e * e
        return e + e2 + e2 * e2

    a, b = x * scale, y * scale + 0.3
    xx, xy, yy = kernel(a, a), kernel(a, b), kernel(b, b)
    at_x = xp.mean(xx, axis=1) - xp.mean(xy, axis=1)
    at_y = xp.mean(xy, axis=0) - xp.mean(yy, axis=1)
    return xp.mean(at_x) - xp.mean(at_y), at_x, at_y


def ridge_gradient_steps(xp: Any, x: Any, y: Any, weight: Any, ids: Any) -> Any:
    """Weighted normal equations of three targets, two conjugate gradient steps, residuals and their spread."""
    rows = x.shape[0]
    y = y + x[:, 1:6:2]
    a = (x * weight[:, None]).mT @ x / rows + 0.1 * wide(xp, ids[:, None] == ids)
    b = (x * weight[:, None]).mT @ y / rows
    c = xp.zeros_like(b)
    r = p = b
    rr = xp.sum(r * r, axis=0)
    for _ in range(2):
        ap = a @ p
        step = rr / (xp.sum(p * ap, axis=0) + 1e-12)
        c, r = c + step * p, r - step * ap
        now = xp.sum(r * r, axis=0)
        p = r + now / (rr + 1e-12) * p
        rr = now
    e = y - x @ c
    return c, a, e, xp.sqrt(xp.mean(weight[:, None] * e * e, axis=0))


def mu_law(xp: Any, wave: Any, codes: Any) -> Any:
    """Sound to logarithmic codes of 8 bits, other codes back to sound, their ratio in dB, and frames' loudness."""
    x = xp.clip(0.3 * wave, -1.0, 1.0)
    q = xp.astype(xp.round(127.0 * xp.sign(x) * xp.log1p(255.0 * xp.abs(x)) / 5.5451774), xp.int8)
    c = wide(xp, codes) / 127.0
    y = xp.sign(c) * xp.expm1(xp.abs(c) * 5.5451774) / 255.0
    noise = xp.mean(xp.square(x - y), axis=1)
    signal = xp.mean(x * x, axis=1)
    frames = xp.reshape(y, (y.shape[0], -1, 441))
    loud = 4.3429448 * xp.log(xp.mean(frames * frames, axis=2) + 1e-6)
    return q, xp.astype(y, xp.float16), 4.3429448 * xp.log(signal / noise), loud
