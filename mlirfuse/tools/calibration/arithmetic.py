"""Rates of CUDA cores: chains of one instruction in every thread of full SMs, and the clock meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mlirfuse.target import Target
from mlirfuse.tools.calibration.benchmark import Gpu, Launch, Microbenchmark, iteration_seconds
from mlirfuse.tools.calibration.kernel import Kernel, lines, loop, sink

THREADS = 1024
"""Threads of an SM, in one block: eight warps for each scheduler."""

CHAINS, STEPS = 8, 8
"""Independent chains of a thread, and steps of each in an iteration."""

_SECONDS = 5e-3
_CLOCK_SECONDS = 2e-2


@dataclass(frozen=True)
class Operation:
    """An instruction, or a few, whose rate is measured.

    Attributes:
        quantity: the rate's name.
        what: the instruction, for the reader.
        step: its text; `{d}` and `{e}` are registers of the chain, of 32 bits or 64, `{a}` is about 1, `{b}` small, and
            `{h}` a register of 16 bits.
        operations: that a step counts as.
        is_wide: whether registers have 64 bits.
        exists_on: whether an architecture has the instruction.
    """

    quantity: str
    what: str
    step: str
    operations: int = 1
    is_wide: bool = False
    exists_on: Callable[[Target], bool] = lambda _: True


OPERATIONS = (
    Operation(
        "issue_per_sm",
        "fma.rn.f32 and xor.b32 in turns",
        "fma.rn.f32 {d}, {d}, {a}, {b}; xor.b32 {e}, {e}, {d};",
        operations=2,
    ),
    Operation("shuffle_per_sm", "shfl.sync.bfly", "shfl.sync.bfly.b32 {d}, {d}, 1, 31, -1;"),
    Operation("f32_fma_per_sm", "fma.rn.f32", "fma.rn.f32 {d}, {d}, {a}, {b};"),
    Operation("f16_fma_per_sm", "fma.rn.f16x2", "fma.rn.f16x2 {d}, {d}, {a}, {b};", operations=2),
    Operation("f64_fma_per_sm", "fma.rn.f64", "fma.rn.f64 {d}, {d}, {a}, {b};", is_wide=True),
    Operation(
        "int32_per_sm", "xor.b32 and add.u32 in turns", "xor.b32 {d}, {d}, {e}; add.u32 {e}, {e}, {d};", operations=2
    ),
    Operation("int32_multiply_per_sm", "mad.lo.u32", "mad.lo.u32 {d}, {d}, {a}, {b};"),
    Operation(
        "compare_per_sm", "max.f32 and min.f32 in turns", "max.f32 {d}, {d}, {e}; min.f32 {e}, {e}, {d};", operations=2
    ),
    Operation("special_per_sm", "ex2.approx.ftz.f32", "ex2.approx.ftz.f32 {d}, {d};"),
    Operation("divide_per_sm", "div.rn.f32 of normal numbers", "div.rn.f32 {d}, {a}, {d};"),
    Operation("convert_per_sm", "cvt.rn.bf16x2.f32", "cvt.rn.bf16x2.f32 {d}, {d}, {a};", operations=2),
    Operation(
        "convert_f8_per_sm",
        "cvt.rn.satfinite.e4m3x2.f32",
        "cvt.rn.satfinite.e4m3x2.f32 {h}, {d}, {a}; mov.b32 {d}, {{{h}, {h}}};",
        operations=2,
        exists_on=lambda target: target.has_float8_conversions,
    ),
    Operation("convert_int_per_sm", "cvt.rn.f32.s32", "cvt.rn.f32.s32 {d}, {d};"),
)


def chain_kernel(operation: Operation) -> Kernel:
    """The kernel of an operation: `CHAINS` chains a thread, each `STEPS` operations longer an iteration."""
    prefix, first = ("%rd", 10) if operation.is_wide else ("%r", 20)
    chains = [(f"{prefix}{first + 2 * i}", f"{prefix}{first + 2 * i + 1}") for i in range(CHAINS)]
    a, b = ("%rd8", "%rd9") if operation.is_wide else ("%r10", "%r11")
    start = (
        *("add.u32 %r10, %r2, 0x3f800000;", "add.u32 %r11, %r2, 0x33000000;"),
        *("mov.b64 %rd8, {%r11, %r10};", "mov.b64 %rd9, {%r10, %r11};"),
        *(instruction for i, pair in enumerate(chains) for instruction in _start(pair, i, operation.is_wide)),
    )
    steps = [
        step
        for _ in range(STEPS)
        for d, e in chains
        for step in lines(operation.step.format(d=d, e=e, a=a, b=b, h="%h0").replace("; ", ";\n"))
    ]
    used = [register for pair in chains for register in pair]
    narrow = (f"cvt.u32.u64 %r{60 + i}, {register};" for i, register in enumerate(used))
    end = (*narrow, *sink(f"%r{60 + i}" for i in range(len(used)))) if operation.is_wide else sink(used)
    return Kernel((*start, *loop(*steps), *end), THREADS)


def _start(pair: tuple[str, str], index: int, is_wide: bool) -> tuple[str, ...]:
    """First values of a chain's registers: distinct, about 1."""
    low, high = f"add.u32 %r12, %r10, {64 * index};", f"add.u32 %r13, %r10, {64 * index + 7};"
    if is_wide:
        return (low, high, f"mov.b64 {pair[0]}, {{%r13, %r12}};", f"mov.b64 {pair[1]}, {{%r12, %r13}};")
    return (low, high, f"mov.u32 {pair[0]}, %r12;", f"mov.u32 {pair[1]}, %r13;")


