"""Kernels that start before their predecessor in the stream has ended read what it wrote, and write what it has read.

The predecessor here triggers the dependent launch at once, and stores its results with a delay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.compiler.read_host import host_program
from mlirfuse.runtime.device import cuda
from mlirfuse.runtime.device.module import load
from mlirfuse.runtime.dispatch import Dispatcher
from tests.support.contractions.product_reductions import CASES as TOTALS
from tests.support.contractions.products import Product, pinned_schedule
from tests.support.gpu.torch_arrays import to_torch, torch
from tests.support.harnesses.compiling import row_schedule, specs_of
from tests.support.harnesses.lowering_harness import SCALE, compile_text
from tests.support.reductions.backward import BACKWARD
from tests.support.reductions.numerics import FAMILIES

cupy = pytest.importorskip("cupy")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not cupy.is_available() or int(cupy.cuda.Device(0).compute_capability) < 90, reason="no such launch"
    ),
]

CYCLES = 1_000_000
"""For which the predecessor does nothing: about 0.5 ms, many times what a call takes on a busy host."""

REPEATS = 20

LATE = r"""
extern "C" __global__ void late_copy(const int* from, int* to, long long words, long long cycles) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  for (long long start = clock64(); clock64() - start < cycles;) {}
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) to[i] = from[i];
}
"""


@cache
def late_copy() -> Any:
    return cupy.RawKernel(LATE, "late_copy")


@dataclass(frozen=True)
class _Stream:
    """A stream as CuPy 14 takes it from others."""

    pointer: int

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.pointer


def copy_late(source: Any, target: Any, stream: int | None = None, cycles: int = CYCLES) -> None:
    """Copies bytes (a multiple of four) with a delay on a stream (torch's current one by default)."""
    pointer = torch.cuda.current_stream().cuda_stream if stream is None else stream
    # CuPy 14 has Stream.from_external, and deprecates ExternalStream; CuPy 13 has only the latter.
    from_external = getattr(cupy.cuda.Stream, "from_external", None)
    with from_external(_Stream(pointer)) if from_external else cupy.cuda.ExternalStream(pointer):
        late_copy()((32,), (256,), (source.data_ptr(), target.data_ptr(), source.nbytes // 4, cycles))


class Packed:
    """Tensors that lie in one piece of memory, so that one kernel writes them all."""

    def __init__(self, arrays: Sequence[np.ndarray]):
        tensors = [to_torch(array) for array in arrays]
        starts = np.cumsum([0, *(-(-t.nbytes // 256) * 256 for t in tensors)])
        self.memory = torch.empty(int(starts[-1]), dtype=torch.uint8, device="cuda")
        self.tensors = [
            self.memory[start : start + t.nbytes].view(t.dtype).view(t.shape)
            for start, t in zip(starts, tensors, strict=False)
        ]
        for view, tensor in zip(self.tensors, tensors, strict=True):
            view.copy_(tensor)
        self.content = self.memory.clone()

    def poison(self) -> None:
        """Overwrites everything with NaN (in every type of floats), and waits."""
        self.memory.fill_(0xFF)
        torch.cuda.synchronize()


def _rows(name: str, columns: int, **options: Any) -> Callable[[], tuple[mf.Fused, list[np.ndarray]]]:
    schedule = row_schedule(columns, **options) if options else None
    return lambda: (
        mf.fuse(FAMILIES[name].fn, schedule=schedule),
        FAMILIES[name].inputs(300, columns, np.dtype(np.float16)),
    )


def _persistent(name: str, **options: Any) -> Callable[[], tuple[mf.Fused, list[np.ndarray]]]:
    inputs = lambda: BACKWARD[name].inputs(3000, 1024, np.dtype(np.float16))  # noqa: E731
    return lambda: (mf.fuse(BACKWARD[name].fn, **options), inputs())


def _product(m: int, n: int, k: int, *schedule: Any) -> Callable[[], tuple[mf.Fused, list[np.ndarray]]]:
    case = Product(m, n, k)
    return lambda: (mf.fuse(case.fn, schedule=pinned_schedule(case, *schedule) if schedule else None), case.inputs())


CASES = {
    "a row a warp": _rows("layer_norm", 256),
    "rows of odd numbers": _rows("layer_norm", 1001),
    "rows in registers": _rows("layer_norm", 4096),
    "rows of a cluster": _rows("layer_norm", 4096, vector=8, warps=2, cluster=4),
    "rows in shared memory": _rows("softmax", 4096, vector=8, warps=2, chunk_repeats=1, persistence="shared"),
    "rows read again": _rows("softmax", 4096, vector=8, warps=2, chunk_repeats=1, persistence="multi_pass"),
    "persistent_loop": _persistent("layer_norm_backward"),
    "persistent loop, second kernel": _persistent("layer_norm_backward", grid_reduction="second_kernel"),
    "persistent loop, last block": _persistent("rms_norm_backward", grid_reduction="last_block"),
    "two kernels": _persistent("rms_norm_backward", mix_order="split"),
    "total": lambda: (mf.fuse(TOTALS[0].fn), TOTALS[0].inputs()),
    "product": _product(1000, 1000, 520),
    "product, split": _product(256, 256, 4096),
    **{
        f"product, {instruction}, {reduction}": _product(200, 136, 1032, 128, 64, 4, reduction, instruction)
        for instruction in ("wgmma", "mma")
        for reduction in ("last_block", "flagged", "cluster")
    },
}


def same(results: Any, expected: Any) -> bool:
    """Whether the bits are."""
    results, expected = (r if isinstance(r, tuple) else (r,) for r in (results, expected))
    return all(torch.equal(a.view(torch.uint8), b.view(torch.uint8)) for a, b in zip(results, expected, strict=True))


@pytest.mark.parametrize("name", CASES)
def test_inputs_that_the_predecessor_writes_late(name: str) -> None:
    """In a stream, and in a graph."""
    fused, arrays = CASES[name]()
    inputs = Packed(arrays)
    expected = fused(*inputs.tensors)
    torch.cuda.synchronize()
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        copy_late(inputs.content, inputs.memory)
        fused(*inputs.tensors)  # the arena of this stream
    stream.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        copy_late(inputs.content, inputs.memory)
        replayed = fused(*inputs.tensors)
    for _ in range(REPEATS):
        inputs.poison()
        with torch.cuda.stream(stream):
            copy_late(inputs.content, inputs.memory)
            results = fused(*inputs.tensors)
        stream.synchronize()
        assert same(results, expected)
        inputs.poison()
        graph.replay()
        torch.cuda.synchronize()
        assert same(replayed, expected)


@cache
def scale(*, waits: bool) -> Dispatcher:
    """`x * factor + y` by a kernel that is launched early."""
    chip = cuda.chip(0)
    text = SCALE if waits else SCALE.replace("kernel attributes {", "kernel attributes {fuse.dependent_launch, ")
    binaries, infos, module = compile_text(text, chip, "fuse-dependent-launch")
    assert infos["scale_kernel"].dependent
    assert ("griddepcontrol.wait" in binaries["scale_kernel"].ptx) == waits
    kernels = {name: load(binary, infos[name], 0) for name, binary in binaries.items()}
    return Dispatcher(lambda arguments: (host_program(module.operation), kernels), ["x", "y", "factor"])


def vectors(rows: int = 64) -> Packed:
    rng = np.random.default_rng(rows)
    return Packed([rng.standard_normal((rows, 512)).astype(np.float32) for _ in range(2)])


def test_a_kernel_that_does_not_wait_reads_too_early() -> None:
    """The launch is early indeed: these tests would see a load that is moved above the wait."""
    inputs = vectors()
    out = torch.empty_like(inputs.tensors[0])
    for _ in range(3):  # until calls are recognised: what makes a recogniser takes longer than the copy
        scale(waits=False)((*inputs.tensors, 1.0), out=out)
    inputs.poison()
    copy_late(inputs.content, inputs.memory)
    scale(waits=False)((*inputs.tensors, 1.0), out=out)
    torch.cuda.synchronize()
    assert torch.isnan(out).any()


def test_what_the_predecessor_reads_late_is_overwritten_later() -> None:
    inputs, target = vectors(), torch.empty(64 * 512 * 4, dtype=torch.uint8, device="cuda")
    out = torch.empty_like(inputs.tensors[0])
    scale(waits=True)((*inputs.tensors, 1.0), out=out)
    for _ in range(REPEATS):
        out.fill_(7)
        copy_late(out, target)
        scale(waits=True)((*inputs.tensors, 1.0), out=out)
        torch.cuda.synchronize()
        assert (target.view(torch.float32) == 7).all()


def test_what_a_kernel_before_the_predecessor_writes_late() -> None:
    """A kernel waits for its predecessor alone, which has waited for its own."""
    late, early = vectors(), vectors(1)
    expected = scale(waits=True)((*late.tensors, 1.0))[0]
    for _ in range(REPEATS):
        late.poison()
        copy_late(late.content, late.memory)
        for _ in range(3):
            scale(waits=True)((*early.tensors, 1.0))
        result = scale(waits=True)((*late.tensors, 1.0))[0]
        torch.cuda.synchronize()
        assert same(result, expected)


@pytest.mark.parametrize("captured", [False, True], ids=["streams", "graph"])
def test_what_other_streams_write_late(captured: bool) -> None:
    """A stream that waits for an event waits for all of what came before it, whatever came last in its own."""
    first, second = vectors(), vectors()
    x, y = first.tensors[0], second.tensors[1]
    expected = scale(waits=True)((x, y, 1.0))[0]
    out = torch.empty_like(x)
    stream, other = torch.cuda.Stream(), torch.cuda.Stream()
    torch.cuda.synchronize()

    def launch(late: int) -> None:
        current = torch.cuda.current_stream()
        other.wait_stream(current)
        copy_late(first.content, first.memory, cycles=CYCLES * (1 + late))
        copy_late(second.content, second.memory, other.cuda_stream, cycles=CYCLES * (2 - late))
        current.wait_stream(other)
        scale(waits=True)((x, y, 1.0), out=out)

    graphs = []
    for late in range(2):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            launch(late)
        graphs.append(graph)
    for n in range(REPEATS):
        first.poison()
        second.poison()
        with torch.cuda.stream(stream):
            if captured:
                graphs[n % 2].replay()
            else:
                launch(n % 2)
        torch.cuda.synchronize()
        assert same(out, expected)


def test_copies_and_memsets_in_between() -> None:
    """They are no kernels: what follows them starts when they have ended, and they when what precedes them has."""
    inputs = vectors()
    x, y = inputs.tensors
    host = torch.empty_like(x, device="cpu", pin_memory=True).copy_(x)
    expected = (x + y).cpu()
    back = torch.empty_like(host)
    scale(waits=True)((x, y, 1.0))
    for _ in range(REPEATS):
        inputs.poison()
        copy_late(inputs.content, inputs.memory)
        x.fill_(float("nan"))
        x.copy_(host, non_blocking=True)
        result = scale(waits=True)((x, y, 1.0))[0]
        back.copy_(result, non_blocking=True)
        torch.cuda.synchronize()
        assert same(back, expected)


def again(launch: Callable[[], None], *, captured: bool) -> Iterator[None]:
    """Launches again and again, or replays a graph of it, and waits each time."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch()
    for _ in range(REPEATS):
        graph.replay() if captured else launch()
        torch.cuda.synchronize()
        yield


@pytest.mark.parametrize("captured", [False, True], ids=["stream", "graph"])
def test_a_chain_that_reads_what_it_wrote_into_the_same_memory(captured: bool) -> None:
    """Every row is scaled by weights that the kernel before computed: no SM may have old ones in its L1."""
    columns, steps = 1024, 50

    def step(x, w):
        y = mf.tanh(x * w + x)
        return y, mf.sum(y, axis=0) / y.shape[0] + 1

    fused = mf.fuse(step)
    generator = torch.Generator("cuda").manual_seed(0)
    start = torch.randn(264, columns, device="cuda", generator=generator)
    rows = [start.clone(), torch.empty_like(start)]
    weights = [torch.ones(columns, device="cuda"), torch.empty(columns, device="cuda")]

    def launch() -> None:
        rows[0].copy_(start)
        weights[0].fill_(1)
        for n in range(steps):
            now, then = n % 2, (n + 1) % 2
            fused(rows[now], weights[now], out=(rows[then], weights[then]))

    rows[0].copy_(start)
    weights[0].fill_(1)
    for n in range(steps):  # the same kernels, one at a time
        fused(rows[n % 2], weights[n % 2], out=(rows[1 - n % 2], weights[1 - n % 2]))
        torch.cuda.synchronize()
    expected = (rows[0].clone(), weights[0].clone())
    for _ in again(launch, captured=captured):
        assert same((rows[0], weights[0]), expected)


@pytest.mark.parametrize("captured", [False, True], ids=["stream", "graph"])
def test_products_that_let_the_next_kernel_start_before_they_end(captured: bool) -> None:
    """The next one reads their result and overwrites their operand; so do a copy, and a kernel launched as usual."""
    rows, inner, steps = 256, 4096, 25
    narrow, wide = mf.fuse(lambda x, w: x @ w), mf.fuse(lambda y, v: mf.tanh(y @ v))
    generator = torch.Generator("cuda").manual_seed(1)
    shapes = [(rows, inner), (inner, rows)]
    start, w = (torch.randn(*shape, device="cuda", generator=generator).half() for shape in shapes)
    v = torch.randn(rows, inner, device="cuda", generator=generator).half() / 64
    x, y = torch.empty_like(start), torch.empty(rows, rows, dtype=torch.float16, device="cuda")
    copies = [torch.empty_like(y) for _ in range(steps)]
    sums = torch.empty_like(y)

    def launch(between: Callable[[], object] = lambda: None) -> None:
        x.copy_(start)
        sums.zero_()
        for copy in copies:
            narrow(x, w, out=y)
            between()
            wide(y, v, out=x)
            between()
            narrow(x, w, out=y)
            copy.copy_(y)
            narrow(x, w, out=y)
            torch.add(sums, y, alpha=1 / 64, out=sums)

    text = narrow.lower(*specs_of([t.cpu().numpy() for t in (x, w)])).compile().as_text("ptx")
    assert "griddepcontrol.launch_dependents" in text
    launch(torch.cuda.synchronize)
    expected = (x.clone(), sums.clone(), *(copy.clone() for copy in copies))
    assert all(torch.isfinite(result).all() for result in expected)
    for _ in again(launch, captured=captured):
        assert same((x, sums, *copies), expected)


@pytest.mark.parametrize("stream", [0, 1, 2], ids=["null", "legacy", "per thread"])
def test_default_streams(stream: int) -> None:
    inputs = vectors()
    expected = scale(waits=True)((*inputs.tensors, 1.0))[0]
    out = torch.empty_like(expected)
    for _ in range(REPEATS):
        inputs.poison()
        copy_late(inputs.content, inputs.memory, stream)
        scale(waits=True)((*inputs.tensors, 1.0), out=out, stream=stream)
        torch.cuda.synchronize()
        assert same(out, expected)
