"""Losses and their gradients."""
# ruff: noqa: D103  # the formulas say it

from __future__ import annotations

from typing import Any

SMOOTHING, Z_WEIGHT = 0.1, 1e-4


def _wide(xp: Any, x: Any) -> Any:
    return xp.astype(x, xp.float32)


def _log_sum_exp(xp: Any, h: Any, axis: int = -1) -> Any:
    most = xp.max(h, axis=axis, keepdims=True)
    return most + xp.log(xp.sum(xp.exp(h - most), axis=axis, keepdims=True))


def cross_entropy(xp: Any, logits: Any, target: Any, ids: Any) -> Any:
    """A loss a row; the target's logit by comparison with all class numbers, as there is no gather."""
    h = _wide(xp, logits)
    chosen = xp.sum(xp.where(target[:, None] == ids, h, 0.0), axis=-1)
    return xp.sum(_log_sum_exp(xp, h), axis=-1) - chosen


def torch_cross_entropy(logits: Any, target: Any, ids: Any) -> Any:
    import torch

    return torch.nn.functional.cross_entropy(logits.float(), target.long(), reduction="none")


def cross_entropy_backward(xp: Any, logits: Any, target: Any, ids: Any) -> Any:
    h = _wide(xp, logits)
    p = xp.exp(h - _log_sum_exp(xp, h))
    return xp.astype(p - xp.where(target[:, None] == ids, 1.0, 0.0), xp.bfloat16)


def smoothed_z_loss(xp: Any, logits: Any, target: Any, ids: Any) -> Any:
    """Cross entropy with smoothed labels and z-loss: a loss a row, and the gradient."""
    h = _wide(xp, logits)
    lse = _log_sum_exp(xp, h)
    soft = xp.where(target[:, None] == ids, 1.0 - SMOOTHING, SMOOTHING / logits.shape[-1])
    loss = xp.sum((lse - h) * soft, axis=-1) + xp.sum(Z_WEIGHT * lse * lse, axis=-1)
    gradient = xp.exp(h - lse) * (1.0 + 2.0 * Z_WEIGHT * lse) - soft
    return loss, xp.astype(gradient, xp.bfloat16)


def soft_target_loss(xp: Any, logits: Any, soft: Any) -> Any:
    h = _wide(xp, logits)
    return xp.mean(xp.sum(_wide(xp, soft) * (_log_sum_exp(xp, h) - h), axis=-1))


def distillation(xp: Any, student: Any, teacher: Any) -> Any:
    """Kullback-Leibler divergence at temperature 2, a loss a row and the student's gradient."""
    s, t = _wide(xp, student) / 2.0, _wide(xp, teacher) / 2.0
    log_p, log_q = t - _log_sum_exp(xp, t), s - _log_sum_exp(xp, s)
    p = xp.exp(log_p)
    return xp.sum(p * (log_p - log_q), axis=-1), xp.astype(2.0 * (xp.exp(log_q) - p), xp.bfloat16)


def contrastive(xp: Any, similarity: Any, same: Any) -> Any:
    """Of images and texts: the mean of cross entropies along rows and along columns."""
    h = _wide(xp, similarity) * 20.0
    loss = 0.5 * (_log_sum_exp(xp, h, 0) + _log_sum_exp(xp, h, 1)) - h
    return xp.sum(xp.where(same, loss, 0.0)) / similarity.shape[1]


def mean_squared(xp: Any, y: Any, target: Any) -> Any:
    return xp.mean(xp.square(_wide(xp, y) - _wide(xp, target)))


def mean_squared_backward(xp: Any, y: Any, target: Any, scale: Any) -> Any:
    return xp.astype((_wide(xp, y) - _wide(xp, target)) * scale, xp.bfloat16)


def huber(xp: Any, y: Any, target: Any) -> Any:
    d = _wide(xp, y) - _wide(xp, target)
    a = xp.abs(d)
    return xp.mean(xp.where(a < 1.0, 0.5 * d * d, a - 0.5)), xp.astype(xp.clip(d, -1.0, 1.0), xp.bfloat16)


def binary_cross_entropy(xp: Any, logits: Any, target: Any) -> Any:
    h, t = _wide(xp, logits), _wide(xp, target)
    loss = xp.maximum(h, 0.0) - h * t + xp.log1p(xp.exp(-xp.abs(h)))
    return xp.mean(loss), xp.astype(xp.sigmoid(h) - t, xp.bfloat16)


def focal(xp: Any, logits: Any, target: Any) -> Any:
    h = _wide(xp, logits)
    p = xp.sigmoid(xp.where(target, h, -h))
    return xp.sum(-xp.square(1.0 - p) * xp.log(p + 1e-6), axis=-1)


def dice(xp: Any, logits: Any, target: Any) -> Any:
    """Of masks (images, classes, height, width)."""
    p, t = xp.sigmoid(_wide(xp, logits)), _wide(xp, target)
    both = xp.sum(p * t, axis=(2, 3))
    return 1.0 - xp.mean((2.0 * both + 1.0) / (xp.sum(p, axis=(2, 3)) + xp.sum(t, axis=(2, 3)) + 1.0))


def gaussian_likelihood(xp: Any, y: Any, target: Any, log_var: Any) -> Any:
    v = _wide(xp, log_var)
    d = _wide(xp, target) - _wide(xp, y)
    weighted = d * xp.exp(-v)
    return 0.5 * xp.mean(v + d * weighted), -weighted, 0.5 * (1.0 - d * weighted)


def triplet(xp: Any, anchor: Any, near: Any, far: Any) -> Any:
    a, p, n = _wide(xp, anchor), _wide(xp, near), _wide(xp, far)
    gap = xp.sum(xp.square(a - p), axis=-1) - xp.sum(xp.square(a - n), axis=-1)
    return xp.mean(xp.maximum(gap + 0.2, 0.0))


def clipped_policy(xp: Any, new: Any, old: Any, advantage: Any, mask: Any) -> Any:
    """PPO over log-probabilities of tokens (texts, tokens); the advantages are standardised first."""
    a = advantage - xp.mean(advantage)
    a = a * xp.rsqrt(xp.mean(a * a) + 1e-8)
    ratio = xp.exp((new - old) * 0.1)
    gain = xp.minimum(ratio * a, xp.clip(ratio, 0.8, 1.2) * a)
    m = _wide(xp, mask)
    return -xp.sum(gain * m) / xp.sum(m)


def cosine_loss(xp: Any, x: Any, y: Any) -> Any:
    a, b = _wide(xp, x), _wide(xp, y)
    dot, aa, bb = xp.sum(a * b, axis=-1), xp.sum(a * a, axis=-1), xp.sum(b * b, axis=-1)
    return 1.0 - dot * xp.rsqrt(aa * bb + 1e-12)


def variational(xp: Any, mean: Any, log_var: Any, noise: Any) -> Any:
    """A sample, and the divergence from the normal distribution, a row."""
    m, v = _wide(xp, mean), _wide(xp, log_var)
    sample = m + xp.exp(0.5 * v) * _wide(xp, noise)
    return xp.astype(sample, xp.bfloat16), -0.5 * xp.sum(1.0 + v - m * m - xp.exp(v), axis=-1)
