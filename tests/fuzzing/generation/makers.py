"""Makers of statements: each adds one, or the few of a known pattern, to a program; `MAKERS` says how often."""

from __future__ import annotations

from tests.fuzzing.bounds import Bounded
from tests.fuzzing.generation.convolution_makers import convolution
from tests.fuzzing.generation.einsum_makers import einsum
from tests.fuzzing.generation.generator import Generator, Retry
from tests.fuzzing.generation.shape_makers import join, product, view
from tests.fuzzing.ops.operations import REDUCTIONS
from tests.fuzzing.program import Number
from tests.fuzzing.types import DTYPES, FLOAT8, FLOATS, INTEGERS, kind


def is_float(x: Bounded) -> bool:
    return x.dtype in FLOATS


def is_number(x: Bounded) -> bool:
    return x.dtype in FLOATS or x.dtype in INTEGERS


def is_bool(x: Bounded) -> bool:
    return x.dtype == "bool"


def is_int_or_bool(x: Bounded) -> bool:
    return x.dtype in INTEGERS or x.dtype == "bool"


def not_float8(x: Bounded) -> bool:
    return x.dtype not in FLOAT8


def function(make: Generator) -> None:
    """A transcendental function, its argument brought into its domain most of the time."""
    name = make.random.choice(
        (
            "sqrt",
            "rsqrt",
            "exp",
            "exp2",
            "expm1",
            "log",
            "log2",
            "log1p",
            "tanh",
            "erf",
            "sin",
            "cos",
            "sigmoid",
            "reciprocal",
        )
    )
    x = make.pick(is_float if make.chance(0.9) else not_float8)
    if (
        name in ("sqrt", "rsqrt", "log", "log2", "log1p", "reciprocal")
        and make.chance(0.7)
        and is_number(make.known[x])
    ):
        x = make.state("abs", [x])
        if make.chance(0.6):
            x = make.state("add", [x, Number(make.random.choice((1, 1e-5, 0.5)))])
    elif name in ("exp", "exp2", "expm1") and make.chance(0.6) and is_number(make.known[x]):
        x = make.state("negative", [make.state("abs", [x])])
    make.state(name, [x])


def unary(make: Generator) -> None:
    name = make.random.choice(
        (
            "negative",
            "abs",
            "square",
            "sign",
            "floor",
            "ceil",
            "round",
            "trunc",
            "isnan",
            "isinf",
            "isfinite",
            "negative",
            "abs",
        )
    )
    make.state(name, [make.pick(is_number)])


def binary(make: Generator) -> None:
    name = make.random.choice(
        (
            "add",
            "subtract",
            "multiply",
            "divide",
            "maximum",
            "minimum",
            "add",
            "subtract",
            "multiply",
            "floor_divide",
            "remainder",
        )
    )
    a = make.pick(is_number)
    make.state(name, ordered(make, a, make.partner(a, is_number)))


def ordered(make: Generator, a: str | Number, b: str | Number) -> list[str | Number]:
    return [a, b] if make.chance(0.5) else [b, a]


def with_number(make: Generator) -> None:
    name = make.random.choice(
        ("add", "subtract", "multiply", "divide", "maximum", "minimum", "multiply", "floor_divide", "remainder")
    )
    a = make.pick(is_number)
    make.state(name, ordered(make, a, make.number(make.known[a])))


def power(make: Generator) -> None:
    a = make.pick(is_number)
    if make.chance(0.75):
        make.state("pow", [a, Number(make.random.choice((2, 2, 3, 4, 0.5, -0.5, -1, 1.5, 0, 7, 2.0)))])
        return
    base = make.state("abs", [a])
    make.state("pow", [base, make.partner(base, is_float)])


def compare(make: Generator) -> None:
    name = make.random.choice(("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"))
    a = make.pick(not_float8)
    b = make.number(make.known[a]) if make.chance(0.4) else make.partner(a, not_float8)
    make.state(name, [a, b])


def choose(make: Generator) -> None:
    """`where`, on a mask that there is or on a comparison."""
    a = make.pick()
    x = make.known[a]
    masks = make.tensors(lambda m: is_bool(m) and make.fits(m.shape, x.shape))
    if masks and make.chance(0.6):
        mask = make.random.choice(masks)
    else:
        mask = make.state("greater", [make.pick(lambda m: is_number(m) and make.fits(m.shape, x.shape)), Number(0)])
    other = make.number(x) if make.chance(0.5) else make.partner(a, lambda y: y.dtype in (x.dtype, "float32"))
    if isinstance(other, str) and not make.fits(make.known[mask].shape, x.shape, make.known[other].shape):
        raise Retry
    flags = [n for n in make.numbers if make.known[n].weak == "bool"]
    condition = make.random.choice(flags) if flags and make.chance(0.2) else mask
    make.state("where", [condition, *ordered(make, a, other)])


