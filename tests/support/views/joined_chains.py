"""Random chains of joins, pads, shifts and slices, elementwise functions and reductions, each of what came before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

EXTENTS = [1, 2, 3, 4, 5, 7, 8, 9, 12, 16]
CONSTANTS = [0.0, 0.0, 0.0, 1.0, -0.0, 2.5, float("inf"), -1.0]
DTYPES = ["float32"] * 6 + ["float64", "int32", "int8", "bool"]
MOST_ELEMENTS = 20_000

Step = Callable[[Any, list[Any]], Any]
"""A value from a namespace, NumPy's or mlirfuse's, and the values before."""


class JoinedChain:
    """A function of a seed.

    Args:
        seed: of its random numbers.
        extents: of its arrays.
        most: elements of a value, at most.
        dtypes: of which one is drawn for all values.

    Attributes:
        dtype: of all values.
        arrays: what it is called with, of which some are not contiguous.
        steps: the values that it computes.
        results: the numbers of those that it returns.
    """

    def __init__(
        self,
        seed: int,
        extents: Sequence[int] = EXTENTS,
        most: int = MOST_ELEMENTS,
        dtypes: Sequence[str] = DTYPES,
    ):
        self.rng = np.random.default_rng(seed)
        self.dtype = np.dtype(str(self.rng.choice(dtypes)))
        shape = [int(n) for n in self.rng.choice(extents, size=self.rng.integers(1, 4))]
        while np.prod(shape) > most:
            shape.pop()
        others = [shape, [n if self.rng.random() < 0.7 else 1 for n in shape], shape[1:], []]
        count = 1 + int(self.rng.integers(3))
        shapes = [shape, *(others[int(self.rng.integers(len(others)))] for _ in range(count - 1))]
        self.arrays = [self._array(tuple(each)) for each in shapes]
        if count > 1 and self.rng.random() < 0.15:
            self.arrays[1] = self.arrays[0]
        self.steps = list[Step]()
        values = [self.exact(array) for array in self.arrays]
        with np.errstate(all="ignore"):
            for _ in range(self.rng.integers(3, 9)):
                step = self._step([value.shape for value in values])
                if step is None:
                    continue
                value = np.asarray(step(np, values))
                if 0 < value.size <= most:
                    self.steps.append(step)
                    values.append(value)
        self.results = [len(values) - 1, *(int(n) for n in self.rng.integers(len(values), size=self.rng.integers(2)))]

    def __call__(self, xp: Any, *arrays: Any) -> tuple[Any, ...]:
        """The function's results."""
        values = list(arrays)
        for step in self.steps:
            values.append(step(xp, values))
        return tuple(values[n] for n in self.results)

    def exact(self, array: np.ndarray) -> np.ndarray:
        """An array in the type that expected results are computed in."""
        return array.astype(np.float64) if self.dtype.kind == "f" else array

    def expected(self) -> tuple[np.ndarray, ...]:
        """The results by NumPy."""
        with np.errstate(all="ignore"):
            return self(np, *map(self.exact, self.arrays))

    def check(self, found: Sequence[Any]) -> None:
        """Compares results with those expected."""
        for own, other in zip(found, self.expected(), strict=True):
            finite = np.abs(other[np.isfinite(other)].astype(np.float64)) if other.dtype != bool else np.zeros(0)
            scale = max(1.0, float(finite.max())) if finite.size else 1.0
            tolerance = 2e-4 * scale if self.dtype.kind == "f" else 0.0
            np.testing.assert_allclose(np.asarray(own).astype(other.dtype), other, rtol=0, atol=tolerance)

    def _array(self, shape: tuple[int, ...]) -> np.ndarray:
        """Of random numbers, contiguous or not."""
        kind = int(self.rng.integers(8)) if shape else 0
        stored = shape
        if kind == 1:
            stored = shape[::-1]
        elif kind == 2:
            stored = tuple(2 * n for n in shape)
        elif kind == 3:
            stored = tuple(n + 1 for n in shape)
        elif kind == 4:
            stored = (*shape[:-1], 1)
        array = self._drawn(stored)
        if kind == 1:
            array = array.T
        elif kind == 2:
            array = array[tuple(slice(None, None, 2) for _ in shape)]
        elif kind == 3:
            array = array[tuple(slice(1, None) for _ in shape)]
        elif kind == 4:
            array = np.broadcast_to(array, shape)
        elif kind == 5:
            array = array[tuple(slice(None, None, -1) for _ in shape)]
        return array

    def _drawn(self, shape: tuple[int, ...]) -> np.ndarray:
        if self.dtype.kind == "f":
            array = np.asarray(self.rng.standard_normal(shape)).astype(self.dtype)
            if self.rng.random() < 0.2 and array.ndim:
                array.flat[:: max(1, array.size // 3)] = self.rng.choice([np.nan, np.inf, -np.inf])
            return array
        if self.dtype.kind == "b":
            return np.asarray(self.rng.integers(0, 2, shape)).astype(bool)
        return np.asarray(self.rng.integers(-9, 10, shape)).astype(self.dtype)

    def _step(self, shapes: Sequence[tuple[int, ...]]) -> Step | None:
        """A step that the shapes of the values before allow; None where the kind that was drawn has none."""
        n = len(shapes) - 1 if self.rng.random() < 0.6 else int(self.rng.integers(len(shapes)))
        if not shapes[n]:
            return self._function(n, shapes)
        kinds = (self._slice, self._function, self._pair, self._reduction, self._reshape, self._permuted)
        kinds += (self._join, self._join, self._filled, self._filled, self._stack, self._flip, self._roll)
        kinds += (self._padded, self._padded, self._stencil, self._stencil, self._edges, self._normalised)
        kinds += (self._broadcast, self._gradient, self._pair, self._chosen, self._product)
        return kinds[self.rng.integers(len(kinds))](n, shapes)

    def _axis(self, shape: Sequence[int]) -> int:
        return int(self.rng.integers(len(shape)))

    def _slice(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step:
        chosen: list[Any] = []
        for extent in shapes[n]:
            if self.rng.random() < 0.4:
                chosen.append(slice(None))
                continue
            if self.rng.random() < 0.1 and len(shapes[n]) > 1:
                chosen.append(int(self.rng.integers(extent)))
                continue
            first = int(self.rng.integers(max(1, extent // 2)))
            step = int(self.rng.choice([1, 1, 1, 2, 3, -1, -2]))
            last = int(self.rng.integers(first + 1, extent + 1))
            chosen.append(slice(first, last, step) if step > 0 else slice(None, None, step))
        return lambda xp, values: values[n][(*chosen, ...)]

    def _function(self, n: int, _: Sequence[tuple[int, ...]]) -> Step:
        own = {"f": FUNCTIONS, "i": INTEGER_FUNCTIONS, "b": BOOL_FUNCTIONS}[self.dtype.kind]
        function = own[int(self.rng.integers(len(own)))]
        return lambda xp, values: function(xp, values[n])

    def _pair(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step | None:
        own = {"f": PAIRS, "i": INTEGER_PAIRS, "b": BOOL_PAIRS}[self.dtype.kind]
        function = own[int(self.rng.integers(len(own)))]
        for other in self.rng.permutation(len(shapes)).tolist():
            try:
                np.broadcast_shapes(shapes[n], shapes[other])
            except ValueError:
                continue
            return lambda xp, values: function(xp, values[n], values[other])
        return None

    def _chosen(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step | None:
        if self.dtype.kind == "b":
            return None
        others = [m for m, shape in enumerate(shapes) if shape == shapes[n]]
        m, k = (int(self.rng.choice(others)) for _ in range(2))
        return lambda xp, values: xp.where(values[n] > values[m], values[k], values[n])

    def _reduction(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step:
        rank = len(shapes[n])
        axes = tuple(self.rng.choice(rank, size=self.rng.integers(1, rank + 1), replace=False).tolist())
        names = {"f": ["sum", "mean", "max", "min", "var"], "i": ["max", "min"], "b": ["any", "all"]}[self.dtype.kind]
        name, keeps = str(self.rng.choice(names)), bool(self.rng.random() < 0.4)
        return lambda xp, values: getattr(xp, name)(values[n], axis=axes, keepdims=keeps)

    def _normalised(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step | None:
        if self.dtype.kind != "f":
            return None
        axis = self._axis(shapes[n])
        return lambda xp, values: values[n] / xp.sqrt(xp.mean(values[n] * values[n], axis=axis, keepdims=True) + 1)

    def _product(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step | None:
        others = [m for m, shape in enumerate(shapes) if len(shape) == 2 and shape[0] == shapes[n][-1]]
        if self.dtype.kind != "f" or not others or len(shapes[n]) != 2:
            return None
        m = int(self.rng.choice(others))
        return lambda xp, values: xp.matmul(xp.tanh(values[n]), xp.tanh(values[m]))

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
        return lambda xp, values: xp.reshape(values[n], tuple(shape))

    def _permuted(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step:
        order = self.rng.permutation(len(shapes[n])).tolist()
        return lambda xp, values: values[n].transpose(*order)

    def _join(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step:
        axis = self._axis(shapes[n])
        others = [m for m, shape in enumerate(shapes) if _without(shape, axis) == _without(shapes[n], axis)]
        parts = [n, *self.rng.choice(others, size=self.rng.integers(1, 4)).tolist()]
        self.rng.shuffle(parts)
        return lambda xp, values: _joined(xp)([values[m] for m in parts], axis=axis)

    def _filled(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step:
        """Joined with constants."""
        axis, extent = (own := self._axis(shapes[n])), shapes[n][own]
        widths = [int(self.rng.integers(0, extent + 1)) for _ in range(3)]
        kinds = [self._constant() for _ in range(3)]
        middle = self.rng.random() < 0.3

        def step(xp: Any, values: list[Any]) -> Any:
            x = values[n]
            parts = [xp.full_like(_part(x, axis, slice(0, w)), k) for w, k in zip(widths, kinds, strict=True) if w]
            whole = [*parts[:1], x, *parts[1:2], *([x, *parts[2:]] if middle else [])]
            return _joined(xp)(whole, axis=axis)

        return step

    def _constant(self) -> Any:
        if self.dtype.kind == "f":
            return float(self.rng.choice(CONSTANTS))
        return bool(self.rng.integers(2)) if self.dtype.kind == "b" else int(self.rng.integers(-1, 3))

    def _stack(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step:
        others = [m for m, shape in enumerate(shapes) if shape == shapes[n]]
        parts = [n, *self.rng.choice(others, size=self.rng.integers(1, 3)).tolist()]
        axis = int(self.rng.integers(len(shapes[n]) + 1))
        function = self._function(0, shapes)
        joins = self.rng.random() < 0.5

        def step(xp: Any, values: list[Any]) -> Any:
            first, *rest = (values[m] for m in parts)
            whole = xp.stack([function(xp, [first]), *rest], axis=axis)
            if not joins:
                return whole
            at = min(axis, len(shapes[n]) - 1)
            shape = [*shapes[n][:at], len(parts) * shapes[n][at], *shapes[n][at + 1 :]]
            return xp.reshape(whole, tuple(shape))

        return step

    def _flip(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step:
        axis = self._axis(shapes[n])
        return lambda xp, values: xp.flip(values[n], axis=axis)

    def _roll(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step | None:
        axis = self._axis(shapes[n])
        if shapes[n][axis] < 2:
            return None
        at = int(self.rng.integers(1, shapes[n][axis]))
        ends = slice(at, None), slice(0, at)
        return lambda xp, values: _joined(xp)([_part(values[n], axis, end) for end in ends], axis=axis)

    def _padded(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step:
        """Padded with a constant along several axes."""
        rank = len(shapes[n])
        axes = self.rng.choice(rank, size=self.rng.integers(1, rank + 1), replace=False).tolist()
        widths = [(int(self.rng.integers(3)), int(self.rng.integers(4))) for _ in axes]
        constant = self.dtype.type(0).item() if self.rng.random() < 0.6 else self._constant()
        function = self._function(0, shapes) if self.rng.random() < 0.5 else lambda xp, values: values[0]

        def step(xp: Any, values: list[Any]) -> Any:
            x = function(xp, [values[n]])
            for axis, pair in zip(axes, widths, strict=True):
                x = padded(xp, x, axis, pair, constant)
            return x

        return step

    def _stencil(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step | None:
        """Neighbours along an axis, of a value that is padded with zeros or not."""
        axis, width = self._axis(shapes[n]), int(self.rng.choice([2, 3, 3, 5]))
        kind = int(self.rng.integers(3))
        if (kind == 0 and shapes[n][axis] < width) or self.dtype.kind == "b":
            return None
        weights = self.rng.integers(1, 4, width).tolist()
        before = width // 2

        def step(xp: Any, values: list[Any]) -> Any:
            x = values[n]
            if kind == 1:
                x = padded(xp, x, axis, (before, width - 1 - before), self.dtype.type(0).item())
            elif kind == 2:
                first, last = _part(x, axis, slice(0, 1)), _part(x, axis, slice(x.shape[axis] - 1, None))
                x = _joined(xp)([first] * before + [x] + [last] * (width - 1 - before), axis=axis)
            count = x.shape[axis] - width + 1
            total = _part(x, axis, slice(0, count)) * weights[0]
            for tap in range(1, width):
                total = total + _part(x, axis, slice(tap, tap + count)) * weights[tap]
            return total

        return step

    def _gradient(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step | None:
        axis = self._axis(shapes[n])
        if shapes[n][axis] < 3 or self.dtype.kind == "b":
            return None

        def step(xp: Any, values: list[Any]) -> Any:
            x, end = values[n], shapes[n][axis]
            at = lambda first, last: _part(x, axis, slice(first, last))  # noqa: E731
            middle = at(2, end) - at(0, end - 2)
            return _joined(xp)([at(1, 2) - at(0, 1), middle, at(end - 1, end) - at(end - 2, end - 1)], axis=axis)

        return step

    def _broadcast(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step:
        axis, count = int(self.rng.integers(len(shapes[n]) + 1)), int(self.rng.choice([2, 3]))
        shape = (*shapes[n][:axis], count, *shapes[n][axis:])
        return lambda xp, values: xp.broadcast_to(xp.expand_dims(values[n], axis), shape)

    def _edges(self, n: int, shapes: Sequence[tuple[int, ...]]) -> Step:
        axis = self._axis(shapes[n])
        last = slice(shapes[n][axis] - 1, None)
        return lambda xp, values: _joined(xp)(
            [_part(values[n], axis, slice(0, 1)), values[n], _part(values[n], axis, last)], axis=axis
        )


def padded(xp: Any, x: Any, axis: int, widths: tuple[int, int], constant: Any) -> Any:
    """An array with so many elements of a constant before and behind it, as one join."""
    parts = []
    for width in widths:
        one = xp.full_like(_part(x, axis, slice(0, 1)), constant)
        shape = [width if d == axis else n for d, n in enumerate(x.shape)]
        parts.append([xp.broadcast_to(one, tuple(shape))] if width else [])
    return _joined(xp)([*parts[0], x, *parts[1]], axis=axis) if widths != (0, 0) else x


FUNCTIONS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda xp, x: xp.tanh(x),
    lambda xp, x: x * 0.5 + 1.0,
    lambda xp, x: xp.abs(x) + 0.1,
    lambda xp, x: xp.where(x > 0, x, -0.3 * x),
    lambda xp, x: xp.exp(-xp.abs(x)),
    lambda xp, x: xp.cos(x),
    lambda xp, x: 1 / (1 + xp.abs(x)),
    lambda xp, x: -x,
)

INTEGER_FUNCTIONS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda xp, x: x * 2 + 1,
    lambda xp, x: x // 3,
    lambda xp, x: x % 5,
    lambda xp, x: 7 // x,
    lambda xp, x: xp.where(x > 0, x, -x),
)

BOOL_FUNCTIONS: tuple[Callable[[Any, Any], Any], ...] = (lambda xp, x: xp.logical_not(x),)

PAIRS: tuple[Callable[[Any, Any, Any], Any], ...] = (
    lambda xp, x, y: x + y,
    lambda xp, x, y: x - y,
    lambda xp, x, y: x * y,
    lambda xp, x, y: xp.maximum(x, y),
    lambda xp, x, y: x / (xp.abs(y) + 1),
    lambda xp, x, y: xp.where(x > y, x, y * 2),
)

INTEGER_PAIRS: tuple[Callable[[Any, Any, Any], Any], ...] = (
    lambda xp, x, y: x + y,
    lambda xp, x, y: x * y,
    lambda xp, x, y: x // y,
    lambda xp, x, y: x % y,
    lambda xp, x, y: xp.where(x > y, x - y, y),
)

BOOL_PAIRS: tuple[Callable[[Any, Any, Any], Any], ...] = (
    lambda xp, x, y: xp.logical_and(x, y),
    lambda xp, x, y: xp.logical_or(x, y),
    lambda xp, x, y: xp.logical_xor(x, y),
)


def _part(x: Any, axis: int, part: slice) -> Any:
    return x[(slice(None),) * axis + (part, ...)]


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...] | None:
    return (*shape[:axis], *shape[axis + 1 :]) if axis < len(shape) else None


def _joined(xp: Any) -> Callable[..., Any]:
    return xp.concatenate if xp is np else xp.concat
