"""`lower-kernel-abi`: memref arguments become bare pointers, sizes and strides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, gpu, memref

from mlirfuse.analysis.kernels import argument_attributes
from mlirfuse.analysis.memory.buffers import is_only_read
from mlirfuse.analysis.memory.strided_views import may_be_reversed
from mlirfuse.analysis.memory.workspaces import Workspace, workspaces
from mlirfuse.dialect.async_load import TF32
from mlirfuse.dialect.attributes import (
    ABI,
    ALIGN,
    DEPENDENT_LAUNCH,
    ORDERED,
    SIGNED_STRIDES,
    TENSOR_MAP,
    WORKSPACE,
    WORKSPACES,
)
from mlirfuse.dialect.gathered_view import IM2COL
from mlirfuse.errors import PassError
from mlirfuse.lowering.bool_bytes import store_as_bytes
from mlirfuse.lowering.kernel_func import (
    Argument,
    attributions,
    dictionary,
    entry_block,
    kernels,
    move_body,
    parameters,
    rebuild,
)
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import erase


@dataclass(frozen=True)
class Parameter:
    """One scalar or pointer of the lowered signature.

    Attributes:
        kind: `pointer`, `size`, `stride`, `scalar` or `tensor_map`.
        arg: position of the kernel's argument before lowering; of the memref that a tensor map views.
        dim: its dimension, for a size or a stride; else 0.
        dims: for a tensor map, the memref's dimensions from the inside out.
        box: for a tensor map, elements of one copy along each of `dims`.
        tf32: for a tensor map, whether copies round f32 to tf32.
        im2col: for a tensor map of windows, its lower corners, upper corners and steps, one after the other.
    """

    kind: str
    arg: int
    dim: int = 0
    dims: tuple[int, ...] = ()
    box: tuple[int, ...] = ()
    tf32: bool = False
    im2col: tuple[int, ...] = ()

    def attribute(self) -> ir.Attribute:
        """The dictionary form: `{kind = "size", arg = 0 : i64, dim = 1 : i64}`."""
        i64 = ir.IntegerType.get_signless(64)
        arg, dim = ir.IntegerAttr.get(i64, self.arg), ir.IntegerAttr.get(i64, self.dim)
        entries: dict[str, ir.Attribute] = {"kind": ir.StringAttr.get(self.kind), "arg": arg, "dim": dim}
        if self.kind == "tensor_map":
            entries["dims"] = ir.DenseI64ArrayAttr.get(list(self.dims))
            entries["box"] = ir.DenseI64ArrayAttr.get(list(self.box))
        if self.tf32:
            entries[TF32] = ir.UnitAttr.get()
        if self.im2col:
            entries[IM2COL] = ir.DenseI64ArrayAttr.get(list(self.im2col))
        return dictionary(entries)


@dataclass(frozen=True)
class LowerKernelAbi(Pass):
    """Replaces each memref argument by a pointer, its dynamic sizes and its dynamic strides, and records the order.

    Upstream's descriptors would pass an unused offset, a second pointer and every static extent. Here the pointer is
    a `memref<1xT>`, which the bare-pointer convention passes as it is, and a `memref.reinterpret_cast` restores the
    type at the top of the body. Strides of a contiguous memref follow from its sizes and are not passed. `fuse.abi`
    lists the new arguments; `fuse.signed_strides` says that some of these strides may be negative, so that `to_nvvm`
    does not assume unsigned ones. Arguments that the kernel never writes are marked `llvm.noalias` and `llvm.readonly`,
    so that the backend may use the read-only path (those with `fuse.ordered` are not, nor those of a kernel with
    `fuse.dependent_launch`); a caller must not let an output overlap an input. Buffers of `i1` hold a byte an element,
    0 or 1. `fuse.workspaces` describes the workspace arguments to the runtime.

    ```mlir
    gpu.func @k(%x: memref<?x128xf16>, %s: f64) kernel { ... }
    // lower-kernel-abi
    gpu.func @k(%p: memref<1xf16> {llvm.noalias, llvm.readonly}, %n: index, %s: f64) kernel
        attributes {fuse.abi = [{arg = 0 : i64, dim = 0 : i64, kind = "pointer"},
                                {arg = 0 : i64, dim = 0 : i64, kind = "size"},
                                {arg = 1 : i64, dim = 0 : i64, kind = "scalar"}]} {
      %x = memref.reinterpret_cast %p to offset: [0], sizes: [%n, 128], strides: [128, 1]
          : memref<1xf16> to memref<?x128xf16>
      ...
    }
    ```

    Raises `PassError` for a memref with an offset or a layout other than strides, and `IRError` for a workspace
    argument that is not what `analysis/memory/workspaces.py` says.
    """

    name: ClassVar[str] = "lower-kernel-abi"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            if ABI in func.attributes:
                remarks.declined(self, "the kernel has its ABI already", func)
                continue
            with func.location:
                store_as_bytes(func)
                remarks.applied(self, _lower(func), func)
            erase(func)


def _lower(func: gpu.GPUFuncOp) -> str:
    """Builds the lowered kernel in front of `func` and empties `func`; returns the remark."""
    old_block = entry_block(func)
    old_values = list(old_block.arguments)
    layout: list[Parameter] = []
    arguments: list[Argument] = []
    given = parameters(func)
    for i, argument in enumerate(given):
        for parameter, lowered in _signature(func, i, argument, old_values[i]):
            layout.append(parameter)
            arguments.append(lowered)
    workgroup = attributions(func)
    memory = [_description(workspace) for workspace in workspaces(func.operation)]
    count = len(old_values) - len(workgroup)
    new, block = rebuild(func, arguments, workgroup)
    new.attributes[ABI] = ir.ArrayAttr.get([parameter.attribute() for parameter in layout])
    if any(may_be_reversed(known) for known in argument_attributes(func.operation)):
        new.attributes[SIGNED_STRIDES] = ir.UnitAttr.get()
    if memory:
        new.attributes[WORKSPACES] = ir.ArrayAttr.get(memory)
    values = dict(zip(layout, block.arguments, strict=False))
    with ir.InsertionPoint(block):
        for i, old in enumerate(old_values[:count]):
            kept = TENSOR_MAP in given[i].attributes
            old.replace_all_uses_with(values[_tensor_map(given[i])] if kept else _restore(i, old.type, values))
    for old, value in zip(old_values[count:], list(block.arguments)[len(layout) :], strict=True):
        old.replace_all_uses_with(value)
    move_body(func, block)
    pointers = sum(parameter.kind == "pointer" for parameter in layout)
    return f"{len(layout)} parameters, {pointers} of them pointers"


def _description(workspace: Workspace) -> ir.DictAttr:
    """The dictionary form of a workspace argument, with its type as it was."""
    return dictionary(
        {
            "arg": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), workspace.position),
            "kind": ir.StringAttr.get(workspace.kind),
            "type": ir.TypeAttr.get(workspace.type),
            "extents": ir.AffineMapAttr.get(workspace.extents),
            "operands": ir.DenseI64ArrayAttr.get([number for pair in workspace.operands for number in pair]),
        }
    )


def _signature(
    func: gpu.GPUFuncOp, position: int, argument: Argument, value: ir.Value
) -> list[tuple[Parameter, Argument]]:
    """The lowered parameters of one argument."""
    plain = dictionary({})
    if TENSOR_MAP in argument.attributes:
        return [(_tensor_map(argument), Argument(argument.type, plain))]
    if not isinstance(argument.type, ir.MemRefType):
        return [(Parameter("scalar", position), Argument(argument.type, plain))]
    type_ = ir.MemRefType(argument.type)
    _, offset = type_.get_strides_and_offset()
    if offset != 0:
        raise PassError(
            f"argument {position} of kernel {func.attributes['sym_name']} has type {type_}, whose offset is not 0",
            where=func,
            hint="the offset belongs in the pointer",
        )
    index = Argument(ir.IndexType.get(), plain)
    pointer = Argument(
        ir.MemRefType.get([1], type_.element_type, memory_space=type_.memory_space),
        _marks(argument, value, is_dependent=DEPENDENT_LAUNCH in func.attributes),
    )
    return [
        (Parameter("pointer", position), pointer),
        *((Parameter("size", position, d), index) for d in _dynamic_sizes(type_)),
        *((Parameter("stride", position, d), index) for d in _passed_strides(type_)),
    ]


def _tensor_map(argument: Argument) -> Parameter:
    entries = ir.DictAttr(argument.attributes[TENSOR_MAP])
    dims, box = (tuple(ir.DenseI64ArrayAttr(entries[name])) for name in ("dims", "box"))
    windows = tuple(ir.DenseI64ArrayAttr(entries[IM2COL])) if IM2COL in entries else ()
    arg = ir.IntegerAttr(entries["arg"]).value
    return Parameter("tensor_map", arg, dims=dims, box=box, tf32=TF32 in entries, im2col=windows)


def _marks(argument: Argument, value: ir.Value, *, is_dependent: bool) -> ir.DictAttr:
    """Attributes of the pointer: its alignment, where the caller promises one, and whether it is only read."""
    marks: dict[str, ir.Attribute] = {}
    if ALIGN in argument.attributes:
        marks["llvm.align"] = argument.attributes[ALIGN]
    # Loads of an argument marked `fuse.ordered` keep their place: the read-only path would let them be moved. Other
    # blocks write workspaces while this one reads them. In a kernel that waits for its predecessor, loads could be
    # moved above the wait.
    ordered = is_dependent or ORDERED in argument.attributes or WORKSPACE in argument.attributes
    if is_only_read(value) and not ordered:
        marks |= {"llvm.noalias": ir.UnitAttr.get(), "llvm.readonly": ir.UnitAttr.get()}
    return dictionary(marks)


def _dynamic_sizes(type_: ir.MemRefType) -> list[int]:
    return [d for d in range(type_.rank) if type_.is_dynamic_dim(d)]


def _passed_strides(type_: ir.MemRefType) -> list[int]:
    """Dimensions whose stride is only known at run time and does not follow from the sizes."""
    if not isinstance(type_.layout, ir.StridedLayoutAttr):
        return []
    strides, _ = type_.get_strides_and_offset()
    return [d for d, stride in enumerate(strides) if stride == ir.ShapedType.get_dynamic_stride_or_offset()]


def _restore(position: int, type_: ir.Type, values: dict[Parameter, ir.Value]) -> ir.Value:
    """The value that stands for the argument in the body."""
    if not isinstance(type_, ir.MemRefType):
        return values[Parameter("scalar", position)]
    memref_type = ir.MemRefType(type_)
    static_strides, _ = memref_type.get_strides_and_offset()
    sizes = [values[Parameter("size", position, d)] for d in _dynamic_sizes(memref_type)]
    passed = {d: values[Parameter("stride", position, d)] for d in _passed_strides(memref_type)}
    derived = _contiguous_strides(memref_type, sizes, static_strides) if not passed else {}
    strides = [value for _, value in sorted((passed | derived).items())]
    return memref.ReinterpretCastOp(
        memref_type,
        values[Parameter("pointer", position)],
        [],
        sizes,
        strides,
        ir.DenseI64ArrayAttr.get([0]),
        ir.DenseI64ArrayAttr.get(list(memref_type.shape)),
        ir.DenseI64ArrayAttr.get(static_strides),
    ).result


def _contiguous_strides(
    type_: ir.MemRefType, sizes: Sequence[ir.Value], static_strides: Sequence[int]
) -> dict[int, ir.Value]:
    """The strides of a contiguous memref that depend on its sizes, by dimension."""
    if ir.ShapedType.get_dynamic_stride_or_offset() not in static_strides:
        return {}
    index = ir.IndexType.get()
    extents = dict(zip(_dynamic_sizes(type_), sizes, strict=True))
    strides: dict[int, ir.Value] = {}
    running = arith.constant(index, 1)
    for d in reversed(range(type_.rank)):
        if static_strides[d] == ir.ShapedType.get_dynamic_stride_or_offset():
            strides[d] = running
        extent = extents[d] if d in extents else arith.constant(index, type_.shape[d])
        running = arith.muli(running, extent)
    return strides
