"""Random fusion graphs: programs that mlirfuse compiles and NumPy runs in float64.

A graph is a list of statements in Python source, so that a failure prints a program that can be pasted and run. The
NumPy run rounds as the program's dtypes say after every statement (float16 and bfloat16 reductions accumulate wider).
How far rounding in another order can take a result is measured: `tolerances` runs the program with every value moved by
a unit or two in its last place, and products by as many as roundings of their factors add up to.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numerics import DTYPES, ulp

import mlirfuse as mf

SHORT = {"float16": "f16", "bfloat16": "bf16", "float32": "f32"}

UNARY = {
    "mf.abs({})": np.abs,
    "-{}": np.negative,
    "mf.tanh({})": np.tanh,
    "mf.sin({})": np.sin,
    "mf.sigmoid({})": lambda a: 1 / (1 + np.exp(-a)),
    "mf.exp(-mf.abs({}))": lambda a: np.exp(-np.abs(a)),
    "mf.sqrt(mf.abs({}) + 1)": lambda a: np.sqrt(np.abs(a) + 1),
    "mf.rsqrt(mf.abs({}) + 1)": lambda a: 1 / np.sqrt(np.abs(a) + 1),
    "{} * 0.5": lambda a: a * 0.5,
    "1.5 - {}": lambda a: 1.5 - a,
}
BINARY = {
    "{} + {}": np.add,
    "{} - {}": np.subtract,
    "{} * mf.tanh({})": lambda a, b: a * np.tanh(b),
    "mf.maximum({}, {})": np.maximum,
    "mf.minimum({}, {})": np.minimum,
    "{} / (mf.abs({}) + 1)": lambda a, b: a / (np.abs(b) + 1),
    "mf.where({0} > {1}, {0}, {1} * 0.5)": lambda a, b: np.where(a > b, a, b * 0.5),
    "mf.where({1} <= 0, {0}, 0.25)": lambda a, b: np.where(b <= 0, a, np.full_like(a, 0.25)),
}
COMPOSITE = ("{} * mf.tanh({})", "{} / (mf.abs({}) + 1)", "mf.where({0} > {1}, {0}, {1} * 0.5)")

REDUCTIONS = {
    "sum": np.sum,
    "mean": np.mean,
    "max": np.max,
    "min": np.min,
    "var": np.var,
    "prod": np.prod,
}

Array = np.ndarray


@dataclass(frozen=True)
class Value:
    """A name in the program with what every run of it has in common."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    factors: int = 1  # that each element is the product of; factors that are equal are rounded the same way


