"""The shared memory that a `gpu.func` declares: its workgroup attributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from mlir import ir

from mlirfuse.dialect.attributes import PHASE
from mlirfuse.interpreter.state.machine import ThreadBlock
from mlirfuse.interpreter.state.memory import MemRef, allocate, row_major
from mlirfuse.interpreter.state.types import element_dtype


@dataclass(frozen=True)
class Attribution:
    """One declared buffer.

    Attributes:
        name: name in messages.
        shape: extents.
        dtype: type of an element.
        alignment: alignment in bytes; None for the size of an element.
        phase: the phase of the kernel that uses the buffer, or None; buffers of different phases share their memory.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    alignment: int | None
    phase: int | None

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize


def attributions(op: ir.Operation, arguments: int) -> list[Attribution]:
    """The workgroup attributions of a kernel, which follow its `arguments` arguments."""
    values = list(op.regions[0].blocks[0].arguments)[arguments:]
    given = op.attributes["workgroup_attrib_attrs"] if "workgroup_attrib_attrs" in op.attributes else [{}] * len(values)
    found = []
    for position, (value, entry) in enumerate(zip(values, given, strict=True)):
        type_, known = ir.MemRefType(value.type), entry if isinstance(entry, dict) else ir.DictAttr(entry)
        alignment, phase = (
            ir.IntegerAttr(known[name]).value if name in known else None for name in ("llvm.align", PHASE)
        )
        name = f"workgroup attribution {position}"
        found.append(Attribution(name, tuple(type_.shape), element_dtype(type_), alignment, phase))
    return found


def workgroup_memory(block: ThreadBlock, declared: Sequence[Attribution]) -> list[MemRef]:
    """The block's buffers; buffers with a phase are in one pool, in which each phase begins at offset 0."""
    offsets: dict[str, int] = {}
    ends: dict[int, int] = {}
    for each in declared:
        if each.phase is not None:
            step = each.alignment or each.dtype.itemsize
            offsets[each.name] = -(-ends.get(each.phase, 0) // step) * step
            ends[each.phase] = offsets[each.name] + each.nbytes
    pool = _allocate(block, _pool(declared, max(ends.values()))) if ends else None
    buffers = []
    for each in declared:
        if pool is None or each.phase is None:
            buffers.append(_allocate(block, each))
        else:
            first = offsets[each.name] // each.dtype.itemsize
            buffers.append(MemRef(pool.buffer, each.dtype, first, each.shape, row_major(each.shape), each.name))
    return buffers


def _pool(declared: Sequence[Attribution], nbytes: int) -> Attribution:
    alignment = max(each.alignment or each.dtype.itemsize for each in declared if each.phase is not None)
    return Attribution("workgroup memory of phases", (nbytes,), np.dtype(np.uint8), alignment, None)


def _allocate(block: ThreadBlock, each: Attribution) -> MemRef:
    return block.shared(
        ("attribution", each.name),
        lambda: allocate(each.name, "shared", each.shape, each.dtype, each.alignment, checks=block.checks),
    )
