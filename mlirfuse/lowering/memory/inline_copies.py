"""Asynchronous copies as inline PTX, for an L2 policy that upstream's op does not have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlir import ir
from mlir.dialects import arith, nvgpu, nvvm, scf

from mlirfuse.analysis.memory.buffers import VIEWS
from mlirfuse.dialect.optimization_barrier import optimization_barrier
from mlirfuse.lowering.async_ops.hopper import thread_number
from mlirfuse.lowering.memory.addresses import element_address
from mlirfuse.lowering.memory.inline_accesses import HINT
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import erase


def why_not_inline_copy(copy: nvgpu.DeviceAsyncCopyOp) -> str | None:
    """Why an `nvgpu.device_async_copy` cannot become one instruction, or None."""
    if copy.srcElements is not None:
        return "it pads its destination"
    return "its token is used" if list(copy.asyncToken.uses) else None


def inline_copies(copies: Sequence[ir.Operation], policy: ir.Value, without: ir.Value) -> None:
    """Replaces copies for which `why_not_inline_copy` returns None by inline `cp.async`.

    A policy of normal eviction is slower than no policy. So threads branch to instructions with a policy or without,
    once for each run of copies that only address computations separate.

    For a copy with a policy, ptxas 13.0 may emit `LDGSTS [R9+UR12], desc[UR13]`: the uniform part of the shared-memory
    address takes the place of half of the policy, which sm_90 rejects as an illegal instruction (a policy takes two
    registers, the first an even one). So addresses go through an optimization barrier that depends on the thread, after
    which they have no uniform part.

    Args:
        copies: ops of 4, 8 or 16 bytes, in order.
        policy: the L2 policy, an i64 from `createpolicy`.
        without: whether copies have no policy, i1.
    """
    for run in list(_runs(copies)):
        with ir.InsertionPoint(run[-1]), run[-1].location:
            operands = [_operands(copy.opview) for copy in run]
            branch = scf.IfOp(without, has_else=True)
            for block, hint, last, policies in (
                (branch.then_block, "", "", []),
                (branch.else_block, HINT, ", $2", [policy]),
            ):
                with ir.InsertionPoint(block):
                    for copy, (values, where) in zip(run, operands, strict=True):
                        cache = "cg" if copy.opview.bypassL1 else "ca"
                        text = f"cp.async.{cache}.shared.global{hint} {where}{last};"
                        nvvm.InlinePtxOp([], [*values, *policies], [], text)
                    scf.YieldOp([])
        for copy in run:
            erase(copy)


def _runs(copies: Sequence[ir.Operation]) -> Iterator[list[ir.Operation]]:
    """Runs of copies without other memory accesses in between, which may all be issued at the last one's position."""
    run: list[ir.Operation] = []
    for block in dict.fromkeys(copy.block for copy in copies):
        for op in (op.operation for op in block.operations):
            if op in copies:
                run.append(op)
            elif run and not _is_address(op):
                yield run
                run = []


def _is_address(op: ir.Operation) -> bool:
    return op.name.startswith(("affine.", "arith.")) or op.name in (*VIEWS, "memref.dim")


def _operands(copy: nvgpu.DeviceAsyncCopyOp) -> tuple[list[ir.Value], str]:
    """Addresses of a copy, i32 in shared and i64 in global memory, and the operands with these as `$0` and `$1`."""
    i32, i64 = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(64)
    to, to_offset = element_address(copy.dst, list(copy.dstIndices))
    start, offset = element_address(copy.src, list(copy.srcIndices))
    size = from_mlir(ir.MemRefType(copy.src.type).element_type).bytes * ir.IntegerAttr(copy.dstElements).value
    addresses = [optimization_barrier(arith.index_cast(i32, to), thread_number()), arith.index_cast(i64, start)]
    return addresses, f"[$0+{to_offset}], [$1+{offset}], {size}"
