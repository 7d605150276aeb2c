"""Random chains of views, elementwise functions, joins and reductions, each of what came before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

EXTENTS = [1, 2, 3, 4, 5, 6, 8, 9, 12]
MOST_ELEMENTS = 20_000

Step = Callable[[Any, list[Any]], Any]
"""A value from a namespace, NumPy's or mlirfuse's, and the values before."""


class MixedChain:
    """A function of a seed.

    Attributes:
        arrays: what it is called with.
    """

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        shape = [int(n) for n in self.rng.choice(EXTENTS, size=self.rng.integers(1, 4))]
        shapes = [shape, [n if self.rng.random() < 0.7 else 1 for n in shape]][: 1 + self.rng.integers(2)]
        self.arrays = [self.rng.standard_normal(each).astype(np.float32) for each in shapes]
        self.steps = list[Step]()
        values = [array.astype(np.float64) for array in self.arrays]
        for _ in range(self.rng.integers(3, 9)):
            step = self._step([value.shape for value in values])
            if step is None:
                continue
            value = step(np, values)
            if 0 < value.size <= MOST_ELEMENTS:
                self.steps.append(step)
                values.append(value)
        self.results = [len(values) - 1, *(int(n) for n in self.rng.integers(len(values), size=self.rng.integers(2)))]

    def __call__(self, xp: Any, *arrays: Any) -> tuple[Any, ...]:
        """The function's results."""
        values = list(arrays)
        for step in self.steps:
            values.append(step(xp, values))
        return tuple(values[n] for n in self.results)

    def _step(self, shapes: Sequence[tuple[int, ...]]) -> Step | None:
        """A step that the shapes of the values before allow; None where the kind that was drawn has none."""
        n = len(shapes) - 1 if self.rng.random() < 0.6 else int(self.rng.integers(len(shapes)))
        if not shapes[n]:
            return _elementwise(n, 0)
        kinds = (self._slice, self._difference, self._function, self._pair, self._reduction, self._reshape)
        kinds += (self._permuted, self._join, self._stack, self._flip, self._centred, self._broadcast, self._edges)
        return kinds[self.rng.integers(len(kinds))](n, shapes)

    def _axis(self, shape: Sequence[int]) -> int:
        return int(self.rng.integers(len(shape)))

    def _slice(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step:
        chosen = []
        for extent in shapes[n]:
            first = int(self.rng.integers(max(1, extent // 2)))
            step = int(self.rng.choice([1, 1, 1, 2, 3, -1, -2]))
            last = int(self.rng.integers(first + 1, extent + 1))
            chosen.append(slice(first, last, step) if step > 0 else slice(None, None, step))
        return lambda xp, values: values[n][tuple(chosen)]

    def _difference(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step | None:
        axis = self._axis(shapes[n])
        if shapes[n][axis] < 2:
            return None
        before, after = ((slice(None),) * axis + (part,) for part in (slice(None, -1), slice(1, None)))
        return lambda xp, values: values[n][after] - values[n][before]

    def _function(self, n: int, _: Sequence[tuple[int, ...]]) -> Step:
        return _elementwise(n, int(self.rng.integers(len(FUNCTIONS))))

    def _pair(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step | None:
        for other in self.rng.permutation(len(shapes)).tolist():
            try:
                np.broadcast_shapes(shapes[n], shapes[other])
            except ValueError:
                continue
            adds = self.rng.random() < 0.5
            return lambda xp, values: values[n] + values[other] if adds else values[n] * values[other]
        return None

    def _reduction(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step:
        rank = len(shapes[n])
        axes = tuple(self.rng.choice(rank, size=self.rng.integers(1, rank + 1), replace=False).tolist())
        name, keeps = str(self.rng.choice(["sum", "mean", "max", "min", "var"])), bool(self.rng.random() < 0.4)
        return lambda xp, values: getattr(xp, name)(values[n], axis=axes, keepdims=keeps)

    def _reshape(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step | None:
        shape, axis = list(shapes[n]), self._axis(shapes[n])
        divisors = [d for d in range(2, shape[axis]) if shape[axis] % d == 0]
        if divisors and self.rng.random() < 0.6:
            inner = int(self.rng.choice(divisors))
            shape[axis : axis + 1] = [shape[axis] // inner, inner]
        elif axis + 1 < len(shape):
            shape[axis : axis + 2] = [shape[axis] * shape[axis + 1]]
        else:
            return None
        return lambda xp, values: values[n].reshape(shape)

    def _permuted(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step:
        order = self.rng.permutation(len(shapes[n])).tolist()
        return lambda xp, values: values[n].transpose(*order)

    def _join(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step:
        axis = self._axis(shapes[n])
        others = [m for m, shape in enumerate(shapes) if _without(shape, axis) == _without(shapes[n], axis)]
        parts = [n, *self.rng.choice(others, size=self.rng.integers(1, 3)).tolist()]
        return lambda xp, values: _joined(xp)([values[m] for m in parts], axis=axis)

    def _stack(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step:
        other = int(self.rng.choice([m for m, shape in enumerate(shapes) if shape == shapes[n]]))
        axis = int(self.rng.integers(len(shapes[n]) + 1))
        return lambda xp, values: xp.stack([values[n], values[other]], axis=axis)

    def _flip(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step:
        axis = self._axis(shapes[n])
        return lambda xp, values: xp.flip(values[n], axis=axis)

    def _centred(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step:
        axis = self._axis(shapes[n])
        return lambda xp, values: values[n] - xp.mean(values[n], axis=axis, keepdims=True)

    def _broadcast(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step:
        axis, count = int(self.rng.integers(len(shapes[n]) + 1)), int(self.rng.choice([2, 3]))
        shape = (*shapes[n][:axis], count, *shapes[n][axis:])
        return lambda xp, values: xp.broadcast_to(xp.expand_dims(values[n], axis), shape)

    def _edges(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step:
        axis = self._axis(shapes[n])
        first, last = ((slice(None),) * axis + (part,) for part in (slice(1), slice(-1, None)))
        return lambda xp, values: _joined(xp)([values[n][first], values[n], values[n][last]], axis=axis)


FUNCTIONS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda xp, x: xp.tanh(x),
    lambda xp, x: x * 0.5 + 1.0,
    lambda xp, x: xp.abs(x) + 0.1,
    lambda xp, x: xp.where(x > 0, x, -0.3 * x),
)


def _elementwise(n: int, function: int) -> Step:
    return lambda xp, values: FUNCTIONS[function](xp, values[n])


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...] | None:
    return (*shape[:axis], *shape[axis + 1 :]) if axis < len(shape) else None


def _joined(xp: Any) -> Callable[..., Any]:
    return xp.concatenate if xp is np else xp.concat
