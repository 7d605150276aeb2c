"""Bandwidths of device memory and the L2, and the bytes in flight that keep them busy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlirfuse.tools.calibration.benchmark import Gpu, Launch, Microbenchmark, iteration_seconds
from mlirfuse.tools.calibration.fitting import saturation
from mlirfuse.tools.calibration.kernel import Kernel, lines, loop, sink

VECTOR = 16
"""Bytes of one access of a thread."""

SHAPES = (
    (64, 1),
    (128, 1),
    (256, 1),
    (512, 1),
    (512, 2),
    (1024, 1),
    (768, 2),
    (1024, 2),
    (1024, 3),
    (1024, 4),
    (1024, 8),
)
"""Threads of an SM's only block and accesses that each has in flight: 1 KiB to 128 KiB of an SM."""

WIDEST = (1024, 8)

_ROW = 4096
"""Elements of a row of the functions that mlirfuse compiles."""


def stream_kernel(threads: int, accesses: int, *, is_store: bool = False) -> Kernel:
    """A kernel whose blocks read or write a buffer, past the L1, whose bytes are the argument: a power of two.

    A thread waits for its accesses of an iteration before the next one, and the grid's accesses are neighbours.

    Args:
        threads: of a block.
        accesses: of a thread in flight, `VECTOR` bytes each.
        is_store: whether it writes.
    """
    start = f"""
        mad.lo.u32 %r10, %r3, {threads}, %r2;
        mul.lo.u32 %r10, %r10, {VECTOR};
        mul.lo.u32 %r11, %r4, {threads * VECTOR};
        sub.u32 %r12, %r1, 1;
        mov.u32 %r13, 0;
    """
    body = []
    for i in range(accesses):
        first = 20 + 4 * i
        vector = "{" + ", ".join(f"%r{first + j}" for j in range(4)) + "}"
        body += [
            "and.b32 %r10, %r10, %r12;",
            f"cvt.u64.u32 %rd{10 + i}, %r10;",
            f"add.u64 %rd{10 + i}, %rd{10 + i}, %rd0;",
        ]
        body.append(
            f"st.global.v4.u32 [%rd{10 + i}], {{%r13, %r10, %r13, %r10}};"
            if is_store
            else f"ld.global.cg.v4.u32 {vector}, [%rd{10 + i}];"
        )
        body.append("add.u32 %r10, %r10, %r11;")
    if is_store:
        body.append("add.u32 %r13, %r13, 1;")
    else:
        body += [f"xor.b32 %r13, %r13, %r{20 + i};" for i in range(4 * accesses)]
    return Kernel((*lines(start), *loop(*body), *sink(["%r13"])), threads)


