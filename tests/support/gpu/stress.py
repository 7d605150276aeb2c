"""Many calls of one function: back to back, over streams and threads, in graphs. Every call's bits are compared.

What a test stresses is a `Stress`; the functions below are what is done to it. Each ends with all results right and
all semaphores of all arenas zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.analysis.memory.workspaces import SEMAPHORES
from mlirfuse.runtime import workspace
from mlirfuse.runtime.device.module import LoadedKernel
from mlirfuse.runtime.dispatch import Dispatcher

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")

STREAMS = 8
_DEVICE_TO_HOST = 2  # cudaMemcpyDeviceToHost

Tensors = Sequence[Any]


def as_tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def bits(tensor: Any) -> Any:
    return tensor.view({1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()])


def same(results: Tensors, expected: Tensors) -> bool:
    return all(torch.equal(bits(a), bits(b)) for a, b in zip(results, expected, strict=True))


def semaphores_at_rest() -> dict[int, int]:
    """What is not zero in the semaphores of every arena of this process, by address. Waits for the device."""
    torch.cuda.synchronize()
    arenas = [*workspace._ARENAS.values(), *(arena for arena, _ in workspace._CAPTURES.values())]
    found = {}
    for block in (arena._blocks[SEMAPHORES] for arena in arenas):
        values = np.empty(block.nbytes // 4, np.uint32)
        if values.size:
            cupy.cuda.runtime.memcpy(values.ctypes.data, block.pointer, block.nbytes, _DEVICE_TO_HOST)
        found |= {block.pointer + 4 * int(i): int(values[i]) for i in np.flatnonzero(values)}
    return found


class Stress:
    """Calls with several inputs, whose results are compared bit for bit with what single calls gave.

    Args:
        function: takes tensors, and `out=`.
        inputs: sets of arguments, used in rotation, each with outputs of its own.
        check: raises if the results of a call are not those of its arguments.
    """

    def __init__(
        self, function: Callable[..., Any], inputs: Sequence[Tensors], check: Callable[[Tensors, Tensors], None]
    ):
        self.function, self.inputs = function, inputs
        self.expected = [as_tuple(function(*each)) for each in inputs]
        self.outputs = [tuple(map(torch.empty_like, results)) for results in self.expected]
        torch.cuda.synchronize()
        for results, tensors in zip(self.expected, inputs, strict=True):
            check(results, tensors)
        self.poison()

    def call(self, position: int) -> None:
        i = position % len(self.inputs)
        self.function(*self.inputs[i], out=self.outputs[i])

    def poison(self) -> None:
        for results in self.outputs:
            for result in results:
                result.fill_(float("nan"))
        torch.cuda.synchronize()

    def verify(self) -> None:
        """All outputs are right, and semaphores zero; the outputs are poisoned afterwards."""
        torch.cuda.synchronize()
        wrong = [i for i, results in enumerate(self.outputs) if not same(results, self.expected[i])]
        assert not wrong, f"wrong results for inputs {wrong}"
        assert not semaphores_at_rest()
        self.poison()


MakeStress = Callable[[int], Stress]
"""A stress of so many sets of inputs."""


def back_to_back(make: MakeStress, launches: int = 100_000) -> None:
    stress = make(8)
    for position in range(launches):
        stress.call(position)
        if position % (launches // 10) == launches // 10 - 1:
            stress.verify()


def on_streams(make: MakeStress) -> None:
    stress = make(STREAMS)
    streams = [torch.cuda.Stream() for _ in range(STREAMS)]
    for position in range(STREAMS * 1000):
        with torch.cuda.stream(streams[position % STREAMS]):
            stress.call(position)
    stress.verify()


def on_threads(make: MakeStress) -> None:
    """Threads of the host that call the same function, each on a stream of its own."""
    stress = make(STREAMS)

    def work(i: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(500):
                stress.call(i)

    with ThreadPoolExecutor(STREAMS) as pool:
        list(pool.map(work, range(STREAMS)))
    stress.verify()


def capture(stress: Stress, positions: Sequence[int]) -> Any:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for position in positions:
            stress.call(position)
    return graph


def replayed(make: MakeStress, replays: int = 10_000) -> None:
    stress = make(4)
    graph = capture(stress, range(4))
    for count in range(replays):
        graph.replay()
        if count % (replays // 10) == replays // 10 - 1:
            stress.verify()


def graphs_beside_calls(make: MakeStress) -> None:
    """Two graphs and plain calls, on one stream and on several at once."""
    stress = make(6)
    graphs = [capture(stress, (0, 1)), capture(stress, (2, 3))]
    streams = [torch.cuda.Stream() for _ in range(3)]
    for count in range(2000):
        together = count % 2 == 0
        for graph, stream in zip(graphs, streams, strict=False):
            with torch.cuda.stream(streams[0] if together else stream):
                graph.replay()
        with torch.cuda.stream(streams[0] if together else streams[2]):
            stress.call(4)
            stress.call(5)
        if count % 200 == 199:
            stress.verify()
        elif together:  # the outputs of a graph move to another stream next
            torch.cuda.synchronize()


@dataclass(frozen=True)
class _Refused(LoadedKernel):
    """A kernel that is planned for as the one it was made of, and that the driver then does not launch.

    Attributes:
        planned: that kernel.
    """

    planned: LoadedKernel

    def resident_blocks(self, per_sm: int) -> int:
        return self.planned.resident_blocks(per_sm)


def refused(fused: mf.Fused, kernel: str) -> Dispatcher:
    """The function, one of whose kernels asks for more shared memory than there is when it is launched."""

    def prepare(arguments: Any) -> Any:
        program, kernels = fused._prepare(arguments)
        planned = kernels[kernel]
        info = replace(planned.info, dynamic_shared_bytes=1 << 20)
        return program, {**kernels, kernel: _Refused(info, planned.function, planned.device, planned.owner, planned)}

    return Dispatcher(prepare, fused._names)
