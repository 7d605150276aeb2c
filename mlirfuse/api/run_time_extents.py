"""The run-time extents of the arguments of a traced function, as a call expects them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from mlirfuse.api.signature import SMALL, Source
from mlirfuse.builder.spec import ArgumentSpec, StaticSpec, TensorSpec
from mlirfuse.target import SECTOR

Specs = tuple[ArgumentSpec, ...]
Shape = tuple[int, ...] | None
"""Of an argument; None for a number."""

Numbers = tuple[int | None, ...] | None
"""The shape of an argument, with None for extents that are known at run time; None for a number."""

Magnitudes = tuple[int, ...]
"""The number of bits of each run-time extent."""


@dataclass(frozen=True)
class RunTimeExtent:
    """An extent that is known at run time.

    Attributes:
        source: whose extent.
        name: what equal extents have in common.
        expected: the extent of a call; 0 where nothing is expected.
    """

    source: Source
    name: str | None
    expected: int


def run_time_extents(specs: Specs) -> list[RunTimeExtent]:
    """The extents that are known at run time."""
    return [
        RunTimeExtent((position, dim), name, (spec.hints[dim] if spec.hints is not None else None) or 0)
        for position, spec in enumerate(specs)
        if isinstance(spec, TensorSpec)
        for dim, name in enumerate(spec.shape)
        if not isinstance(name, int)
    ]


def shapes_of(specs: Specs) -> list[Shape]:
    """The shape of each argument of a traced function, with the extents that are expected; None for a number."""
    traced = [spec for spec in specs if not isinstance(spec, StaticSpec)]
    return [_expected(spec) if isinstance(spec, TensorSpec) else None for spec in traced]


def numbers_of(specs: Specs) -> tuple[Numbers, ...]:
    """The shape of each argument of a traced function, with None for extents that are known at run time."""
    traced = [spec for spec in specs if not isinstance(spec, StaticSpec)]
    return tuple(
        tuple(n if isinstance(n, int) else None for n in spec.shape) if isinstance(spec, TensorSpec) else None
        for spec in traced
    )


def fits(numbers: Numbers, shape: Shape) -> bool:
    """Whether an argument has the extents that kernels are for."""
    if numbers is None or shape is None:
        return numbers is shape
    return len(numbers) == len(shape) and all(n in (None, extent) for n, extent in zip(numbers, shape, strict=True))


def without_hints(specs: Specs) -> Specs:
    """Specs of which nothing is expected."""
    return tuple(replace(spec, hints=None) if isinstance(spec, TensorSpec) else spec for spec in specs)


def magnitudes(specs: Specs) -> Magnitudes:
    """The magnitudes of the extents of a call."""
    return tuple(extent.expected.bit_length() for extent in run_time_extents(specs))


def most_elements(specs: Specs) -> int:
    """Elements of an argument along the extents that are known at run time, of that which has most."""
    found: dict[int, int] = {}
    for extent in run_time_extents(specs):
        position, _ = extent.source
        found[position] = found.get(position, 1) * max(1, extent.expected)
    return max(found.values(), default=1)


def behind_first(specs: Specs) -> frozenset[Source]:
    """The run-time extents between first ones and short rows, as far as these are no whole sectors without them.

    Extents that are equal to one of them by name are among them.
    """
    chosen: set[Source] = set()
    for position, spec in enumerate(specs):
        if not isinstance(spec, TensorSpec) or not spec.shape or not isinstance(spec.shape[-1], int):
            continue
        shape = _expected(spec)
        for dim in range(len(shape) - 2, 0, -1):
            if prod(shape[dim + 1 :]) * spec.dtype.bytes % SECTOR:
                chosen.add((position, dim))
    extents = run_time_extents(specs)
    names = {extent.name for extent in extents if extent.source in chosen}
    return frozenset(extent.source for extent in extents if extent.name in names)


def short(specs: Specs) -> frozenset[Source]:
    """The run-time extents of which a tile holds all."""
    return frozenset(extent.source for extent in run_time_extents(specs) if 1 < extent.expected <= SMALL)


def _expected(spec: TensorSpec) -> tuple[int, ...]:
    pairs = zip(spec.shape, spec.hints or (None,) * len(spec.shape), strict=True)
    return tuple(n if isinstance(n, int) else hint or 1 for n, hint in pairs)
