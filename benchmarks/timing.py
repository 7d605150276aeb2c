"""Times GPU work and host work so that the numbers can be compared within one run.

GPU time is measured over a replayed CUDA graph of many calls, which takes turns over sets of inputs and outputs that do
not fit the L2 cache together. Contestants are timed in turns, round by round: the first graphs of a new size can
measure slow, and a clock that drifts then hits all alike. Each round has an order of its own, as what ran before says
how much power the next one is left; and it says what the L2 holds. That lasts: accesses that are evicted first, as
streaming kernels make them, displace each other, and leave there whatever else lies there. Behind a copy those are
lines of the very outputs, to which stores are cheap; behind anything else they are of no use (H200, LayerNorm of 8192 x
12288 in half precision: 98 us and 103 us, for a hundred launches and more, while a copy takes 96 us behind either). So
unrelated memory is read before each turn. Nothing is checked between timings: work in double precision was seen to
leave an H200 10 % slower for all that follows, plain copies included.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

LARGE_BYTES = 64_000_000
"""From here on four sets are far beyond the L2 (50 MB on an H100, 60 MB on an H200); below, eight are used."""

ROUNDS, REPLAYS = 7, 3
GRAPH_SECONDS = 600e-6
"""A graph should run that long, so that its launch (a few us) does not count."""

_UNRELATED_BYTES = 2**28  # read before each turn: several times the L2
_BYTES_PER_SECOND = 4e12  # of the copy that a call is guessed to cost, to choose the number of calls in a graph
_WARM_UP_SECONDS = 0.05
_SEED = 1  # of the contestants' order
_HEAD_START_CYCLES = 2_000_000
_HOST_BATCH, _HOST_REPEATS = 200, 51  # 200 launches fit the driver's queue, which holds 1024


@dataclass(frozen=True)
class Contestant:
    """Something to time.

    Attributes:
        name: how reports call it.
        call: launches its work for input set `i`; what it returns is kept alive, so that outputs rotate too.
        in_graph: whether calls are captured in a CUDA graph; otherwise they are made one by one, with a head start of
            the host, so that its time counts only where it cannot keep up with the GPU.
    """

    name: str
    call: Callable[[int], object]
    in_graph: bool = True


@dataclass(frozen=True)
class Timing:
    """Microseconds of one call: the median over rounds, and the rounds."""

    microseconds: float
    rounds: tuple[float, ...]


@dataclass(frozen=True)
class Contest:
    """What was measured, by contestant; `failures` says why a contestant has no timing."""

    timings: dict[str, Timing] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def speed(self, name: str, reference: str) -> float | None:
        """How fast a contestant is relative to another one; None where one of them has no timing.

        The median over rounds of what a round says. Medians of each contestant's own rounds may come from different
        clocks: products run 15 % faster for some 100 ms, until an H200's limit of power sets the clock, which is the
        middle of a contest of two of 60 us. 512x512x65536 was once 0.938 of cuBLAS so (57.3 us, 53.7), else 1.03 to
        1.04; by cycles it is 1.04.
        """
        if not {name, reference} <= set(self.timings):
            return None
        rounds = zip(self.timings[reference].rounds, self.timings[name].rounds, strict=True)
        return statistics.median(theirs / own for theirs, own in rounds)


def input_sets(nbytes: int) -> int:
    """How many sets of inputs of that many bytes to take turns over."""
    return 4 if nbytes >= LARGE_BYTES else 8


def calls_in_graph(nbytes: int, sets: int) -> int:
    """Calls in one graph: whole turns over the sets, until a copy of that many bytes takes `GRAPH_SECONDS`."""
    turn = sets * 2 * nbytes / _BYTES_PER_SECOND
    return sets * max(1, ceil(GRAPH_SECONDS / turn))


def run_contest(contestants: Sequence[Contestant], sets: int, nbytes: int, rounds: int = ROUNDS) -> Contest:
    """Times contestants against each other on the GPU.

    Args:
        contestants: what to time. One that raises an exception becomes a failure and does not end the contest.
        sets: number of input sets.
        nbytes: bytes of the input of one call.
        rounds: how often every contestant gets its turn.
    """
    calls = calls_in_graph(nbytes, sets)
    result = Contest()
    replays: dict[str, Callable[[], None]] = {}
    for contestant in contestants:
        try:
            replays[contestant.name] = _prepare(contestant, calls, sets)
        except Exception as error:  # noqa: BLE001  # whatever a peer raises must not end the run; it is reported
            result.failures[contestant.name] = f"{type(error).__name__}: {str(error).strip()[:200]}"
    if not replays:
        return result
    _warm_up(list(replays.values()))
    forget = _forgetting()
    found: dict[str, list[float]] = {name: [] for name in replays}
    head_start = {c.name for c in contestants if not c.in_graph}
    order = random.Random(_SEED)
    for _ in range(rounds):
        for name in order.sample(list(replays), len(replays)):
            forget()
            times = [_elapsed_us(replays[name], name in head_start) for _ in range(REPLAYS)]
            found[name].append(statistics.median(times) / calls)
    for name, values in found.items():
        result.timings[name] = Timing(statistics.median(values), tuple(values))
    return result


def release_memory() -> None:
    """Returns what the last size used to the driver, so that the next one starts in fresh memory."""
    import torch

    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()


def host_us(calls: Mapping[str, Callable[[], object]], synchronize: Callable[[], object]) -> dict[str, float]:
    """Medians of the time that the host takes for each call, in microseconds, over batches that fit the driver's queue.

    The calls take turns, a batch each: the processor of a shared host is at times 10 to 40 % slower for a second.

    Args:
        calls: what launches, by name; its GPU work must take less than its host work.
        synchronize: waits for the GPU, outside of what is timed.
    """
    for call in calls.values():
        for _ in range(_HOST_BATCH):
            call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(_HOST_REPEATS):
        for name, call in calls.items():
            synchronize()
            start = time.perf_counter_ns()
            for _ in range(_HOST_BATCH):
                call()
            times[name].append((time.perf_counter_ns() - start) / _HOST_BATCH / 1e3)
    synchronize()
    return {name: statistics.median(values) for name, values in times.items()}


def _prepare(contestant: Contestant, calls: int, sets: int) -> Callable[[], None]:
    """A function that launches all calls, after warm-up calls in which the contestant may compile."""
    import torch

    kept: list[Any] = [None] * sets

    def launch_all() -> None:
        for n in range(calls):
            kept[n % sets] = contestant.call(n % sets)

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for i in range(min(3, sets)):
            kept[i] = contestant.call(i)
    stream.synchronize()
    if not contestant.in_graph:
        return launch_all
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch_all()

    def replay(keep_alive: Any = kept) -> None:
        graph.replay()

    return replay


def _warm_up(replays: Sequence[Callable[[], None]]) -> None:
    import torch

    end = time.perf_counter() + _WARM_UP_SECONDS
    while True:
        for replay in replays:
            replay()
        torch.cuda.synchronize()
        if time.perf_counter() >= end:
            return


def _forgetting() -> Callable[[], None]:
    """A function that fills the L2 with what no contestant uses."""
    import torch

    unrelated = torch.ones(_UNRELATED_BYTES // 4, device="cuda")

    def forget() -> None:
        unrelated.sum()

    return forget


def _elapsed_us(replay: Callable[[], None], head_start: bool) -> float:
    import torch

    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    if head_start:
        torch.cuda._sleep(_HEAD_START_CYCLES)
    begin.record()
    replay()
    end.record()
    end.synchronize()
    elapsed: float = begin.elapsed_time(end) * 1e3
    return elapsed
