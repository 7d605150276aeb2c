"""`scf`: control flow. If threads disagree about a condition, both sides run under masks; otherwise one side runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mlir import ir

from mlirfuse.interpreter.program import Program
from mlirfuse.interpreter.registry import rule, suspending
from mlirfuse.interpreter.roles import run_concurrently
from mlirfuse.interpreter.scheduler import Coroutine
from mlirfuse.interpreter.site import Site, gather
from mlirfuse.interpreter.state.lanes import merge, over_lanes, uniform
from mlirfuse.interpreter.state.machine import Frame
from mlirfuse.schedule.layout import WARP

GeneratorStep = Callable[[Frame], Coroutine]


def _masked(frame: Frame, condition: np.ndarray) -> np.ndarray:
    """The active threads for which the condition holds, as a full-width mask."""
    mask = condition if frame.mask is None else frame.mask & condition
    return over_lanes(mask, frame.block.threads)


def _assign(site: Site, frame: Frame, slots: Sequence[int], condition: np.ndarray | None, new: Sequence[Any]) -> None:
    """Overwrites slots in the threads for which the condition holds; None for all threads."""
    for slot, value in zip(slots, new, strict=True):
        merged = value if condition is None else merge(condition, value, frame.values[slot])
        if merged is None:
            raise site.error("threads have different memrefs, which the interpreter does not support", frame)
        frame.values[slot] = merged


def _is_same_in_warps(condition: np.ndarray) -> bool:
    """Whether all threads of each warp agree on a condition, given for each thread."""
    return len(condition) % WARP == 0 and bool((condition.reshape(-1, WARP) == condition[::WARP, None]).all())


@suspending("scf.if")
def _if(site: Site) -> GeneratorStep:
    condition, results = site.operands[0], site.results
    then, otherwise = site.region(0), site.region(1)

    def branch(frame: Frame, program: Program, mask: np.ndarray) -> Coroutine:
        saved = frame.mask
        frame.mask = mask
        yield from program.run(frame)
        frame.mask = saved

    def step(frame: Frame) -> Coroutine:
        taken = frame.values[condition]
        agreed = uniform(taken, frame)
        if agreed is not None:
            program = then if agreed else otherwise
            yield from program.run(frame)
            for slot, value in zip(results, program.outcome(frame), strict=True):
                frame.values[slot] = value
            return
        if otherwise.steps and _is_same_in_warps(taken):
            # Warps are independent of each other, so the code of one branch may wait for that of the other.
            roles = [(then, _masked(frame, taken)), (otherwise, _masked(frame, ~taken))]
            yield from run_concurrently([(program, frame.masked(mask)) for program, mask in roles], frame.block.index)
        else:
            yield from branch(frame, then, _masked(frame, taken))
            yield from branch(frame, otherwise, _masked(frame, ~taken))
        for slot, value in zip(results, otherwise.outcome(frame), strict=True):
            frame.values[slot] = value
        _assign(site, frame, results, taken, then.outcome(frame))

    return step


@suspending("scf.for")
def _for(site: Site) -> GeneratorStep:
    """A loop whose bounds may differ between threads; threads whose loop has ended are masked off."""
    lower, upper, stride = site.operands[:3]
    inits, body = site.operands[3:], site.region(0)
    carried = body.arguments[1:]

    def step(frame: Frame) -> Coroutine:
        values = frame.values
        for slot, init in zip(carried, gather(values, inits), strict=True):
            values[slot] = init
        bounds = [uniform(values[s], frame) for s in (lower, upper, stride)]
        if bounds[2] is not None and bounds[2] <= 0:
            raise site.error(f"step {bounds[2]} is not positive", frame)
        if all(bound is not None for bound in bounds):
            dtype = values[lower].dtype
            for index in range(*map(int, bounds)):
                yield from body.call(frame, [np.array([index], dtype), *gather(values, carried)])
                for slot, value in zip(carried, body.outcome(frame), strict=True):
                    values[slot] = value
        else:
            yield from divergent(frame)
        for slot, value in zip(site.results, gather(values, carried), strict=True):
            values[slot] = value

    def divergent(frame: Frame) -> Coroutine:
        values, saved = frame.values, frame.mask
        index, end, by = values[lower], values[upper], values[stride]
        live = _masked(frame, index < end)
        while live.any():
            frame.mask = live
            values[body.arguments[0]] = index
            yield from body.run(frame)
            _assign(site, frame, carried, live, body.outcome(frame))
            index = index + by
            live = live & (index < end)
        frame.mask = saved

    return step


@suspending("scf.while")
def _while(site: Site) -> GeneratorStep:
    """A loop in which threads are masked off from the iteration on in which their condition is false."""
    before, after = site.region(0), site.region(1)

    def step(frame: Frame) -> Coroutine:
        values, saved = frame.values, frame.mask
        for slot, init in zip(before.arguments, gather(values, site.operands), strict=True):
            values[slot] = init
        while True:
            yield from before.run(frame)
            condition, *passed = before.outcome(frame)
            narrowed = None if frame.mask is saved else frame.mask
            _assign(site, frame, site.results, narrowed, passed)
            if (agreed := uniform(condition, frame)) is None:
                frame.mask = _masked(frame, condition)
            elif not agreed:
                break
            yield from after.call(frame, passed)
            narrowed = None if frame.mask is saved else frame.mask
            _assign(site, frame, before.arguments, narrowed, after.outcome(frame))
        frame.mask = saved

    return step


@rule("scf.forall")
def _forall(site: Site) -> Callable[[Frame], None]:
    """The loop over a tile program's blocks: the scheduler runs each iteration as a block of one thread."""
    if site.results:
        raise site.error("shared outputs are not supported: tile programs write memrefs")
    body = site.region(0)
    dynamic = iter(site.operands)

    def bound(static: int) -> Callable[[Frame], int]:
        if static != ir.ShapedType.get_dynamic_size():
            return lambda _frame: static
        slot = next(dynamic)
        return lambda frame: int(frame.values[slot][0])

    lows, highs, steps = [[bound(s) for s in site.ints(f"static{n}")] for n in ("LowerBound", "UpperBound", "Step")]

    def step(frame: Frame) -> None:
        ranges = [range(low(frame), high(frame), by(frame)) for low, high, by in zip(lows, highs, steps, strict=True)]
        site.compiler.interpreter.run_forall(site, frame, body, ranges)

    return step
