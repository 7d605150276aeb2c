"""The iteration space of some dimensions of a kernel's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mlirfuse.analysis.loops.iteration_space import IterationSpace


def subspace(space: IterationSpace, dims: Sequence[int]) -> IterationSpace:
    """The iteration space of the dimensions `dims`, in that order; axes along other dimensions become None."""
    number = {dim: position for position, dim in enumerate(dims)}

    def renamed(axes: Sequence[int | None]) -> tuple[int | None, ...]:
        return tuple(None if d is None else number.get(d) for d in axes)

    return replace(
        space,
        extents=tuple(space.extents[d] for d in dims),
        loops={op: renamed(axes) for op, axes in space.loops.items()},
        value_axes={value: renamed(axes) for value, axes in space.value_axes.items()},
        use_axes={use: renamed(axes) for use, axes in space.use_axes.items()},
        reduced={op: frozenset(number[d] for d in found) for op, found in space.reduced.items() if found <= set(dims)},
    )
