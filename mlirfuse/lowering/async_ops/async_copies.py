"""`lower-async-copies`: copies of tiles become TMA instructions on tensor-map parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, gpu, llvm, nvvm, scf

from mlirfuse.dialect.async_load import STREAMED, TF32, peers_of, rows_of
from mlirfuse.dialect.attributes import TENSOR_MAP
from mlirfuse.dialect.gathered_view import IM2COL
from mlirfuse.errors import PassError
from mlirfuse.lowering.async_ops.gathered_copies import Places, gathered, view_of
from mlirfuse.lowering.async_ops.hopper import kernels_using, thread_number
from mlirfuse.lowering.async_ops.shared_address import element_address, shared_pointer, stage_address
from mlirfuse.lowering.kernel_func import (
    Argument,
    attributions,
    dictionary,
    entry_block,
    move_body,
    parameters,
    rebuild,
)
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.model.machine import MAX_BOX, SWIZZLE_BYTES
from mlirfuse.support.dtypes import element_bytes
from mlirfuse.support.rewriting import erase

LOAD, STORE, STORE_WAIT, PREFETCH = "fuse.async_load", "fuse.async_store", "fuse.async_store_wait", "fuse.prefetch_tile"
LOWERED = (LOAD, STORE, STORE_WAIT, PREFETCH)
EVICT_FIRST = 0x12F0000000000000  # the encoded L2 policy evict-first, for data that is read once


@dataclass(frozen=True)
class TensorMap:
    """What a tensor map describes.

    Attributes:
        arg: position of the memref among the kernel's arguments.
        dims: the memref's dimensions, the innermost of the map first.
        box: elements of one copy along each of `dims`.
        tf32: whether elements of f32 are rounded to tf32.
        im2col: lower corners, upper corners and steps of windows, one for each spatial dimension from the inside out;
            empty where copies are boxes. A box is then a number of channels and of pixels.
    """

    arg: int
    dims: tuple[int, ...]
    box: tuple[int, ...]
    tf32: bool = False
    im2col: tuple[tuple[int, ...], ...] = ()

    def attribute(self) -> ir.DictAttr:
        """The dictionary form: `{arg = 0 : i64, box = array<i64: 64, 128>, dims = array<i64: 1, 0>}`."""
        entries = {
            "arg": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), self.arg),
            "dims": ir.DenseI64ArrayAttr.get(list(self.dims)),
            "box": ir.DenseI64ArrayAttr.get(list(self.box)),
        }
        if self.im2col:
            entries[IM2COL] = ir.DenseI64ArrayAttr.get([n for part in self.im2col for n in part])
        return dictionary(entries | ({TF32: ir.UnitAttr.get()} if self.tf32 else {}))


@dataclass(frozen=True)
class LowerAsyncCopies(Pass):
    """Lowers `fuse.async_load` and `fuse.async_store` to one TMA copy for each 128-byte swizzle atom of the stage.

    `fuse.prefetch_tile` becomes one prefetch for each 128 bytes of a row. Requires a target of sm_90a, and sources that
    are arguments of the kernel. The kernel gets one more argument, a pointer to a tensor map, for each box shape in
    which an argument is copied. The argument's `fuse.tensor_map` attribute describes the map: the memref that it views,
    the memref's dimensions from the innermost on, and the extents of one copy along them. All maps use the 128-byte
    swizzle. `lower-kernel-abi` records the argument, and the runtime encodes the map.

    ```mlir
    gpu.func @k(%a: memref<?x512xbf16>) {
      "fuse.async_load"(%a, %ring, %stage, %full, %m, %k) {dims = array<i64: 0, 1>} : ...
    // lower-async-copies
    gpu.func @k(%a: memref<?x512xbf16>,
                %map: !llvm.ptr {fuse.tensor_map = {arg = 0, box = array<i64: 64, 128>, dims = array<i64: 1, 0>}}) {
      nvvm.cp.async.bulk.tensor.shared.cluster.global %atom, %map, %barrier, box[%k, %m] : !llvm.ptr<7>, !llvm.ptr
    ```

    Raises `TargetError` for another target, and `PassError` for a source that is no argument or more than 256 rows.
    """

    name: ClassVar[str] = "lower-async-copies"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func, ops in kernels_using(module, frozenset(LOWERED), lambda target: target.has_tma):
            copies, waits = ([op for op in ops if (op.name == STORE_WAIT) == is_wait] for is_wait in (False, True))
            needed = [_tensor_map(func, op) for op in copies]
            maps = list(dict.fromkeys(needed))
            views = list(dict.fromkeys(view for op in copies if (view := gathered(op)) is not None))
            with func.location:
                pointers = _add_arguments(func, maps)
            for op, tensor_map in zip(copies, needed, strict=True):
                with ir.InsertionPoint(op), op.location:
                    LOWERINGS[op.name](op, tensor_map, pointers[maps.index(tensor_map)])
                erase(op)
            for op in waits:
                with ir.InsertionPoint(op), op.location:
                    nvvm.cp_async_bulk_wait_group(ir.IntegerAttr(op.attributes["pending"]).value, read=True)
                erase(op)
            for view in views:
                erase(view)
            remarks.applied(self, f"{len(copies)} copies through {len(maps)} tensor maps", func)
            erase(func)


def _tensor_map(func: gpu.GPUFuncOp, op: ir.Operation) -> TensorMap:
    """The tensor map that an op needs."""
    arguments = list(entry_block(func).arguments)[: len(parameters(func))]
    tensor, view = op.operands[0], gathered(op)
    if view is not None:
        tensor = view.operands[0]
    if tensor not in arguments:
        raise PassError("an asynchronous copy needs a kernel argument as its array in global memory", where=op)
    rows, columns = _tile(op)
    if rows > MAX_BOX:
        raise PassError(f"a tile has {rows} rows, and the TMA copies {MAX_BOX} at most", where=op)
    if view is not None:
        return _map_of_view(view, op, arguments.index(tensor))
    row, column = ir.DenseI64ArrayAttr(op.attributes["dims"])
    outer = [d for d in reversed(range(ir.MemRefType(tensor.type).rank)) if d not in (row, column)]
    copied = rows_of(op) // peers_of(op) if op.name == LOAD else rows
    box = (min(columns, SWIZZLE_BYTES // element_bytes(tensor.type)), copied, *(1 for _ in outer))
    return TensorMap(arguments.index(tensor), (column, row, *outer), box, TF32 in op.attributes)


def _tile(op: ir.Operation) -> tuple[int, int]:
    """Rows and columns of a stage, or of a tile that is prefetched."""
    if op.name == PREFETCH:
        rows, columns = ir.DenseI64ArrayAttr(op.attributes["tile"])
    else:
        _, rows, columns = ir.MemRefType(op.operands[1].type).shape
    return rows, columns


def _map_of_view(view: ir.Operation, op: ir.Operation, argument: int) -> TensorMap:
    mapped = view_of(view)
    width, copied = SWIZZLE_BYTES // element_bytes(ir.MemRefType(op.operands[1].type)), rows_of(op) // peers_of(op)
    if mapped.im2col is None:
        box = (width, copied, *(1 for _ in mapped.axes[2:]))
        return TensorMap(argument, mapped.axes, box, TF32 in op.attributes)
    windows = mapped.im2col
    parts = tuple(tuple(reversed(part)) for part in (windows.lower, windows.upper, windows.steps))
    return TensorMap(argument, mapped.axes, (width, copied), TF32 in op.attributes, parts)


def _add_arguments(func: gpu.GPUFuncOp, maps: Sequence[TensorMap]) -> list[ir.Value]:
    """Rebuilds a kernel in front of `func`, which becomes empty, with an argument for each tensor map.

    Returns the new arguments.
    """
    pointer = ir.Type.parse("!llvm.ptr")
    old, known = list(entry_block(func).arguments), parameters(func)
    more = [Argument(pointer, dictionary({TENSOR_MAP: tensor_map.attribute()})) for tensor_map in maps]
    _, block = rebuild(func, [*known, *more], attributions(func))
    new = list(block.arguments)
    added = new[len(known) : len(known) + len(more)]
    for before, after in zip(old, [value for value in new if value not in added], strict=True):
        before.replace_all_uses_with(after)
    with ir.InsertionPoint(block):
        # Prefetched, so that the first copy does not wait for its tensor map.
        first = arith.cmpi(arith.CmpIPredicate.eq, thread_number(), arith.constant(ir.IntegerType.get_signless(32), 0))
        branch = scf.IfOp(first)
        with ir.InsertionPoint(branch.then_block):
            for value in added:
                nvvm.prefetch(value, tensormap=True)
            scf.YieldOp([])
    move_body(func, block)
    return added


def _load(op: ir.Operation, tensor_map: TensorMap, pointer: ir.Value) -> None:
    _, ring, stage, barriers, *indices = op.operands
    barrier = shared_pointer(element_address(barriers, stage))
    peers, part, mask = peers_of(op), None, None
    if peers > 1:
        rank = gpu.ClusterBlockIdOp(gpu.Dimension.x).result
        part = arith.muli(rank, arith.constant(rank.type, tensor_map.box[1]))
        mask = arith.constant(ir.IntegerType.get_signless(16), (1 << peers) - 1)
    i64 = ir.IntegerType.get_signless(64)
    hint = arith.constant(i64, EVICT_FIRST) if STREAMED in op.attributes else None
    view = gathered(op)
    copies: Iterator[tuple[ir.Value, list[ir.Value], list[ir.Value]]]
    if view is not None:
        copies = _gathered_atoms(view, ring, stage, indices, tensor_map, part)
    else:
        copies = ((atom, place, []) for atom, place in _swizzle_atoms(ring, stage, indices, tensor_map, part))
    mode = ir.Attribute.parse("#nvvm.tma_load_mode<im2col>") if tensor_map.im2col else None
    for atom, coordinates, offsets in copies:
        target = llvm.addrspacecast(ir.Type.parse("!llvm.ptr<7>"), atom)
        nvvm.cp_async_bulk_tensor_shared_cluster_global(
            target, pointer, coordinates, barrier, offsets, multicast_mask=mask, l2_cache_hint=hint, mode=mode
        )


def _store(op: ir.Operation, tensor_map: TensorMap, pointer: ir.Value) -> None:
    _, ring, stage, *indices = op.operands
    for atom, coordinates in _swizzle_atoms(ring, stage, indices, tensor_map):
        nvvm.cp_async_bulk_tensor_global_shared_cta(pointer, atom, coordinates)
    nvvm.cp_async_bulk_commit_group()


def _prefetch(op: ir.Operation, tensor_map: TensorMap, pointer: ir.Value) -> None:
    _, *indices = op.operands
    _, columns = _tile(op)
    for first in range(0, columns, tensor_map.box[0]):
        nvvm.cp_async_bulk_tensor_prefetch(pointer, _coordinates(indices, tensor_map, first), [])


LOWERINGS = {LOAD: _load, STORE: _store, PREFETCH: _prefetch}
"""What lowers an op that needs a tensor map."""


def _coordinates(
    indices: Sequence[ir.Value], tensor_map: TensorMap, first_column: int = 0, first_row: ir.Value | None = None
) -> list[ir.Value]:
    """The coordinates of a box of a tile (i32), the innermost first."""
    place = [indices[d] for d in tensor_map.dims]
    if first_column:
        place[0] = arith.addi(place[0], arith.constant(ir.IndexType.get(), first_column))
    if first_row is not None:
        place[1] = arith.addi(place[1], first_row)
    return [arith.index_cast(ir.IntegerType.get_signless(32), value) for value in place]


def _swizzle_atoms(
    ring: ir.Value,
    stage: ir.Value,
    indices: Sequence[ir.Value],
    tensor_map: TensorMap,
    first_row: ir.Value | None = None,
) -> Iterator[tuple[ir.Value, list[ir.Value]]]:
    """Yields the pointer in shared memory and the coordinates, the innermost first, of each swizzle atom of a stage."""
    atoms, pointer_of = _atoms(ring, stage, tensor_map, first_row)
    for atom in range(atoms):
        coordinates = _coordinates(indices, tensor_map, atom * tensor_map.box[0], first_row)
        yield pointer_of(atom), coordinates


def _atoms(
    ring: ir.Value, stage: ir.Value, tensor_map: TensorMap, first_row: ir.Value | None
) -> tuple[int, Callable[[int], ir.Value]]:
    """The number of a stage's swizzle atoms, and a function that emits the pointer of one in shared memory."""
    _, rows, columns = ir.MemRefType(ring.type).shape
    start = stage_address(ring, stage)
    if first_row is not None:
        start = arith.addi(start, arith.muli(first_row, arith.constant(ir.IndexType.get(), SWIZZLE_BYTES)))
    return columns // tensor_map.box[0], lambda atom: shared_pointer(start, atom * rows * SWIZZLE_BYTES)


def _gathered_atoms(
    view: ir.Operation,
    ring: ir.Value,
    stage: ir.Value,
    indices: Sequence[ir.Value],
    tensor_map: TensorMap,
    first_row: ir.Value | None,
) -> Iterator[tuple[ir.Value, list[ir.Value], list[ir.Value]]]:
    """`_swizzle_atoms` of a gathered view, with the offsets in windows."""
    atoms, pointer_of = _atoms(ring, stage, tensor_map, first_row)
    places = Places(view, indices, first_row)
    for atom in range(atoms):
        yield pointer_of(atom), *places.of_columns(atom * tensor_map.box[0])
