"""Programs from seeds. Statements are evaluated as they are made, so that every program has a meaning and says much."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tests.fuzzing.bounds import Bounded, exact
from tests.fuzzing.generation.options import with_options
from tests.fuzzing.inputs import DATA, LAYOUTS, Input
from tests.fuzzing.program import Number, Program, Statement, run_statement
from tests.fuzzing.types import DTYPES, FLOAT8, FLOATS, INTEGERS, Refused, kind

ALIGNED = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024)

SIZES = (0, 1, 2, 3, 7, 31, 33, 127, 129, 255, 257, 1000, 1025, 2049, 5140)


@dataclass(frozen=True)
class Profile:
    """What fits a backend.

    Attributes:
        elements: of a value, at most.
        inner: elements of all loops of a product, at most.
        statements: at most.
    """

    elements: int
    inner: int
    statements: int = 25
    sizes: tuple[int, ...] = SIZES


PROFILES = {
    "small": Profile(1200, 12_000, 12),
    "middle": Profile(6000, 200_000),
    "large": Profile(70_000, 20_000_000),
    "wide": Profile(100_000, 20_000_000, 8, (1, 1, 2, 3, 5, 1600, 4099, 5140, 12288, 20480, 33000)),
    "aligned": Profile(6000, 200_000, 12, ALIGNED),
    "aligned_large": Profile(70_000, 20_000_000, 25, (*ALIGNED, 2048, 4096)),
}
"""`small` for tests of the interpreter, `middle` for longer runs of it, `large` for PTX and the GPU; rows of
`wide` ones take many warps, several fragments a thread, and clusters; `aligned` extents are those of real models, which
vectors, tensor maps and tiles divide."""


CONVOLVING = 0.1
"""Share of programs with convolutions, drawn apart from all else, so that the others stay the same."""

LEAST = 3
"""Statements that a program has at least, but for one in very many of which nothing comes."""


class Retry(Exception):
    """A maker found nothing to make a statement of."""


class Generator:
    """Makes one program.

    Attributes:
        random: the only source of choices.
        known: every value so far, by name.
        inputs: the array parameters so far.
        numbers: the run-time numbers.
    """

    def __init__(self, seed: int, profile: Profile, attempt: int):
        self.seed, self.profile = seed, profile
        self.random = random.Random(f"{seed} {attempt}")
        self.known: dict[str, Bounded] = {}
        self.inputs: list[Input] = []
        self.numbers: dict[str, Number] = {}
        self.statements: list[Statement] = []
        self.data = self.choose({"plain": 76, "special": 14, "extreme": 5, "exact": 12})
        self.theme = self._theme()
        self.convolves = random.Random(f"convolutions of {seed}").random() < CONVOLVING

    def choose(self, weights: dict) -> object:
        return self.random.choices(list(weights), list(weights.values()))[0]

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def _theme(self) -> str:
        floats = dict(zip(FLOATS, (22, 16, 34, 14), strict=True))
        return str(
            self.choose(
                {
                    **floats,
                    "int8": 3,
                    "int16": 2,
                    "int32": 6,
                    "int64": 4,
                    "bool": 3,
                    "float8_e4m3fn": 3,
                    "float8_e5m2": 2,
                }
            )
        )

    # Inputs.

    def any_dtype(self) -> str:
        if self.chance(0.7):
            return self.theme
        return str(self.choose({d: 1 if d in FLOAT8 or d in INTEGERS[:2] else 4 for d in DTYPES}))

    def base_shape(self) -> tuple[int, ...]:
        """A shape of rank 0 to 4 within the elements; an empty one is rare."""
        rank = self.choose({0: 2, 1: 15, 2: 42, 3: 28, 4: 13})
        shape: list[int] = []
        room = self.profile.elements
        for _ in range(rank):
            fitting = {n: 1 if n == 0 else 8 for n in self.profile.sizes if n <= room}
            size = int(self.choose(fitting))
            shape.append(size)
            room //= max(size, 1)
        self.random.shuffle(shape)
        return tuple(shape)

    def like_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape that broadcasts with another one."""
        kept = tuple(shape)[self.random.randint(0, len(shape)) if self.chance(0.4) else 0 :]
        return tuple(1 if self.chance(0.15) else n for n in kept)

    def add_input(self, shape: tuple[int, ...], dtype: str | None = None) -> str:
        if len(self.inputs) == 5:
            raise Retry
        plain = {"normal": 8, "integers": 2, "dyadic": 2, "positive": 3, "wide": 2, "equal": 1}
        kinds = {"plain": plain, "special": {"special": 3, "normal": 1}, "extreme": {"extreme": 2, "normal": 1}}
        data = str(self.choose(kinds.get(str(self.data), {"integers": 1, "dyadic": 1})))
        layout = "contiguous" if self.chance(0.72) else self.random.choice(LAYOUTS)
        given = Input(f"x{len(self.inputs)}", shape, dtype or self.any_dtype(), layout, data)
        assert given.data in DATA
        self.inputs.append(given)
        self.known[given.name] = exact(given.array(self.seed), given.dtype)
        return given.name

    def add_numbers(self) -> None:
        for _ in range(int(self.choose({0: 60, 1: 28, 2: 12}))):
            name = f"s{len(self.numbers)}"
            choices = {
                Number(self.random.choice((0.5, 1.5, -2.25, 0.1, 1e-5))): 5,
                Number(self.random.choice((1, 2, 3, -2, 5))): 3,
                Number(self.random.choice((True, False))): 2,
                Number(self.random.choice((0.5, 0.1, 3.0)), "float32"): 1,
                Number(self.random.choice((2, -3)), "int32"): 1,
            }
            self.numbers[name] = self.choose(choices)  # type: ignore[assignment]
            self.known[name] = self.numbers[name].bounded(constant=False)

    # Values.

    def tensors(self, accept: Callable[[Bounded], bool] = lambda x: True) -> list[str]:
        return [n for n, v in self.known.items() if v.weak is None and accept(v)]

    def pick(self, accept: Callable[[Bounded], bool] = lambda x: True) -> str:
        """A tensor, later ones more often, so that chains get long; raises `Retry`."""
        names = self.tensors(accept)
        if not names:
            raise Retry
        return names[max(self.random.randrange(len(names)) for _ in range(2 if self.chance(0.7) else 1))]

    def partner(self, name: str, accept: Callable[[Bounded], bool] = lambda x: True) -> str:
        """A tensor that broadcasts with one; sometimes a new input."""
        x = self.known[name]
        if self.chance(0.25) and len(self.inputs) < 5:
            fresh = self.add_input(self.like_shape(x.shape))
            if accept(self.known[fresh]):
                return fresh
        names = self.tensors(lambda y: accept(y) and self.fits(x.shape, y.shape))
        if not names:
            raise Retry
        return self.random.choice(names)

    def fits(self, *shapes: Sequence[int]) -> bool:
        try:
            return prod(np.broadcast_shapes(*map(tuple, shapes))) <= self.profile.elements
        except ValueError:
            return False

    def number(self, x: Bounded) -> str | Number:
        """A number to combine with a tensor: of run time, or a constant of its kind or another one."""
        weak = [n for n in self.numbers if self.known[n].weak != "bool" or x.dtype == "bool"]
        if weak and self.chance(0.45):
            return self.random.choice(weak)
        if kind(x.dtype) == "int" and self.chance(0.7):
            return Number(self.random.choice((0, 1, 2, 3, 7, -1, -5)))
        if x.dtype == "bool" and self.chance(0.5):
            return Number(self.random.choice((True, False)))
        if self.chance(0.1):
            dtype = self.random.choice(("float32", "float16", "float64", "int32"))
            return Number(self.random.choice((2, 3)) if dtype == "int32" else self.random.choice((0.5, 0.3)), dtype)
        return Number(self.random.choice((0, 1, 2, 3, -1, 0.5, 1.5, 0.1, 0.7, -0.25, 1e-5, 2.0, 1000.0, 0.0)))

    # Statements.

    def state(self, op: str, args: Sequence[str | Number], **params: object) -> str:
        """Adds a statement and returns its name; raises `Retry` where it has no meaning or says nothing."""
        statement = Statement(f"v{len(self.statements)}", op, tuple(args), params, self.random.randrange(2))
        try:
            result = run_statement(statement, self.known)
        except Refused:
            raise Retry from None
        if result.value.size > self.profile.elements or len(result.shape) > 5 or self._says_nothing(result):
            raise Retry
        self.statements.append(statement)
        self.known[statement.name] = result
        return statement.name

    def _says_nothing(self, x: Bounded) -> bool:
        if not x.value.size or self.chance(0.15):
            return False
        if np.mean(x.known) < 0.5:
            return True
        if kind(x.dtype) != "float" or self.data in ("special", "extreme"):
            return False
        finite = np.isfinite(x.value)
        return bool(np.mean(finite) < 0.5 or np.mean(x.error[finite] > 0.1 * np.abs(x.value[finite]) + 1e-3) > 0.5)


