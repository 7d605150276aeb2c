"""Bandwidths on an SM: the L1, shared memory, shared memory of a cluster, and copies from the L2 to shared memory."""

from __future__ import annotations

from collections.abc import Mapping

from mlirfuse.target import LINE, SECTOR
from mlirfuse.tools.calibration.benchmark import (
    Gpu,
    Launch,
    Microbenchmark,
    everywhere,
    has_clusters,
    iteration_seconds,
)
from mlirfuse.tools.calibration.kernel import Kernel, lines, loop, sink

THREADS = 1024
_ROUNDS = 4
_WRAP = 4 << 10
"""Bytes after which the start of a thread's loads comes back, so that no load is the one of the iteration before."""


def load_kernel(space: str, words: int, *, cluster: int = 1) -> Kernel:
    """A kernel whose threads load neighbouring vectors, `_ROUNDS` an iteration, from memory of one SM.

    Args:
        space: `global.ca`, `shared` or `shared::cluster`, of which the latter is the next block's.
        words: of 4 bytes, of a vector.
        cluster: blocks of a cluster.
    """
    is_global = space.startswith("global")
    base, pointer = ("%rd0", "%rd10") if is_global else ("%r10", "%r11")
    shared_bytes = 0 if is_global else THREADS * 4 * words * _rounds(words) + _WRAP
    start = ["mov.u32 %r12, 0;", f"mul.lo.u32 %r13, %r2, {4 * words};", "mov.u32 %r19, 0;"]
    if is_global:
        start += ["cvt.u64.u32 %rd11, %r13;", "add.u64 %rd0, %rd0, %rd11;"]
    else:
        start += ["mov.u32 %r10, memory;", "add.u32 %r10, %r10, %r13;"]
    if cluster > 1:
        start += ["mov.u32 %r14, %cluster_ctarank;", "add.u32 %r14, %r14, 1;", f"rem.u32 %r14, %r14, {cluster};"]
        start += ["mapa.shared::cluster.u32 %r10, %r10, %r14;", *_MEET]
    step = ["add.u32 %r12, %r12, 128;", f"and.b32 %r12, %r12, {_WRAP - 1};"]
    step += ["cvt.u64.u32 %rd11, %r12;", f"add.u64 {pointer}, {base}, %rd11;"] if is_global else []
    step += [] if is_global else [f"add.u32 {pointer}, {base}, %r12;"]
    registers = [[f"%r{20 + i * words + j}" for j in range(words)] for i in range(_rounds(words))]
    for i, vector in enumerate(registers):
        step.append(f"ld.{space}{_suffix(vector)}, [{pointer}+{i * THREADS * 4 * words}];")
    step += [f"xor.b32 %r19, %r19, {register};" for vector in registers for register in vector]
    end = _MEET if cluster > 1 else ()
    return Kernel((*start, *loop(*step), *sink(["%r19"]), *end), THREADS, shared_bytes=shared_bytes, cluster=cluster)


_MEET = ("barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;")


def _rounds(words: int) -> int:
    """Vectors of an iteration: as many as fit 36 KiB, with the wrap."""
    return 2 if words == 4 else _ROUNDS


def _suffix(vector: list[str]) -> str:
    return f".u32 {vector[0]}" if len(vector) == 1 else f".v{len(vector)}.u32 {{{', '.join(vector)}}}"