def logic(make: Generator) -> None:
    if make.chance(0.5):
        a = make.pick(is_bool)
        if make.chance(0.25):
            make.state("logical_not", [a])
            return
        make.state(make.random.choice(("logical_and", "logical_or", "logical_xor")), [a, make.partner(a, is_bool)])
        return
    a = make.pick(is_int_or_bool)
    if make.chance(0.3):
        make.state("bitwise_invert", [a])
        return
    b = make.number(make.known[a]) if make.chance(0.3) else make.partner(a, is_int_or_bool)
    names = ["bitwise_and", "bitwise_or", "bitwise_xor"]
    if kind(make.known[a].dtype) == "int":
        names += ["bitwise_left_shift", "bitwise_right_shift"]
    make.state(make.random.choice(names), [a, b])


def clip(make: Generator) -> None:
    a = make.pick(is_number)
    low, high = make.random.choice(((True, True), (True, False), (False, True)))
    whole = kind(make.known[a].dtype) == "int"
    limits = [Number(-2 if whole else -0.5)] * low + [Number(3 if whole else 1.5)] * high
    if low and high and make.chance(0.2):
        limits[1] = make.partner(a, is_number)
    make.state("clip", [a, *limits], low=low, high=high)


def like(make: Generator) -> None:
    a = make.pick()
    params = {"dtype": make.random.choice(DTYPES)} if make.chance(0.3) else {}
    name = make.random.choice(("zeros_like", "ones_like", "full_like"))
    if name == "full_like":
        make.state(name, [a, make.number(make.known[a])], **params)
        return
    make.state(name, [a], **params)


def cast(make: Generator) -> None:
    a = make.pick()
    weights = {d: 1 if d in FLOAT8 or d == "bool" or d in INTEGERS else 5 for d in DTYPES if d != make.known[a].dtype}
    make.state("astype", [a], dtype=make.choose(weights))


def reduce(make: Generator) -> None:
    name = str(make.choose({**dict.fromkeys(REDUCTIONS, 2), "sum": 6, "mean": 4, "max": 4, "prod": 1}))
    a = make.pick(
        (lambda x: x.shape != () and not_float8(x))
        if name in ("any", "all")
        else (lambda x: x.shape != () and is_number(x))
    )
    reduce_of(make, name, a)


def reduce_of(make: Generator, name: str, a: str, keepdims: bool | None = None) -> str:
    x = make.known[a]
    params: dict[str, object] = {}
    if not make.chance(0.12):
        params["axis"] = axis_of(make, len(x.shape))
    if keepdims if keepdims is not None else make.chance(0.5):
        params["keepdims"] = True
    if name in ("var", "std") and make.chance(0.25):
        params["correction"] = make.random.choice((1, 1.0, 0.5))
    if name in ("sum", "prod", "mean") and make.chance(0.12):
        params["dtype"] = make.random.choice(
            FLOATS if name == "mean" else ("float32", "float64", "int64", "int32", "float16")
        )
    return make.state(name, [a], **params)


def axis_of(make: Generator, rank: int) -> object:
    """One axis or several, from the front, from behind or mixed, in any order."""
    if make.chance(0.4):
        return -1 if make.chance(0.6) else rank - 1
    count = make.random.randint(1, rank)
    axes = make.random.sample(range(rank), count)
    signed = [a - rank if make.chance(0.4) else a for a in axes]
    return signed[0] if count == 1 and make.chance(0.7) else tuple(signed)


def normalise(make: Generator) -> None:
    """Patterns that passes look for: softmax, layer and RMS norms, scaling by the largest."""
    a = make.pick(lambda x: x.shape != () and is_float(x))
    rank = len(make.known[a].shape)
    axis = axis_of(make, rank) if make.chance(0.5) else -1
    pattern = make.random.choice(("softmax", "layer", "rms", "largest", "centre"))
    if pattern == "softmax":
        shifted = make.state("subtract", [a, make.state("max", [a], axis=axis, keepdims=True)])
        power = make.state("exp", [shifted])
        total = make.state("sum", [power], axis=axis, keepdims=True)
        if make.chance(0.6):
            make.state("divide", [power, total])
        else:
            make.state("subtract", [shifted, make.state("log", [total])])
    elif pattern == "layer":
        apart = make.state("subtract", [a, make.state("mean", [a], axis=axis, keepdims=True)])
        square = make.state("pow", [apart, Number(2)])
        spread = make.state("add", [make.state("mean", [square], axis=axis, keepdims=True), Number(1e-5)])
        make.state("multiply", [apart, make.state("rsqrt", [spread])])
    elif pattern == "rms":
        size = make.state("mean", [make.state("multiply", [a, a])], axis=axis, keepdims=True)
        make.state("multiply", [a, make.state("rsqrt", [make.state("add", [size, Number(1e-5)])])])
    elif pattern == "largest":
        top = make.state("max", [make.state("abs", [a])], axis=axis, keepdims=True)
        make.state("divide", [a, make.state("maximum", [top, Number(1e-5)])])
    else:
        make.state(
            "subtract", [a, make.state(make.random.choice(("mean", "min", "max")), [a], axis=axis, keepdims=True)]
        )


MAKERS = {
    function: 12,
    unary: 8,
    binary: 16,
    with_number: 9,
    power: 3,
    compare: 4,
    choose: 5,
    logic: 7,
    clip: 2,
    like: 1,
    cast: 6,
    reduce: 14,
    normalise: 6,
    view: 12,
    join: 4,
    product: 6,
    einsum: 4,
}

CONVOLUTIONS = {convolution: 40}
"""Makers that some programs have besides."""