def _benchmark(operation: Operation) -> Microbenchmark:
    kernel = chain_kernel(operation)

    def run(gpu: Gpu) -> Mapping[str, float]:
        each = iteration_seconds(gpu, kernel, Launch(gpu.sms), least_seconds=_SECONDS)
        return {operation.quantity: THREADS * CHAINS * STEPS * operation.operations / each}

    how = f"{CHAINS} chains of {operation.what} in {THREADS} threads of every SM"
    return Microbenchmark((operation.quantity,), how, 0.03, run, operation.exists_on)


CLOCK_KERNEL = Kernel(
    (
        "mov.u64 %rd2, %clock64;",
        "mov.u64 %rd3, %globaltimer;",
        *("add.u32 %r10, %r2, 0x3f800000;", "mov.u32 %r20, %r10;"),
        *loop(*("fma.rn.f32 %r20, %r20, %r10, %r10;" for _ in range(32))),
        *sink(["%r20"]),
        *("mov.u64 %rd4, %clock64;", "mov.u64 %rd5, %globaltimer;"),
        *("sub.u64 %rd4, %rd4, %rd2;", "sub.u64 %rd5, %rd5, %rd3;"),
        *("or.b32 %r7, %r2, %r3;", "setp.eq.u32 %p2, %r7, 0;"),
        *("@%p2 st.global.u64 [%rd1], %rd4;", "@%p2 st.global.u64 [%rd1+8], %rd5;"),
    ),
    THREADS,
)
"""The first thread of the first block writes the cycles and nanoseconds of its loop."""


def _clock(gpu: Gpu) -> Mapping[str, float]:
    each = iteration_seconds(gpu, CLOCK_KERNEL, Launch(gpu.sms), least_seconds=_SECONDS)
    cycles, nanoseconds = gpu.read(CLOCK_KERNEL, Launch(gpu.sms, max(1, int(_CLOCK_SECONDS / each))), 2)
    return {"clock": cycles / nanoseconds * 1e9}


BENCHMARKS = (
    Microbenchmark(("clock",), "cycles to nanoseconds of a loop of fma.rn.f32 on all SMs", 0.02, _clock),
    *map(_benchmark, OPERATIONS),
)