def program_from_seed(seed: int, profile: str = "large") -> Program:
    """The program of a seed; equal seeds and profiles give equal programs."""
    programs = (_attempt(seed, PROFILES[profile], attempt) for attempt in range(5))
    with np.errstate(all="ignore"):
        made = []
        for program in programs:
            made.append(program)
            if len(program.statements) >= LEAST:
                break
        return with_options(made[-1])


def _attempt(seed: int, profile: Profile, attempt: int) -> Program:
    from tests.fuzzing.generation.makers import CONVOLUTIONS, MAKERS

    make = Generator(seed, profile, attempt)
    makers = MAKERS | CONVOLUTIONS if make.convolves else MAKERS
    base = make.base_shape()
    make.add_input(base, make.theme)
    for _ in range(int(make.choose({0: 40, 1: 35, 2: 20, 3: 5}))):
        make.add_input(make.like_shape(base) if make.chance(0.8) else make.base_shape())
    make.add_numbers()
    wanted = LEAST + int((profile.statements - LEAST + 1) * make.random.random() ** 1.5)
    for _ in range(20 * wanted):
        before = len(make.statements), len(make.inputs)
        try:
            make.choose(makers)(make)  # type: ignore[operator]
        except Retry:
            _undo(make, *before)
        if len(make.statements) >= wanted:
            break
    return _with_calls(make, _finished(make))


