"""What a call puts on its stream: so many kernels, and nothing else. A memset would be seen here."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import mlirfuse as mf
from mlirfuse.runtime.device import driver
from tests.support.contractions.epilogues import CASES
from tests.support.contractions.products import REDUCTIONS, Product, pinned_schedule
from tests.support.gpu.torch_arrays import to_torch, torch
from tests.support.reductions.backward import BACKWARD
from tests.support.reductions.numerics import DTYPES, FAMILIES

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

_KERNEL = 0  # CU_GRAPH_NODE_TYPE_KERNEL

Call = Callable[[], Any]


def _rows(name: str, columns: int) -> tuple[Any, list[Any], None]:
    backward = BACKWARD[name]
    return mf.fuse(backward.fn), backward.inputs(300, columns, DTYPES["bfloat16"]), None


def _functions() -> Iterator[tuple[str, Callable[[], tuple[Any, Sequence[Any], int | None]]]]:
    """Names, and what makes a function, its arguments, and the number of its kernels; None where it is a choice."""
    for name in BACKWARD:
        for columns in (384, 20480):
            yield f"{name}-{columns}", lambda name=name, columns=columns: _rows(name, columns)
    for reduction in REDUCTIONS:
        for instruction in ("wgmma", "mma"):
            product = Product(200, 136, 1032, "nt")
            schedule = pinned_schedule(product, 128, 64, 4, reduction, instruction)
            fused = mf.fuse(product.fn, schedule=schedule)
            yield f"{instruction}-{reduction}", lambda f=fused, p=product: (f, p.inputs(), 1)
    for case in CASES:
        yield str(case), lambda case=case: (mf.fuse(case.fn), case.inputs(), case.kernels)
    softmax = FAMILIES["softmax"]
    yield "softmax", lambda: (mf.fuse(softmax.fn), softmax.inputs(100, 1000, DTYPES["float16"]), 1)


FUNCTIONS = dict(_functions())


def prepared(name: str) -> tuple[Call, int]:
    """A call whose kernels are compiled, with outputs of its own, and how many they are."""
    fused, inputs, kernels = FUNCTIONS[name]()
    tensors = [to_torch(a) for a in inputs]
    fused(*tensors)
    torch.cuda.synchronize()
    if kernels is None:
        (compiled,) = fused._compiled.values()
        kernels = len(compiled.program.launches)
    return lambda: fused(*tensors), kernels


def node_types(graph: int) -> list[int]:
    """The `CUgraphNodeType` of each node of a `CUgraph`."""
    count = ctypes.c_size_t()
    driver.call("cuGraphGetNodes", ctypes.c_void_p(graph), None, ctypes.byref(count))
    nodes = (ctypes.c_void_p * count.value)()
    driver.call("cuGraphGetNodes", ctypes.c_void_p(graph), nodes, ctypes.byref(count))
    types = []
    for node in nodes:
        kind = ctypes.c_int()
        driver.call("cuGraphNodeGetType", ctypes.c_void_p(node), ctypes.byref(kind))
        types.append(kind.value)
    return types


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_graph_of_calls_has_their_kernels_only(name: str) -> None:
    """Its first launch allocates the capture's arena: that is no part of it either."""
    call, kernels = prepared(name)
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        for _ in range(3):
            call()
        found = node_types(driver.capture(torch.cuda.current_stream().cuda_stream).graph)
    assert found == [_KERNEL] * (3 * kernels)


@pytest.mark.parametrize("name", ["layer_norm_backward-384", "wgmma-grid_sync", "mma-serial", "row_sums_of_squares"])
def test_a_trace_of_calls_has_their_kernels_only(name: str) -> None:
    call, kernels = prepared(name)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(3):
            call()
        torch.cuda.synchronize()
    events = [e.name for e in profile.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    assert len(events) == 3 * kernels, events
    assert all(event.endswith("_kernel") for event in events), events
