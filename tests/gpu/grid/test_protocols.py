"""Blocks that wait for each other, on a GPU: many launches, streams, graphs, and a launch that fails."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from mlirfuse.compiler.kernel_info import KernelInfo
from mlirfuse.compiler.read_host import host_program
from mlirfuse.errors import RuntimeLaunchError
from mlirfuse.runtime import workspace
from mlirfuse.runtime.device import cuda
from mlirfuse.runtime.device.module import LoadedKernel, load
from mlirfuse.runtime.dispatch import Dispatcher
from tests.support import protocols
from tests.support.harnesses.lowering_harness import compile_text

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

ROWS = 100
STREAMS = 8
BACK_TO_BACK = 100_000
REPLAYS = 10_000


def dispatcher(
    text: str, change: Callable[[KernelInfo], KernelInfo] = lambda info: info, passes: str = ""
) -> Dispatcher:
    """Runs a module's host function, once it has gone through `passes`; `change` may make its launches wrong."""
    binaries, infos, module = compile_text(text, cuda.chip(0), passes)
    with module.context:
        program = host_program(module.operation)
    kernels: dict[str, LoadedKernel] = {}
    for name, binary in binaries.items():
        loaded = load(binary, infos[name], 0)
        kernels[name] = replace(loaded, info=change(infos[name]))
    return Dispatcher(lambda _: (program, kernels), [argument.name for argument in program.arguments])


@cache
def protocol(name: str) -> Dispatcher:
    return dispatcher(protocols.text(name))


def expected(name: str, x: np.ndarray) -> np.ndarray:
    """What float32 gives: integers are exact, and the serial reduction rounds in the order of its tickets."""
    return protocols.EXPECTED[name](x if name == "serial" else x.astype(np.float64)).astype(np.float32)


class Case:
    """A protocol on fixed inputs, which a call writes into `out`."""

    def __init__(self, name: str, rows: int = ROWS, seed: int = 0):
        x = protocols.integers(rows, seed)
        self.run, self.x, self.expected = protocol(name), cupy.asarray(x), expected(name, x)
        self.out = cupy.full(self.expected.shape, cupy.nan, cupy.float32)

    def launch(self, stream: object = None) -> None:
        self.run((self.x,), out=self.out, stream=stream)

    def check(self) -> None:
        """Compares, and poisons the output for the next call. Waits."""
        cupy.cuda.Device().synchronize()
        np.testing.assert_array_equal(self.out.get(), self.expected)
        self.out.fill(cupy.nan)
        cupy.cuda.Device().synchronize()


