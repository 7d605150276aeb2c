"""PTX of microbenchmarks: a body of instructions, with the entry, parameters, registers and loops around it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from mlirfuse.lowering.ptx.to_ptx import KernelBinary
from mlirfuse.target import Target

ENTRY = "calibrate"
MAGIC = 0x9E3779B9

_KINDS = {"r": "b32", "rd": "b64", "h": "b16", "p": "pred"}
_REGISTER = re.compile(r"%(rd|r|h|p)(\d+)\b")

_PROLOGUE = (
    f"ld.param.u64 %rd0, [{ENTRY}_0];",
    f"ld.param.u64 %rd1, [{ENTRY}_1];",
    f"ld.param.u32 %r0, [{ENTRY}_2];",
    f"ld.param.u32 %r1, [{ENTRY}_3];",
    *("cvta.to.global.u64 %rd0, %rd0;", "cvta.to.global.u64 %rd1, %rd1;"),
    *("mov.u32 %r2, %tid.x;", "mov.u32 %r3, %ctaid.x;", "mov.u32 %r4, %nctaid.x;"),
)


@dataclass(frozen=True)
class Kernel:
    """A kernel of a microbenchmark.

    Its body finds the address of a buffer in `%rd0`, that of a second one in `%rd1`, the number of iterations in `%r0`,
    an argument in `%r1`, its thread in `%r2`, its block in `%r3` and the number of blocks in `%r4`; `%r5` and `%p0`
    belong to `loop`, `%p1` to `sink`.

    Attributes:
        body: instructions; registers are `%r` of 32 bits, `%rd` of 64, `%h` of 16, and `%p` predicates.
        threads: of a block.
        shared_bytes: static shared memory, whose address is `memory`, aligned to 1024 bytes.
        dynamic_shared_bytes: dynamic shared memory, which the body cannot name.
        cluster: blocks of a cluster; 1 for none.
        isa: the version of PTX times ten that its instructions need, where the target's own version is older.
    """

    body: tuple[str, ...]
    threads: int
    shared_bytes: int = 0
    dynamic_shared_bytes: int = 0
    cluster: int = 1
    isa: int = 0

    def ptx(self, target: Target) -> str:
        """The module for a target."""
        body = (*_PROLOGUE, *self.body, "ret;")
        text = "\n\t".join([*_declarations(body), *body])
        shared = f".shared .align 1024 .b8 memory[{self.shared_bytes}];\n" if self.shared_bytes else ""
        cluster = f".explicitcluster\n.reqnctapercluster {self.cluster}, 1, 1\n" if self.cluster > 1 else ""
        kinds = ("u64", "u64", "u32", "u32")
        parameters = ", ".join(f".param .{kind} {ENTRY}_{i}" for i, kind in enumerate(kinds))
        isa = max(self.isa, target.ptx)
        head = f".version {isa // 10}.{isa % 10}\n.target {target.chip}\n.address_size 64\n{shared}"
        bounds = f".reqntid {self.threads}, 1, 1\n.minnctapersm 1\n{cluster}"
        return f"{head}.visible .entry {ENTRY}({parameters})\n{bounds}{{\n\t{text}\n}}\n"

    def binary(self, target: Target) -> KernelBinary:
        """The same, for mlirfuse's assembler."""
        return KernelBinary(ENTRY, target, self.ptx(target))


def _declarations(body: Iterable[str]) -> list[str]:
    """Declarations of the registers that a body names."""
    counts: dict[str, int] = {}
    for kind, index in _REGISTER.findall("\n".join(body)):
        counts[kind] = max(counts.get(kind, 0), int(index) + 1)
    return [f".reg .{_KINDS[kind]} %{kind}<{count}>;" for kind, count in counts.items()]


def loop(*body: str) -> tuple[str, ...]:
    """Instructions, repeated as often as the kernel's iterations say; `%r5` counts from 0."""
    return (
        *("mov.u32 %r5, 0;", "LOOP:", *body),
        *("add.u32 %r5, %r5, 1;", "setp.lt.u32 %p0, %r5, %r0;", "@%p0 bra LOOP;"),
    )


def sink(registers: Iterable[str]) -> tuple[str, ...]:
    """Uses of registers of 32 bits without which the assembler would remove what computes them; `%r6` is lost."""
    return (
        "mov.u32 %r6, 0;",
        *(f"xor.b32 %r6, %r6, {register};" for register in registers),
        f"setp.eq.u32 %p1, %r6, {MAGIC};",
        "@%p1 st.global.u32 [%rd1], %r6;",
    )


def lines(text: str) -> tuple[str, ...]:
    """The instructions of a text, one a line; empty lines are left out."""
    return tuple(line.strip() for line in text.splitlines() if line.strip())
