"""Makers of einsums and of their kin."""

from __future__ import annotations

from math import prod

from tests.fuzzing.bounds import Bounded
from tests.fuzzing.generation.generator import SIZES, Generator, Retry
from tests.fuzzing.types import FLOAT8

LETTERS = "abcdefghij"


def einsum(make: Generator) -> None:
    """An einsum of a value and a new input, or one of its kin."""
    name = make.choose({"einsum": 6, "tensordot": 2, "vecdot": 2, "outer": 2, "diagonal": 2, "trace": 2})
    if name in ("diagonal", "trace"):
        _of_square(make, str(name))
        return
    a = make.pick(lambda x: x.dtype != "bool" and x.dtype not in FLOAT8 and x.value.size > 0 and 0 < len(x.shape) < 5)
    x = make.known[a]
    if name == "einsum":
        _equation(make, a, x)
    elif name == "tensordot":
        count = make.random.randint(1, len(x.shape))
        free = _extents(make, prod(x.shape), make.random.randint(0, min(2, 4 - count)))
        b = make.add_input((*x.shape[len(x.shape) - count :], *free), x.dtype)
        make.state("tensordot", [a, b], axes=count)
    elif name == "vecdot":
        make.state("vecdot", [a, make.add_input(x.shape[make.random.randrange(len(x.shape)) :], x.dtype)])
    else:
        make.state("outer", [a, make.add_input(_extents(make, prod(x.shape), 1), x.dtype)])


def _of_square(make: Generator, name: str) -> None:
    squares = make.tensors(lambda x: len(x.shape) > 1 and x.shape[-1] == x.shape[-2] and x.shape[-1] > 0)
    squares = [s for s in squares if make.known[s].dtype not in FLOAT8 or name == "diagonal"]
    if squares and make.chance(0.5):
        make.state(name, [make.random.choice(squares)])
        return
    extent = make.random.choice([n for n in SIZES if 0 < n * n <= make.profile.elements])
    outer = _extents(make, extent * extent, make.random.randint(0, 1))
    square = make.add_input((*outer, extent, extent))
    if make.known[square].dtype in FLOAT8 and name == "trace":
        raise Retry
    make.state(name, [square])


def _equation(make: Generator, a: str, x: Bounded) -> None:
    first = LETTERS[: len(x.shape)]
    shared = [i for i in first if make.chance(0.6)]
    summed = [i for i in shared if make.chance(0.6)]
    free = LETTERS[len(first) : len(first) + make.random.randint(0, 2)]
    sizes = dict(zip(first, x.shape, strict=True)) | dict(
        zip(free, _extents(make, prod(x.shape), len(free)), strict=True)
    )
    second, result = [*shared, *free], [i for i in (*first, *free) if i not in summed]
    make.random.shuffle(second)
    make.random.shuffle(result)
    if len(second) > 4 or prod(sizes.values()) > make.profile.inner:
        raise Retry
    b = make.add_input(tuple(sizes[i] for i in second), x.dtype)
    operands, terms = [a, b], [first, "".join(second)]
    if make.chance(0.4):
        operands, terms = operands[::-1], terms[::-1]
    make.state("einsum", operands, equation=f"{terms[0]},{terms[1]}->{''.join(result)}")


def _extents(make: Generator, taken: int, count: int) -> tuple[int, ...]:
    """New extents, with which a value of so many elements stays within the profile."""
    room = make.profile.elements // max(1, taken)
    found: list[int] = []
    for _ in range(count):
        fitting = [n for n in SIZES if 0 < n <= room]
        if not fitting:
            raise Retry
        found.append(make.random.choice(fitting))
        room //= found[-1]
    return tuple(found)
