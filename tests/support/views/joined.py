"""Random functions that join arrays, with their meaning in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirfuse as mf

AXIS = [0, 1, 2, -1, -2]


def rotated(x: Any, cos: Any, sin: Any) -> Any:
    """Rotary embeddings whose pairs are the halves of a row."""
    half = x.shape[-1] // 2
    return x * cos + mf.concat([-x[..., half:], x[..., :half]], axis=-1) * sin


def rotated_in_numpy(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    half = x.shape[-1] // 2
    return x * cos + np.concatenate([-x[..., half:], x[..., :half]], axis=-1) * sin


def rotary(xp: Any, join: Any, x: Any, cos: Any, sin: Any) -> Any:
    """Rotary embeddings of halves, each computed by itself, of rows that are normalised."""
    x = x / xp.sqrt(xp.mean(x * x, axis=-1, keepdims=True) + 1)
    half = x.shape[-1] // 2
    left, right = x[..., :half], x[..., half:]
    return join([left * cos - right * sin, right * cos + left * sin], axis=-1)


def turned(xp: Any, join: Any, x: Any, cos: Any, sin: Any) -> Any:
    """Rotary embeddings that are computed of the joined halves in the other order."""
    half = x.shape[-1] // 2
    return xp.tanh(x * cos + join([-x[..., half:], x[..., :half]], axis=-1) * sin)


def turned_thirds(xp: Any, join: Any, x: Any, y: Any) -> Any:
    """Thirds of the first dimension in another order, with what differs in each of them."""
    third = x.shape[0] // 3
    return join([x[2 * third :], x[:third] * 2, x[third : 2 * third]], axis=0) * y + x


def gate_gradients(xp: Any, join: Any, x: Any, dy: Any) -> Any:
    """The gradient of a gated product with regard to a packed projection."""
    half = x.shape[-1] // 2
    gate, up = x[..., :half], x[..., half:]
    s = 1 / (1 + xp.exp(-gate))
    return join([dy * up * s * (1 + gate * (1 - s)), dy * gate * s], axis=-1)


def thirds(xp: Any, join: Any, x: Any, y: Any) -> Any:
    """Three parts along the first dimension."""
    return join([x + y, x * y, xp.exp(x) - y], axis=0)


def planes(xp: Any, join: Any, x: Any, y: Any) -> Any:
    """Two parts in a dimension of their own, in the middle."""
    return xp.stack([x + y, x - y], axis=1)


def pairs(xp: Any, join: Any, x: Any, cos: Any, sin: Any) -> Any:
    """Rotary embeddings of neighbours, in the order of what they are of."""
    left, right = x[..., 0::2], x[..., 1::2]
    return xp.reshape(xp.stack([left * cos - right * sin, right * cos + left * sin], axis=-1), x.shape)


def products(xp: Any, join: Any, x: Any, y: Any) -> Any:
    """Products of complex numbers."""
    a, b, c, d = x[..., 0], x[..., 1], y[..., 0], y[..., 1]
    return xp.stack([a * c - b * d, a * d + b * c], axis=-1)


def colours(xp: Any, join: Any, x: Any, y: Any) -> Any:
    """Three parts, elements of which are neighbours."""
    return xp.stack([xp.exp(x), x * y, y + x], axis=-1)


def rotations(xp: Any, join: Any, q: Any) -> Any:
    """Matrices as rows of elements."""
    w, x, y, z = (q[..., i] for i in range(4))
    rows = [[w * w - x, x * y - z, x * z], [x * y + z, w - z * z, y * z], [x * z - y, y * z + x, w - x * x]]
    return xp.stack([xp.stack(row, axis=-1) for row in rows], axis=-2)


def homogeneous(xp: Any, join: Any, p: Any, q: Any) -> Any:
    """Matrices of which few elements are computed."""
    zero = q[:, 0] * 0
    rows = [[q[:, 0], -q[:, 1], zero, p[:, 0]], [q[:, 1], q[:, 0], zero, p[:, 1]], [zero, zero, zero + 1, p[:, 2]]]
    return xp.stack([xp.stack(row, axis=-1) for row in rows], axis=1)


def blocks(xp: Any, join: Any, x: Any, y: Any) -> Any:
    """A matrix of blocks that are computed of the same arrays."""
    return join([join([x + y, x * y], axis=1), join([x - y, xp.exp(x) * y], axis=1)], axis=0)


def conjugates(xp: Any, join: Any, q: Any) -> Any:
    """Quaternions of which an element stays as it is."""
    return xp.stack([q[:, 0], -q[:, 1], -q[:, 2], -q[:, 3]], axis=-1)


def about_an_axis(xp: Any, join: Any, p: Any, angle: Any) -> Any:
    """Points of which a coordinate stays as it is."""
    c, s = xp.cos(angle), xp.sin(angle)
    return xp.stack([p[:, 0] * c - p[:, 1] * s, p[:, 0] * s + p[:, 1] * c, p[:, 2]], axis=-1)


def interleaved(xp: Any, join: Any, x: Any, y: Any, z: Any) -> Any:
    """Arrays that have nothing in common."""
    return xp.stack([x, -y, z], axis=-1)


def waves(xp: Any, join: Any, x: Any) -> Any:
    """Positions, and waves of them."""
    return join([x, xp.sin(x), xp.cos(x)], axis=-1)


def heads_first(xp: Any, join: Any, x: Any, cos: Any, sin: Any) -> Any:
    """Rotary embeddings in another order of dimensions."""
    return xp.permute_dims(rotary(xp, join, x, cos, sin), (0, 2, 1, 3)) * 2


def pairs_in_front(xp: Any, join: Any, x: Any, y: Any) -> Any:
    """Parts that would interleave, in front of the dimension whose elements they have."""
    return 2 - xp.permute_dims(xp.stack([x + y, x * y], axis=-1), (0, 2, 1))


def transposed_pairs(xp: Any, join: Any, x: Any, y: Any) -> Any:
    """Parts that interleave, of transposed rows."""
    return xp.permute_dims(xp.stack([x + y, x * y], axis=-1), (1, 0, 2)) + 1


def parts_and_mean(x: Any) -> Any:
    """Parts along rows of a kernel that has one dimension, as all elements are summed."""
    y = mf.abs(x)
    return mf.astype(y, mf.float16), mf.mean(y), mf.concat([y, -y, y], axis=-1)


def frequencies(xp: Any, join: Any, x: Any) -> Any:
    """Points, and the sines and cosines of their multiples: runs of three elements."""
    parts = [x]
    for k in range(3):
        parts += [xp.sin(x * 2.0**k), xp.cos(x * 2.0**k)]
    return join(parts, axis=-1)


JOINED_RESULTS: dict[str, tuple[Any, tuple[tuple[int, ...], ...]]] = {
    "rotary": (rotary, ((2, 5, 3, 64), (5, 1, 32), (5, 1, 32))),
    "frequencies": (frequencies, ((5, 7, 3),)),
    "short halves": (rotary, ((3, 4, 1, 8), (4, 1, 4), (4, 1, 4))),
    "odd halves": (rotary, ((3, 4, 1, 34), (4, 1, 17), (4, 1, 17))),
    "turned": (turned, ((2, 5, 3, 64), (5, 1, 64), (5, 1, 64))),
    "odd turned": (turned, ((3, 4, 34), (4, 34), (4, 34))),
    "turned thirds": (turned_thirds, ((21, 40), (21, 40))),
    "gates": (gate_gradients, ((9, 192), (9, 96))),
    "odd gates": (gate_gradients, ((5, 70), (5, 35))),
    "thirds": (thirds, ((7, 40), (7, 40))),
    "flat thirds": (thirds, ((96,), (96,))),
    "planes": (planes, ((5, 6, 16), (5, 6, 16))),
    "rows of planes": (planes, ((5, 48), (5, 48))),
    "pairs": (pairs, ((2, 5, 3, 64), (5, 1, 32), (5, 1, 32))),
    "odd pairs": (pairs, ((3, 5, 1, 14), (5, 1, 7), (5, 1, 7))),
    "products": (products, ((129, 2), (129, 2))),
    "rows of products": (products, ((9, 16, 2), (9, 16, 2))),
    "colours": (colours, ((7, 40), (7, 40))),
    "rotations": (rotations, ((37, 4),)),
    "planes of rotations": (rotations, ((5, 9, 4),)),
    "homogeneous": (homogeneous, ((33, 3), (33, 2))),
    "blocks": (blocks, ((6, 32), (6, 32))),
    "conjugates": (conjugates, ((41, 4),)),
    "about an axis": (about_an_axis, ((19, 3), (19,))),
    "interleaved": (interleaved, ((5, 13), (5, 13), (5, 13))),
    "waves": (waves, ((9, 24),)),
    "heads first": (heads_first, ((2, 5, 3, 64), (5, 1, 32), (5, 1, 32))),
    "pairs in front": (pairs_in_front, ((6, 32), (6, 32))),
    "transposed pairs": (transposed_pairs, ((6, 20), (6, 20))),
}
"""Functions of a namespace, its `concat` and arrays, whose parts a kernel stores where they belong, and shapes."""


class Joined:
    """A function of a seed: parts as they are, negated or exponentiated, joined along an axis, and then reduced or not.

    Attributes:
        shapes: of its arrays.
    """

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.stacks = bool(self.rng.integers(2))
        self.axis = int(self.rng.integers(-4, 4) if self.stacks else self.rng.integers(-3, 3))
        shape = [int(n) for n in self.rng.choice([1, 2, 3, 5, 8, 16, 33], 3)]
        count = int(self.rng.integers(2, 5))
        self.shapes = [list(shape) for _ in range(count)]
        if not self.stacks:
            for each in self.shapes:
                each[self.axis] = int(self.rng.choice([1, 2, 4, 7, 16]))
        self.kinds = [int(self.rng.integers(4)) for _ in range(count)]
        self.reduced = int(self.rng.integers(3))

    def arrays(self) -> list[np.ndarray]:
        """Of random numbers, others at each call."""
        return [self.rng.standard_normal(shape).astype(np.float32) for shape in self.shapes]

    def __call__(self, xp: Any, *arrays: Any) -> Any:
        parts = [(x, -x, 2 * x + 1, xp.exp(x))[kind] for x, kind in zip(arrays, self.kinds, strict=True)]
        join = {True: xp.stack, False: xp.concat if xp is mf else xp.concatenate}[self.stacks]
        whole = join(parts, axis=self.axis)
        if self.reduced == 1:
            return xp.sum(whole, axis=self.axis)
        return whole - xp.max(whole, axis=-1, keepdims=True) if self.reduced else whole


def phases(xp: Any, join: Any, x: Any) -> Any:
    """Every third element of a padded signal, and the others."""
    padded = join([xp.zeros_like(x[:2]), x, xp.zeros_like(x[:1])])
    parts = xp.reshape(padded, (-(-padded.shape[0] // 3), 3))
    return parts[:, 0] * 0.5 + parts[:, 2], xp.sum(parts[:, 1:] * 2, axis=1)


def steps_of_rows(xp: Any, join: Any, x: Any) -> Any:
    """Elements of a joined matrix in steps that are no slices of its rows."""
    wide = join([x, x + 0], axis=1)
    flat = xp.reshape(wide, (wide.shape[0] * wide.shape[1],))
    return flat[::5] * 2, flat[3:40:5] + flat[2:39:5]


def parts_of_both(xp: Any, join: Any, x: Any) -> Any:
    """Blocks of a joined axis whose last rows are read, and all of it."""
    whole = xp.reshape(join([x, x], axis=0), (3, x.shape[0] * 2 // 3, x.shape[1]))
    return whole[:, 1:] * 2, xp.max(whole, axis=1)


def sliced_pairs(xp: Any, join: Any, x: Any) -> Any:
    """A slice of what is computed of a reshaped join, for a sum."""
    pairs = xp.reshape(join([x, -x], axis=1), (x.shape[0], x.shape[1], 2))
    return xp.sum(xp.tanh(pairs)[:, :, 1], axis=1), xp.sqrt(xp.abs(pairs[..., 0]))


RESHAPED_JOINS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "phases": (phases, (30,)),
    "steps of rows": (steps_of_rows, (6, 4)),
    "parts of both": (parts_of_both, (6, 8)),
    "sliced pairs": (sliced_pairs, (5, 6)),
}
"""Functions of a namespace, its `concat` and an array, with the array's shape: slices of reshapes of joined arrays."""