@dataclass
class Graph:
    """A program.

    Attributes:
        seed: what it was generated from.
        inputs: its parameters.
        statements: (the variable, its source, NumPy's version of it on the variables so far).
        outputs: names that it returns.
    """

    seed: int
    inputs: list[Value] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    statements: list[tuple[Value, str, Callable[[dict[str, Array]], Array]]] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    @property
    def source(self) -> str:
        """The program as Python source."""
        lines = [f"def graph({', '.join(v.name for v in self.inputs)}):  # seed {self.seed}"]
        lines += [f"    {value.name} = {text}" for value, text, _ in self.statements]
        return "\n".join([*lines, f"    return {', '.join(self.outputs)},"]) + "\n"

    def __repr__(self) -> str:
        arguments = ", ".join(f"{v.name}: {SHORT[v.dtype]}{list(v.shape)}" for v in self.inputs)
        return f"\n# {arguments}\n{self.source}"

    @property
    def function(self) -> Callable[..., Any]:
        namespace: dict[str, Any] = {"mf": mf}
        exec(compile(self.source, f"<graph {self.seed}>", "exec"), namespace)  # the source is made in this file
        return namespace["graph"]

    def arrays(self) -> list[Array]:
        """Inputs, from the graph's seed."""
        rng = np.random.default_rng(self.seed)
        return [rng.normal(0, 1, v.shape).astype(DTYPES[v.dtype]) for v in self.inputs]

    def specs(self) -> list[mf.TensorSpec]:
        return [mf.TensorSpec(v.shape, DTYPES[v.dtype]) for v in self.inputs]

    def reference(self, arrays: list[Array], noise: np.random.Generator | None = None) -> list[Array]:
        """The outputs in float64, every statement rounded to its dtype; `noise` moves every value by up to 2 ulp."""
        known = {}
        for value, array in zip(self.inputs, arrays, strict=True):
            exact = array.astype(np.float64)
            known[value.name] = _jitter(exact, value, noise) if value.dtype == "float32" else exact
        with np.errstate(all="ignore"):
            for value, _, rule in self.statements:
                exact = _jitter(np.asarray(rule(known), np.float64), value, noise)
                known[value.name] = _round(exact, value.dtype)
                assert exact.shape == value.shape, f"{value} is {exact.shape}"
        return [known[name] for name in self.outputs]

    def tolerances(self, arrays: list[Array], exact: list[Array]) -> list[Array]:
        """For each output and element, how far a result may be from `reference`; infinite where that is not finite."""
        spread = [np.zeros(e.shape) for e in exact]
        noise = np.random.default_rng(self.seed + 1)
        with np.errstate(all="ignore"):
            for _ in range(12):
                for widest, moved, e in zip(spread, self.reference(arrays, noise), exact, strict=True):
                    np.maximum(widest, np.nan_to_num(np.abs(moved - e), nan=np.inf), out=widest)
            return [6 * w + 16 * ulp(e, DTYPES[d]) for w, e, d in zip(spread, exact, self.output_dtypes, strict=True)]

    @property
    def output_dtypes(self) -> list[str]:
        dtypes = {value.name: value.dtype for value, _, _ in self.statements}
        return [dtypes[name] for name in self.outputs]

    def check(self, results: list[Array], arrays: list[Array], where: str) -> None:
        """Asserts that results are what float64 gives, within rounding."""
        exact = self.reference(arrays)
        bounds = self.tolerances(arrays, exact)
        for name, dtype, got, want, bound in zip(self.outputs, self.output_dtypes, results, exact, bounds, strict=True):
            assert got.dtype == DTYPES[dtype], f"{where}: {name} is {got.dtype}, not {dtype}{self!r}"
            assert got.shape == want.shape, f"{where}: {name} has shape {got.shape}, not {want.shape}{self!r}"
            with np.errstate(all="ignore"):
                error = np.nan_to_num(np.abs(got.astype(np.float64) - want), nan=np.inf)
            bad = (error > bound) & np.isfinite(want)
            assert not bad.any(), (
                f"{where}: {name} is off by {error[bad].max():.3g} in {bad.sum()} of {bad.size} elements, "
                f"where {bound[bad].max():.3g} is allowed{self!r}"
            )

    def check_equal(self, left: list[Array], right: list[Array], arrays: list[Array], where: str) -> None:
        """Asserts that two levels give the same: to the bit without reductions, else up to the order of additions.

        Not numbers and infinities, of which `check` knows nothing, must be the same everywhere.
        """
        bounds = self.tolerances(arrays, self.reference(arrays))
        reorders = any("axis=" in text for _, text, _ in self.statements)
        for name, a, b, bound in zip(self.outputs, left, right, bounds, strict=True):
            with np.errstate(all="ignore"):
                error = np.abs(a.astype(np.float64) - b.astype(np.float64))
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            bad = ~(same | (error <= bound)) if reorders else ~same
            assert not bad.any(), f"{where} differ: {name}, in {bad.sum()} of {bad.size} elements{self!r}"


