"""Kernels of the patterns that assemblers are known to miscompile, for `mlirfuse selftest` and the tests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import product

import numpy as np

from mlirfuse.lowering.ptx.miscompilations import worked_around
from mlirfuse.lowering.ptx.to_ptx import KernelBinary
from mlirfuse.target import Target

ENTRY = "probe"
THREADS = 256
"""Threads of a probe's only block."""


@dataclass(frozen=True)
class Probe(ABC):
    """A kernel, each of whose threads stores a result of some values.

    Attributes:
        miscompilation: the name of the entry of `miscompilations.KNOWN` that the probe exercises.
    """

    miscompilation: str

    @property
    @abstractmethod
    def dtype(self) -> np.dtype:
        """Of the result."""

    @abstractmethod
    def expected(self, values: np.ndarray) -> np.ndarray:
        """The results, of shape (`THREADS`,), for what `values` returns."""

    @abstractmethod
    def values(self) -> np.ndarray:
        """The kernel's input, of shape (number of values, `THREADS`)."""

    def binary(self, target: Target, *, workaround: bool) -> KernelBinary:
        """The kernel for a target, with its workaround or without."""
        ptx = self._ptx(target)
        return KernelBinary(ENTRY, target, worked_around(ptx) if workaround else ptx)

    @abstractmethod
    def _body(self) -> Iterator[str]:
        """Loads from `%rd1`, and a store to `%rd2`; a thread's elements have 2 or 4 bytes."""

    def _ptx(self, target: Target) -> str:
        body = (
            *(".reg .b32 \t%r<1>;", ".reg .b64 \t%rd<3>;"),
            *(f"ld.param.b64 \t%rd1, [{ENTRY}_param_0];", f"ld.param.b64 \t%rd2, [{ENTRY}_param_1];"),
            *("mov.u32 \t%r0, %tid.x;", f"mul.wide.u32 \t%rd0, %r0, {self.dtype.itemsize};"),
            *("add.s64 \t%rd1, %rd1, %rd0;", "add.s64 \t%rd2, %rd2, %rd0;"),
            *(*self._body(), "ret;"),
        )
        version = f"{target.ptx // 10}.{target.ptx % 10}"
        head = f".version {version}\n.target {target.chip}\n.address_size 64\n"
        parameters = f".param .u64 {ENTRY}_param_0, .param .u64 {ENTRY}_param_1"
        return (
            f"{head}.visible .entry {ENTRY}({parameters})\n.maxntid {THREADS}, 1, 1\n{{\n\t"
            + "\n\t".join(body)
            + "\n}\n"
        )


@dataclass(frozen=True)
class ExtremeProbe(Probe):
    """An extreme of three values, some of them negated.

    Attributes:
        extreme: `max` or `min`.
        bits: 16 or 32, of a signed integer.
        negated: which of the values are negated.
    """

    extreme: str
    bits: int
    negated: tuple[bool, bool, bool]

    def __str__(self) -> str:
        values = ", ".join(f"{'-' if sign else ''}{name}" for sign, name in zip(self.negated, "abc", strict=True))
        return f"{self.extreme}.s{self.bits}({values})"

    @property
    def dtype(self) -> np.dtype:
        """Of the values and the result."""
        return np.dtype(f"int{self.bits}")

    def expected(self, values: np.ndarray) -> np.ndarray:
        """The results for values of shape (3, `THREADS`)."""
        signs = np.where(self.negated, -1, 1).astype(self.dtype)
        return reduce(np.maximum if self.extreme == "max" else np.minimum, values * signs[:, None])

    def values(self) -> np.ndarray:
        """Random values of shape (3, `THREADS`), whose negations exist."""
        return np.random.default_rng(0).integers(-1000, 1000, (3, THREADS)).astype(self.dtype)

    def _body(self) -> Iterator[str]:
        bits = self.bits
        yield f".reg .b{bits} \t%v<3>;"
        yield from (f"ld.global.b{bits} \t%v{i}, [%rd1+{i * THREADS * bits // 8}];" for i in range(3))
        yield from (f"neg.s{bits} \t%v{i}, %v{i};" for i in range(3) if self.negated[i])
        yield from (f"{self.extreme}.s{bits} \t%v0, %v0, %v{i};" for i in (1, 2))
        yield f"st.global.b{bits} \t[%rd2], %v0;"


