"""Converts a kernel's arguments to memrefs and scalars, with the layout and alignment that the signature promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from mlir import ir

from mlirfuse.analysis.memory.workspaces import RESIDENT, SEMAPHORES, Pairs, Workspace, workspaces
from mlirfuse.dialect.attributes import ALIGN, NAME
from mlirfuse.errors import ArgumentError, InterpreterError
from mlirfuse.interpreter.state.affine import compile_map
from mlirfuse.interpreter.state.memory import MemRef, allocate, from_array
from mlirfuse.interpreter.state.types import DYNAMIC, element_dtype
from mlirfuse.schedule.model.machine import DEFAULT_ALIGNMENT


def argument_types(op: ir.Operation) -> list[ir.Type]:
    """The argument types of a function's signature (without a gpu.func's workgroup attributions)."""
    return list(ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value).inputs)


def argument_attributes(op: ir.Operation) -> list[dict[str, ir.Attribute]]:
    """The attributes of each argument of a function."""
    count = len(argument_types(op))
    if "arg_attrs" not in op.attributes:
        return [{} for _ in range(count)]
    entries = [ir.DictAttr(entry) for entry in ir.ArrayAttr(op.attributes["arg_attrs"])]
    return [{entry[k].name: entry[k].attr for k in range(len(entry))} for entry in entries]


def argument_name(op: ir.Operation, position: int) -> str:
    """The user's name of an argument if the signature has one; otherwise its position."""
    attribute = argument_attributes(op)[position].get(NAME)
    return ir.StringAttr(attribute).value if attribute is not None else f"argument {position}"


def _fits(number: int, dtype: np.dtype) -> bool:
    return bool(np.iinfo(dtype).min <= number <= np.iinfo(dtype).max)


def bind_value(name: str, type_: ir.Type, value: Any) -> np.ndarray:
    """An argument as an array for a tensor or memref type, and as a one-element array for a scalar type.

    Raises `ArgumentError` for a wrong kind, dtype, rank or static extent.
    """
    dtype = element_dtype(type_)
    if not isinstance(type_, ir.ShapedType):
        array = np.asarray(value)
        if array.size != 1 or array.ndim > 1:
            raise ArgumentError(f"expected a number for {type_}, got shape {array.shape}", where=name)
        if isinstance(value, int | np.integer) and dtype.kind == "i" and not _fits(int(value), dtype):
            raise ArgumentError(f"{value} does not fit {type_}", where=name, hint="give a float")
        if array.dtype != dtype and not np.can_cast(array.dtype, dtype, "same_kind"):
            raise ArgumentError(f"expected a number for {type_}, got {array.dtype}", where=name)
        return array.reshape(1).astype(dtype)
    if not isinstance(value, np.ndarray):
        raise ArgumentError(f"expected a NumPy array for {type_}, got {type(value).__name__}", where=name)
    if value.dtype != dtype:
        raise ArgumentError(f"expected dtype {dtype}, got {value.dtype}", where=name)
    shape = list(ir.ShapedType(type_).shape)
    fits = len(shape) == value.ndim and all(
        want in (DYNAMIC, got) for want, got in zip(shape, value.shape, strict=True)
    )
    if not fits:
        wanted = ", ".join("?" if extent == DYNAMIC else str(extent) for extent in shape)
        raise ArgumentError(f"expected shape ({wanted}), got {value.shape}", where=name)
    return value


def bind_inputs(op: ir.Operation, inputs: Sequence[Any], *, checks: bool) -> list[Any]:
    """A kernel's inputs as memrefs and scalars; raises `ArgumentError` for one that does not fit the signature."""
    types, attributes = argument_types(op), argument_attributes(op)
    bound: list[Any] = []
    for position, value in enumerate(inputs):
        name, type_ = argument_name(op, position), types[position]
        array = bind_value(name, type_, value)
        if not isinstance(type_, ir.MemRefType):
            bound.append(array)
            continue
        promised = _promised(attributes[position])
        strides = _strides(ir.MemRefType(type_), array)
        bound.append(from_array(name, array, strides, promised, readonly=True, checks=checks))
    return bound


