"""The `axis` argument."""

from __future__ import annotations

from mlirfuse.builder.source import at_user_line
from mlirfuse.errors import ShapeError


def normalise_axes(axis: int | tuple[int, ...] | None, rank: int, function: str) -> tuple[int, ...]:
    """The dimensions that `axis` names, counted from 0, in its order; None names all.

    Raises:
        ShapeError: an axis is no int, out of range, or named twice.
    """
    if axis is None:
        return tuple(range(rank))
    entries = (axis,) if isinstance(axis, int) else tuple(axis)
    result = []
    for entry in entries:
        if isinstance(entry, bool) or not isinstance(entry, int):
            raise at_user_line(ShapeError(f"{function}: axis {entry!r} is no int"))
        if not -rank <= entry < rank:
            hint = f"axes go from {-rank} to {rank - 1}" if rank else "the tensor has no dimensions"
            raise at_user_line(ShapeError(f"{function}: axis {entry} is out of range for {rank} dimensions", hint=hint))
        result.append(entry % rank)
    if len(set(result)) != len(result):
        raise at_user_line(ShapeError(f"{function}: axis {axis} names a dimension twice"))
    return tuple(result)
