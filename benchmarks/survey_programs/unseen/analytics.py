"""Training, compression, augmentation, search and queries of a seventh outside set."""

from __future__ import annotations

from typing import Any


def gspo_sequence_loss(xp: Any, new: Any, old: Any, ref: Any, mask: Any, reward: Any) -> Any:
    """RL for language models: group sequence policy optimisation, with the divergence from a reference."""
    m = xp.astype(mask, xp.float32)
    length = xp.maximum(xp.sum(m, axis=-1), 1.0)
    change = 0.05 * (new - old)
    ratio = xp.exp(xp.sum(change * m, axis=-1) / length)
    centred = reward - xp.mean(reward, axis=1, keepdims=True)
    advantage = centred / (xp.std(reward, axis=1, keepdims=True) + 1e-4)
    clipped = xp.clip(ratio, 0.9997, 1.0004)
    surrogate = xp.minimum(ratio * advantage, clipped * advantage)
    away = 0.05 * (ref - new)
    k3 = xp.sum((xp.expm1(away) - away) * m, axis=-1) / length
    loss = 0.04 * k3 - surrogate
    return loss, xp.mean(k3, axis=1), xp.mean(xp.square(ratio - 1.0))


def kan_bspline_layer(xp: Any, x: Any, coefficients: Any, base: Any) -> Any:
    """Kolmogorov-Arnold network: cubic B-splines by Cox-de Boor on a uniform grid, contracted, plus a SiLU branch."""
    u = xp.tanh(x)
    knots = [-1.0 + (k - 3) * 0.4 for k in range(12)]
    bases = [xp.astype((u >= knots[k]) & (u < knots[k + 1]), xp.float32) for k in range(11)]
    for d in range(1, 4):
        bases = [
            (u - knots[k]) * (1.0 / (knots[k + d] - knots[k])) * bases[k]
            + (knots[k + d + 1] - u) * (1.0 / (knots[k + d + 1] - knots[k + 1])) * bases[k + 1]
            for k in range(11 - d)
        ]
    flat = xp.reshape(xp.stack(bases, axis=-1), (x.shape[0], x.shape[1] * 8))
    return flat @ coefficients + (x * xp.sigmoid(x)) @ base


def wanda_2_of_4(xp: Any, w: Any, x: Any, lane: Any) -> Any:
    """Pruning: Wanda's scores, the best 2 of each 4 kept, and masks packed 16 to a word."""
    outputs, inputs = w.shape
    norm = xp.sqrt(xp.sum(xp.square(xp.astype(x, xp.float32)), axis=0))
    score = xp.reshape(xp.abs(xp.astype(w, xp.float32)) * norm, (outputs, inputs // 4, 4))
    s = [score[:, :, k] for k in range(4)]
    kept = []
    for i in range(4):
        rank = xp.zeros_like(xp.astype(s[i], xp.int32))
        for j in range(4):
            if j != i:
                rank = rank + xp.astype(s[j] >= s[i] if j < i else s[j] > s[i], xp.int32)
        kept.append(xp.astype(rank < 2, xp.int32))
    keep = xp.reshape(xp.stack(kept, axis=-1), (outputs, inputs))
    words = xp.sum(xp.reshape(keep, (outputs, inputs // 16, 16)) << lane, axis=-1)
    pruned = xp.where(keep > 0, w, xp.zeros_like(w))
    return pruned, xp.astype(words, xp.int32)


def product_quantised_search(xp: Any, codes: Any, levels: Any, table: Any) -> Any:
    """Vector databases: product-quantised distances as a product of one-hot codes and tables of a batch of queries."""
    count, parts = codes.shape
    size = levels.shape[0]
    hot = xp.reshape(xp.astype(codes[:, :, None] == levels, xp.bfloat16), (count, parts * size))
    distance = xp.astype(hot @ xp.reshape(table, (table.shape[0], parts * size)).T, xp.float32)
    nearest = xp.min(distance, axis=0)
    soft = xp.mean(xp.exp((nearest - distance) * 0.25), axis=0)
    return distance, nearest, soft


def color_jitter_flip(
    xp: Any, image: Any, brightness: Any, contrast: Any, saturation: Any, flipped: Any, mean: Any, std: Any
) -> Any:
    """Augmentation: bytes to floats, brightness, contrast, saturation, random horizontal flip, normalisation."""
    x = (xp.astype(image, xp.float32) + 128.0) * (1.0 / 255.0)
    x = xp.clip(x * brightness[:, None, None, None], 0.0, 1.0)
    grey = 0.299 * x[:, 0] + 0.587 * x[:, 1] + 0.114 * x[:, 2]
    centre = xp.mean(grey, axis=(1, 2))[:, None, None, None]
    x = xp.clip(centre + (x - centre) * contrast[:, None, None, None], 0.0, 1.0)
    grey = (0.299 * x[:, 0] + 0.587 * x[:, 1] + 0.114 * x[:, 2])[:, None]
    x = xp.clip(grey + (x - grey) * saturation[:, None, None, None], 0.0, 1.0)
    x = xp.where(flipped[:, None, None, None], xp.flip(x, axis=3), x)
    return xp.astype((x - mean[:, None, None]) / std[:, None, None], xp.bfloat16)


def pricing_summary(
    xp: Any, quantity: Any, price: Any, discount: Any, tax: Any, flag: Any, status: Any, shipped: Any
) -> Any:
    """Analytics: TPC-H query 1, filtered sums, averages and counts by six groups over columns."""
    live = shipped <= 2400
    group = xp.astype(flag, xp.int32) * 2 + xp.astype(status, xp.int32)
    net = price * (1.0 - 0.1 * discount)
    columns = [quantity, price, net, net * (1.0 + 0.08 * tax), discount]
    sums, counts = [], []
    for g in range(6):
        inside = live & (group == g)
        counts.append(xp.sum(xp.where(inside, xp.zeros_like(price) + 1.0, xp.zeros_like(price))))
        sums.append(xp.stack([xp.sum(xp.where(inside, c, xp.zeros_like(c))) for c in columns], axis=0))
    total, count = xp.stack(sums, axis=0), xp.stack(counts, axis=0)
    return total, total / xp.maximum(count, 1.0)[:, None], xp.astype(count, xp.int32)


def sliding_range_van_herk(xp: Any, close: Any) -> Any:
    """Time series: sliding maximum and minimum over 32 by van Herk's prefixes and suffixes, and Williams' %R."""
    series, length = close.shape
    x = xp.reshape(close, (series, length // 32, 32))

    def sliding(pick: Any) -> Any:
        prefix = suffix = x
        for d in (1, 2, 4, 8, 16):
            prefix = xp.concat([prefix[:, :, :d], pick(prefix[:, :, d:], prefix[:, :, :-d])], axis=2)
            suffix = xp.concat([pick(suffix[:, :, :-d], suffix[:, :, d:]), suffix[:, :, -d:]], axis=2)
        return pick(
            xp.reshape(suffix, (series, length))[:, : length - 31], xp.reshape(prefix, (series, length))[:, 31:]
        )

    high, low = sliding(xp.maximum), sliding(xp.minimum)
    return high, low, 100.0 * (high - close[:, 31:]) / (high - low + 1e-3)
