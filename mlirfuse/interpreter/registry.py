"""Rules, which say how an op executes, registered by the op's name.

A rule runs once for each op when a function is compiled. The rule reads the op's attributes and returns a step, a
closure that executes the op on a frame without further access to the IR. There are four kinds:

- `direct`: the function from operand values to the result itself, for ops without attributes.
- `pure`: returns a function from operand values to the result, or to a tuple of results; for most ops.
- `rule`: returns a function of the frame, for ops that access memory, masks or the block; or None for an op that has
  nothing to execute, such as a constant.
- `suspending`: as `rule`, but returns a generator function, for ops with regions and for synchronisation. The generator
  yields a `scheduler.Wait`, or None to let other blocks run.

A new op needs one function in a file of `rules/`; all modules of that package are imported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from mlirfuse.interpreter.scheduler import Coroutine
from mlirfuse.interpreter.site import Site
from mlirfuse.interpreter.state.machine import Frame

Step = Callable[[Frame], "Coroutine | None"]
ValueFunction = TypeVar("ValueFunction", bound=Callable[..., Any])
Builder = Callable[[Site], Any]


@dataclass(frozen=True)
class Rule:
    """Builds an op's step; `suspends` says whether the step is a generator function."""

    build: Callable[[Site], Step | None]
    suspends: bool


RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Builder], Builder]:
    """Registers a builder of plain steps for ops of these names."""
    return _register(names, lambda build: Rule(build, suspends=False))


def suspending(*names: str) -> Callable[[Builder], Builder]:
    """Registers a builder of generator steps for ops of these names."""
    return _register(names, lambda build: Rule(build, suspends=True))


def direct(*names: str) -> Callable[[ValueFunction], ValueFunction]:
    """Registers a function from operand values to the result."""

    def register(function: ValueFunction) -> ValueFunction:
        pure(*names)(lambda _site: function)
        return function

    return register


def pure(*names: str) -> Callable[[Builder], Builder]:
    """Registers a builder of value functions for ops of these names."""
    return _register(names, lambda build: Rule(lambda site: _step(site, build(site)), suspends=False))


def _register(names: tuple[str, ...], make: Callable[[Builder], Rule]) -> Callable[[Builder], Builder]:
    def register(build: Builder) -> Builder:
        for name in names:
            if name in RULES:
                raise ValueError(f"two rules for {name}")
            RULES[name] = make(build)
        return build

    return register


def _step(site: Site, function: Callable[..., Any]) -> Step:
    """The step that applies a value function to the operands' slots, and sets the results' slots."""
    operands, results = site.operands, site.results
    if len(results) != 1:

        def many(frame: Frame) -> None:
            values = frame.values
            for slot, value in zip(results, function(*[values[s] for s in operands]), strict=True):
                values[slot] = value

        return many
    out = results[0]
    if len(operands) == 1:
        a = operands[0]

        def unary(frame: Frame) -> None:
            frame.values[out] = function(frame.values[a])

        return unary
    if len(operands) == 2:
        a, b = operands

        def binary(frame: Frame) -> None:
            frame.values[out] = function(frame.values[a], frame.values[b])

        return binary

    def general(frame: Frame) -> None:
        values = frame.values
        values[out] = function(*[values[s] for s in operands])

    return general
