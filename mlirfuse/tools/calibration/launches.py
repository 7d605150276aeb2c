"""Costs of launches, of blocks, and of barriers of blocks, clusters and grids; atomic additions of many threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from mlirfuse.target import Target
from mlirfuse.tools.calibration.benchmark import Gpu, Launch, Microbenchmark, has_clusters, iteration_seconds
from mlirfuse.tools.calibration.fitting import slope
from mlirfuse.tools.calibration.kernel import Kernel, lines, loop

THREADS = 256
COUNTS = (100, 200, 300)
"""Launches in a graph or stream, whose times make a line."""

WAVES = (32, 64, 96)
STARTS = (256, 512, 768)
"""Blocks for each SM, all of whose blocks are small."""

_BARRIERS = 8

_MEET = ("barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;")
_ACCUMULATED = 4 << 20
"""Bytes of f32 in the L2 to which threads add: a power of two."""


EMPTY_KERNEL = Kernel((), THREADS)
DEPENDENT_KERNEL = Kernel(("griddepcontrol.launch_dependents;", "griddepcontrol.wait;"), THREADS)
BLOCK_BARRIER_KERNEL = Kernel(loop(*["bar.sync 0;"] * _BARRIERS), THREADS)


def cluster_kernel(cluster: int, *, barriers: int = 0, dynamic_shared_bytes: int = 0) -> Kernel:
    """Clusters of blocks that meet once, or in a loop so many times an iteration."""
    body = loop(*_MEET * barriers) if barriers else _MEET
    return Kernel(body, THREADS, cluster=cluster, dynamic_shared_bytes=dynamic_shared_bytes)


GRID_BARRIER_KERNEL = Kernel(
    lines(
        """
        setp.ne.u32 %p2, %r2, 0;
        mov.u32 %r10, 0;
        mov.u32 %r5, 0;
        LOOP:
        bar.sync 0;
        @%p2 bra MET;
        add.u32 %r10, %r10, %r4;
        red.release.gpu.global.add.u32 [%rd1], 1;
        WAIT:
        ld.acquire.gpu.global.u32 %r11, [%rd1];
        setp.lt.u32 %p3, %r11, %r10;
        @%p3 bra WAIT;
        MET:
        bar.sync 0;
        add.u32 %r5, %r5, 1;
        setp.lt.u32 %p0, %r5, %r0;
        @%p0 bra LOOP;
        @%p2 ret;
        sub.u32 %r12, %r4, 1;
        atom.acq_rel.gpu.global.inc.u32 %r13, [%rd1+256], %r12;
        setp.ne.u32 %p4, %r13, %r12;
        @%p4 ret;
        mov.u32 %r14, 0;
        st.global.u32 [%rd1], %r14;
        """
    ),
    THREADS,
)
"""Blocks that count each other's arrivals in a word; the last one to leave sets it back to 0. All must be resident."""


def atomic_kernel(*, is_one_address: bool) -> Kernel:
    """Threads that add f32 in the L2 without results: all to one address, or each to its own in every iteration."""
    step: tuple[str, ...] = (
        *("and.b32 %r11, %r10, %r1;", "cvt.u64.u32 %rd10, %r11;", "add.u64 %rd10, %rd0, %rd10;"),
        *("red.global.add.f32 [%rd10], 0f3F800000;", "add.u32 %r10, %r10, %r12;"),
    )
    if is_one_address:
        step = ("red.global.add.f32 [%rd0], 0f3F800000;",)
    start = (
        *(f"mad.lo.u32 %r10, %r3, {THREADS}, %r2;", "mul.lo.u32 %r10, %r10, 4;"),
        f"mul.lo.u32 %r12, %r4, {THREADS * 4};",
    )
    return Kernel((*start, *loop(*step)), THREADS)


def _per_launch(seconds: Callable[[Kernel, Launch], float], kernel: Kernel, launch: Launch) -> float:
    return slope([(count, seconds(kernel, replace(launch, count=count))) for count in COUNTS])


def _graph(gpu: Gpu) -> Mapping[str, float]:
    return {"graph_launch": _per_launch(gpu.seconds, EMPTY_KERNEL, Launch(gpu.sms))}


def _stream(gpu: Gpu) -> Mapping[str, float]:
    return {"stream_launch": _per_launch(gpu.stream_seconds, EMPTY_KERNEL, Launch(gpu.sms))}


def _dependent(gpu: Gpu) -> Mapping[str, float]:
    return {"dependent_launch": _per_launch(gpu.seconds, DEPENDENT_KERNEL, Launch(gpu.sms, is_dependent=True))}


def _block(gpu: Gpu) -> Mapping[str, float]:
    kernel = Kernel((), THREADS, dynamic_shared_bytes=_one_block(gpu.target))
    return {"block_launch": slope([(waves, gpu.seconds(kernel, Launch(waves * gpu.sms))) for waves in WAVES])}


def _one_block(target: Target) -> int:
    """Dynamic shared memory with which an SM holds one block."""
    return target.shared_per_block // 4 * 3 // 1024 * 1024


