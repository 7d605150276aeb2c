"""`fuse-window-slices`: slices of one array that overlap, as of a stencil, become windows of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import argument_attributes, body, host_functions
from mlirfuse.analysis.memory.host_views import is_host_view
from mlirfuse.dialect.attributes import OPERATION, STRIDES
from mlirfuse.dialect.gathered_view import gathered_view
from mlirfuse.passes.slices.sliced_ops import SLICE, Range, gather_of_ranges, slices_of
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import erase


@dataclass(frozen=True)
class FuseWindowSlices(Pass):
    """Makes slices of one array that together read more than it has, and are equally large, gathered views of it.

    Requires functions of tensor ops. A kernel reads a slice as an array of its own, and cannot know that another
    argument has the same elements. Of gathered views of one array it does: `fuse-share-arguments` passes the array
    once, schedules give a thread runs of neighbours whose windows overlap, and predictions count what is read once
    (`schedule/orders/sliding.py`). Declines where shapes are known at run time only, where a slice is returned or
    reshaped, which takes an array, and for arrays that are not contiguous.

    ```mlir
    %left = tensor.extract_slice %x[0, 0] [64, 510] [1, 1] : tensor<64x512xf32> to tensor<64x510xf32>
    %right = tensor.extract_slice %x[0, 2] [64, 510] [1, 1] : tensor<64x512xf32> to tensor<64x510xf32>
    ```
    becomes
    ```mlir
    %left = "fuse.gathered_view"(%x) {map = affine_map<(i, j) -> (i, j)>, ...} : ... -> tensor<64x510xf32>
    %right = "fuse.gathered_view"(%x) {map = affine_map<(i, j) -> (i, j + 2)>, ...} : ... -> tensor<64x510xf32>
    ```
    """

    name: ClassVar[str] = "fuse-window-slices"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for function in host_functions(module):
            slices = [op for op in body(function) if op.name == SLICE]
            if not slices:
                remarks.declined(self, "no array is sliced", function)
            for source in dict.fromkeys(op.operands[0] for op in slices):
                for group in _groups(source):
                    reason = _obstacle(function, source, group)
                    if reason:
                        remarks.declined(self, reason, next(iter(group)))
                        continue
                    for op, ranges in group.items():
                        _replace(op, ranges)
                    remarks.applied(self, f"{len(group)} slices are windows of one array", function)


def _groups(source: ir.Value) -> Iterator[dict[ir.Operation, list[Range]]]:
    """Slices of a value that have equally many elements, equally far apart, along each axis."""
    found: dict[tuple[tuple[int, int] | None, ...], dict[ir.Operation, list[Range]]] = {}
    shape = ir.RankedTensorType(source.type).shape
    for op, ranges in slices_of(source):
        parts = [own or Range(0, extent) for own, extent in zip(ranges, shape, strict=True)]
        found.setdefault(tuple((part.count, part.step) for part in parts), {})[op] = parts
    yield from found.values()


def _obstacle(function: ir.Operation, source: ir.Value, group: dict[ir.Operation, list[Range]]) -> str | None:
    """Why slices should not become windows, or None."""
    type_ = ir.RankedTensorType(source.type)
    if not type_.has_static_shape:
        return "the array's shape is known at run time only"
    if sum(prod(ir.RankedTensorType(op.results[0].type).shape) for op in group) <= prod(type_.shape):
        return "the slices do not overlap"
    if any(OPERATION in op.attributes for op in group):
        return "fusion is off"
    arguments = list(function.regions[0].blocks[0].arguments)
    if source in arguments:
        if STRIDES in argument_attributes(function)[arguments.index(source)]:
            return "the array is not contiguous"
    elif is_host_view(source.owner.operation):
        return "the array is a view itself"
    if not all(use.owner.operation.name == "linalg.generic" for op in group for use in op.results[0].uses):
        return "a slice is returned or reshaped, which takes an array"
    if any(is_host_view(use.owner.operation) for op in group for use in op.results[0].uses):
        return "a slice is only viewed"
    return None


def _replace(op: ir.Operation, parts: Sequence[Range]) -> None:
    """Makes a slice a gathered view."""
    with ir.InsertionPoint(op), op.location:
        view = gathered_view(op.operands[0], gather_of_ranges(parts))
    op.results[0].replace_all_uses_with(view)
    erase(op)
