"""Workspace arguments of a kernel: memory through which blocks communicate, supplied by the runtime.

Workspace arguments follow the operands and results, and have these attributes:

- `fuse.workspace`: `"semaphores"` (a one-dimensional memref of i32, or a memref of f32 that is a flagged buffer or
  holds sums; zero when the kernel starts, and zero again when it ends) or `"scratch"` (any contiguous memref;
  uninitialised);
- `fuse.workspace_extents`, if extents are dynamic: an affine map with a result for each dynamic extent, in order;
- `fuse.workspace_operands`: the map's symbols as pairs, like those of `fuse.grid_operands`: (argument, dimension), or
  (-1, k) for the number of blocks that the device holds with k blocks on each SM.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from mlirfuse.analysis.kernels import argument_attributes, symbol
from mlirfuse.dialect.attributes import WORKSPACE, WORKSPACE_EXTENTS, WORKSPACE_OPERANDS
from mlirfuse.errors import IRError

SEMAPHORES, SCRATCH = "semaphores", "scratch"
RESIDENT = -1
"""First number of a pair that stands for the blocks that the device holds at once, instead of an extent."""

Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Workspace:
    """One workspace argument.

    Attributes:
        position: position among the kernel's arguments.
        kind: `semaphores` or `scratch`.
        type: the memref type.
        extents: a map from the values of `operands` to the dynamic extents.
        operands: (argument, dimension) or (-1, k) pairs.
    """

    position: int
    kind: str
    type: ir.MemRefType
    extents: ir.AffineMap
    operands: Pairs


def workspaces(kernel: ir.Operation) -> list[Workspace]:
    """The workspace arguments of a tile program or a `gpu.func`, in order.

    Raises:
        IRError: a workspace argument violates the rules above, or is followed by another argument.
    """
    types = ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value).inputs
    attributes = argument_attributes(kernel)
    found = [
        _workspace(kernel, position, type_, attributes[position])
        for position, type_ in enumerate(types)
        if WORKSPACE in attributes[position]
    ]
    first = found[0].position if found else 0
    if [workspace.position for workspace in found] != list(range(first, first + len(found))):
        raise _error(kernel, "workspace arguments must follow the operands and results, one after the other")
    for workspace in found:
        if any(argument >= first for argument, _ in workspace.operands):
            raise _error(kernel, f"the extents of workspace argument {workspace.position} depend on a workspace")
    return found


def operand_pairs(attribute: ir.Attribute | None) -> Pairs:
    """The pairs of `fuse.grid_operands` or `fuse.workspace_operands`; none without the attribute."""
    flat = [] if attribute is None else list(ir.DenseI64ArrayAttr(attribute))
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def _workspace(kernel: ir.Operation, position: int, type_: ir.Type, known: dict[str, ir.Attribute]) -> Workspace:
    kind = ir.StringAttr(known[WORKSPACE]).value
    what = f"workspace argument {position} of type {type_}"
    if kind not in (SEMAPHORES, SCRATCH):
        raise _error(kernel, f'{what}: {WORKSPACE} is "{kind}", neither "{SEMAPHORES}" nor "{SCRATCH}"')
    if not isinstance(type_, ir.MemRefType) or not _is_plain(type_):
        raise _error(kernel, f"{what} is not a contiguous memref in global memory")
    if (
        kind == SEMAPHORES
        and str(type_.element_type) != "f32"
        and (str(type_.element_type) != "i32" or type_.rank != 1)
    ):
        hint = "must be a one-dimensional memref of i32 to hold semaphores, or one of f32 for a flagged buffer or sums"
        raise _error(kernel, f"{what} {hint}")
    operands = operand_pairs(known.get(WORKSPACE_OPERANDS))
    extents = (
        ir.AffineMapAttr(known[WORKSPACE_EXTENTS]).value if WORKSPACE_EXTENTS in known else ir.AffineMap.get(0, 0, [])
    )
    dynamic = sum(type_.is_dynamic_dim(d) for d in range(type_.rank))
    if len(extents.results) != dynamic or extents.n_dims or extents.n_symbols != len(operands):
        text = f"{WORKSPACE_EXTENTS} {ir.AffineMapAttr.get(extents)} over {len(operands)} operands"
        raise _error(kernel, f"{what}: {text} does not fit it")
    return Workspace(position, kind, ir.MemRefType(type_), extents, operands)


def _is_plain(type_: ir.MemRefType) -> bool:
    return type_.affine_map == ir.AffineMap.get_identity(type_.rank) and type_.memory_space is None


def _error(kernel: ir.Operation, message: str) -> IRError:
    return IRError(f"kernel {symbol(kernel)}: {message}", where=kernel)
