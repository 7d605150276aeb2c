"""`lower-shared-memory`: buffers beyond the static limit go to dynamic shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, gpu, memref

from mlirfuse.dialect.attributes import DYNAMIC_SHARED_BYTES, PHASE
from mlirfuse.errors import SharedMemoryError
from mlirfuse.lowering.kernel_func import (
    Argument,
    attributions,
    dictionary,
    entry_block,
    kernels,
    move_body,
    parameters,
    rebuild,
    target_of_kernel,
)
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.model.machine import WIDEST_ACCESS
from mlirfuse.support.dtypes import bytes_of
from mlirfuse.support.rewriting import erase

ALIGN = "llvm.align"
STATIC_LIMIT = 48 * 1024  # bytes of `.shared` variables that ptxas accepts in one kernel
BUFFER_ALIGNMENT = WIDEST_ACCESS


@dataclass(frozen=True)
class LowerSharedMemory(Pass):
    """Aligns workgroup buffers to 16 bytes or more, and carves them out of dynamic shared memory beyond 48 KiB in all.

    ptxas refuses more than 48 KiB of static shared memory; the rest of an SM's needs dynamic allocation and
    an opt-in at load time. `fuse.dynamic_shared_bytes` on the kernel is what the runtime passes at launch. Buffers of
    `i1` take a byte an element. Buffers whose `fuse.phase` differs share their memory. Needs the target
    (`lower-attach-target`) for its limit.

    ```mlir
    gpu.func @k() workgroup(%a : memref<32768xf32, #gpu.address_space<workgroup>>) kernel { ... }
    // lower-shared-memory
    memref.global @k_shared : memref<0xi8, #gpu.address_space<workgroup>> {alignment = 16 : i64}
    gpu.func @k() kernel attributes {fuse.dynamic_shared_bytes = 131072 : i64} {
      %pool = memref.get_global @k_shared : memref<0xi8, #gpu.address_space<workgroup>>
      %a = memref.view %pool[%c0][] : ... to memref<32768xf32, #gpu.address_space<workgroup>>
      ...
    }
    ```

    Raises `SharedMemoryError` where a kernel needs more than a block of the target may have.
    """

    name: ClassVar[str] = "lower-shared-memory"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            buffers = attributions(func)
            if not buffers:
                remarks.declined(self, "the kernel has no shared memory", func)
                continue
            offsets, total = _offsets_of(buffers)
            limit = target_of_kernel(func).shared_per_block
            if total > limit:
                error = SharedMemoryError(
                    f"kernel {func.attributes['sym_name']} needs {total} bytes of shared memory, "
                    f"{target_of_kernel(func).chip} has {limit} a block",
                    where=func,
                    hint="choose smaller tiles, or fewer stages",
                )
                error.kernel = ir.StringAttr(func.attributes["sym_name"]).value
                raise error
            # Static buffers are variables of their own.
            if sum(-(-bytes_of(b.type) // _alignment(b)) * _alignment(b) for b in buffers) <= STATIC_LIMIT:
                _align(func, buffers)
            else:
                remarks.applied(self, f"{total} bytes of shared memory are allocated at launch", func)
                with func.location:
                    _use_dynamic(func, offsets, total, max(map(_alignment, buffers)))


def _offsets_of(buffers: Sequence[Argument]) -> tuple[list[int], int]:
    """Byte offset of each buffer in one allocation, and the size of the whole."""
    ends: dict[int | None, int] = {}
    offsets = [0] * len(buffers)
    # Buffers that are used throughout lie behind those of all phases, which begin at 0 each; gaps come last.
    for number in sorted(
        range(len(buffers)), key=lambda n: (PHASE not in buffers[n].attributes, -_alignment(buffers[n]))
    ):
        buffer = buffers[number]
        phase = ir.IntegerAttr(buffer.attributes[PHASE]).value if PHASE in buffer.attributes else None
        end = ends.get(phase, 0) if phase is not None else max(ends.values(), default=0)
        offsets[number] = -(-end // _alignment(buffer)) * _alignment(buffer)
        ends[phase] = offsets[number] + bytes_of(buffer.type)
    return offsets, -(-max(ends.values()) // BUFFER_ALIGNMENT) * BUFFER_ALIGNMENT


def _alignment(buffer: Argument) -> int:
    """The alignment of a buffer, bytes: more than the usual where it asks for more."""
    asked = ir.IntegerAttr(buffer.attributes[ALIGN]).value if ALIGN in buffer.attributes else 1
    return max(asked, BUFFER_ALIGNMENT)


def _align(func: gpu.GPUFuncOp, buffers: Sequence[Argument]) -> None:
    i64 = ir.IntegerType.get_signless(64)
    func.attributes["workgroup_attrib_attrs"] = ir.ArrayAttr.get(
        [
            dictionary({**_as_dict(buffer.attributes), ALIGN: ir.IntegerAttr.get(i64, _alignment(buffer))})
            for buffer in buffers
        ]
    )


def _use_dynamic(func: gpu.GPUFuncOp, offsets: Sequence[int], total: int, alignment: int) -> None:
    """Replaces the attributions by views of one external variable, which the backend prints as `.extern .shared`.

    `gpu.dynamic_shared_memory` would do, but its variable has internal linkage, and LLVM 22 demotes that to a static
    buffer of one byte.
    """
    arguments = parameters(func)
    new, block = rebuild(func, arguments, [])
    new.attributes[DYNAMIC_SHARED_BYTES] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), total)
    old = list(entry_block(func).arguments)
    byte, i64 = ir.IntegerType.get_signless(8), ir.IntegerType.get_signless(64)
    pool_type = ir.MemRefType.get([0], byte, memory_space=ir.MemRefType(old[-1].type).memory_space)
    pool_name = ir.StringAttr(func.attributes["sym_name"]).value + "_shared"
    with ir.InsertionPoint(new):
        memref.GlobalOp(pool_name, pool_type, alignment=ir.IntegerAttr.get(i64, alignment))
    with ir.InsertionPoint(block):
        pool = memref.GetGlobalOp(pool_type, pool_name).result
        views = [
            memref.ViewOp(buffer.type, pool, arith.constant(ir.IndexType.get(), offset), []).result
            for buffer, offset in zip(old[len(arguments) :], offsets, strict=True)
        ]
    for before, after in zip(old, [*block.arguments, *views], strict=True):
        before.replace_all_uses_with(after)
    move_body(func, block)
    erase(func)


def _as_dict(attributes: ir.DictAttr) -> dict[str, ir.Attribute]:
    return {attributes[i].name: attributes[i].attr for i in range(len(attributes))}
