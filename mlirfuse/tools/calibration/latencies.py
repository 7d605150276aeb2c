"""Latencies: chains of loads, of atomic operations and of messages, each of which waits for the one before."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlirfuse.target import LINE
from mlirfuse.tools.calibration.benchmark import Gpu, Launch, Microbenchmark, has_clusters, iteration_seconds
from mlirfuse.tools.calibration.kernel import Kernel, lines, loop, sink
from mlirfuse.tools.calibration.streams import far_bytes

STEPS = 16
"""Loads of an iteration of a chain."""

_WARP = 32
_L1_BYTES, _L2_BYTES = 4 << 10, 1 << 20
_FLAGS = 256
"""Bytes between two flags, which lie in sectors and lines of their own."""


def chain_of_offsets(nbytes: int, seed: int = 0) -> np.ndarray:
    """A buffer of 64-bit words, of which the first of each line has the offset of the next line, in random order.

    Following the offsets visits every line once and comes back to the start.
    """
    order = np.random.default_rng(seed).permutation(nbytes // LINE).astype(np.uint64)
    words = np.zeros((nbytes // LINE, LINE // 8), np.uint64)
    words[order, 0] = np.roll(order, -1) * np.uint64(LINE)
    return words.reshape(-1)


def chase_kernel(cache: str) -> Kernel:
    """A thread that follows a chain of offsets in a buffer, from the offset in the second buffer on, which it updates.

    Args:
        cache: the loads' cache operator: `ca` for the L1, `cg` for the L2.
    """
    step = ("add.u64 %rd10, %rd10, %rd0;", f"ld.global.{cache}.u64 %rd10, [%rd10];")
    return Kernel(
        (
            *("setp.ne.u32 %p2, %r2, 0;", "@%p2 ret;", "ld.global.u64 %rd10, [%rd1];"),
            *loop(*(instruction for _ in range(STEPS) for instruction in step)),
            "st.global.u64 [%rd1], %rd10;",
        ),
        _WARP,
    )


def _chase(gpu: Gpu, cache: str, nbytes: int, *, least: int = 16) -> float:
    """Seconds of a load in a chain through so many bytes."""
    chain = chain_of_offsets(nbytes)
    buffer = gpu.buffer(nbytes + LINE, np.append(chain, np.zeros(LINE // 8, np.uint64)))
    kernel = chase_kernel(cache)
    return iteration_seconds(gpu, kernel, Launch(1, buffer=buffer, other=buffer + nbytes), least=least) / STEPS


def _dram(gpu: Gpu) -> Mapping[str, float]:
    return {"dram_latency": _chase(gpu, "cg", far_bytes(gpu), least=256)}


def _l2(gpu: Gpu) -> Mapping[str, float]:
    # Launches long enough that their first pass, from device memory, is of no account.
    return {"l2_latency": _chase(gpu, "cg", _L2_BYTES, least=8 * _L2_BYTES // LINE // STEPS)}


def _l1(gpu: Gpu) -> Mapping[str, float]:
    return {"l1_latency": _chase(gpu, "ca", _L1_BYTES, least=64 * _L1_BYTES // LINE // STEPS)}


SHARED_KERNEL = Kernel(
    (
        *("mov.u32 %r10, memory;", "mad.lo.u32 %r11, %r2, 4, %r10;", "add.u32 %r12, %r2, 1;"),
        *("and.b32 %r12, %r12, 31;", "mad.lo.u32 %r12, %r12, 4, %r10;", "st.shared.u32 [%r11], %r12;"),
        "bar.sync 0;",
        *("setp.ne.u32 %p2, %r2, 0;", "@%p2 ret;"),
        *loop(*("ld.shared.u32 %r10, [%r10];" for _ in range(STEPS))),
        *sink(["%r10"]),
    ),
    _WARP,
    shared_bytes=128,
)
"""A thread that follows addresses in shared memory."""

REMOTE_KERNEL = Kernel(
    (
        *("mov.u32 %r10, memory;", "mov.u32 %r11, 0;", "st.shared.u32 [%r10], %r11;"),
        *("mov.u32 %r12, %cluster_ctarank;", "xor.b32 %r12, %r12, 1;", "mapa.shared::cluster.u32 %r13, %r10, %r12;"),
        *("barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;"),
        *loop(
            *("ld.shared::cluster.u32 %r11, [%r13];", "add.u32 %r13, %r13, %r11;") * STEPS,
        ),
        *sink(["%r13"]),
        *("barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;"),
    ),
    _WARP,
    shared_bytes=128,
    cluster=2,
)
"""Warps of two blocks that load zeros from each other's shared memory, and add them to the address."""

