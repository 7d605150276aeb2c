"""A kernel's launch metadata, read from its `gpu.func` after `lower-kernel-abi`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from mlir import ir
from mlir.dialects import gpu

from mlirfuse.analysis.kernels import grid_least
from mlirfuse.analysis.memory.workspaces import RESIDENT, Pairs, operand_pairs
from mlirfuse.compiler.expressions import Binary, Constant, Expression, from_affine
from mlirfuse.dialect.async_load import TF32
from mlirfuse.dialect.attributes import (
    ABI,
    COOPERATIVE,
    DEPENDENT_LAUNCH,
    DYNAMIC_SHARED_BYTES,
    GRID,
    GRID_LEAST,
    GRID_OPERANDS,
    WORKSPACES,
)
from mlirfuse.dialect.gathered_view import IM2COL
from mlirfuse.errors import IRError
from mlirfuse.lowering.kernel_func import kernels, parameters
from mlirfuse.support.dtypes import from_mlir

# How `struct` packs each scalar type; sizes and strides are `index`, which is 64 bits wide.
_CODES = {"index": "q", "i64": "q", "i32": "i", "i16": "h", "i8": "b", "i1": "?", "f64": "d", "f32": "f", "f16": "e"}
POINTER_CODE = "Q"

Resident = Callable[[int], int]
"""The number of blocks of a kernel that the device holds at once, given a limit of blocks an SM."""


@dataclass(frozen=True)
class AbiParameter:
    """One parameter of the compiled kernel.

    Attributes:
        kind: `pointer`, `size`, `stride`, `scalar` or `tensor_map`.
        arg: position among the kernel's arguments (the launch's inputs, then its results).
        dim: the dimension, for a size or a stride; else 0.
        code: the `struct` format character of the value; for a tensor map, of the pointer that it is made for.
        dims: for a tensor map, the argument's dimensions from the innermost out.
        box: for a tensor map, elements of one copy along each of `dims`.
        tf32: for a tensor map, whether copies round float32 to tf32.
        im2col: for a tensor map of windows, its lower corners, upper corners and steps, one after the other, each from
            the innermost spatial dimension out.
    """

    kind: str
    arg: int
    dim: int
    code: str
    dims: tuple[int, ...] = ()
    box: tuple[int, ...] = ()
    tf32: bool = False
    im2col: tuple[int, ...] = ()


@dataclass(frozen=True)
class WorkspaceInfo:
    """One workspace argument of a kernel.

    Attributes:
        arg: position among the kernel's arguments.
        kind: `semaphores` or `scratch`.
        element_bytes: size of an element.
        shape: extents, over the extents that `operands` names.
        operands: (argument, dimension) pairs, as `KernelInfo.grid_operands`.
    """

    arg: int
    kind: str
    element_bytes: int
    shape: tuple[Expression, ...]
    operands: Pairs


@dataclass(frozen=True)
class KernelInfo:
    """How to launch a kernel.

    Attributes:
        name: the entry point.
        block: threads a block.
        cluster: blocks a cluster; 1 without clusters.
        grid: number of blocks, over the extents that `grid_operands` names.
        grid_operands: (argument, dimension) pairs, one a symbol of `grid`; (-1, k) is the number of blocks that the
            device holds at once at k on each SM.
        parameters: the compiled kernel's parameters, in order.
        dynamic_shared_bytes: shared memory that the launch must ask for, bytes.
        workspaces: the arguments that the launcher supplies by itself; they follow all others.
        cooperative: whether the launch must be cooperative: the blocks of the grid wait for each other.
        dependent: whether the kernel may start before its predecessor in the stream has ended (programmatic dependent
            launch); the kernel waits for the predecessor itself.
    """

    name: str
    block: int
    cluster: int
    grid: Expression
    grid_operands: Pairs
    parameters: tuple[AbiParameter, ...]
    dynamic_shared_bytes: int
    workspaces: tuple[WorkspaceInfo, ...] = ()
    cooperative: bool = False
    dependent: bool = False

    def blocks(self, shapes: Sequence[Sequence[int]], resident: Resident | None = None) -> int:
        """Number of blocks for arguments of these shapes (`()` for a scalar), inputs first.

        `resident` is needed where the grid depends on the device.
        """
        return self.grid.evaluate(_symbols(self.grid_operands, shapes, resident))

    def workspace_shapes(
        self, shapes: Sequence[Sequence[int]], resident: Resident | None = None
    ) -> list[tuple[int, ...]]:
        """The extents of each workspace argument, for other arguments of these shapes."""
        return [
            tuple(extent.evaluate(_symbols(w.operands, shapes, resident)) for extent in w.shape)
            for w in self.workspaces
        ]


def _symbols(operands: Pairs, shapes: Sequence[Sequence[int]], resident: Resident | None) -> list[int]:
    symbols = []
    for argument, dim in operands:
        if argument == RESIDENT:
            assert resident is not None
            symbols.append(resident(dim))
        else:
            symbols.append(shapes[argument][dim])
    return symbols


def kernel_infos(module: ir.Operation) -> dict[str, KernelInfo]:
    """The launch information of every kernel of a module, by name; see `kernel_info`."""
    return {info.name: info for info in map(kernel_info, kernels(module))}


def kernel_info(func: gpu.GPUFuncOp) -> KernelInfo:
    """The launch information of a kernel.

    Raises:
        IRError: an attribute of the contract is missing or not what it should be.
    """
    name = ir.StringAttr(func.attributes["sym_name"]).value
    for required in (ABI, GRID, GRID_OPERANDS, "known_block_size"):
        if required not in func.attributes:
            raise IRError(f"kernel {name} has no {required}", where=func)
    grid_map = ir.AffineMapAttr(func.attributes[GRID]).value
    operands = operand_pairs(func.attributes[GRID_OPERANDS])
    if not grid_map.results or grid_map.n_dims or grid_map.n_symbols != len(operands):
        raise IRError(
            f"kernel {name}: fuse.grid {grid_map} does not go with fuse.grid_operands {operands}",
            where=func,
        )
    least = grid_least(func.operation, len(grid_map.results))
    if len(least) != len(grid_map.results):
        raise IRError(f"kernel {name}: {GRID_LEAST} {least} does not go with fuse.grid {grid_map}", where=func)
    results = [
        Binary("max", from_affine(result), Constant(count)) if count else from_affine(result)
        for result, count in zip(grid_map.results, least, strict=True)
    ]
    return KernelInfo(
        name=name,
        block=_one_dimensional(func, "known_block_size"),
        cluster=_one_dimensional(func, "known_cluster_size") if "known_cluster_size" in func.attributes else 1,
        grid=reduce(lambda a, b: Binary("min", a, b), results),
        grid_operands=operands,
        parameters=tuple(_parameters(func)),
        dynamic_shared_bytes=ir.IntegerAttr(func.attributes[DYNAMIC_SHARED_BYTES]).value
        if DYNAMIC_SHARED_BYTES in func.attributes
        else 0,
        workspaces=tuple(_workspaces(func)),
        cooperative=COOPERATIVE in func.attributes,
        dependent=DEPENDENT_LAUNCH in func.attributes,
    )


def _workspaces(func: gpu.GPUFuncOp) -> list[WorkspaceInfo]:
    found = []
    for entry in map(ir.DictAttr, func.attributes.get(WORKSPACES, ())):
        type_ = ir.MemRefType(ir.TypeAttr(entry["type"]).value)
        dynamic = iter([from_affine(extent) for extent in ir.AffineMapAttr(entry["extents"]).value.results])
        found.append(
            WorkspaceInfo(
                arg=ir.IntegerAttr(entry["arg"]).value,
                kind=ir.StringAttr(entry["kind"]).value,
                element_bytes=from_mlir(type_.element_type).bytes,
                shape=tuple(
                    next(dynamic) if type_.is_dynamic_dim(d) else Constant(type_.shape[d]) for d in range(type_.rank)
                ),
                operands=operand_pairs(entry["operands"]),
            )
        )
    return found


def _one_dimensional(func: gpu.GPUFuncOp, attribute: str) -> int:
    x, y, z = ir.DenseI32ArrayAttr(func.attributes[attribute])
    if (y, z) != (1, 1):
        raise IRError(f"{attribute} ({x}, {y}, {z}) is not one-dimensional", where=func)
    return x


def _parameters(func: gpu.GPUFuncOp) -> list[AbiParameter]:
    described = [ir.DictAttr(entry) for entry in ir.ArrayAttr(func.attributes[ABI])]
    result = []
    for entry, argument in zip(described, parameters(func), strict=True):
        kind = ir.StringAttr(entry["kind"]).value
        type_name = str(argument.type)
        is_address = kind in ("pointer", "tensor_map")
        if not is_address and type_name not in _CODES:
            raise IRError(f"a kernel parameter of type {type_name} cannot be passed", where=func)
        code = POINTER_CODE if is_address else _CODES[type_name]
        dims, box = ((), ()) if kind != "tensor_map" else (_ints(entry["dims"]), _ints(entry["box"]))
        arg, dim = ir.IntegerAttr(entry["arg"]).value, ir.IntegerAttr(entry["dim"]).value
        windows = _ints(entry[IM2COL]) if IM2COL in entry else ()
        result.append(AbiParameter(kind, arg, dim, code, dims, box, TF32 in entry, windows))
    return result


def _ints(attribute: ir.Attribute) -> tuple[int, ...]:
    return tuple(ir.DenseI64ArrayAttr(attribute))
