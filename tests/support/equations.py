"""Random equations of einsum with operands, for property tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

LETTERS = "abcdefghijklmnopqrstuvwxyzABC"
DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "bool")


@dataclass(frozen=True)
class Einsum:
    """An equation, the shapes and the dtype of its operands, and the seed of their values.

    Values are small integers, and sums are short, so that all results are exact in every dtype but int8, which wraps.

    Attributes:
        alternating: whether operands and lists of numbers alternate in the call, in place of an equation.
    """

    equation: str
    shapes: tuple[tuple[int, ...], ...]
    dtype: str
    seed: int
    alternating: bool = False

    def call(self, xp: Any, arrays: Sequence[Any]) -> Any:
        """The einsum of NumPy or mlirfuse."""
        if not self.alternating:
            return xp.einsum(self.equation, *arrays)
        terms, arrow, result = self.equation.replace(" ", "").partition("->")
        lists = [_numbers(term) for term in terms.split(",")]
        given = [part for pair in zip(arrays, lists, strict=True) for part in pair]
        return xp.einsum(*given, *([_numbers(result)] if arrow else []))

    def arrays(self) -> list[np.ndarray]:
        """The operands."""
        rng = np.random.default_rng(self.seed)
        dtype = np.dtype(getattr(ml_dtypes, self.dtype, self.dtype))
        return [np.asarray(rng.integers(-1, 2, shape)).astype(dtype) for shape in self.shapes]

    def expected(self, arrays: list[np.ndarray]) -> np.ndarray:
        """NumPy's result, of half precision from float64."""
        if self.dtype in ("float16", "bfloat16"):
            wide = self.call(np, [x.astype(np.float64) for x in arrays])
            return np.asarray(wide).astype(arrays[0].dtype)
        return np.asarray(self.call(np, arrays))


@st.composite
def einsums(draw: st.DrawFn, most_operands: int = 4, largest: int = 4) -> Einsum:
    """Equations of up to so many operands of up to 4 dimensions, with extents of 1 that broadcast, repeated indices,
    ellipses, spaces, and implicit results.
    """
    count = draw(st.integers(1, most_operands))
    letters = draw(st.permutations(LETTERS[: draw(st.integers(1, 5))]))
    extents = {i: draw(st.integers(1, largest)) for i in letters}
    if draw(st.integers(0, 15)) == 0:
        extents[letters[0]] = 0
    most = draw(st.sampled_from((0, 0, 0, 1, 2)))
    outer = [draw(st.integers(1, largest)) for _ in range(most)]
    terms, shapes = [], []
    for _ in range(count):
        term = draw(st.lists(st.sampled_from(letters), min_size=0, max_size=4))
        ones = {i for i in term if draw(st.integers(0, 9)) == 0}
        shape = [1 if i in ones else extents[i] for i in term]
        if most and draw(st.booleans()):
            own = outer[draw(st.integers(0, most)) :]
            own = [1 if draw(st.integers(0, 5)) == 0 else n for n in own]
            place = draw(st.integers(0, len(term)))
            term[place:place], shape[place:place] = ["..."], own
        terms.append(term)
        shapes.append(tuple(shape))
    space = draw(st.sampled_from(("", "", " ")))
    equation = ",".join(space.join(term) for term in terms)
    known = sorted({i for term in terms for i in term} - {"..."})
    if draw(st.booleans()):
        result = draw(st.permutations([i for i in known if draw(st.booleans())]))
        if any("..." in term for term in terms):
            place = draw(st.integers(0, len(result)))
            result = [*result[:place], "...", *result[place:]]
        equation += f"{space}->{space}" + space.join(result)
    return Einsum(
        equation, tuple(shapes), draw(st.sampled_from(DTYPES)), draw(st.integers(0, 99)), draw(st.integers(0, 3)) == 0
    )


def _numbers(term: str) -> list[Any]:
    """A term as a list of numbers, and Ellipsis."""
    before, dots, after = term.partition("...")
    return [*map(LETTERS.index, before), *([Ellipsis] if dots else []), *map(LETTERS.index, after)]
