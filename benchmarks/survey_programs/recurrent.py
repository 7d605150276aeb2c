"""One step of recurrent and state-space cells, forward and backward."""
# ruff: noqa: D103  # the formulas say it

from __future__ import annotations

from typing import Any

from survey_programs.formulas import wide


def rnn_cell(xp: Any, x: Any, h: Any, w: Any, u: Any, b: Any) -> Any:
    return xp.tanh(x @ w.mT + h @ u.mT + b)


def lstm_gates(xp: Any, i: Any, f: Any, g: Any, o: Any, c: Any) -> Any:
    """The gates' sums as four arrays."""
    c = xp.sigmoid(wide(xp, f)) * c + xp.sigmoid(wide(xp, i)) * xp.tanh(wide(xp, g))
    return xp.astype(xp.sigmoid(wide(xp, o)) * xp.tanh(c), xp.bfloat16), c


def lstm_gates_backward(xp: Any, dh: Any, dc: Any, i: Any, f: Any, g: Any, o: Any, c: Any, before: Any) -> Any:
    """From activated gates, the cell's new and old state."""
    t = xp.tanh(c)
    d = wide(xp, dh)
    ig, fg, gg, og = (wide(xp, gate) for gate in (i, f, g, o))
    total = dc + d * og * (1.0 - t * t)
    di, df, dg, do = (
        total * gg * ig * (1.0 - ig),
        total * before * fg * (1.0 - fg),
        total * ig * (1.0 - gg * gg),
        d * t * og * (1.0 - og),
    )
    return *(xp.astype(y, xp.bfloat16) for y in (di, df, dg, do)), total * fg


def gru_gates(xp: Any, xr: Any, xz: Any, xn: Any, hr: Any, hz: Any, hn: Any, h: Any) -> Any:
    r, z = xp.sigmoid(wide(xp, xr) + hr), xp.sigmoid(wide(xp, xz) + hz)
    n = xp.tanh(wide(xp, xn) + r * hn)
    return xp.astype((1.0 - z) * n + z * h, xp.bfloat16)


def minimal_gru(xp: Any, x: Any, h: Any, wz: Any, wh: Any) -> Any:
    """Two products that share an operand, and both results in one expression."""
    z = xp.sigmoid(x @ wz.mT)
    return (1.0 - z) * h + z * (x @ wh.mT)


def highway(xp: Any, x: Any, w: Any, b: Any, y: Any) -> Any:
    gate = xp.sigmoid(x @ w.mT + b)
    return gate * y + (1.0 - gate) * x


def state_space_step(xp: Any, state: Any, x: Any, dt: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Mamba, one token a sequence: state (sequences, channels, 16)."""
    step = xp.log1p(xp.exp(wide(xp, dt)))
    h = wide(xp, x)
    state = xp.exp(step[:, :, None] * -xp.exp(a)) * state + (step * h)[:, :, None] * b[:, None, :]
    return state, xp.astype(xp.sum(state * c[:, None, :], axis=-1) + d * h, xp.bfloat16)


def state_space_heads(xp: Any, state: Any, x: Any, decay: Any, b: Any, c: Any) -> Any:
    """Mamba-2: state (sequences, heads, channels, 128), a decay a head."""
    state = state * decay[:, :, None, None] + wide(xp, x)[:, :, :, None] * b[:, None, None, :]
    return state, xp.astype(xp.sum(state * c[:, None, None, :], axis=-1), xp.bfloat16)


def linear_attention_step(xp: Any, state: Any, q: Any, k: Any, v: Any) -> Any:
    """State (sequences, heads, keys, values)."""
    state = state + wide(xp, k)[:, :, :, None] * wide(xp, v)[:, :, None, :]
    return state, xp.astype(xp.sum(state * wide(xp, q)[:, :, :, None], axis=2), xp.bfloat16)


def delta_rule_step(xp: Any, state: Any, q: Any, k: Any, v: Any, beta: Any) -> Any:
    """What the state says of a key is replaced: two sums over keys that depend on each other."""
    key = wide(xp, k)[:, :, :, None]
    old = xp.sum(state * key, axis=2)
    new = beta[:, :, None] * (wide(xp, v) - old)
    state = state + key * new[:, :, None, :]
    return state, xp.astype(xp.sum(state * wide(xp, q)[:, :, :, None], axis=2), xp.bfloat16)


def receptance_step(xp: Any, state: Any, r: Any, k: Any, v: Any, w: Any, u: Any) -> Any:
    """RWKV-6."""
    kv = wide(xp, k)[:, :, :, None] * wide(xp, v)[:, :, None, :]
    y = xp.sum(wide(xp, r)[:, :, :, None] * (state + u[:, :, None] * kv), axis=2)
    return xp.exp(-xp.exp(wide(xp, w)))[:, :, :, None] * state + kv, xp.astype(y, xp.bfloat16)


def gated_linear_unit_step(xp: Any, h: Any, x: Any, gate: Any, decay: Any) -> Any:
    """RG-LRU."""
    log_a = -8.0 * xp.sigmoid(wide(xp, gate)) * xp.log1p(xp.exp(decay))
    a = xp.exp(log_a)
    return a * h + xp.sqrt(xp.maximum(1.0 - a * a, 1e-6)) * wide(xp, x)


def causal_window(xp: Any, window: Any, w: Any, b: Any) -> Any:
    """The last four inputs (sequences, channels, 4) of a convolution, then SiLU."""
    y = xp.sum(wide(xp, window) * w, axis=-1) + b
    return xp.astype(y * xp.sigmoid(y), xp.bfloat16)


def retention_scores(xp: Any, q: Any, k: Any, decay: Any) -> Any:
    """Products of (heads, queries, keys), times each head's decay."""
    return xp.astype(xp.astype(q @ k.mT, xp.float32) * decay, xp.bfloat16)


def chunk_states(xp: Any, k: Any, v: Any, decay: Any) -> Any:
    """(chunks, steps, keys), (chunks, steps, values): each chunk's state, with decayed keys."""
    decayed = xp.astype(wide(xp, k) * decay[:, None], xp.bfloat16)
    return decayed.mT @ v
