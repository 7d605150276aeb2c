"""Matches specs to the parameters of a Python function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlirfuse.builder.source import position_of_function
from mlirfuse.builder.spec import LEFT_OUT, ArgumentSpec, ScalarSpec, StaticSpec, TensorSpec
from mlirfuse.errors import ArgumentError


@dataclass(frozen=True)
class Signature:
    """A function with a spec for every parameter that has no default.

    Attributes:
        fn: the function.
        bound: its specs, as `inspect` bound them.
        arguments: (name, spec) of every run-time argument, in order. Items of `*xs` are `xs_0`, `xs_1`, ...
    """

    fn: Callable[..., Any]
    bound: inspect.BoundArguments
    arguments: tuple[tuple[str, TensorSpec | ScalarSpec], ...]

    def call(self, values: Sequence[object]) -> object:
        """Calls the function with one value per run-time argument, and with the static values of its specs."""
        remaining = iter(values)
        args = [_substitute(spec, remaining) for spec in self.bound.args]
        kwargs = {name: _substitute(spec, remaining) for name, spec in self.bound.kwargs.items()}
        return self.fn(*args, **kwargs)


def bind(fn: Callable[..., Any], specs: Sequence[ArgumentSpec] | Mapping[str, ArgumentSpec]) -> Signature:
    """Matches specs, in order or by name, to the function's parameters.

    Raises:
        ArgumentError: a parameter without a default has no spec, or a given spec has no parameter or is no spec.
    """
    where = position_of_function(fn).where
    title = getattr(fn, "__name__", type(fn).__name__)
    try:
        signature = inspect.signature(fn)
        if isinstance(specs, Mapping):
            rest = dict(specs)
            first = [
                rest.pop(name)
                for name, parameter in signature.parameters.items()
                if parameter.kind is inspect.Parameter.POSITIONAL_ONLY and name in rest
            ]
            bound = signature.bind(*first, **rest)
        else:
            bound = _bind_in_order(signature, specs)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{title}: {error}", where=where, hint=_parameters(fn)) from None
    for name, spec in bound.arguments.items():
        if isinstance(spec, StaticSpec) and spec.value is LEFT_OUT:
            bound.arguments[name] = StaticSpec(signature.parameters[name].default)
    entries: list[tuple[str, object]] = []
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            entries += [(f"{name}_{i}", item) for i, item in enumerate(value)]
        elif kind is inspect.Parameter.VAR_KEYWORD:
            entries += value.items()
        else:
            entries.append((name, value))
    arguments: list[tuple[str, TensorSpec | ScalarSpec]] = []
    for name, spec in entries:
        if isinstance(spec, TensorSpec | ScalarSpec):
            arguments.append((spec.name or name, spec))
        elif not isinstance(spec, StaticSpec):
            hint = "use a TensorSpec, a ScalarSpec, or a StaticSpec for a constant"
            raise ArgumentError(f"{title}: parameter {name!r} got {spec!r}, which is no spec", where=where, hint=hint)
    return Signature(fn, bound, tuple(arguments))


def _bind_in_order(signature: inspect.Signature, specs: Sequence[ArgumentSpec]) -> inspect.BoundArguments:
    """Binds specs in the order of the parameters; keyword-only parameters come last."""
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return signature.bind(*specs)
    named = [n for n, p in signature.parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY]
    count = len(kinds) - len(named) - kinds.count(inspect.Parameter.VAR_KEYWORD)
    if len(specs) > count + len(named):
        return signature.bind(*specs)  # raises
    return signature.bind(*specs[:count], **dict(zip(named, specs[count:], strict=False)))


def _substitute(spec: object, values: Iterator[object]) -> object:
    return spec.value if isinstance(spec, StaticSpec) else next(values)


def _parameters(fn: Callable[..., Any]) -> str:
    """The expected parameters of a function, as a hint."""
    try:
        names = list(inspect.signature(fn).parameters)
    except (TypeError, ValueError):
        return "give one argument per parameter"
    return f"parameters: {', '.join(names)}" if names else "it has no parameters"
