"""Makers of views and of matrix products."""

from __future__ import annotations

from math import prod

import numpy as np

from tests.fuzzing.bounds import Bounded
from tests.fuzzing.generation.generator import SIZES, Generator, Retry
from tests.fuzzing.program import Extent, Number
from tests.fuzzing.types import FLOAT8, FLOATS, promote


def view(make: Generator) -> None:
    """One view or a chain of them."""
    a = make.pick()
    for _ in range(int(make.choose({1: 6, 2: 3, 3: 1}))):
        a = one_view(make, a)


def one_view(make: Generator, a: str) -> str:
    x = make.known[a]
    rank = len(x.shape)
    name = make.choose(
        {
            "reshape": 5,
            "permute_dims": 4,
            "expand_dims": 3,
            "squeeze": 2,
            "broadcast_to": 2,
            "matrix_transpose": 2,
            "transposed": 2,
            "index": 5,
            "flip": 2,
            "diagonal": 2,
        }
    )
    if name == "permute_dims" and rank > 1:
        return make.state("permute_dims", [a], axes=tuple(make.random.sample(range(rank), rank)))
    if name in ("matrix_transpose", "transposed") and rank > 1 and (name == "matrix_transpose" or rank == 2):
        return make.state(str(name), [a])
    if name == "expand_dims" and rank < 4:
        return make.state("expand_dims", [a], axis=make.random.randint(-1, rank))
    if name == "squeeze" and 1 in x.shape:
        ones = [d for d, n in enumerate(x.shape) if n == 1]
        chosen = make.random.sample(ones, make.random.randint(1, len(ones)))
        return make.state("squeeze", [a], axis=tuple(chosen) if len(chosen) > 1 or make.chance(0.3) else chosen[0])
    if name == "broadcast_to" and rank < 5:
        new = tuple(make.random.choice(SIZES[1:8]) for _ in range(make.random.randint(0, 4 - min(rank, 4))))
        grown = tuple(make.random.choice(SIZES[1:9]) if n == 1 and make.chance(0.7) else n for n in x.shape)
        if prod(new + grown) > make.profile.elements:
            raise Retry
        kept = tuple(
            Extent(a, d) if n != 1 and n == x.shape[d] and make.chance(0.3) else n for d, n in enumerate(grown)
        )
        return make.state("broadcast_to", [a], shape=new + kept)
    if name == "index" and rank:
        return make.state(
            "index", [a], key=tuple(chosen_index(make, n) for n in x.shape[: make.random.randint(1, rank)])
        )
    if name == "flip" and rank:
        axes = tuple(make.random.sample(range(rank), make.random.randint(1, rank)))
        return make.state("flip", [a], axis=axes if len(axes) > 1 else axes[0])
    if name == "diagonal" and rank > 1:
        row, column = make.random.sample(range(rank), 2)
        return make.state("diagonal", [a], offset=make.random.choice((0, 0, 1, -1)), axis1=row, axis2=column)
    if name == "reshape" and rank:
        return make.state("reshape", [a], shape=regrouped(make, a))
    raise Retry


def join(make: Generator) -> None:
    """Two or three tensors one after the other, of which the later ones are often parts of the first, or made of it."""
    name = str(make.choose({"concat": 3, "stack": 2}))
    a = make.pick(lambda x: x.value.ndim < 5 and (x.value.ndim > 0 or name == "stack"))
    rank = len(make.known[a].shape)
    axis = make.random.randint(-rank, rank - 1) if name == "concat" else make.random.randint(-rank - 1, rank)
    along = axis % rank if name == "concat" else None
    parts = [a, *(_beside(make, a, along) for _ in range(make.random.randint(1, 2)))]
    make.random.shuffle(parts)
    make.state(name, parts, axis=axis)


def _beside(make: Generator, a: str, axis: int | None) -> str:
    """A tensor that joins another one along an axis, or of its shape."""
    shape = make.known[a].shape

    def fits(x: Bounded) -> bool:
        pairs = zip(x.shape, shape, strict=False)
        return x.value.ndim == len(shape) and all(n == m or d == axis for d, (n, m) in enumerate(pairs))

    if make.chance(0.3) and make.known[a].dtype != "bool":
        return make.state("negative", [a]) if make.known[a].dtype in FLOATS else a
    if make.chance(0.3) and axis is not None:
        key = [(None, None)] * axis + [chosen_index(make, shape[axis])]
        if isinstance(key[-1], tuple):
            return make.state("index", [a], key=tuple(key))
    return make.pick(fits)


