"""`fuse-collapse-slices`: elements of small matrices, or of other inner axes, are components of one axis."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar, NamedTuple

from mlir import ir
from mlir.dialects import tensor

from mlirfuse.analysis.kernels import body, host_functions
from mlirfuse.analysis.memory.host_views import extents_of, layout_of
from mlirfuse.analysis.memory.shared_arrays import is_part_of_access
from mlirfuse.dialect.attributes import STRIDES
from mlirfuse.passes.slices.sliced_ops import SLICE, Range, ranges_of
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import defining_op, erase_unused
from mlirfuse.tiling.tiles import index

_DYNAMIC = ir.ShapedType.get_dynamic_size()


@dataclass(frozen=True)
class FuseCollapseSlices(Pass):
    """Slices the innermost axes of an array as one axis, where the slice has elements along one of them at most.

    Requires functions of tensor ops. The elements of a batch of 3 by 3 matrices, the two coordinates of paths of 16
    steps and the parts of a packed gate are slices of single indices along several axes. Of the axes as one they are
    its components, every ninth or thirty-second element, which a kernel reads together (`fuse-share-slices`,
    `fuse-merge-loads`). Slices that are runs of memory of 16 bytes or more are left alone, as are axes whose extents
    are known at run time only, and arguments and views that are not contiguous.

    ```mlir
    %0 = tensor.extract_slice %a[0, 1, 2] [64, 1, 1] [1, 1, 1] : tensor<64x3x3xf32> to tensor<64x1x1xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0, 0, 0)>, ...], ...} ins(%0 : tensor<64x1x1xf32>) ...
    ```
    becomes
    ```mlir
    %rows = tensor.collapse_shape %a [[0], [1, 2]] : tensor<64x3x3xf32> into tensor<64x9xf32>
    %0 = tensor.extract_slice %rows[0, 5] [64, 1] [1, 1] : tensor<64x9xf32> to tensor<64x1xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0, 0)>, ...], ...} ins(%0 : tensor<64x1xf32>) ...
    ```
    """

    name: ClassVar[str] = "fuse-collapse-slices"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for function in host_functions(module):
            rows: dict[tuple[ir.Value, int], ir.Value] = {}
            slices = [op for op in body(function) if op.name == SLICE and STRIDES not in layout_of(op.operands[0])]
            found = [(op, part) for op in slices if (part := _component_of(op)) is not None]
            for op, part in found:
                _replace(op, part, rows)
            erase_unused(function)
            if found:
                remarks.applied(self, f"{len(found)} slices of several axes", function)
            else:
                remarks.declined(self, "no slice has single indices of several axes", function)


class _Component(NamedTuple):
    """What a slice has of its innermost axes as one.

    Attributes:
        outer: axes before these.
        part: the elements.
    """

    outer: int
    part: Range


def _component_of(op: ir.Operation) -> _Component | None:
    """The innermost axes of which a slice has elements along one at most, and these elements; None where they are one
    axis, or a run of memory.
    """
    ranges, extents = ranges_of(op), extents_of(op.operands[0])
    if ranges is None:
        return None
    known = [own or Range(0, extent or 0) for own, extent in zip(ranges, extents, strict=True)]
    outer = len(known)
    while outer and extents[outer - 1] is not None and sum(own.count > 1 for own in known[outer - 1 :]) < 2:
        outer -= 1
    while outer < len(known) and ranges[outer] is None:  # rows stay rows
        outer += 1
    if sum(extent != 1 for extent in extents[outer:]) < 2:
        return None
    start, count, step, inner = 0, 1, 1, 1
    for own, extent in zip(reversed(known[outer:]), reversed(extents[outer:]), strict=True):
        if own.count > 1:
            count, step = own.count, own.step * inner
        start += own.start * inner
        inner *= extent or 0
    type_ = ir.RankedTensorType.get([count], ir.RankedTensorType(op.results[0].type).element_type)
    is_run = step == 1 and not is_part_of_access(type_)
    return None if is_run else _Component(outer, Range(start, count, step))


def _replace(op: ir.Operation, component: _Component, rows: dict[tuple[ir.Value, int], ir.Value]) -> None:
    """Puts the slice of the axes as one in the place of a slice of all axes; `rows` has arrays with such an axis."""
    source, outer = op.operands[0], component.outer
    key = source, outer
    if key not in rows:
        maker = defining_op(source)
        place = ir.InsertionPoint.at_block_begin(source.owner) if maker is None else ir.InsertionPoint.after(maker)
        with place, op.location:
            rows[key] = _collapsed(source, outer)
    with ir.InsertionPoint(op), op.location:
        new = _sliced(rows[key], op, component)
        for use in list(op.results[0].uses):
            _read(use.owner.operation, use.operand_number, new, outer)
        type_ = ir.RankedTensorType(op.results[0].type)
        if list(op.results[0].uses):
            groups = _groups(type_, outer)
            sizes = [tensor.dim(new, index(axis)) for axis in range(outer) if type_.is_dynamic_dim(axis)]
            expanded = tensor.ExpandShapeOp(type_, new, groups, sizes, list(type_.shape)).result
            op.results[0].replace_all_uses_with(expanded)


def _read(reader: ir.Operation, number: int, new: ir.Value, outer: int) -> None:
    """Has an op read a slice with one axis in the place of all but the first few, if its loops allow it."""
    if reader.name != "linalg.generic" or number >= len(reader.operands) - len(reader.results):
        return
    maps = [attribute.value for attribute in ir.ArrayAttr(reader.attributes["indexing_maps"])]
    results = list(maps[number].results)
    along = [expr for expr in results[outer:] if not isinstance(expr, ir.AffineConstantExpr)]
    if len(along) > 1:
        return
    inner = along or [ir.AffineExpr.get_constant(0)]
    maps[number] = ir.AffineMap.get(maps[number].n_dims, 0, [*results[:outer], *inner])
    reader.operands[number] = new
    reader.attributes["indexing_maps"] = ir.ArrayAttr.get([ir.AffineMapAttr.get(map_) for map_ in maps])


def _collapsed(source: ir.Value, outer: int) -> ir.Value:
    """An array with all axes but the first few as one."""
    type_ = ir.RankedTensorType(source.type)
    shape = [*list(type_.shape)[:outer], prod(list(type_.shape)[outer:])]
    groups = _groups(type_, outer)
    return tensor.CollapseShapeOp(ir.RankedTensorType.get(shape, type_.element_type), source, groups).result


def _groups(type_: ir.RankedTensorType, outer: int) -> list[list[int]]:
    """The axes of a type, of which all but the first few become one."""
    return [*([axis] for axis in range(outer)), list(range(outer, type_.rank))]


def _sliced(rows: ir.Value, op: ir.Operation, component: _Component) -> ir.Value:
    """The slice `op` of an array whose innermost axes are one."""
    outer, part = component
    offsets, counts, steps = (
        [*list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"]))[:outer], own]
        for name, own in (("offsets", part.start), ("sizes", part.count), ("strides", part.step))
    )
    sizes = [tensor.dim(rows, index(axis)) for axis, count in enumerate(counts) if count == _DYNAMIC]
    type_ = ir.RankedTensorType.get(counts, ir.RankedTensorType(rows.type).element_type)
    return tensor.ExtractSliceOp(type_, rows, [], sizes, [], offsets, counts, steps).result
