"""Kernels of the patterns that assemblers are known to miscompile, for `mlirfuse selftest` and the tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import product

import numpy as np

from mlirfuse.lowering.miscompilations import worked_around
from mlirfuse.lowering.to_ptx import KernelBinary
from mlirfuse.target import Target

ENTRY = "probe"
THREADS = 256
"""Threads of a probe's only block."""


@dataclass(frozen=True)
class Probe:
    """A kernel, each of whose threads stores an extreme of three values, some of them negated.

    Attributes:
        miscompilation: the name of the entry of `miscompilations.KNOWN` that it shows.
        extreme: `max` or `min`.
        bits: 16 or 32, of a signed integer.
        negated: which of the values are negated.
    """

    miscompilation: str
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

    def binary(self, target: Target, *, workaround: bool) -> KernelBinary:
        """The kernel for a target, with its workaround or without."""
        ptx = self._ptx(target)
        return KernelBinary(ENTRY, target, worked_around(ptx) if workaround else ptx)

    def expected(self, values: np.ndarray) -> np.ndarray:
        """The results for values of shape (3, `THREADS`)."""
        signs = np.where(self.negated, -1, 1).astype(self.dtype)
        return reduce(np.maximum if self.extreme == "max" else np.minimum, values * signs[:, None])

    def values(self) -> np.ndarray:
        """Random values of shape (3, `THREADS`), whose negations exist."""
        return np.random.default_rng(0).integers(-1000, 1000, (3, THREADS)).astype(self.dtype)

    def _ptx(self, target: Target) -> str:
        bits, nbytes = self.bits, self.bits // 8
        loads = (f"ld.global.b{bits} \t%v{i}, [%rd1+{i * THREADS * nbytes}];" for i in range(3))
        signs = (f"neg.s{bits} \t%v{i}, %v{i};" for i in range(3) if self.negated[i])
        extremes = (f"{self.extreme}.s{bits} \t%v0, %v0, %v{i};" for i in (1, 2))
        body = (
            *(f".reg .b{bits} \t%v<3>;", ".reg .b32 \t%r<1>;", ".reg .b64 \t%rd<3>;"),
            *(f"ld.param.b64 \t%rd1, [{ENTRY}_param_0];", f"ld.param.b64 \t%rd2, [{ENTRY}_param_1];"),
            *("mov.u32 \t%r0, %tid.x;", f"mul.wide.u32 \t%rd0, %r0, {nbytes};"),
            *("add.s64 \t%rd1, %rd1, %rd0;", "add.s64 \t%rd2, %rd2, %rd0;"),
            *(*loads, *signs, *extremes, f"st.global.b{bits} \t[%rd2], %v0;", "ret;"),
        )
        version = f"{target.ptx // 10}.{target.ptx % 10}"
        head = f".version {version}\n.target {target.chip}\n.address_size 64\n"
        parameters = f".param .u64 {ENTRY}_param_0, .param .u64 {ENTRY}_param_1"
        return (
            f"{head}.visible .entry {ENTRY}({parameters})\n.maxntid {THREADS}, 1, 1\n{{\n\t"
            + "\n\t".join(body)
            + "\n}\n"
        )


def probes() -> Iterator[Probe]:
    """One of each form."""
    for extreme, bits, negated in product(("max", "min"), (32, 16), product((False, True), repeat=3)):
        first, second, third = negated
        if first or second or third:
            yield Probe("negated-extremes", extreme, bits, (first, second, third))
