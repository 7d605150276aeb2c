"""Launches a `gpu.func`: the grid, the clusters, and the shared memory of each block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlir import ir

from mlirfuse.analysis.kernels import grid_least
from mlirfuse.analysis.memory.workspaces import operand_pairs
from mlirfuse.dialect.attributes import COOPERATIVE, DEPENDENT_LAUNCH, GRID, GRID_OPERANDS
from mlirfuse.errors import InterpreterError
from mlirfuse.interpreter.kernel_arguments import extents
from mlirfuse.interpreter.program import Function
from mlirfuse.interpreter.progress import BlockProgress
from mlirfuse.interpreter.scheduler import Coroutine, Schedule, run_blocks
from mlirfuse.interpreter.site import int_array
from mlirfuse.interpreter.state.affine import compile_map
from mlirfuse.interpreter.state.machine import Cluster, ThreadBlock
from mlirfuse.interpreter.state.memory import MemRef
from mlirfuse.interpreter.state.workgroup_memory import attributions, workgroup_memory


def grid_size(op: ir.Operation, arguments: Sequence[Any], sms: int) -> int:
    """Number of blocks: the least result of the map `fuse.grid`, applied to the operands of `fuse.grid_operands`.

    Each result counts as at least its entry of `fuse.grid_least`. Raises `InterpreterError` for a kernel without
    `fuse.grid`.
    """
    name = ir.StringAttr(op.attributes["sym_name"]).value
    if GRID not in op.attributes:
        raise InterpreterError(f"kernel @{name} has no fuse.grid attribute", where=op)
    symbols = extents(operand_pairs(op.attributes.get(GRID_OPERANDS)), arguments, sms)
    counts = compile_map(ir.AffineMapAttr(op.attributes[GRID]).value)(symbols)
    return int(min(map(max, counts, grid_least(op, len(counts)))))


def cluster_size(op: ir.Operation) -> int:
    """Blocks of a cluster of a `gpu.func`; 1 without clusters, and for a tile function."""
    return _dimensions(op, "known_cluster_size")[0] if "known_cluster_size" in op.attributes else 1


def run_grid(
    function: Function, arguments: Sequence[Any], schedule: Schedule, sms: int, *, progress: bool, checks: bool
) -> None:
    """Runs all blocks of a kernel; raises `InterpreterError` if a check fails."""
    op = function.op
    name = ir.StringAttr(op.attributes["sym_name"]).value
    grid, shape, size = grid_size(op, arguments, sms), _dimensions(op, "known_block_size"), cluster_size(op)
    if grid % size:
        raise InterpreterError(f"@{name}: a grid of {grid} blocks is no multiple of its cluster of {size}", where=op)
    if COOPERATIVE in op.attributes and schedule.resident is not None and schedule.resident < grid:
        raise InterpreterError(
            f"@{name} needs all of its {grid} blocks resident at once, and only {schedule.resident} may be",
            where=op,
            hint=f"run with resident={grid} or more, or without it",
        )
    declared = attributions(op, len(arguments))

    def start(first: int) -> Callable[[], list[tuple[str, Coroutine]]]:
        def group() -> list[tuple[str, Coroutine]]:
            cluster = Cluster(size)
            cluster.blocks = [
                ThreadBlock(first + rank, grid, shape, cluster, rank, checks=checks) for rank in range(size)
            ]
            return [
                (f"block {block.index}", _run_block(function, block, arguments, workgroup_memory(block, declared)))
                for block in cluster.blocks
            ]

        return group

    with BlockProgress(f"@{name}", grid, enabled=progress) as bar:
        run_blocks([start(first) for first in range(0, grid, size)], size, schedule, bar)


def _run_block(function: Function, block: ThreadBlock, arguments: Sequence[Any], shared: Sequence[MemRef]) -> Coroutine:
    """Runs one block from start to end."""
    frame = function.frame(block)
    block.has_waited = DEPENDENT_LAUNCH not in function.op.attributes
    yield from function.program.call(frame, [*arguments, *shared])
    block.finished = True
    if in_flight := block.rings.in_flight:
        raise InterpreterError(f"block {block.index} ends with {in_flight}", where=function.op)
    for memref in block.shared_buffers():
        shadow = memref.buffer.shadow
        writer = None if shadow is None else shadow.unordered_remote_writer(block)
        if writer is not None:
            raise InterpreterError(
                f"block {block.index} ends while block {writer} may still be writing its shared memory {memref.text}",
                where=function.op,
                hint="put a fuse.cluster_barrier after the last fuse.cluster_store",
            )


def _dimensions(op: ir.Operation, attribute: str) -> tuple[int, int, int]:
    if attribute not in op.attributes:
        raise InterpreterError(f"{op.name} has no {attribute} attribute", where=op)
    x, y, z = int_array(op.attributes[attribute])
    return x, y, z
