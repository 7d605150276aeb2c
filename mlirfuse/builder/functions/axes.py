"""Checks of the `axis` argument, and of integer arguments in general."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from mlirfuse.builder.source import at_user_line
from mlirfuse.errors import DTypeError, ShapeError

Axes = int | Sequence[int]


def integer(value: object, what: str) -> int:
    """The value as an int; `what` names the argument in errors.

    Raises:
        ShapeError: the value is no integer.
        DTypeError: the value is a bool, which Python would convert to 0 or 1.
        ControlFlowError: the value is traced.
    """
    if isinstance(value, bool):
        hint = "flags such as keepdims are given by name" if what.endswith("axis") else "write 0 or 1"
        raise at_user_line(DTypeError(f"{what} {value!r} is a bool", hint=hint))
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise at_user_line(ShapeError(f"{what} {value!r} is no int")) from None


def flag(value: object, what: str) -> bool:
    """The value as a bool, which 0 and 1 are too, also NumPy's; `what` names the argument in errors.

    Raises:
        DTypeError: the value is neither.
    """
    if isinstance(value, bool | int | np.bool_) and value in (0, 1):
        return bool(value)
    raise at_user_line(DTypeError(f"{what} {value!r} is no bool", hint="write True or False"))


def axis_list(axis: Axes, function: str) -> list[int]:
    """The `axis` argument as a list of ints, not normalised."""
    return [integer(entry, f"{function}: axis") for entry in (axis if isinstance(axis, tuple | list) else (axis,))]


def normalise_axes(axis: Axes | None, rank: int, function: str) -> tuple[int, ...]:
    """The dimensions that `axis` names, counted from 0, in its order; None names all.

    Raises:
        ShapeError: an axis is no int, out of range, or named twice.
        DTypeError: an axis is a bool.
    """
    if axis is None:
        return tuple(range(rank))
    result = []
    for entry in axis_list(axis, function):
        if not -rank <= entry < rank:
            hint = f"axes go from {-rank} to {rank - 1}" if rank else "the tensor has no dimensions"
            raise at_user_line(ShapeError(f"{function}: axis {entry} is out of range for {rank} dimensions", hint=hint))
        result.append(entry % rank)
    if len(set(result)) != len(result):
        raise at_user_line(ShapeError(f"{function}: axis {axis} names a dimension twice"))
    return tuple(result)