def _on_sm(quantity: str, space: str, words: int, how: str, *, cluster: int = 1, unit: int = 1) -> Microbenchmark:
    """A benchmark of loads by all SMs; `unit` is what the quantity counts, in bytes."""
    kernel = load_kernel(space, words, cluster=cluster)

    def run(gpu: Gpu) -> Mapping[str, float]:
        buffer = gpu.buffer(THREADS * 4 * words * _ROUNDS + _WRAP)
        blocks = gpu.sms if cluster == 1 else max(1, min(gpu.sms // cluster, gpu.clusters(kernel))) * cluster
        each = iteration_seconds(gpu, kernel, Launch(blocks, buffer=buffer))
        return {quantity: THREADS * 4 * words * _rounds(words) / unit / each}

    return Microbenchmark((quantity,), how, 0.03, run, has_clusters if cluster > 1 else everywhere)


COPY_THREADS, COPY_STAGES = 512, 6
_COPY_BYTES = COPY_THREADS * 16
_REGION = 4 << 20
"""Bytes in the L2 from which one SM copies: a power of two."""

CP_ASYNC_KERNEL = Kernel(
    (
        *("mov.u32 %r10, memory;", "mul.lo.u32 %r11, %r2, 16;", "add.u32 %r10, %r10, %r11;"),
        *("mov.u32 %r12, 0;", "mov.u32 %r13, %r11;"),
        *loop(
            *("add.u32 %r14, %r10, %r12;", "cvt.u64.u32 %rd10, %r13;", "add.u64 %rd10, %rd0, %rd10;"),
            "cp.async.cg.shared.global [%r14], [%rd10], 16;",
            *("cp.async.commit_group;", f"cp.async.wait_group {COPY_STAGES - 1};"),
            *(f"add.u32 %r12, %r12, {_COPY_BYTES};", f"setp.ge.u32 %p2, %r12, {COPY_STAGES * _COPY_BYTES};"),
            "@%p2 mov.u32 %r12, 0;",
            *(f"add.u32 %r13, %r13, {_COPY_BYTES};", f"and.b32 %r13, %r13, {_REGION - 1};"),
        ),
        "cp.async.wait_all;",
    ),
    COPY_THREADS,
    shared_bytes=COPY_STAGES * _COPY_BYTES,
)
"""Threads that keep `COPY_STAGES` copies of 16 bytes each in flight."""


def _cp_async(gpu: Gpu) -> Mapping[str, float]:
    buffer = gpu.buffer(_REGION)
    each = iteration_seconds(gpu, CP_ASYNC_KERNEL, Launch(1, buffer=buffer), least=4 * _REGION // _COPY_BYTES)
    return {"cp_async_bandwidth_per_sm": _COPY_BYTES / each}


BOX_ROWS, BOX_STAGES = 64, 5
_BOX_BYTES = BOX_ROWS * LINE
_COPY = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"

TMA_KERNEL = Kernel(
    lines(
        f"""
        setp.ne.u32 %p2, %r2, 0;
        @%p2 ret;
        mov.u32 %r10, memory;
        add.u32 %r11, %r10, {BOX_STAGES * _BOX_BYTES};
        """
    )
    + tuple(f"mbarrier.init.shared::cta.b64 [%r11+{8 * stage}], 1;" for stage in range(BOX_STAGES))
    + lines(
        f"""
        fence.proxy.async.shared::cta;
        mov.u32 %r12, 0;
        mov.u32 %r13, 0;
        mov.u32 %r14, 0;
        mov.u32 %r15, 0;
        mov.u32 %r5, 0;
        LOOP:
        mad.lo.u32 %r16, %r12, 8, %r11;
        setp.lt.u32 %p3, %r5, {BOX_STAGES};
        @%p3 bra COPY;
        xor.b32 %r17, %r13, 1;
        WAIT:
        mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r16], %r17;
        @!%p4 bra WAIT;
        COPY:
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r16], {_BOX_BYTES};
        mad.lo.u32 %r18, %r12, {_BOX_BYTES}, %r10;
        {_COPY} [%r18], [%rd1, {{%r15, %r14}}], [%r16];
        add.u32 %r14, %r14, {BOX_ROWS};
        setp.ge.u32 %p5, %r14, %r1;
        @%p5 mov.u32 %r14, 0;
        add.u32 %r12, %r12, 1;
        setp.ge.u32 %p6, %r12, {BOX_STAGES};
        @%p6 mov.u32 %r12, 0;
        @%p6 xor.b32 %r13, %r13, 1;
        add.u32 %r5, %r5, 1;
        setp.lt.u32 %p0, %r5, %r0;
        @%p0 bra LOOP;
        mov.u32 %r19, 0;
        DRAIN:
        mad.lo.u32 %r16, %r12, 8, %r11;
        xor.b32 %r17, %r13, 1;
        LAST:
        mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r16], %r17;
        @!%p4 bra LAST;
        add.u32 %r12, %r12, 1;
        setp.ge.u32 %p6, %r12, {BOX_STAGES};
        @%p6 mov.u32 %r12, 0;
        @%p6 xor.b32 %r13, %r13, 1;
        add.u32 %r19, %r19, 1;
        setp.lt.u32 %p7, %r19, {BOX_STAGES};
        @%p7 bra DRAIN;
        """
    ),
    32,
    shared_bytes=BOX_STAGES * _BOX_BYTES + 8 * BOX_STAGES,
)
"""A thread that keeps `BOX_STAGES` boxes of a tensor map in flight; the argument is the map's rows, and iterations are
at least `BOX_STAGES`. `%r12` is the stage, `%r13` the parity of its use, `%r14` the row."""

PITCHES = {
    "tma_line_bandwidth_per_sm": (LINE, "whole cache lines"),
    "tma_sector_bandwidth_per_sm": (LINE + SECTOR, "whole sectors, of which three of four rows lie in two lines"),
    "tma_unaligned_bandwidth_per_sm": (LINE + SECTOR // 2, "every second row begins inside of a sector"),
}
"""Bytes from row to row of a tensor map, and what its box rows are."""


def _tma(quantity: str) -> Microbenchmark:
    pitch, what = PITCHES[quantity]

    def run(gpu: Gpu) -> Mapping[str, float]:
        rows = _REGION // pitch // BOX_ROWS * BOX_ROWS
        tensor_map = gpu.tensor_map(gpu.buffer(_REGION), rows, LINE, pitch, BOX_ROWS)
        launch = Launch(1, other=tensor_map, argument=rows)
        each = iteration_seconds(gpu, TMA_KERNEL, launch, least=4 * rows // BOX_ROWS)
        return {quantity: _BOX_BYTES / each}

    how = f"a thread of one SM copies boxes of {BOX_ROWS} rows of {LINE} bytes from the L2: {what}"
    return Microbenchmark((quantity,), how, 0.05, run, lambda target: target.has_tma)


BENCHMARKS = (
    _on_sm("l1_bandwidth_per_sm", "global.ca", 4, "loads of 16 bytes that hit the L1, all SMs"),
    _on_sm("load_store_per_sm", "global.ca", 1, "loads of 4 bytes that hit the L1, all SMs", unit=4),
    _on_sm("shared_bandwidth_per_sm", "shared", 4, "loads of 16 bytes without bank conflicts, all SMs"),
    _on_sm(
        "dsmem_bandwidth_per_sm",
        "shared::cluster",
        4,
        "loads of 16 bytes from the next block of a cluster of 2, all SMs",
        cluster=2,
    ),
    Microbenchmark(
        ("cp_async_bandwidth_per_sm",),
        f"{COPY_THREADS} threads of one SM copy from the L2, {COPY_STAGES} copies of 16 bytes each in flight",
        0.05,
        _cp_async,
    ),
    *map(_tma, PITCHES),
)