def _starts(gpu: Gpu, kernel: Kernel) -> float:
    """Seconds of each further block of a grid, many of which an SM holds at once."""
    return slope([(count * gpu.sms, gpu.seconds(kernel, Launch(count * gpu.sms))) for count in STARTS])


def _block_start(gpu: Gpu) -> Mapping[str, float]:
    return {"block_start": _starts(gpu, EMPTY_KERNEL)}


def _cluster_start(gpu: Gpu) -> Mapping[str, float]:
    return {"cluster_start": _starts(gpu, cluster_kernel(4))}


def _block_barrier(gpu: Gpu) -> Mapping[str, float]:
    return {"block_barrier": iteration_seconds(gpu, BLOCK_BARRIER_KERNEL, Launch(gpu.sms)) / _BARRIERS}


def _cluster_blocks(gpu: Gpu, kernel: Kernel) -> int:
    """Blocks of as many clusters as the device holds, one block an SM at most."""
    return max(1, min(gpu.sms // kernel.cluster, gpu.clusters(kernel))) * kernel.cluster


def _cluster_launch(gpu: Gpu) -> Mapping[str, float]:
    kernel = cluster_kernel(4)
    launch = Launch(_cluster_blocks(gpu, kernel))
    # Far below a microsecond, it may drown in noise.
    more = _per_launch(gpu.seconds, kernel, launch) - _per_launch(gpu.seconds, EMPTY_KERNEL, launch)
    return {"cluster_launch": max(more, 1e-9)}


def _cluster_barrier(gpu: Gpu) -> Mapping[str, float]:
    kernel = cluster_kernel(4, barriers=_BARRIERS)
    launch = Launch(_cluster_blocks(gpu, kernel))
    return {"cluster_barrier": iteration_seconds(gpu, kernel, launch) / _BARRIERS}


def _grid_barrier(gpu: Gpu) -> Mapping[str, float]:
    words = gpu.buffer(1024, np.zeros(256, np.uint32))
    return {"grid_barrier": iteration_seconds(gpu, GRID_BARRIER_KERNEL, Launch(gpu.sms, other=words))}


def _one_address(gpu: Gpu) -> Mapping[str, float]:
    kernel, buffer = atomic_kernel(is_one_address=True), gpu.buffer(1024, np.zeros(256, np.uint32))
    return {"atomics_per_address": gpu.sms * THREADS / iteration_seconds(gpu, kernel, Launch(gpu.sms, buffer=buffer))}


def _many_addresses(gpu: Gpu) -> Mapping[str, float]:
    kernel = atomic_kernel(is_one_address=False)
    buffer, blocks = gpu.buffer(_ACCUMULATED, np.zeros(_ACCUMULATED // 4, np.uint32)), 4 * gpu.sms
    launch = Launch(blocks, buffer=buffer, argument=_ACCUMULATED - 4)
    return {"atomics": blocks * THREADS / iteration_seconds(gpu, kernel, launch)}


def _cluster_sms(gpu: Gpu) -> Mapping[str, float]:
    found = {}
    for cluster in (4, 8):
        kernel = cluster_kernel(cluster, dynamic_shared_bytes=_one_block(gpu.target))
        found[f"cluster_sms_{cluster}"] = float(min(gpu.clusters(kernel) * cluster, gpu.sms))
    return found


BENCHMARKS = (
    Microbenchmark(("graph_launch",), "empty kernels of a block an SM in one replayed graph", 0.1, _graph),
    Microbenchmark(
        ("stream_launch",), "empty kernels of a block an SM in a stream, launched as fast as the host can", 0.3, _stream
    ),
    Microbenchmark(
        ("dependent_launch",),
        "empty kernels in one replayed graph, each launched by programmatic dependent launch",
        0.1,
        _dependent,
        lambda target: target.has_dependent_launch,
    ),
    Microbenchmark(("block_launch",), "waves of empty blocks, one on each SM at a time", 0.1, _block),
    Microbenchmark(("block_start",), "grids of many empty blocks", 0.1, _block_start),
    Microbenchmark(("cluster_start",), "grids of many clusters of 4 that meet once", 0.1, _cluster_start, has_clusters),
    Microbenchmark(("block_barrier",), f"bar.sync of {THREADS} threads", 0.03, _block_barrier),
    Microbenchmark(
        ("cluster_launch",),
        "kernels of clusters of 4 that meet once in a replayed graph, less kernels of as many empty blocks",
        0.5,
        _cluster_launch,
        has_clusters,
    ),
    Microbenchmark(
        ("cluster_barrier",), "barrier.cluster of 4 blocks of 256 threads", 0.05, _cluster_barrier, has_clusters
    ),
    Microbenchmark(("grid_barrier",), "red.release and ld.acquire of one word by a block an SM", 0.1, _grid_barrier),
    Microbenchmark(("atomics_per_address",), "red.add.f32 of all threads to one address", 0.1, _one_address),
    Microbenchmark(("atomics",), "red.add.f32 of each thread to its own address in 4 MiB", 0.1, _many_addresses),
    Microbenchmark(
        ("cluster_sms_4", "cluster_sms_8"),
        "cuOccupancyMaxActiveClusters of one block an SM",
        0.01,
        _cluster_sms,
        has_clusters,
        repeats=1,
    ),
)
