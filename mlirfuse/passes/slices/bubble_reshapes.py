"""`fuse-bubble-reshapes`: elementwise results that are reshaped and then sliced are computed in the other shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import ClassVar

from mlir import ir
from mlir.dialects import linalg, tensor

from mlirfuse.analysis.kernels import body, host_functions
from mlirfuse.analysis.loops.maps import projected_axes, projection
from mlirfuse.analysis.memory.host_views import extents_of
from mlirfuse.passes.slices.sliced_ops import SLICE, SlicedOps, Value, is_elementwise, ranges_of
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.extents import extents_of as values_of_extents
from mlirfuse.support.reshapes import reassociation
from mlirfuse.support.rewriting import copy_body, defining_op, erase_dead

EXPAND = "tensor.expand_shape"


@dataclass(frozen=True)
class FuseBubbleReshapes(Pass):
    """Divides the loops of an elementwise op, and what it reads, where a slice of its divided result is no slice of it.

    Requires functions of tensor ops, and static extents of what is divided. The pairs of a rotary embedding are the two
    slices of rows of 128 elements as 64 by 2, and no slices of the rows; a cast in front of the reshape would be stored
    for them, and so would what is computed elementwise behind it. In the other shape it is computed of slices
    (`fuse-bubble-slices`). Reshapes go up to arguments, where they take no time, or to other computed values, which
    `fuse-expand-reshapes` computes in that shape. Declines where slices of the reshaped value are slices of the value,
    and where the op is no elementwise one. Upstream's `populateFoldReshapeOpsByExpansionPatterns` does so for all
    reshapes.

    ```mlir
    %h = linalg.generic ... ins(%x : tensor<8x128xbf16>) outs(... : tensor<8x128xf32>) ...
    %0 = tensor.expand_shape %h [[0], [1, 2]] output_shape [8, 64, 2] : tensor<8x128xf32> into tensor<8x64x2xf32>
    %left = tensor.extract_slice %0[0, 0, 0] [8, 64, 1] [1, 1, 1] : tensor<8x64x2xf32> to tensor<8x64x1xf32>
    ```
    becomes
    ```mlir
    %0 = tensor.expand_shape %x [[0], [1, 2]] output_shape [8, 64, 2] : tensor<8x128xbf16> into tensor<8x64x2xbf16>
    %h = linalg.generic ... ins(%0 : tensor<8x64x2xbf16>) outs(... : tensor<8x64x2xf32>) ...
    %left = tensor.extract_slice %h[0, 0, 0] [8, 64, 1] [1, 1, 1] : tensor<8x64x2xf32> to tensor<8x64x1xf32>
    ```
    """

    name: ClassVar[str] = "fuse-bubble-reshapes"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for function in host_functions(module):
            declined: set[ir.Operation] = set()
            divided = _Divided()
            replaced: list[ir.Operation] = []
            reshape = next(_in_the_way(function), None)
            if reshape is None:
                remarks.declined(self, "no slice of a reshaped value is none of the value", function)
            while reshape is not None:
                if reason := _obstacle(reshape):
                    declined.add(reshape)
                    remarks.declined(self, reason, reshape)
                else:
                    remarks.applied(self, "an elementwise op runs over the dimensions of slices", reshape)
                    replaced += [divided.replace(reshape), reshape]
                reshape = next((each for each in _in_the_way(function) if each not in declined), None)
            erase_dead([op for op in body(function) if op in replaced])


def _in_the_way(function: ir.Operation) -> Iterator[ir.Operation]:
    """The reshapes that divide dimensions of a value, of which a slice is no slice of the value, of arguments too: a
    slice of the reshaped value, or of what is computed of it elementwise.
    """
    sliced, seen = SlicedOps(), set[Value]()
    for slice_ in body(function):
        if slice_.name != SLICE or (ranges := ranges_of(slice_)) is None:
            continue
        open_ = [(slice_.operands[0], ranges)]
        while open_:
            value, ranges = open_.pop()
            if (value, ranges) in seen or not any(ranges):
                continue
            seen.add((value, ranges))
            sources = sliced.sources(value, ranges)
            maker = defining_op(value)
            if sources is None and maker is not None and maker.name == EXPAND:
                yield maker
            open_ += [source for source in sources or () if isinstance(source[0].type, ir.RankedTensorType)]


def _obstacle(reshape: ir.Operation) -> str | None:
    """Why what is reshaped is not computed in the other shape, or None."""
    maker = defining_op(reshape.operands[0])
    if maker is None or not is_elementwise(maker) or list(maker.regions[0].blocks[0].arguments[-1].uses):
        return "what is reshaped is no result of an elementwise op"
    extents = extents_of(reshape.results[0])
    if any(extents[dim] is None for group in reassociation(reshape) if len(group) > 1 for dim in group):
        return "extents that are divided are known at run time only"
    return None


class _Divided:
    """Values in the shapes of reshapes, each made once: values that are read often are on many paths."""

    def __init__(self) -> None:
        self._made: dict[tuple[ir.Value, tuple[int, ...]], ir.Value] = {}

    def replace(self, reshape: ir.Operation) -> ir.Operation:
        """Computes what is reshaped in the other shape, in place of the reshape; returns the op that computed it."""
        maker = reshape.operands[0].owner.operation
        with ir.InsertionPoint.after(maker), maker.location:
            new = self._computed(maker, reshape)
        shape = tuple(ir.RankedTensorType(reshape.results[0].type).shape)
        self._made[reshape.operands[0], shape] = new
        reshape.results[0].replace_all_uses_with(new)
        return maker

    def _computed(self, op: ir.Operation, reshape: ir.Operation) -> ir.Value:
        """The result of an elementwise op in the shape of a reshape, computed over its dimensions."""
        *maps, written = ir.ArrayAttr(op.attributes["indexing_maps"])
        shape, groups = extents_of(reshape.results[0]), reassociation(reshape)
        of_loop = dict(zip(projected_axes(written), groups, strict=True))
        operands, accesses = [], []
        for operand, map_ in zip(list(op.operands)[:-1], maps, strict=True):
            axes = [() if loop is None else tuple(of_loop[loop]) for loop in projected_axes(map_)]
            operands.append(self._of(operand, axes, shape))
            accesses.append(projection(len(shape), [dim for group in axes for dim in group or (None,)]))
        element = ir.RankedTensorType(op.results[0].type).element_type
        init = tensor.EmptyOp(
            _sizes(op.results[0], [[shape[dim] for dim in group] for group in groups]), element
        ).result
        kinds = ir.ArrayAttr.get([ir.Attribute.parse("#linalg.iterator_type<parallel>")] * len(shape))
        identity = projection(len(shape), list(range(len(shape))))
        new = linalg.GenericOp([init.type], operands, [init], ir.ArrayAttr.get([*accesses, identity]), kinds)
        copy_body(op, new.operation)
        return new.results[0]

    def _of(self, operand: ir.Value, axes: Sequence[Sequence[int]], shape: Sequence[int | None]) -> ir.Value:
        """An operand whose axes are divided into dimensions of that shape; an axis along none stays."""
        if not any(len(group) > 1 for group in axes):
            return operand
        sizes = [[shape[dim] for dim in group] or [1] for group in axes]
        ends = [0, *accumulate(map(len, sizes))]
        groups = [list(range(start, end)) for start, end in pairwise(ends)]
        flat = tuple(_static(n) for group in sizes for n in group)
        if (operand, flat) not in self._made:
            type_ = ir.RankedTensorType.get(flat, ir.RankedTensorType(operand.type).element_type)
            maker = defining_op(operand)
            place = ir.InsertionPoint.at_block_begin(operand.owner) if maker is None else ir.InsertionPoint.after(maker)
            with place:
                known = [size for size in _sizes(operand, sizes) if isinstance(size, ir.Value)]
                self._made[operand, flat] = tensor.ExpandShapeOp(type_, operand, groups, known, list(flat)).result
        return self._made[operand, flat]


def _sizes(value: ir.Value, groups: Sequence[Sequence[int | None]]) -> list[int | ir.Value]:
    """Extents of a value whose axes are divided into these, with those of run time as values."""
    undivided = [axis for axis, group in enumerate(groups) if None in group]
    known = dict(zip(undivided, values_of_extents(value, undivided), strict=True))
    return [known[axis] if n is None else n for axis, group in enumerate(groups) for n in group]


def _static(extent: int | None) -> int:
    return ir.ShapedType.get_dynamic_size() if extent is None else extent