def bind_output(op: ir.Operation, position: int, array: np.ndarray, *, checks: bool) -> MemRef:
    """A new uninitialised memref for an output argument, of the shape of the caller's array."""
    name, type_ = argument_name(op, position), argument_types(op)[position]
    bind_value(name, type_, array)
    alignment = _promised(argument_attributes(op)[position])
    return allocate(name, "global", array.shape, array.dtype, alignment, checks=checks)


def _promised(attributes: Mapping[str, ir.Attribute]) -> int:
    """The alignment of an argument's base address in bytes."""
    return ir.IntegerAttr(attributes[ALIGN]).value if ALIGN in attributes else DEFAULT_ALIGNMENT


def bind_workspaces(op: ir.Operation, arguments: Sequence[Any], sms: int, *, checks: bool) -> list[MemRef]:
    """New workspaces, as the runtime supplies them: semaphores that are zero, and uninitialised scratch memory."""
    return [_allocate_workspace(op, workspace, arguments, sms, checks=checks) for workspace in workspaces(op)]


def extents(operands: Pairs, arguments: Sequence[Any], sms: int) -> list[int]:
    """The values of the operands in `fuse.grid_operands` or `fuse.workspace_operands`, on a device with `sms` SMs."""
    return [sms * dim if argument == RESIDENT else arguments[argument].shape[dim] for argument, dim in operands]


def require_zero_semaphores(op: ir.Operation, memrefs: Sequence[MemRef]) -> None:
    """Raises `InterpreterError` for a semaphore that is not 0 after the kernel."""
    for workspace, memref in zip(workspaces(op), memrefs, strict=True):
        values = memref.buffer.elements(memref.dtype)
        if workspace.kind == SEMAPHORES and values.any():
            slot = int(np.flatnonzero(values)[0])
            raise InterpreterError(
                f"kernel @{_name(op)} ends and leaves semaphore {slot} of {memref.text} at {values[slot]}",
                where=op,
                hint="the last arrival must wrap: its limit is the number of arrivals less one",
            )


def _allocate_workspace(
    op: ir.Operation, workspace: Workspace, arguments: Sequence[Any], sms: int, *, checks: bool
) -> MemRef:
    name, dtype = argument_name(op, workspace.position), element_dtype(workspace.type)
    dynamic = iter(compile_map(workspace.extents)(extents(workspace.operands, arguments, sms)))
    shape = tuple(int(next(dynamic)) if extent == DYNAMIC else extent for extent in workspace.type.shape)
    if workspace.kind == SEMAPHORES:
        return from_array(name, np.zeros(shape, dtype), None, DEFAULT_ALIGNMENT, readonly=False, checks=checks)
    return allocate(name, "global", shape, dtype, DEFAULT_ALIGNMENT, checks=checks)


def _name(op: ir.Operation) -> str:
    return ir.StringAttr(op.attributes["sym_name"]).value


def unwritten(memref: MemRef) -> tuple[int, ...] | None:
    """Index of the first unwritten element of an output; None if all are written, or if writes are not tracked."""
    shadow, size = memref.buffer.shadow, memref.buffer.nbytes // memref.dtype.itemsize
    if shadow is None or not size:
        return None
    written = shadow.written_elements(size, memref.dtype.itemsize)
    if written.all():
        return None
    return tuple(int(i) for i in np.unravel_index(int(np.argmin(written)), memref.shape))


def _strides(type_: ir.MemRefType, array: np.ndarray) -> tuple[int, ...] | None:
    """Strides of an input in elements, dynamic ones from the array; None if the input is C-contiguous."""
    if ir.AffineMap.get_identity(type_.rank) == type_.affine_map:
        return None
    strides, _ = type_.get_strides_and_offset()
    result = []
    for dimension, stride in enumerate(strides):
        own = array.strides[dimension] // array.itemsize
        if type_.is_static_stride_or_offset(stride):
            own = stride
        result.append(own)
    return tuple(result)