def _bandwidth(gpu: Gpu, kernel: Kernel, accesses: int, blocks: int, nbytes: int, *, passes: int) -> float:
    """Bytes a second of a kernel over a buffer of random bytes, which it covers at least so often.

    Args:
        gpu: the device.
        kernel: of `stream_kernel`.
        accesses: of the kernel.
        blocks: of the grid.
        nbytes: of the buffer.
        passes: over the buffer.
    """
    buffer = gpu.buffer(nbytes)
    step = blocks * kernel.threads * accesses * VECTOR
    launch = Launch(blocks, buffer=buffer, argument=nbytes)
    return step / iteration_seconds(gpu, kernel, launch, least=max(1, passes * nbytes // step))


def far_bytes(gpu: Gpu) -> int:
    """A power of two far above the L2's size, of which passes over a buffer leave nothing there."""
    return _power_of_two(min(max(16 * gpu.l2_bytes, 256 << 20), gpu.memory_bytes // 8, 1 << 30))


def near_bytes(gpu: Gpu) -> int:
    """A power of two that stays in the L2: at most half of its size, as each half of it may keep a copy."""
    return _power_of_two(gpu.l2_bytes // 2)


def _power_of_two(most: int) -> int:
    return 1 << (most.bit_length() - 1)


def _in_flight(gpu: Gpu, nbytes: int, passes: int) -> tuple[float, float]:
    """The highest bandwidth of reading a buffer, and the latency that the bytes in flight for it amount to."""
    points: dict[int, float] = {}
    for threads, accesses in SHAPES:
        flying = threads * accesses * VECTOR
        rate = _bandwidth(gpu, stream_kernel(threads, accesses), accesses, gpu.sms, nbytes, passes=passes)
        points[flying] = max(rate, points.get(flying, 0.0))
    highest, needed = saturation(sorted(points.items()))
    return highest, needed * gpu.sms / highest


def _l2_read(gpu: Gpu) -> Mapping[str, float]:
    rate, latency = _in_flight(gpu, near_bytes(gpu), 4)
    return {"l2_read_bandwidth": rate, "l2_loaded_latency": latency}


def _dram_loaded(gpu: Gpu) -> Mapping[str, float]:
    return {"dram_loaded_latency": _in_flight(gpu, far_bytes(gpu), 1)[1]}


def _l2_write(gpu: Gpu) -> Mapping[str, float]:
    kernel = stream_kernel(1024, 4, is_store=True)
    return {"l2_write_bandwidth": _bandwidth(gpu, kernel, 4, gpu.sms, near_bytes(gpu), passes=4)}


def _alone(quantity: str, *, is_far: bool) -> Microbenchmark:
    threads, accesses = WIDEST
    kernel = stream_kernel(threads, accesses)

    def run(gpu: Gpu) -> Mapping[str, float]:
        nbytes = far_bytes(gpu) if is_far else min(near_bytes(gpu), 4 << 20)
        return {quantity: _bandwidth(gpu, kernel, accesses, 1, nbytes, passes=1)}

    where = "a buffer far larger than the L2" if is_far else "4 MiB in the L2"
    return Microbenchmark((quantity,), f"one block of {threads} threads reads {where}", 0.05, run)


def scale(x: Any) -> Any:
    """Reads and writes as much."""
    return x * 2


def row_sums(x: Any) -> Any:
    """Reads."""
    return x.sum(axis=1)


def outer_sum(row: Any, column: Any) -> Any:
    """Writes."""
    return row[None, :] + column[:, None]


def _rows(gpu: Gpu) -> int:
    return min(512 << 20, gpu.memory_bytes // 16) // (_ROW * 4)


def _copy(gpu: Gpu) -> Mapping[str, float]:
    shape = (_rows(gpu), _ROW)
    return {"dram_bandwidth": 8 * shape[0] * _ROW / gpu.fused_seconds(scale, [shape], "float32")}


def _read(gpu: Gpu) -> Mapping[str, float]:
    rows = _rows(gpu)
    return {"dram_read_bandwidth": 4 * rows * (_ROW + 1) / gpu.fused_seconds(row_sums, [(rows, _ROW)], "float32")}


def _write(gpu: Gpu) -> Mapping[str, float]:
    rows = _rows(gpu)
    return {"dram_write_bandwidth": 4 * rows * _ROW / gpu.fused_seconds(outer_sum, [(_ROW,), (rows,)], "float32")}


def _l2_bytes(gpu: Gpu) -> Mapping[str, float]:
    return {"l2_bytes": float(gpu.l2_bytes)}


BENCHMARKS = (
    Microbenchmark(("l2_bytes",), "the device's attribute (cudaDevAttrL2CacheSize)", 0.0, _l2_bytes, repeats=1),
    Microbenchmark(("dram_bandwidth",), "mlirfuse's kernel of x * 2, up to 512 MiB of float32", 0.02, _copy),
    Microbenchmark(("dram_read_bandwidth",), "mlirfuse's kernel of the sums of rows of 4096 float32", 0.02, _read),
    Microbenchmark(("dram_write_bandwidth",), "mlirfuse's kernel of row[None, :] + column[:, None]", 0.02, _write),
    _alone("dram_bandwidth_per_sm", is_far=True),
    Microbenchmark(
        ("dram_loaded_latency",),
        "bytes in flight at which all SMs read at 95 % of the bandwidth that more bytes reach, to that bandwidth",
        0.15,
        _dram_loaded,
        repeats=1,
    ),
    Microbenchmark(
        ("l2_read_bandwidth", "l2_loaded_latency"),
        "highest bandwidth of reading half of the L2, past the L1, and bytes in flight at 95 % of it, to it",
        0.15,
        _l2_read,
        repeats=1,
    ),
    Microbenchmark(("l2_write_bandwidth",), "stores of all SMs to half of the L2", 0.05, _l2_write),
    _alone("l2_bandwidth_per_sm", is_far=False),
)
