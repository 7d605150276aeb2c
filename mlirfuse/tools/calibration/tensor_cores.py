"""Rates of tensor cores: what mlirfuse's long products of 16-bit operands reach, and other types in proportion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mlirfuse.errors import MlirFuseError
from mlirfuse.target import TARGETS, Target
from mlirfuse.tools.calibration.benchmark import Gpu, Launch, Microbenchmark, iteration_seconds
from mlirfuse.tools.calibration.kernel import Kernel, loop, sink

_SECONDS = 3e-2
"""Of a launch: long enough that the power limit shows."""

_EXTENT = 8192
"""Of long products, along each dimension."""


@dataclass(frozen=True)
class Product:
    """A tensor core instruction of one type.

    Attributes:
        quantity: the rate's name.
        types: of the result, the operands and the sums, as the instruction has them.
        k: elements along k of `mma`; `wgmma` has 32 bytes.
        shape: rows and columns of `mma`.
        registers: of the operands A and B and of the sums, of 32 bits or, for f64, of 64.
        mask: what random bits keep of an operand's register, and what they are ored with: numbers about 1.
        isa: the version of PTX times ten that has it, where targets that have it may ask for less.
        exists_on: whether an architecture has it.
    """

    quantity: str
    types: str
    k: int
    mask: tuple[int, int]
    shape: tuple[int, int] = (16, 8)
    registers: tuple[int, int, int] = (4, 2, 4)
    isa: int = 0
    exists_on: Callable[[Target], bool] = lambda _: True


def _has_float8(target: Target) -> bool:
    return target.has_float8_conversions


def _has_wgmma(target: Target) -> bool:
    return target.has_wgmma


_HALVES, _TF32 = (0x807F807F, 0x3F803F80), (0x807FE000, 0x3F800000)
_FLOAT8, _BYTES, _F64 = (0x87878787, 0x38383838), (0xFFFFFFFF, 0), (0x800FFFFF, 0x3FF00000)

MMA = (
    Product("mma_16bit_per_sm", "f32.bf16.bf16.f32", 16, _HALVES),
    Product("mma_tf32_per_sm", "f32.tf32.tf32.f32", 8, _TF32),
    Product("mma_f8_per_sm", "f32.e4m3.e4m3.f32", 32, _FLOAT8, isa=84, exists_on=_has_float8),
    Product("mma_int8_per_sm", "s32.s8.s8.s32", 32, _BYTES),
    Product("mma_f64_per_sm", "f64.f64.f64.f64", 4, _F64, (8, 8), (1, 1, 2)),
)

WGMMA = (
    Product("wgmma_16bit_per_sm", "f32.bf16.bf16", 16, _HALVES, exists_on=_has_wgmma),
    Product("wgmma_tf32_per_sm", "f32.tf32.tf32", 8, _TF32, exists_on=_has_wgmma),
    Product("wgmma_f8_per_sm", "f32.e4m3.e4m3", 32, _FLOAT8, exists_on=_has_wgmma),
    Product("wgmma_int8_per_sm", "s32.s8.s8", 32, _BYTES, exists_on=_has_wgmma),
)

MMA_THREADS, MMA_SUMS, MMA_STEPS = 512, 8, 4
"""Threads of an SM, independent sums of a warp, and products into each an iteration."""

_HASH = ("mad.lo.u32 %r7, %r7, 1664525, 1013904223;", "shr.u32 %r8, %r7, 7;", "xor.b32 %r8, %r8, %r7;")


def mma_kernel(product: Product) -> Kernel:
    """Warps that multiply operands in registers, random numbers about 1, into sums that start at 0."""
    operands, is_wide = sum(product.registers[:2]), product.types.startswith("f64")
    keep, add = product.mask
    prefix, zero = ("%rd", "0d0000000000000000") if is_wide else ("%r", "0")
    start = ["mov.u32 %r7, %r2;"]
    for i in range(operands):
        start += [*_HASH, f"and.b32 %r8, %r8, {keep:#x};", f"or.b32 %r8, %r8, {add:#x};"]
        start.append(f"mov.b64 %rd{10 + i}, {{%r7, %r8}};" if is_wide else f"mov.u32 %r{10 + i}, %r8;")
    a = [f"{prefix}{10 + i}" for i in range(product.registers[0])]
    b = [f"{prefix}{10 + product.registers[0] + i}" for i in range(product.registers[1])]
    width = product.registers[2]
    sums = [[f"{prefix}{20 + i * width + j}" for j in range(width)] for i in range(MMA_SUMS)]
    start += [f"mov.{'f64' if is_wide else 'u32'} {register}, {zero};" for group in sums for register in group]
    m, n = product.shape
    name = f"mma.sync.aligned.m{m}n{n}k{product.k}.row.col.{product.types}"
    steps = [
        f"{name} {_vector(group)}, {_vector(a)}, {_vector(b)}, {_vector(group)};"
        for _ in range(MMA_STEPS)
        for group in sums
    ]
    used = [register for group in sums for register in group]
    if is_wide:
        narrow = [f"cvt.u32.u64 %r{20 + i}, {register};" for i, register in enumerate(used)]
        return Kernel((*start, *loop(*steps), *narrow, *sink(f"%r{20 + i}" for i in range(len(used)))), MMA_THREADS)
    return Kernel((*start, *loop(*steps), *sink(used)), MMA_THREADS, isa=product.isa)


def _vector(registers: list[str]) -> str:
    return f"{{{', '.join(registers)}}}"


WGMMA_WARPGROUPS, WGMMA_STEPS, WGMMA_COLUMNS = 2, 16, 256
_TILE_A, _TILE_B = 64 * 128, WGMMA_COLUMNS * 128
"""Bytes of the operands: 64 rows of a warpgroup's own and 256 shared ones, of 128 bytes, in the 128-byte swizzle."""

