"""Codes, column stores and signals of an eighth outside set."""

from __future__ import annotations

from typing import Any


def _logical_shift(x: Any, r: int) -> Any:
    return (x >> r) & ((1 << (32 - r)) - 1)


def flac_fixed_predictors(xp: Any, pcm: Any) -> Any:
    """Audio compression: FLAC's fixed predictors of orders 0 to 3 on mid and side channels, by Rice costs."""
    x = xp.astype(pcm, xp.int32)
    left, right = x[:, 0], x[:, 1]
    e = xp.stack([(left + right) >> 1, left - right], axis=1)
    n = e.shape[2]
    costs, residual = [], e
    for order in range(4):
        if order:
            residual = xp.concat([residual[:, :, :1], residual[:, :, 1:] - residual[:, :, :-1]], axis=2)
        folded = (residual << 1) ^ (residual >> 31)
        parts = folded.reshape((e.shape[0], 2, n // 256, 256))
        rice = None
        for k in (2, 5, 8):
            bits = xp.astype(xp.sum(parts >> k, axis=-1), xp.int32) + 256 * (1 + k)
            rice = bits if rice is None else xp.minimum(rice, bits)
        costs.append(xp.astype(xp.sum(rice, axis=-1), xp.int32))
    best = xp.minimum(xp.minimum(costs[0], costs[1]), xp.minimum(costs[2], costs[3]))
    order = xp.zeros_like(best) + 3
    for i in (2, 1, 0):
        order = xp.where(costs[i] == best, xp.zeros_like(best) + i, order)
    return best, xp.astype(order, xp.int8), e


def crc32c_by_bits(xp: Any, words: Any, stored: Any) -> Any:
    """Checksums: CRC-32C of records of three words by bits, and how many of a page differ from those stored."""
    poly = 0x82F63B78 - (1 << 32)
    crc = ~xp.zeros_like(stored)
    for i in range(words.shape[2]):
        crc = crc ^ words[:, :, i]
        for _ in range(32):
            crc = _logical_shift(crc, 1) ^ (-(crc & 1) & poly)
    crc = ~crc
    return crc, xp.astype(xp.sum(xp.astype(crc != stored, xp.int32), axis=-1), xp.int32), xp.any(crc == stored, axis=-1)


def bit_sliced_index_sum(xp: Any, slices: Any, exists: Any, mask: Any) -> Any:
    """Column stores: rows between two constants of a bit-sliced index, counted and summed up by popcounts."""

    def below(limit: Any) -> Any:
        less, same = xp.zeros_like(exists), exists
        for i in range(11, -1, -1):
            if limit >> i & 1:
                less = less | (same & ~slices[i])
                same = same & slices[i]
            else:
                same = same & ~slices[i]
        return less

    def popcount(x: Any) -> Any:
        x = x - (_logical_shift(x, 1) & 0x55555555)
        x = (x & 0x33333333) + (_logical_shift(x, 2) & 0x33333333)
        x = (x + _logical_shift(x, 4)) & 0x0F0F0F0F
        return _logical_shift(x * 0x01010101, 24)

    found = below(3001) & ~below(777) & mask
    total = None
    for i in range(12):
        part = xp.astype(xp.sum(popcount(slices[i] & found), axis=-1), xp.float32) * float(1 << i)
        total = part if total is None else total + part
    return found, xp.astype(xp.sum(popcount(found), axis=-1), xp.int32), total


def polar_bp_sweep(xp: Any, channel: Any, right: Any) -> Any:
    """Polar codes (5G control): one leftward sweep of scaled min-sum belief propagation through all stages."""
    b, n = channel.shape

    def f(p: Any, q: Any) -> Any:
        return 0.9375 * xp.sign(p) * xp.sign(q) * xp.minimum(xp.abs(p), xp.abs(q))

    left = channel
    messages = []
    for stage in range(right.shape[0]):
        s = 2**stage
        lv = left.reshape(b, n // (2 * s), 2, s)
        rv = right[stage].reshape(b, n // (2 * s), 2, s)
        upper = f(lv[:, :, 0], lv[:, :, 1] + rv[:, :, 1])
        lower = f(rv[:, :, 0], lv[:, :, 0]) + lv[:, :, 1]
        left = xp.concat([upper[:, :, None], lower[:, :, None]], axis=2).reshape(b, n)
        messages.append(xp.astype(left, xp.float16))
    return left, xp.stack(messages, axis=0)


def nf4_double_dequant(xp: Any, packed: Any, codes: Any, scale: Any, offset: Any, table: Any) -> Any:
    """QLoRA weights (compression): NF4 nibbles through a selection tree, times doubly quantised block maxima."""
    r, c = packed.shape
    byte = xp.astype(packed, xp.int32) & 0xFF

    def value(nibble: Any) -> Any:
        level = [table[k] for k in range(16)]
        for bit in range(4):
            on = ((nibble >> bit) & 1) == 1
            level = [xp.where(on, level[2 * k + 1], level[2 * k]) for k in range(len(level) // 2)]
        return level[0]

    values = xp.stack([value(byte >> 4), value(byte & 15)], axis=-1)
    blocks = values.reshape(r, c // 32, 64)
    largest = xp.astype(codes, xp.float32) * (scale[:, None] * (1 / 127)) + offset
    return xp.astype(blocks * largest[..., None], xp.bfloat16).reshape(r, 2 * c)


def hpss_soft_masks(xp: Any, mag: Any) -> Any:
    """Harmonic-percussive source separation (audio): medians of 5 along time and along frequency, Wiener masks."""

    def median5(v: Any, axis: int) -> Any:
        n = v.shape[axis]
        if axis == 2:
            p = xp.concat([v[:, :, :1], v[:, :, :1], v, v[:, :, -1:], v[:, :, -1:]], axis=2)
            a, b, e, c, d = [p[:, :, k : k + n] for k in range(5)]
        else:
            p = xp.concat([v[:, :1], v[:, :1], v, v[:, -1:], v[:, -1:]], axis=1)
            a, b, e, c, d = [p[:, k : k + n] for k in range(5)]
        f = xp.maximum(xp.minimum(a, b), xp.minimum(c, d))
        g = xp.minimum(xp.maximum(a, b), xp.maximum(c, d))
        return xp.maximum(xp.minimum(f, g), xp.minimum(xp.maximum(f, g), e))

    h = xp.square(median5(mag, 2))
    p = xp.square(median5(mag, 1))
    share = h / (h + p)
    harmonic = mag * share
    percussive = mag - harmonic
    return harmonic, percussive, xp.mean(xp.square(percussive), axis=1)