@dataclass(frozen=True)
class ComparisonProbe(Probe):
    """1 where a comparison of a float32 value is true, as for all values but NaN; 0 for NaN.

    Attributes:
        shown: a readable form of the compared value.
        operations: PTX that replaces the value in `%v0` by the compared value.
        comparison: `gt`, `ge` or `lt`.
        bound: the other operand of the comparison.
    """

    shown: str
    operations: tuple[str, ...]
    comparison: str
    bound: float

    def __str__(self) -> str:
        return f"{self.shown} {_SYMBOLS[self.comparison]} {self.bound:g}"

    @property
    def dtype(self) -> np.dtype:
        """Of the result."""
        return np.dtype(np.int32)

    def expected(self, values: np.ndarray) -> np.ndarray:
        """1 for numbers and 0 for NaN; values of shape (1, `THREADS`)."""
        return (~np.isnan(values[0])).astype(self.dtype)

    def values(self) -> np.ndarray:
        """Random float32 of shape (1, `THREADS`), every third NaN."""
        values = np.random.default_rng(0).standard_normal((1, THREADS)).astype(np.float32)
        values[:, ::3] = np.nan
        return values

    def _body(self) -> Iterator[str]:
        bound = f"0f{np.float32(self.bound).view(np.uint32):08X}"
        yield from (".reg .pred \t%p<1>;", ".reg .b32 \t%v<2>;", "ld.global.b32 \t%v0, [%rd1];")
        yield from (f"{operation};" for operation in self.operations)
        yield f"setp.{self.comparison}.f32 \t%p0, %v0, {bound};"
        yield from ("selp.b32 \t%v1, 1, 0, %p0;", "st.global.b32 \t[%rd2], %v1;")


_SYMBOLS = {"gt": ">", "ge": ">=", "lt": "<"}
_ABS, _NEG, _SQUARE = "abs.f32 \t%v0, %v0", "neg.f32 \t%v0, %v0", "mul.f32 \t%v0, %v0, %v0"
_EXP2, _ADD_1 = "ex2.approx.ftz.f32 \t%v0, %v0", "add.f32 \t%v0, %v0, 0f3F800000"
_COMPARISONS = (
    ("|x|", (_ABS,), "ge", 0.0),
    ("|x|", (_ABS,), "gt", -0.5),
    ("|x| + 1", (_ABS, _ADD_1), "gt", 0.0),
    ("x * x", (_SQUARE,), "ge", 0.0),
    ("x * x + 1", (_SQUARE, _ADD_1), "gt", 0.0),
    ("exp2(x)", (_EXP2,), "ge", 0.0),
    ("exp2(x) + 1", (_EXP2, _ADD_1), "gt", 0.5),
    ("1 - |x|", (_ABS, _NEG, _ADD_1), "lt", 3.0),
    ("sin(x)", ("sin.approx.f32 \t%v0, %v0",), "lt", 2.0),
    ("sin(x)", ("sin.approx.f32 \t%v0, %v0",), "gt", -2.0),
)


def probes() -> Iterator[Probe]:
    """One of each form."""
    for extreme, bits, negated in product(("max", "min"), (32, 16), product((False, True), repeat=3)):
        first, second, third = negated
        if first or second or third:
            yield ExtremeProbe("negated-extremes", extreme, bits, (first, second, third))
    for shown, operations, comparison, bound in _COMPARISONS:
        yield ComparisonProbe("comparisons-of-nan", shown, operations, comparison, bound)