ATOMIC_KERNEL = Kernel(
    (
        *("setp.ne.u32 %p2, %r2, 0;", "@%p2 ret;", "mov.u32 %r10, 1;"),
        *loop(*("atom.global.add.u32 %r10, [%rd1], %r10;" for _ in range(STEPS))),
        *sink(["%r10"]),
    ),
    _WARP,
)
"""A thread that adds to a word of memory what it had before."""

MESSAGE_KERNEL = Kernel(
    lines(
        f"""
        setp.ne.u32 %p2, %r2, 0;
        @%p2 ret;
        setp.eq.u32 %p3, %r3, 0;
        mul.lo.u32 %r10, %r3, {_FLAGS};
        xor.b32 %r11, %r10, {_FLAGS};
        cvt.u64.u32 %rd10, %r10;
        cvt.u64.u32 %rd11, %r11;
        add.u64 %rd10, %rd1, %rd10;
        add.u64 %rd11, %rd1, %rd11;
        mov.u32 %r5, 0;
        LOOP:
        add.u32 %r12, %r5, 1;
        @!%p3 bra WAIT;
        st.release.gpu.global.u32 [%rd10], %r12;
        WAIT:
        ld.acquire.gpu.global.u32 %r13, [%rd11];
        setp.ne.u32 %p4, %r13, %r12;
        @%p4 bra WAIT;
        @%p3 bra NEXT;
        st.release.gpu.global.u32 [%rd10], %r12;
        NEXT:
        add.u32 %r5, %r5, 1;
        setp.lt.u32 %p0, %r5, %r0;
        @%p0 bra LOOP;
        mov.u32 %r13, 0;
        @%p3 st.global.u32 [%rd10], %r13;
        @%p3 st.global.u32 [%rd11], %r13;
        """
    ),
    _WARP,
)
"""Two blocks that send each other the number of the iteration, in turns; the flags are 0 before and afterwards.

The first block clears both: it has the last message, after which the second neither reads nor writes."""


def _chained(quantity: str, kernel: Kernel, how: str, **options: object) -> Microbenchmark:
    """A benchmark of a kernel on one SM, or on one cluster, that waits `STEPS` times an iteration."""

    def run(gpu: Gpu) -> Mapping[str, float]:
        other = gpu.buffer(4 * _FLAGS, np.zeros(_FLAGS, np.uint32))
        return {quantity: iteration_seconds(gpu, kernel, Launch(kernel.cluster, other=other)) / STEPS}

    return Microbenchmark((quantity,), how, 0.03, run, **options)  # type: ignore[arg-type]


def _message(gpu: Gpu) -> Mapping[str, float]:
    flags = gpu.buffer(4 * _FLAGS, np.zeros(_FLAGS, np.uint32))
    return {"message_latency": iteration_seconds(gpu, MESSAGE_KERNEL, Launch(2, other=flags)) / 2}


BENCHMARKS = (
    Microbenchmark(("dram_latency",), "a thread follows offsets through a buffer far larger than the L2", 0.05, _dram),
    Microbenchmark(("l2_latency",), "a thread follows offsets through 1 MiB, past the L1", 0.05, _l2),
    Microbenchmark(("l1_latency",), "a thread follows offsets through 4 KiB, in the L1", 0.03, _l1),
    _chained("shared_latency", SHARED_KERNEL, "a thread follows addresses in shared memory"),
    _chained(
        "dsmem_latency",
        REMOTE_KERNEL,
        "a warp's loads from the other block of its cluster, each after the one before",
        exists_on=has_clusters,
    ),
    _chained("atomic_latency", ATOMIC_KERNEL, "a thread's atom.add of what the one before returned"),
    Microbenchmark(
        ("message_latency",), "half of a round trip of st.release and ld.acquire between two blocks", 0.1, _message
    ),
)