@dataclass(frozen=True)
class Sizes:
    """What extents graphs have: one of `columns` last, `rows` before it, and `elements` in any value at most.

    `products` says whether they multiply along dimensions: thousands of roundings are more than `tolerances` measures.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    elements: int
    products: bool = True


SMALL = Sizes((1, 2, 3, 4, 7, 8), (1, 2, 5, 8, 16, 31, 33, 64, 100, 257), 8192)
WIDE = Sizes((1, 2, 3, 5), (1600, 4099, 5140, 12288, 20480, 33000), 100_000, products=False)
"""Rows that take many warps, several fragments a thread, and clusters."""


class _Builder:
    def __init__(self, seed: int, sizes: Sizes):
        self.random = random.Random(seed)
        self.graph = Graph(seed)
        self.sizes = sizes

    def build(self) -> Graph:
        rank = self.random.choice((1, 2, 2, 2, 3))
        shape = tuple(self.random.choice(self.sizes.rows) for _ in range(rank - 1))
        shape += (self.random.choice(self.sizes.columns),)
        for i in range(self.random.randint(1, 4)):
            keep = shape if i == 0 else shape[self.random.randint(0, rank - 1) :]
            extents = tuple(1 if i and self.random.random() < 0.15 else n for n in keep)
            value = Value(f"x{i}", extents, self.random.choice(list(DTYPES)))
            self.graph.inputs.append(value)
            self.graph.values.append(value)
        kinds = [self.unary, self.binary, self.binary, self.reduce, self.reduce, self.cast, self.move]
        for _ in range(self.random.randint(2, 8)):
            self.random.choice(kinds)()
        computed = [value.name for value, _, _ in self.graph.statements]
        if not computed:
            self.unary()
            computed = [self.graph.statements[0][0].name]
        extra = [name for name in computed[:-1] if self.random.random() < 0.2]
        self.graph.outputs = [computed[-1], *extra[:3]]
        return self.graph

    def pick(self) -> Value:
        """Later values more often, so that chains get long."""
        values = self.graph.values
        return values[max(self.random.randrange(len(values)), self.random.randrange(len(values)))]

    def add(
        self, shape: tuple[int, ...], dtype: str, text: str, rule: Callable[[dict[str, Array]], Array], factors: int = 1
    ) -> None:
        value = Value(f"v{len(self.graph.statements)}", shape, dtype, factors)
        self.graph.statements.append((value, text, rule))
        self.graph.values.append(value)

    def unary(self) -> None:
        a = self.pick()
        text, rule = self.random.choice(list(UNARY.items()))
        self.add(a.shape, a.dtype, text.format(a.name), lambda env: rule(env[a.name]))

    def binary(self) -> None:
        a = self.pick()
        partners = [b for b in self.graph.values if self.broadcast(a.shape, b.shape)]
        if not partners:
            return
        b = self.random.choice(partners)
        text, rule = self.random.choice(list(BINARY.items()))
        chosen = "{1} <= 0" in text  # b decides, and gives no value
        dtype = a.dtype if chosen or a.dtype == b.dtype else "float32"
        names = [a.name, b.name]
        if not chosen and a.dtype != b.dtype and text in COMPOSITE:
            # Where one operand meets another operation first, that would round in the operand's own dtype.
            names = [f"{name}.astype(mf.float32)" for name in names]
        shape = self.broadcast(a.shape, b.shape)
        assert shape is not None

        def spread(env: dict[str, Array]) -> Array:
            return np.broadcast_to(rule(env[a.name], env[b.name]), shape)

        self.add(shape, dtype, text.format(*names), spread)

    def broadcast(self, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
        """The shape of an operation on two values; None where there is none, or one of too many elements."""
        try:
            shape = np.broadcast_shapes(a, b)
        except ValueError:
            return None
        return shape if prod(shape) <= self.sizes.elements else None

    def reduce(self) -> None:
        a = self.pick()
        if not a.shape:
            return
        count = self.random.choice((1, 1, 1, len(a.shape)))
        axes = tuple(sorted(self.random.sample(range(len(a.shape)), count)))
        if self.random.random() < 0.5:
            axes = (len(a.shape) - 1,)
        name = self.random.choice([n for n in REDUCTIONS if n != "prod" or self.sizes.products])
        keep = self.random.random() < 0.6
        shape = tuple(1 if d in axes else n for d, n in enumerate(a.shape) if keep or d not in axes)
        scale = ""
        if name == "prod":  # of numbers near 1, so that it neither vanishes nor overflows
            scale = f"1 + mf.tanh({a.name}) * 0.01"
        argument = scale or a.name
        axis = axes[0] - len(a.shape) if len(axes) == 1 and self.random.random() < 0.5 else axes

        def rule(env: dict[str, Array]) -> Array:
            x = env[a.name]
            if name == "prod":
                with np.errstate(all="ignore"):
                    step = np.tanh(x) if a.dtype == "float32" else _round(np.tanh(x), a.dtype)
                    x = _round(1 + _round(step * x.dtype.type(0.01), a.dtype), a.dtype)
            return REDUCTIONS[name](x, axis=axes, keepdims=keep)

        factors = prod(a.shape[d] for d in axes) if name == "prod" else 1
        self.add(shape, a.dtype, f"mf.{name}({argument}, axis={axis}, keepdims={keep})", rule, factors)

    def cast(self) -> None:
        a = self.pick()
        dtype = self.random.choice(list(DTYPES))
        self.add(a.shape, dtype, f"{a.name}.astype(mf.{dtype})", lambda env: env[a.name])

    def move(self) -> None:
        a = self.pick()
        rank = len(a.shape)
        kind = self.random.choice(("permute", "expand", "reshape"))
        if kind == "permute" and rank > 1:
            axes = tuple(self.random.sample(range(rank), rank))
            shape = tuple(a.shape[d] for d in axes)
            self.add(shape, a.dtype, f"mf.permute_dims({a.name}, {axes})", lambda env: env[a.name].transpose(axes))
        elif kind == "expand" and rank < 3:
            axis = self.random.randint(0, rank)
            shape = (*a.shape[:axis], 1, *a.shape[axis:])
            self.add(shape, a.dtype, f"mf.expand_dims({a.name}, {axis})", lambda env: np.expand_dims(env[a.name], axis))
        elif kind == "reshape" and rank:
            shape = self.regrouped(a.shape)
            self.add(shape, a.dtype, f"mf.reshape({a.name}, {shape})", lambda env: env[a.name].reshape(shape))

    def regrouped(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Two dimensions merged, or one split."""
        if len(shape) > 1 and self.random.random() < 0.5:
            d = self.random.randrange(len(shape) - 1)
            return (*shape[:d], shape[d] * shape[d + 1], *shape[d + 2 :])
        d = self.random.randrange(len(shape))
        factors = [f for f in (2, 3, 4, 5, 8) if shape[d] % f == 0]
        if not factors or len(shape) > 2:
            return shape
        factor = self.random.choice(factors)
        return (*shape[:d], shape[d] // factor, factor, *shape[d + 1 :])


def _jitter(x: Array, value: Value, noise: np.random.Generator | None) -> Array:
    if noise is None or not x.size:
        return x
    # Sums and products are kept in float32, so that only there their own roundings count.
    most = 2 + (value.factors // 2 if value.dtype == "float32" else 0)
    return x + noise.uniform(-most, most, x.shape) * np.where(x == 0, 0, ulp(np.nan_to_num(x), DTYPES[value.dtype]))


def _round(x: Array, dtype: str) -> Array:
    return x if dtype == "float32" else x.astype(DTYPES[dtype]).astype(x.dtype)


def graph_from_seed(seed: int, sizes: Sizes = SMALL) -> Graph:
    """The graph of a seed; equal seeds give equal graphs."""
    return _Builder(seed, sizes).build()


def graphs(sizes: Sizes = SMALL) -> st.SearchStrategy[Graph]:
    """Random graphs; hypothesis shrinks nothing but the seed, which prints with the program."""
    return st.integers(0, 2**32 - 1).map(lambda seed: graph_from_seed(seed, sizes))
