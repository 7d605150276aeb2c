"""`fuse-share-slices`: a kernel reads interleaved slices of an array through one argument, the array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, memref, tensor

from mlirfuse.analysis.kernels import argument_attributes, functions, is_tile_program, kernels, symbol
from mlirfuse.analysis.memory.host_views import layout_of
from mlirfuse.analysis.memory.shared_arrays import is_part_of_access
from mlirfuse.dialect.attributes import ALIGN, LAUNCH, STRIDES
from mlirfuse.dialect.flat_attribute import FLAT
from mlirfuse.passes.kernels.collapse_kernel import DYNAMIC, collapsed_type
from mlirfuse.passes.kernels.host import callee, calls
from mlirfuse.passes.slices.sliced_ops import SLICE, Range, ranges_of
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.model.machine import DEFAULT_ALIGNMENT
from mlirfuse.support.reshapes import reassociation
from mlirfuse.support.rewriting import defining_op


@dataclass(frozen=True)
class FuseShareSlices(Pass):
    """Passes an array in place of the first of its slices of components or short parts of rows, and reads all from it.

    Requires tile programs with layouts and their calls, before `fuse-distribute`. The components of an interleaved
    array, every second, third, ... element of it, such as the pairs of a rotary embedding or the channels of pixels,
    are arguments of their own; so are few neighbours in each row, such as the corners of boxes. As `memref.subview`s
    of one argument, loads of neighbours are known to be neighbours (`fuse-merge-loads`). Neighbours are few where they
    are less than an access may have: longer parts of rows are runs of memory by themselves. The other arguments stay,
    for their extents at most. Declines for arrays that are not contiguous, slices of other axes, and arguments that are
    not only read tile by tile.

    ```mlir
    %a = tensor.extract_slice %x[0, 0] [64, 32] [1, 2] : tensor<64x64xf32> to tensor<64x32xf32>
    %b = tensor.extract_slice %x[0, 1] [64, 32] [1, 2] : tensor<64x64xf32> to tensor<64x32xf32>
    %y = call @f(%a, %b) : ...
    func.func private @f_kernel(%a: memref<64x32xf32, strided<[64, 2]>>, %b: memref<64x32xf32, strided<[64, 2]>>, ...)
    ```
    becomes
    ```mlir
    %y = call @f(%x, %b) : ...
    func.func private @f_kernel(%x: memref<64x64xf32>, %b: memref<64x32xf32, strided<[64, 2]>>, ...) {
      %0 = memref.subview %x[0, 0] [64, 32] [1, 2] : memref<64x64xf32> to memref<64x32xf32, strided<[64, 2]>>
      %1 = memref.subview %x[0, 1] [64, 32] [1, 2] : ...
    ```
    """

    name: ClassVar[str] = "fuse-share-slices"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        declarations = {
            ir.FlatSymbolRefAttr(f.attributes[LAUNCH]).value: f for f in functions(module) if LAUNCH in f.attributes
        }
        for kernel in filter(is_tile_program, kernels(module)):
            declaration = declarations.get(symbol(kernel))
            called = [
                call
                for function in functions(module)
                for call in calls(function)
                if declaration is not None and callee(call) == symbol(declaration)
            ]
            shared = 0
            for group in _groups(kernel, called):
                _share(kernel, declaration, called, group)
                shared += len(group)
            if shared:
                remarks.applied(self, f"{shared} arguments of {symbol(kernel)} are slices of others", kernel)
            else:
                remarks.declined(self, "no arguments are slices that interleave", kernel)


Groups = tuple[tuple[int, ...], ...]
"""Axes of an array that are made one, for each axis of what is passed."""


@dataclass(frozen=True)
class _Slice:
    """A slice of an array's last axis; `groups` are the array's axes that are made one, None for no reshape."""

    source: ir.Value
    groups: Groups | None
    part: Range


Group = dict[int, list[_Slice]]
"""By the number of an argument what each call passes."""


def _groups(kernel: ir.Operation, called: Sequence[ir.Operation]) -> Iterator[Group]:
    """Arguments for which each call passes slices of one array."""
    found: dict[tuple[object, ...], Group] = {}
    arguments = kernel.regions[0].blocks[0].arguments
    for number, passed in enumerate(zip(*(call.operands for call in called), strict=True)):
        slices = [_slice(value) for value in passed]
        known = [each for each in slices if each is not None]
        if len(known) == len(slices) and _is_read_by_tiles(arguments[number]):
            key = (known[0].part.step, known[0].part.count, *[(each.source, each.groups) for each in known])
            found.setdefault(key, {})[number] = known
    return (group for group in found.values() if len(group) > 1)


def _slice(value: ir.Value) -> _Slice | None:
    """What a call passes, where it is such a slice of a contiguous array."""
    maker, groups = defining_op(value), None
    if maker is not None and maker.name == "tensor.collapse_shape":
        groups = tuple(map(tuple, reassociation(maker)))
        maker = defining_op(maker.operands[0])
    if maker is None or maker.name != SLICE or STRIDES in layout_of(source := maker.operands[0]):
        return None
    ranges = ranges_of(maker)
    if not ranges or any(ranges[:-1]) or (part := ranges[-1]) is None:
        return None
    if part.step == 1 and part.count > 1 and not is_part_of_access(maker.results[0].type):
        return None
    same_rank = ir.RankedTensorType(maker.results[0].type).rank == len(ranges)
    apart = groups is None or len(groups[-1]) == 1
    return _Slice(source, groups, part) if same_rank and apart else None


def _is_read_by_tiles(argument: ir.Value) -> bool:
    users = [use.owner.operation for use in argument.uses]
    reads = [user for user in users if user.name == "vector.transfer_read" and FLAT not in user.attributes]
    return bool(reads) and all(user in reads or user.name == "memref.dim" for user in users)


def _share(kernel: ir.Operation, declaration: ir.Operation, called: Sequence[ir.Operation], group: Group) -> None:
    """Passes the array for the first argument of a group, and reads all through it."""
    block, first = kernel.regions[0].blocks[0], next(iter(group))
    for call, part in zip(called, group[first], strict=True):
        with ir.InsertionPoint(call), call.location:
            call.operands[first] = _array(part)
    argument, row = block.arguments[first], ir.RankedTensorType(called[0].operands[first].type).shape[-1]
    before = ir.MemRefType(argument.type)
    argument.set_type(ir.MemRefType.get([*before.shape[:-1], row], before.element_type))
    _retype(kernel, first, argument.type)
    _retype(declaration, first, called[0].operands[first].type)
    known = argument_attributes(kernel)
    default = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), DEFAULT_ALIGNMENT)
    declared = [layout_of(call.operands[first]).get(ALIGN, default) for call in called]
    known[first] = {name: own for name, own in known[first].items() if name != STRIDES}
    known[first][ALIGN] = min(declared, key=lambda align: ir.IntegerAttr(align).value)
    kernel.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(own) for own in known])
    reads = {
        number: [use for use in block.arguments[number].uses if use.owner.operation.name == "vector.transfer_read"]
        for number in group
    }
    with ir.InsertionPoint.at_block_begin(block), kernel.location:
        for number, (part, *_) in group.items():
            view = _view(argument, part.part)
            for use in reads[number]:
                use.owner.operation.operands[use.operand_number] = view


def _array(part: _Slice) -> ir.Value:
    """The array, with the axes made one that the slice has made one."""
    if part.groups is None:
        return part.source
    groups = list(map(list, part.groups))
    return tensor.CollapseShapeOp(collapsed_type(part.source.type, groups), part.source, groups).result


def _retype(function: ir.Operation, number: int, type_: ir.Type) -> None:
    """Gives a function's argument another type in the function's."""
    old = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    inputs = [type_ if position == number else own for position, own in enumerate(old.inputs)]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, old.results))


def _view(array: ir.Value, part: Range) -> ir.Value:
    """A slice of an argument's last axis."""
    type_ = ir.MemRefType(array.type)
    steps, _ = type_.get_strides_and_offset()
    shape = [*type_.shape[:-1], part.count]
    layout = ir.StridedLayoutAttr.get(part.start, [*steps[:-1], steps[-1] * part.step])
    sizes = [
        memref.DimOp(array, arith.ConstantOp(ir.IndexType.get(), axis).result).result
        for axis, extent in enumerate(shape)
        if extent == DYNAMIC
    ]
    ones = [1] * (len(shape) - 1)
    return memref.SubViewOp(
        ir.MemRefType.get(shape, type_.element_type, layout),
        array,
        [],
        sizes,
        [],
        [0] * len(ones) + [part.start],
        shape,
        [*ones, part.step],
    ).result
