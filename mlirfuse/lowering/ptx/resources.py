"""A kernel's use of an SM's resources, as ptxas reports it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mlirfuse.errors import CompileError
from mlirfuse.lowering.ptx.to_ptx import KernelBinary

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_BARRIERS = re.compile(r"used (\d+) barriers")
_SHARED = re.compile(r"(\d+) bytes smem")
_LOSS = re.compile(r"Potential Performance Loss: (.*)")
_BLOCK = re.compile(r"^\.(?:maxntid|reqntid) (\d+)", re.MULTILINE)
_CLUSTER = re.compile(r"^\.reqnctapercluster (\d+)", re.MULTILINE)


@dataclass(frozen=True)
class KernelResources:
    """Resources of one kernel.

    Attributes:
        name: the kernel's entry point.
        registers: 32-bit registers a thread.
        spill_store_bytes: bytes a thread stores to local memory for want of registers; None where the driver assembled
            the kernel, which does not report it.
        spill_load_bytes: bytes a thread loads back; None likewise.
        stack_bytes: local memory of a thread, spills included.
        shared_bytes: static shared memory of a block, bytes, without the dynamic shared memory of the launch.
        barriers: named barriers of a block; None likewise.
        block: threads a block.
        cluster: blocks a cluster; 1 without clusters.
        losses: performance warnings of ptxas, such as `wgmma`s that wait for one another.
    """

    name: str
    registers: int
    spill_store_bytes: int | None
    spill_load_bytes: int | None
    stack_bytes: int
    shared_bytes: int
    barriers: int | None
    block: int
    cluster: int
    losses: tuple[str, ...] = ()


def parse_log(log: str, binary: KernelBinary) -> KernelResources:
    """The resources of `binary` in what `ptxas -v` printed; raises `CompileError` where the kernel is not in it."""
    names = _ENTRY.findall(log)
    if binary.name not in names:
        raise CompileError(f"ptxas reported on {names or 'no kernel'}, not on {binary.name}", where=binary.name)
    report = log[log.index(f"Compiling entry function '{binary.name}'") :]
    following = _ENTRY.search(report, pos=1 + len(binary.name))
    report = report[: following.start()] if following else report
    frame = _STACK.search(report)
    stack, spill_stores, spill_loads = map(int, frame.groups()) if frame else (0, 0, 0)
    return KernelResources(
        name=binary.name,
        registers=_number(_REGISTERS, report),
        spill_store_bytes=spill_stores,
        spill_load_bytes=spill_loads,
        stack_bytes=stack,
        shared_bytes=_number(_SHARED, report),
        barriers=_number(_BARRIERS, report),
        block=_number(_BLOCK, binary.ptx),
        cluster=_number(_CLUSTER, binary.ptx) or 1,
        losses=tuple(dict.fromkeys(_LOSS.findall(log))),
    )


def _number(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return int(match.group(1)) if match else 0