_DESCRIPTOR = 1 << 62 | 1024 >> 4 << 32 | 1 << 16
"""Of an operand in shared memory without its address: 128-byte swizzle, 1024 bytes from eight rows to the next."""


def wgmma_kernel(product: Product) -> Kernel:
    """Two warpgroups that multiply operands in shared memory, random numbers about 1; m64n256 with 32 bytes of k."""
    keep, add = product.mask
    threads, nbytes = WGMMA_WARPGROUPS * 128, WGMMA_WARPGROUPS * _TILE_A + _TILE_B
    start = ["mov.u32 %r7, %r2;", "mov.u32 %r9, memory;", "mad.lo.u32 %r10, %r2, 4, %r9;", "mov.u32 %r11, 0;", "FILL:"]
    start += [*_HASH, f"and.b32 %r8, %r8, {keep:#x};", f"or.b32 %r8, %r8, {add:#x};", "st.shared.u32 [%r10], %r8;"]
    start += [f"add.u32 %r10, %r10, {4 * threads};", f"add.u32 %r11, %r11, {4 * threads};"]
    start += [f"setp.lt.u32 %p2, %r11, {nbytes};", "@%p2 bra FILL;", "fence.proxy.async.shared::cta;", "bar.sync 0;"]
    start += ["shr.u32 %r12, %r2, 7;", f"mad.lo.u32 %r12, %r12, {_TILE_A}, %r9;", "shr.u32 %r12, %r12, 4;"]
    start += [f"add.u32 %r13, %r9, {WGMMA_WARPGROUPS * _TILE_A};", "shr.u32 %r13, %r13, 4;"]
    for register, descriptor in (("%r12", 8), ("%r13", 12)):
        start += [
            f"cvt.u64.u32 %rd{descriptor}, {register};",
            f"or.b64 %rd{descriptor}, %rd{descriptor}, {_DESCRIPTOR};",
        ]
        start += [f"add.u64 %rd{descriptor + i}, %rd{descriptor}, {2 * i};" for i in (1, 2, 3)]
    sums = [f"%r{20 + i}" for i in range(WGMMA_COLUMNS // 2)]
    start += [f"mov.u32 {register}, 0;" for register in sums]
    flags = "1, 1, 1" if product.types.startswith("f32") else "1"
    flags += ", 0, 0" if product.k == 16 else ""  # operands of 16 bits may be transposed
    name = f"wgmma.mma_async.sync.aligned.m64n{WGMMA_COLUMNS}k{product.k}.{product.types}"
    steps = ["wgmma.fence.sync.aligned;"]
    steps += [f"{name} {_vector(sums)}, %rd{8 + i % 4}, %rd{12 + i % 4}, {flags};" for i in range(WGMMA_STEPS)]
    steps += ["wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"]
    return Kernel((*start, *loop(*steps), *sink(sums)), threads, shared_bytes=nbytes)


def instruction_rate(gpu: Gpu, product: Product) -> float:
    """Operations a second of one SM that an instruction reaches alone, on all SMs."""
    if product in WGMMA:
        kernel, operations = wgmma_kernel(product), WGMMA_WARPGROUPS * WGMMA_STEPS * 64 * WGMMA_COLUMNS * product.k
    else:
        kernel = mma_kernel(product)
        operations = MMA_THREADS // 32 * MMA_SUMS * MMA_STEPS * product.shape[0] * product.shape[1] * product.k
    each = iteration_seconds(gpu, kernel, Launch(gpu.sms), least_seconds=_SECONDS)
    return 2 * operations / each


def long_product(x: Any, w: Any) -> Any:
    """A product of x[m, k] and w[n, k]."""
    return x @ w.mT


def _product_rate(gpu: Gpu, target: Target) -> float:
    """Operations a second of one SM that mlirfuse's own product of f16 reaches."""
    shape = (_EXTENT, _EXTENT)
    return 2 * _EXTENT**3 / gpu.sms / gpu.fused_seconds(long_product, [shape, shape], "float16", target)


def _without_wgmma(target: Target) -> Target:
    """The target of the same device whose products are by `mma.sync`."""
    base = TARGETS[target.architecture]
    return base.with_sms(target.sms)


def _family(products: tuple[Product, ...], target_of_family: Callable[[Target], Target]) -> Microbenchmark:
    def run(gpu: Gpu) -> Mapping[str, float]:
        reached = _product_rate(gpu, target_of_family(gpu.target))
        first, *others = products
        alone = {first.quantity: instruction_rate(gpu, first)}
        for product in others:
            with suppress(MlirFuseError):  # an older assembler may not know it: then it is not measured
                alone |= {product.quantity: instruction_rate(gpu, product)} if product.exists_on(gpu.target) else {}
        share = reached / alone[first.quantity]
        return {name: rate * share for name, rate in alone.items()}

    measures = tuple(product.quantity for product in products)
    how = f"mlirfuse's product of {_EXTENT} cubed in f16; other types as loops of their instructions are to f16's"
    return Microbenchmark(measures, how, 0.05, run, products[0].exists_on, repeats=1)


BENCHMARKS = (
    _family(MMA, _without_wgmma),
    _family(WGMMA, lambda target: target),
)