def chosen_index(make: Generator, extent: int) -> object:
    """An index of a dimension: a number, or the bounds and the step of a slice."""
    kind = make.choose({"all": 3, "part": 4, "half": 1, "backwards": 1, "number": 1})
    if kind == "number" and extent:
        return make.random.randint(-extent, extent - 1)
    if kind == "backwards":
        return (None, None, make.random.choice((-1, -1, -2)))
    if kind == "half" and extent > 1:
        return make.random.choice(((None, extent // 2), (extent // 2, None)))
    if kind == "part":
        start, stop = sorted(make.random.randint(0, extent) for _ in range(2))
        return (start, stop + (start == stop), make.random.choice((None, 1, 2, 3)))
    return (None, None)


def regrouped(make: Generator, a: str) -> tuple[object, ...]:
    """Two dimensions merged, or one split, or both; an extent may be left to -1, or taken from the value."""
    shape: list[object] = [Extent(a, d) if make.chance(0.25) else n for d, n in enumerate(make.known[a].shape)]
    numbers = list(make.known[a].shape)
    if len(shape) > 1 and make.chance(0.55):
        d = make.random.randrange(len(shape) - 1)
        shape[d : d + 2] = [numbers[d] * numbers[d + 1]]
        numbers[d : d + 2] = [numbers[d] * numbers[d + 1]]
    if len(shape) < 4 and make.chance(0.6):
        d = make.random.randrange(len(shape))
        factors = [f for f in (2, 3, 5, 7, 8, 10, 43, 257, 1) if numbers[d] % f == 0 and numbers[d]]
        if factors:
            factor = make.random.choice(factors)
            pair = [numbers[d] // factor, factor]
            make.random.shuffle(pair)
            shape[d : d + 1], numbers[d : d + 1] = pair, pair
    if make.chance(0.05):
        return (-1,)
    if make.chance(0.35) and 0 not in numbers:
        shape[make.random.randrange(len(shape))] = -1
    return tuple(shape)


def product(make: Generator) -> None:
    """A matrix product of a value with another one or a new input, which may come in transposed."""
    a = make.pick(lambda x: x.shape != () and x.dtype != "bool" and x.value.size > 0 and len(x.shape) < 5)
    x = make.known[a]
    inner = x.shape[-1]
    rows = prod(x.shape[:-1])
    room = make.profile.inner // max(1, rows * inner)
    params = _product_options(make, x)
    partners = make.tensors(lambda y: _multiplies(make, x, y))
    if partners and make.chance(0.4):
        _multiply(make, a, make.random.choice(partners), params)
        return
    widths = [n for n in SIZES if 0 < n <= room and n * inner <= 4 * make.profile.elements]
    if not widths:
        raise Retry
    width = make.random.choice(widths)
    dtype = x.dtype if make.chance(0.9) else make.random.choice((*FLOATS, "int8"))
    batch = x.shape[:-2] if len(x.shape) > 2 and make.chance(0.3) else ()
    if make.chance(0.1):
        _multiply(make, a, make.add_input((inner,), dtype), params)
        return
    if make.chance(0.4):
        weights = make.state("matrix_transpose", [make.add_input((*batch, width, inner), dtype)])
    else:
        weights = make.add_input((*batch, inner, width), dtype)
    if make.chance(0.25):  # a prologue
        weights = make.state(make.random.choice(("multiply", "add")), [weights, Number(2)])
    result = _multiply(make, a, weights, params)
    if make.chance(0.3) and make.known[result].dtype in FLOATS:  # an epilogue
        biased = make.state("add", [result, make.add_input((width,), make.known[result].dtype)])
        make.state(make.random.choice(("tanh", "sigmoid", "abs", "square")), [biased])


def _multiply(make: Generator, a: str, b: str, params: dict[str, object]) -> str:
    """States a product; with its precision only where the dtype that is multiplied in has it."""
    dtypes = [make.known[x].dtype for x in (a, b)]
    both_float8 = all(dtype in FLOAT8 for dtype in dtypes)
    known = {"tf32": promote(*dtypes) == "float32", "3xtf32": promote(*dtypes) == "float32", "fast_accum": both_float8}
    if not known.get(str(params.get("precision")), True):
        params = {name: value for name, value in params.items() if name != "precision"}
    return make.state("matmul", [a, b], **params)


def _product_options(make: Generator, x: Bounded) -> dict[str, object]:
    params: dict[str, object] = {}
    if make.chance(0.12):
        params["dtype"] = make.random.choice(("float32", "float16", "bfloat16"))
    if x.dtype == "float32" and make.chance(0.15):
        params["precision"] = make.random.choice(("ieee", "tf32", "3xtf32"))
    if x.dtype in FLOAT8 and make.chance(0.2):
        params["precision"] = make.random.choice(("ieee", "fast_accum"))
    return params


def _multiplies(make: Generator, x: Bounded, y: Bounded) -> bool:
    if not y.shape or y.dtype == "bool" or y.shape[-2 if len(y.shape) > 1 else -1] != x.shape[-1]:
        return False
    try:
        batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    except ValueError:
        return False
    rows, columns = prod(x.shape[-2:-1]), prod(y.shape[-1:]) if len(y.shape) > 1 else 1
    work = prod(batch) * rows * columns
    return work <= make.profile.elements and work * x.shape[-1] <= make.profile.inner