def _undo(make: Generator, statements: int, inputs: int) -> None:
    """Takes back what a maker began and could not finish."""
    for gone in (*make.statements[statements:], *make.inputs[inputs:]):
        del make.known[gone.name]
    del make.statements[statements:], make.inputs[inputs:]


def _finished(make: Generator) -> Program:
    """Chooses results, and leaves out what none of them needs."""
    used = {a for s in make.statements for a in s.args if isinstance(a, str)}
    loose = [s.name for s in make.statements if s.name not in used]
    kept = make.random.choice((2, 3, 4, 6))
    outputs = (loose[-kept:] if make.chance(0.5) else loose[:kept]) or [make.inputs[0].name]
    made = [s.name for s in make.statements]
    if made and make.chance(0.25):
        outputs.append(make.random.choice(made))
    if make.chance(0.06):
        outputs.append(make.random.choice(outputs))
    if make.chance(0.03):
        outputs.append(make.random.choice(make.inputs).name)
    make.random.shuffle(outputs)
    structure = "single" if len(outputs) == 1 and make.chance(0.8) else str(make.choose({"tuple": 4, "list": 1}))
    dynamic = make.chance(0.5)
    program = Program(
        make.seed,
        tuple(make.inputs),
        dict(make.numbers),
        tuple(make.statements),
        tuple(outputs),
        structure,
        dynamic=dynamic,
    )
    return trimmed(program)


def trimmed(program: Program) -> Program:
    """Without statements, inputs and numbers that no result needs; one array stays."""
    needed = set(program.outputs)
    for statement in reversed(program.statements):
        if statement.name in needed:
            needed |= {a for a in statement.args if isinstance(a, str)} | set(_extents_of(statement))
    statements = tuple(s for s in program.statements if s.name in needed)
    inputs = tuple(x for x in program.inputs if x.name in needed) or program.inputs[:1]
    return replace(
        program,
        statements=statements,
        inputs=inputs,
        numbers={n: v for n, v in program.numbers.items() if n in needed},
    )


def _extents_of(statement: Statement) -> list[str]:
    entries = [e for v in statement.params.values() for e in (v if isinstance(v, tuple) else (v,))]
    return [e.name for e in entries if hasattr(e, "dim")]


def _with_calls(make: Generator, program: Program) -> Program:
    """Chooses how the program is called: into given arrays, and again with other numbers of rows."""
    out = str(make.choose({"none": 76, "given": 20, "overlap": 4}))
    rows: list[int] = []
    first = next((x.shape[0] for x in program.inputs if len(x.shape) > 1 and x.shape[0] > 1), None)
    if first is not None and make.chance(0.3):
        others = make.random.sample((1, 2, 3, 7, 33, 129, 0), 2)
        rows = [n for n in others if n != first and _has_meaning(program.with_rows(first, n), make.profile)]
    return replace(program, out=out, rows=tuple(rows))


def _has_meaning(program: Program, profile: Profile) -> bool:
    try:
        known = program.evaluate()
    except Refused:
        return False
    return all(x.value.size <= 2 * profile.elements for x in known.values())
