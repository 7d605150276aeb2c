"""Where the elements along k of an operand end that is a gathered view: behind them it is zero, for whole columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from mlirfuse.dialect.gathered_view import Gather
from mlirfuse.support.affine_expressions import bounds, coefficients


@dataclass(frozen=True)
class Limit:
    """How many values of a component of k are inside of the source, for each class of columns.

    With t = room - sum over the class's components of weight * component, these are t // step, at least one is assumed,
    and there are no more than the component has.

    Attributes:
        step: indices of the source from one value of the component to the next one.
        room: as above.
        weights: of each component of the class.
    """

    step: int
    room: int
    weights: tuple[int, ...]


@dataclass(frozen=True)
class KEnds:
    """The last elements along k that a view may have, by classes of its columns.

    Data gradients of strided convolutions have them: each residue class of a pixel, which is a class of columns, meets
    every so many taps of the filters, and some classes one tap less than others.

    Attributes:
        extents: of the components of k, the last one fastest.
        limits: of each component of k; None where all of its values are inside.
        classes: the extents of the components of columns that limits depend on, and of those outside of them.
        columns: columns of a class, which are neighbours.
    """

    extents: tuple[int, ...]
    limits: tuple[Limit | None, ...]
    classes: tuple[int, ...]
    columns: int

    def end(self, class_: Sequence[int]) -> int:
        """Elements along k up to the last one that may be no zero, for a class of columns."""
        end = 0
        for extent, limit in zip(self.extents, self.limits, strict=True):
            count = extent
            if limit is not None:
                room = limit.room - sum(w * c for w, c in zip(limit.weights, class_, strict=True))
                count = min(extent, max(1, room // limit.step))
            end = end * extent + count - 1
        return end + 1

    @property
    def share(self) -> float:
        """The share of k up to there, in the mean over classes."""
        ends = [self.end(class_) for class_ in product(*map(range, self.classes))]
        return sum(ends) / (len(ends) * prod(self.extents))


def k_ends(gather: Gather, shape: Sequence[int], k: int, columns: int) -> KEnds | None:
    """The ends of a view of a source of that shape; None where no class ends before the others.

    Args:
        gather: how the view lies in its source.
        shape: of the source.
        k: the view's dimension along which is summed.
        columns: the view's dimension of columns.
    """
    first = [sum(len(group) for group in gather.basis[:dim]) for dim in range(len(gather.basis))]
    of_k = range(first[k], first[k] + len(gather.basis[k]))
    of_columns = range(first[columns], first[columns] + len(gather.basis[columns]))
    found: list[tuple[int, int, Sequence[int]] | None] = [None] * len(of_k)  # step, room and factors
    for expr, extent in zip(gather.map.results, shape, strict=True):
        linear = coefficients(expr, len(gather.components))
        low, high = bounds(expr, gather.components)
        if linear is None or low < 0 or high < extent:
            continue
        factors, start = linear
        terms = [c for c, factor in enumerate(factors) if factor and gather.components[c] > 1]
        along = [c for c in terms if c in of_k]
        if len(along) != 1 or min(factors) < 0 or any(c not in of_columns for c in terms if c not in of_k):
            continue
        (own,) = along
        found[own - of_k.start] = factors[own], extent - 1 - start + factors[own], factors
    used = {c - of_columns.start for each in found if each for c in of_columns if each[2][c]}
    if not used:
        return None
    outer = max(used) + 1
    extents = gather.basis[columns]
    limits = [
        None if each is None else Limit(each[0], each[1], tuple(each[2][c] for c in of_columns[:outer]))
        for each in found
    ]
    ends = KEnds(gather.basis[k], tuple(limits), extents[:outer], prod(extents[outer:]))
    return ends if ends.share < 1.0 else None
