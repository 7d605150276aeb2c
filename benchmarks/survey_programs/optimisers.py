"""Steps of optimisers, which read gradients and states and write parameters and states."""
# ruff: noqa: D103  # the formulas say it

from __future__ import annotations

from typing import Any

RATE, DECAY, MOMENTUM = 1e-3, 0.1, 0.9
B1, B2, EPSILON = 0.9, 0.95, 1e-8
C1, C2 = 1.0 / (1.0 - B1**10), 1.0 / (1.0 - B2**10)


def _wide(xp: Any, x: Any) -> Any:
    return xp.astype(x, xp.float32)


def sgd(xp: Any, p: Any, g: Any) -> Any:
    return p - RATE * g


def sgd_momentum(xp: Any, p: Any, g: Any, m: Any) -> Any:
    m = MOMENTUM * m + g + 1e-4 * p
    return p - RATE * m, m


def nesterov(xp: Any, p: Any, g: Any, m: Any) -> Any:
    h = _wide(xp, g)
    m = MOMENTUM * m + h
    return p - RATE * (h + MOMENTUM * m), m


def adamw(xp: Any, p: Any, g: Any, m: Any, v: Any) -> Any:
    h = _wide(xp, g)
    m, v = B1 * m + (1.0 - B1) * h, B2 * v + (1.0 - B2) * h * h
    return p * (1.0 - RATE * DECAY) - RATE * (m * C1) / (xp.sqrt(v * C2) + EPSILON), m, v


def adamw_master(xp: Any, p: Any, g: Any, m: Any, v: Any) -> Any:
    """float32 master weights and their copy in bfloat16."""
    p, m, v = adamw(xp, p, g, m, v)
    return p, xp.astype(p, xp.bfloat16), m, v


def adamw_half_states(xp: Any, p: Any, g: Any, m: Any, v: Any) -> Any:
    """All states in bfloat16."""
    p, m, v = adamw(xp, _wide(xp, p), g, _wide(xp, m), _wide(xp, v))
    return xp.astype(p, xp.bfloat16), xp.astype(m, xp.bfloat16), xp.astype(v, xp.bfloat16)


def adamw_byte_states(xp: Any, p: Any, g: Any, m: Any, m_scale: Any, v: Any) -> Any:
    """The first moment in int8, with a scale for each block of a row (blocks, 256)."""
    p, m, v = adamw(xp, p, g, _wide(xp, m) * m_scale, v)
    scale = xp.max(xp.abs(m), axis=-1, keepdims=True) / 127.0
    return p, xp.astype(xp.clip(xp.round(m / scale), -127.0, 127.0), xp.int8), scale, v


def lion(xp: Any, p: Any, g: Any, m: Any) -> Any:
    h = _wide(xp, g)
    step = xp.sign(0.9 * m + 0.1 * h)
    return p * (1.0 - RATE * DECAY) - RATE * step, 0.99 * m + 0.01 * h


def rms_prop(xp: Any, p: Any, g: Any, v: Any) -> Any:
    v = 0.99 * v + 0.01 * g * g
    return p - RATE * g / (xp.sqrt(v) + EPSILON), v


def adagrad(xp: Any, p: Any, g: Any, total: Any) -> Any:
    total = total + g * g
    return p - RATE * g * xp.rsqrt(total + EPSILON), total


def adafactor_statistics(xp: Any, g: Any, row: Any, column: Any) -> Any:
    """Running means of squares along rows and columns."""
    square = xp.square(_wide(xp, g)) + 1e-30
    return 0.99 * row + 0.01 * xp.mean(square, axis=1), 0.99 * column + 0.01 * xp.mean(square, axis=0)


def adafactor_update(xp: Any, p: Any, g: Any, row: Any, column: Any) -> Any:
    """With the update's own size limited, by its norm over the whole matrix."""
    update = _wide(xp, g) * xp.rsqrt(row / xp.mean(row))[:, None] * xp.rsqrt(column)
    size = xp.sqrt(xp.mean(update * update))
    return p - RATE * update / xp.maximum(size, 1.0)


def adafactor(xp: Any, p: Any, g: Any, row: Any, column: Any) -> Any:
    row, column = adafactor_statistics(xp, g, row, column)
    return adafactor_update(xp, p, g, row, column), row, column


def lamb(xp: Any, p: Any, g: Any, m: Any, v: Any) -> Any:
    """The ratio of two norms over the whole matrix scales Adam's step."""
    m, v = B1 * m + (1.0 - B1) * g, B2 * v + (1.0 - B2) * g * g
    update = (m * C1) / (xp.sqrt(v * C2) + EPSILON) + DECAY * p
    trust = xp.sqrt(xp.sum(p * p)) / xp.sqrt(xp.sum(update * update))
    return p - RATE * trust * update, m, v


def lamb_norms(xp: Any, p: Any, g: Any, m: Any, v: Any) -> Any:
    update = (m * C1) / (xp.sqrt(v * C2) + EPSILON) + DECAY * p
    return xp.sqrt(xp.sum(p * p)), xp.sqrt(xp.sum(update * update)), xp.max(xp.abs(g))


def clip_by_norm(xp: Any, g: Any) -> Any:
    h = _wide(xp, g)
    return xp.astype(h * xp.minimum(xp.rsqrt(xp.sum(h * h)), 1.0), xp.bfloat16)


def clip_rows(xp: Any, g: Any) -> Any:
    """By the norm of each output unit."""
    return g * xp.minimum(xp.rsqrt(xp.sum(g * g, axis=-1, keepdims=True) + 1e-12), 1.0)


def unscale(xp: Any, g: Any, scale: Any) -> Any:
    """Gradients of mixed precision, and whether one of them is not finite."""
    h = _wide(xp, g) * scale
    return h, xp.any(xp.logical_not(xp.isfinite(h)))


def accumulate(xp: Any, total: Any, g: Any) -> Any:
    return total + _wide(xp, g) * 0.125


def moving_average(xp: Any, average: Any, p: Any) -> Any:
    return average + 0.001 * (p - average)


def weight_norm(xp: Any, v: Any, gain: Any) -> Any:
    return v * (gain[:, None] * xp.rsqrt(xp.sum(v * v, axis=-1, keepdims=True)))


def newton_schulz_step(xp: Any, x: Any, gram: Any) -> Any:
    """One step of Muon's orthogonalisation but its first product: the result of (b A + c A A) X + a X."""
    mixed = xp.astype(-4.775 * gram + 2.0315 * (gram @ gram), xp.bfloat16)
    return 3.4445 * x + mixed @ x
