"""Warm calls as one generated function: recognition, allocation, parameters, launch and results without a loop.

`LaunchPlan.run` does the same for any call. The generated function has all that does not change between the calls of a
kind as constants, and makes no object but the results. Calls that are not of the kind return `MISSED`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mlirfuse.runtime.arrays.outputs import OutputPlan
from mlirfuse.runtime.device import cuda
from mlirfuse.runtime.recognition import Pattern

MISSED = object()
"""The result of a call that another path has to serve."""

FastCall = Callable[[tuple[Any, ...], Any, Any], Any]
"""Takes the arguments of a call, its `out`, and its stream."""


def never(args: tuple[Any, ...], out: Any, stream: Any) -> Any:
    """Makes no call."""
    return MISSED


@dataclass(frozen=True)
class Steps:
    """What the generated function does between recognition and result.

    Attributes:
        device: the arrays' device.
        framework: whose arrays results are.
        prepare: makes a function that writes all varying words, one for each launch, which takes the stream's pointer,
            and the memory that they use.
        idle: blocks that no call uses.
        launches: how many.
        outputs: for each output its shape and dtype, in order of the words.
        results: expressions of the results; `a0` is argument 0, and `r0` output 0.
        made: constants of these expressions.
        structure: how results are packed: `single`, `tuple` or `list`.
        current_stream: gives the stream of a call that names none.
        refusal: the error of a launch, made of the driver's.
    """

    device: int
    framework: str
    prepare: Callable[[], tuple[Any, ...]]
    idle: list[tuple[Any, ...]]
    launches: int
    outputs: tuple[tuple[tuple[int, ...], str], ...]
    results: tuple[str, ...]
    structure: str
    current_stream: Callable[[], int]
    refusal: Callable[[Exception], Exception]
    made: Mapping[str, object] = field(default_factory=dict)


def fast_call(pattern: Pattern, steps: Steps, into: OutputPlan | None) -> FastCall:
    """The function for calls of a pattern; `into` writes their results where they give `out`."""
    known: dict[str, object] = {**pattern.known, **steps.made}
    known |= {"missed": MISSED, "thread": cuda.thread(), "require_context": cuda.require_context}
    known |= {"stream_pointer": cuda.stream_pointer, "current_stream": steps.current_stream}
    body = [pattern.code("missed")]
    if cuda.device_count() > 1:
        known |= {"current_device": cuda.cupy().cuda.runtime.getDevice, "device": steps.device}
        body.append("    if current_device() != device: return missed")
    if steps.launches:
        body.append("    if not thread.has_context: require_context()")
    words = list(pattern.values)
    if into is None:
        for number, (shape, dtype) in enumerate(steps.outputs):
            allocate, pointer, constants = cuda.allocation(steps.framework, shape, dtype, steps.device, number)
            known |= constants
            body.append(f"    {allocate}")
            words.append(pointer)
    else:
        known["require_apart"] = into.require_apart
        body.append(f"    require_apart([{', '.join(words)}])")
    if steps.launches:
        known |= {"prepare": steps.prepare, "pop": steps.idle.pop, "push": steps.idle.append}
        known |= {"struct_error": struct.error, "driver_error": cuda.cupy().cuda.driver.CUDADriverError}
        known["refusal"] = steps.refusal
        launches = [f"launch{n}" for n in range(steps.launches)]
        body.append(f"""
    queue = current_stream() if stream is None else stream_pointer(stream)
    try:
        taken = pop()
    except IndexError:
        taken = prepare()
    try:
        pack, {", ".join(launches)}, _ = taken
        pack({", ".join(words)})
        {"; ".join(f"{launch}(queue)" for launch in launches)}
    except struct_error:
        return missed
    except driver_error as error:
        raise refusal(error) from error
    finally:
        push(taken)""")
    results = ", ".join(steps.results)
    packed = {"single": results, "tuple": f"({results},)", "list": f"[{results}]"}[steps.structure]
    body.append(f"    return {packed if into is None else 'out'}")
    exec("def call(args, out, stream):" + "\n".join(body) + "\n", known)  # nothing in it comes from outside
    return known["call"]  # type: ignore[return-value]
