"""A program as plain data: inputs, numbers, statements and results. It prints as Python, and runs in the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tests.fuzzing.bounds import Bounded, exact
from tests.fuzzing.inputs import Input
from tests.fuzzing.ops.operations import OPERATIONS
from tests.fuzzing.reads import computed_once
from tests.fuzzing.types import Refused, kind


@dataclass(frozen=True)
class Number:
    """A number in the source, or a run-time argument.

    Attributes:
        value: Python's bool, int or float.
        dtype: of a NumPy scalar; None for Python's numbers.
    """

    value: Any
    dtype: str | None = None

    @property
    def text(self) -> str:
        plain = repr(self.value) if self.value == self.value and abs(self.value) != np.inf else f"float('{self.value}')"
        return plain if self.dtype is None else f"np.{self.dtype}{'_' * (self.dtype == 'bool')}({plain})"

    def bounded(self, *, constant: bool) -> Bounded:
        if self.dtype is not None and constant:
            return exact(np.asarray(self.value, self.dtype), self.dtype, constant=True)
        value = self.value if self.dtype is None else np.dtype(self.dtype).type(self.value).item()
        name = type(value).__name__
        return exact(
            np.asarray(value), {"float": "float64", "int": "int64"}.get(name, "bool"), weak=name, constant=constant
        )


@dataclass(frozen=True)
class Extent:
    """An extent of another value, by name, so that it follows the inputs."""

    name: str
    dim: int

    def __repr__(self) -> str:
        return f"{self.name}.shape[{self.dim}]"


@dataclass(frozen=True)
class Statement:
    """`name = op(args, params)`; `style` is which way of writing it is taken."""

    name: str
    op: str
    args: tuple[str | Number, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    style: int = 0

    @property
    def text(self) -> str:
        operation = OPERATIONS[self.op]
        args = [a if isinstance(a, str) else a.text for a in self.args]
        return f"{self.name} = {operation.text(args, dict(self.params), self.style)}"


@dataclass(frozen=True)
class Program:
    """A function with what it is called with.

    Attributes:
        seed: what it was made from.
        inputs: array parameters, in order.
        numbers: run-time numbers by parameter name; they come behind the arrays.
        statements: the body.
        outputs: names of results; a name may stand there twice.
        structure: `single`, `tuple` or `list`.
        out: `none`, `given` (results go to the caller's arrays) or `overlap` (one of them is an input's memory).
        rows: leading extents of later calls, in place of the first call's.
        dynamic: whether lowering has run-time leading extents.
        options: what `mf.fuse` is told.
    """

    seed: int
    inputs: tuple[Input, ...]
    numbers: Mapping[str, Number]
    statements: tuple[Statement, ...]
    outputs: tuple[str, ...]
    structure: str = "tuple"
    out: str = "none"
    rows: tuple[int, ...] = ()
    dynamic: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def parameters(self) -> list[str]:
        return [*(x.name for x in self.inputs), *self.numbers]

    @property
    def source(self) -> str:
        body = [f"    {s.text}" for s in self.statements]
        results = ", ".join(self.outputs)
        shown = {"single": results, "tuple": f"({results},)", "list": f"[{results}]"}[self.structure]
        return "\n".join([f"def program({', '.join(self.parameters)}):", *body, f"    return {shown}"]) + "\n"

    @property
    def text(self) -> str:
        """Source that can be pasted: imports, the function, its arguments and the call."""
        lines = [
            "import ml_dtypes",
            "import numpy as np",
            "from tests.fuzzing.inputs import Input",
            "import mlirfuse as mf",
            "from mlirfuse import interpreter",
            "",
            self.source,
        ]
        lines += [f"{x.name} = {x.text(self.seed)}" for x in self.inputs]
        lines += [f"{name} = {number.text}" for name, number in self.numbers.items()]
        lines += self._call()
        notes = [f"out={self.out}"] * (self.out != "none") + [f"called again with rows {self.rows}"] * bool(self.rows)
        return f"# seed {self.seed}{'; ' if notes else ''}{', '.join(notes)}\n" + "\n".join(lines) + "\n"

    def _call(self) -> list[str]:
        """A call, or for static extents the kernels of what is lowered for them."""
        told = "".join(f", {name}={value!r}" for name, value in self.options.items())
        if self.dynamic or self.rows or self.out != "none":
            return [f'results = mf.fuse(program, target="interpret"{told})({", ".join(self.parameters)})']
        specs = [f"mf.TensorSpec({x.name}.shape, {x.name}.dtype)" for x in self.inputs]
        return [
            f'compiled = mf.fuse(program, target="sm_90a"{told}).lower({", ".join([*specs, *self.numbers])}).compile()',
            f'results = interpreter.run(compiled.module_at("gpu"), "program", [{", ".join(self.parameters)}])',
        ]

    def function(self) -> Any:
        import mlirfuse as mf

        namespace: dict[str, Any] = {"mf": mf, "np": np}
        exec(compile(self.source, f"<program {self.seed}>", "exec"), namespace)  # the source is made in this package
        return namespace["program"]

    def fused(self, target: str | None = None) -> Any:
        """The function, fused with its options."""
        import mlirfuse as mf

        return mf.fuse(self.function(), target=target, **self.options)

    def arguments(self) -> list[Any]:
        """The arrays and numbers of the first call; arrays are new each time."""
        return [*(x.array(self.seed) for x in self.inputs), *(argument_of(n) for n in self.numbers.values())]

    def evaluate(self) -> dict[str, Bounded]:
        """Every value with its bound; raises `Refused` where the program has no meaning."""
        known = {x.name: exact(x.array(self.seed), x.dtype) for x in self.inputs}
        known |= {name: number.bounded(constant=False) for name, number in self.numbers.items()}
        once = computed_once(self.statements, self.outputs)
        for statement in self.statements:
            value = run_statement(statement, known)
            known[statement.name] = value if statement.name in once else replace(value, slip=None)
        return known

    def results(self) -> list[Bounded]:
        known = self.evaluate()
        return [known[name] for name in self.outputs]

    def with_rows(self, old: int, new: int) -> Program:
        """The program called with arrays whose leading extents `old` have become `new`."""
        return replace(self, inputs=tuple(x.with_rows(old, new) for x in self.inputs), rows=())


def argument_of(number: Number) -> Any:
    return number.value if number.dtype is None else np.dtype(number.dtype).type(number.value)


def run_statement(statement: Statement, known: Mapping[str, Bounded]) -> Bounded:
    """The value of a statement; raises `Refused`."""
    args = [known[a] if isinstance(a, str) else a.bounded(constant=True) for a in statement.args]
    params = {key: _resolved(value, known) for key, value in statement.params.items()}
    try:
        with np.errstate(all="ignore"):
            result = OPERATIONS[statement.op].rule(*args, **params)
    except (ValueError, IndexError, np.exceptions.AxisError) as error:
        raise Refused(f"{statement.text}: {error}") from error
    if kind(result.dtype) == "float" and result.value.dtype != np.float64:
        raise AssertionError(f"{statement.text}: a float is kept in {result.value.dtype}")
    if result.value.shape != result.error.shape:
        raise AssertionError(f"{statement.text}: {result.value.shape} with bounds of {result.error.shape}")
    return result


def _resolved(value: Any, known: Mapping[str, Bounded]) -> Any:
    if isinstance(value, Extent):
        return known[value.name].shape[value.dim]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(_resolved(v, known) for v in value)
    return value
