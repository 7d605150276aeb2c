"""Specs of the arguments of a traced function, without data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from math import prod
from typing import Literal

from mlirfuse.errors import ArgumentError
from mlirfuse.support.dtypes import DType, dtype_of
from mlirfuse.support.strides import NEGATIVE, PACKED, RUN_TIME

MOST_BYTES = 2**48
"""Largest size of an array, bytes: the address range of GPUs."""

Stride = Literal[0, 1, "negative", "packed"] | None
STRIDES: Mapping[Stride, int] = {0: 0, 1: 1, None: RUN_TIME, "negative": NEGATIVE, "packed": PACKED}
"""The strides that a spec may name, and their encodings in `fuse.strides`."""


@dataclass(frozen=True)
class TensorSpec:
    """A tensor argument.

    Attributes:
        shape: per dimension a number, None (or "?") for an extent known at run time, or a string that names one: equal
            names are equal extents, and different names are never mixed.
        dtype: element type; anything `dtype_of` takes.
        align: bytes that the base pointer, and strides given as no number, are multiples of; a power of two up to 16.
        strides: None for a C-contiguous array, else for each dimension 1 (unit stride), 0 (broadcast), or a property of
            a run-time stride: None (not negative), "negative" (possibly negative), or "packed" (the extent times the
            stride of the next dimension whose extent is not 1, so that the two dimensions can be collapsed).
        name: the name of the argument in IR and messages; None takes the Python parameter's.
        hints: None, or per dimension the extent that is expected where `shape` leaves it to run time; None for a
            dimension of which nothing is expected. Schedules are chosen for these extents and are right for all, so
            that specs which differ in hints alone are equal.

    Raises:
        ArgumentError: an extent, alignment, stride or hint outside these.
        DTypeError: a dtype that mlirfuse does not know.
    """

    shape: tuple[int | str | None, ...]
    dtype: DType
    align: int = 16
    strides: tuple[Stride, ...] | None = None
    name: str | None = None
    hints: tuple[int | None, ...] | None = field(default=None, compare=False)

    def __init__(
        self,
        shape: Sequence[int | str | None] | int,
        dtype: object,
        *,
        align: int = 16,
        strides: Sequence[Stride] | None = None,
        name: str | None = None,
        hints: Sequence[int | None] | None = None,
    ):
        where = name or "TensorSpec"
        if not isinstance(shape, int) and (isinstance(shape, str) or not isinstance(shape, Iterable)):
            raise ArgumentError(f"shape {shape!r}", where=where, hint="use a tuple of extents")
        entries = (shape,) if isinstance(shape, int) else tuple(None if n == "?" else n for n in shape)
        for extent in entries:
            is_int = isinstance(extent, int) and not isinstance(extent, bool)
            if not (extent is None or (is_int and extent >= 0) or (isinstance(extent, str) and extent)):  # type: ignore[operator]
                raise ArgumentError(
                    f"extent {extent!r} in shape {entries}", where=where, hint="use an int >= 0, None, or a name"
                )
        if align not in (1, 2, 4, 8, 16):
            raise ArgumentError(f"alignment {align!r} bytes", where=where, hint="use 1, 2, 4, 8 or 16")
        if strides is not None:
            strides = tuple(strides)
            if len(strides) != len(entries) or any(s not in tuple(STRIDES) for s in strides):
                raise ArgumentError(
                    f"strides {strides} for shape {entries}",
                    where=where,
                    hint="per dimension 1, 0, or for run time None, 'negative' or 'packed'",
                )
        if hints is not None:
            hints = tuple(hints)
            if len(hints) != len(entries) or any(not (n is None or (isinstance(n, int) and n > 0)) for n in hints):
                what = f"hints {hints} for shape {entries}"
                raise ArgumentError(what, where=where, hint="per dimension an extent of 1 or more, or None")
        known = prod(extent for extent in entries if isinstance(extent, int) and extent)  # as NumPy counts them
        if known * dtype_of(dtype).bytes > MOST_BYTES:
            raise ArgumentError(f"shape {entries} has more bytes than can be addressed", where=where)
        object.__setattr__(self, "shape", entries)
        object.__setattr__(self, "dtype", dtype_of(dtype))
        object.__setattr__(self, "align", align)
        object.__setattr__(self, "strides", strides)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "hints", hints)


@dataclass(frozen=True)
class ScalarSpec:
    """A Python number that is passed at run time: `float` as an `f64` argument, `int` and `bool` as `i64`.

    Raises:
        ArgumentError: a kind other than these three.
    """

    kind: Literal["float", "int", "bool"]
    name: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("float", "int", "bool"):
            raise ArgumentError(f"scalar kind {self.kind!r}", where="ScalarSpec", hint="use 'float', 'int' or 'bool'")


@dataclass(frozen=True)
class StaticSpec:
    """A compile-time constant, such as an axis, a flag or None, which is no argument of the traced `func.func`."""

    value: object


class LeftOut(Enum):
    """Placeholder of an omitted argument before one that is given by its name."""

    LEFT_OUT = auto()

    def __repr__(self) -> str:
        return "left out"


LEFT_OUT = LeftOut.LEFT_OUT
"""As the value of a `StaticSpec`: the parameter's Python default."""

ArgumentSpec = TensorSpec | ScalarSpec | StaticSpec