@pytest.mark.parametrize("rows", [1, 5, 300])
@pytest.mark.parametrize("name", protocols.EXPECTED)
def test_one_launch(name: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(workspace.CHECK, "1")
    x = protocols.integers(rows, seed=rows)
    (y,) = dispatcher(protocols.text(name))((cupy.asarray(x),))
    np.testing.assert_array_equal(y.get(), expected(name, x))


@pytest.mark.parametrize("rows", [1, 7, 5000])
@pytest.mark.parametrize("layout", protocols.LAYOUTS)
@pytest.mark.parametrize("name", protocols.TILE_PROGRAMS)
def test_a_tile_program(name: str, layout: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through `fuse-distribute`: a block, or a cluster of two, does what the tile program's block does."""
    monkeypatch.setenv(workspace.CHECK, "1")
    run = dispatcher(protocols.tile_program(name, layout), passes="fuse-distribute,canonicalize,cse")
    for seed in range(5):
        x = protocols.integers(rows, seed, columns=256)
        (y,) = run((cupy.asarray(x),))
        np.testing.assert_array_equal(y.get(), protocols.TILE_PROGRAMS[name](x.astype(np.float64)))


def test_more_blocks_than_the_device_holds() -> None:
    case = Case("last_block", 5000)
    case.launch()
    case.check()
    case = Case("serial", 5000)
    case.launch()
    case.check()


@pytest.mark.parametrize("name", protocols.EXPECTED)
def test_back_to_back(name: str) -> None:
    case = Case(name)
    for _ in range(10):
        for _ in range(BACK_TO_BACK // 10):
            case.launch()
        case.check()


@pytest.mark.parametrize("name", protocols.EXPECTED)
def test_streams(name: str) -> None:
    """Each stream has semaphores of its own, and grids that must be whole wait for each other."""
    cases = [Case(name, ROWS + i, seed=i) for i in range(STREAMS)]
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in cases]
    cupy.cuda.Device().synchronize()
    for _ in range(3):
        for _ in range(500):
            for case, stream in zip(cases, streams, strict=True):
                case.launch(stream)
        for case in cases:
            case.check()


def test_threads() -> None:
    """Host threads that launch on one stream, and on streams of their own."""
    shared = cupy.cuda.Stream(non_blocking=True)
    cases = [Case(name, ROWS + i, seed=i) for i in range(2) for name in protocols.EXPECTED]
    streams = [shared if i % 2 else cupy.cuda.Stream(non_blocking=True) for i in range(len(cases))]
    cupy.cuda.Device().synchronize()

    def work(case: Case, stream: object) -> None:
        for _ in range(500):
            case.launch(stream)

    with ThreadPoolExecutor(len(cases)) as pool:
        for done in [pool.submit(work, *pair) for pair in zip(cases, streams, strict=True)]:
            done.result()
    for case in cases:
        case.check()


def test_a_new_thread_on_the_default_stream() -> None:
    """A thread that has no CUDA context yet."""
    case = Case("last_block")
    case.launch()
    case.check()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(case.launch).result()
    case.check()


def capture(cases: list[Case], stream: object, times: int = 3) -> object:
    stream.begin_capture()
    for _ in range(times):
        for case in cases:
            case.launch(stream)
    return stream.end_capture()


def test_graph_replays() -> None:
    """The first launch of all is captured: a capture may allocate, and its semaphores are zero in every replay."""
    stream = cupy.cuda.Stream(non_blocking=True)
    cases = [Case(name, ROWS + 7) for name in protocols.EXPECTED]
    cupy.cuda.Device().synchronize()
    graph = capture(cases, stream, times=1)
    for _ in range(10):
        for _ in range(REPLAYS // 10):
            graph.launch(stream)
        for case in cases:
            case.check()


def test_graphs_that_come_and_go() -> None:
    """The arena of a graph that is gone serves another, and not before its last replay is over."""
    stream = cupy.cuda.Stream(non_blocking=True)
    cases = [Case("serial", 1000, seed=seed) for seed in range(5)]
    for case in cases:
        case.launch()
        case.check()
    known = len(workspace._CAPTURES)
    for _ in range(20):
        for case in cases:
            graph = capture([case], stream, times=2)
            for _ in range(3):
                graph.launch(stream)
            del graph
    for case in cases:
        case.check()
    assert len(workspace._CAPTURES) < known + 50, "of 100"


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_modes_of_capture(mode: int) -> None:
    """Global, thread-local and relaxed; a capture's arena is allocated while it lasts, and so is another thread's."""
    stream, other = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
    cases = [Case("last_block", 200 + mode), Case("serial", 200 + mode)]
    beside = Case("last_block", 300 + mode)
    for case in (*cases, beside):  # makes their plans
        case.launch()
        case.check()
    stream.begin_capture(mode)
    for case in cases:
        case.launch(stream)
    beside.launch(other)
    graph = stream.end_capture()
    for _ in range(5):
        graph.launch(stream)
        for case in cases:
            case.check()
    beside.check()


def test_a_capture_of_torch() -> None:
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(protocols.integers(ROWS + 1)).cuda()
    run = protocol("last_block")
    run((x,))
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        (y,) = run((x,))
        (again,) = run((x,))
    for seed in range(5):
        new = protocols.integers(ROWS + 1, seed)
        x.copy_(torch.from_numpy(new))
        graph.replay()
        for result in (y, again):
            np.testing.assert_array_equal(result.cpu().numpy(), expected("last_block", new))


def test_graphs_beside_eager_launches() -> None:
    """A graph replayed on the stream that it was captured on and on another, with eager launches on both."""
    first, second = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
    names = list(protocols.EXPECTED)
    captured = [[Case(name, ROWS, seed=i) for name in names] for i in range(2)]
    eager = [[Case(name, ROWS + 3, seed=i) for name in names] for i in range(2)]
    cupy.cuda.Device().synchronize()
    graphs = [capture(cases, first) for cases in captured]
    for _ in range(300):
        graphs[0].launch(second)
        graphs[1].launch(first)
        for cases, stream in zip(eager, (first, second), strict=True):
            for case in cases:
                case.launch(stream)
    for case in [*captured[0], *captured[1], *eager[0], *eager[1]]:
        case.check()


def test_streams_that_come_and_go() -> None:
    """The pointer of a stream that is gone may be given out again while its last kernels run."""
    cases = [Case("serial", 2000, seed=seed) for seed in range(3)]
    cupy.cuda.Device().synchronize()
    for _ in range(20):
        for case in cases:
            stream = cupy.cuda.runtime.streamCreateWithFlags(1)
            case.launch(stream)
            cupy.cuda.runtime.streamDestroy(stream)
    for case in cases:
        case.check()


def test_memory_grows_under_kernels_in_flight() -> None:
    stream = cupy.cuda.Stream(non_blocking=True)
    cases = [Case("last_block", rows, seed=rows) for rows in (3, 300, 30, 3000, 9000)]
    cupy.cuda.Device().synchronize()
    for _ in range(20):
        for case in cases:
            case.launch(stream)
    for case in cases:
        case.check()


def test_a_launch_that_fails() -> None:
    """What is in the semaphores after a launch that failed is not trusted."""
    stream = cupy.cuda.Stream(non_blocking=True)
    cases = [Case(name) for name in protocols.EXPECTED]
    cupy.cuda.Device().synchronize()
    for case in cases:
        case.launch(stream)
    stream.synchronize()
    semaphores = workspace.arena(0, stream.ptr)._blocks["semaphores"]
    broken = dispatcher(protocols.text("last_block"), lambda info: replace(info, dynamic_shared_bytes=1 << 20))
    for case in cases:
        cupy.cuda.runtime.memsetAsync(semaphores.pointer, 0x55, semaphores.nbytes, stream.ptr)
        with pytest.raises(RuntimeLaunchError, match="last_block: the driver refuses the launch"):
            broken((case.x,), stream=stream)
        case.launch(stream)
        case.check()


def test_a_kernel_that_does_not_clean_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(workspace.CHECK, "1")
    text = protocols.text("serial").replace("%c1, %limit) : (memref<2xi32>", "%c1, %more) : (memref<2xi32>")
    text = text.replace("    scf.if %is_first {\n      %ticket", "    %one = arith.constant 1 : i32\n"
                        "    %more = arith.addi %limit, %one : i32\n    scf.if %is_first {\n      %ticket")  # fmt: skip
    x = cupy.asarray(protocols.integers(ROWS))
    with pytest.raises(RuntimeLaunchError, match="serial_kernel: .* left semaphore 1 of argument 2 at 100"):
        dispatcher(text)((x,))
    case = Case("serial")
    case.launch()
    case.check()


def test_the_grid_is_what_the_device_holds() -> None:
    case = Case("tickets", 5000)
    case.launch()
    case.check()
    binaries, infos, _ = compile_text(protocols.text("tickets"), cuda.chip(0))
    kernel = load(binaries["tickets_kernel"], infos["tickets_kernel"], 0)
    sms = cupy.cuda.Device().attributes["MultiProcessorCount"]
    assert kernel.resident_blocks(2) == 2 * sms
    assert kernel.resident_blocks(1000) == 16 * sms, "16 blocks of 128 threads fill an SM"
    assert infos["tickets_kernel"].blocks([(5000, 128), (5000, 128)], kernel.resident_blocks) == 2 * sms
