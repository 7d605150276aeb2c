"""`fuse-reduce-slices`: rows of which other ops read equal parts are reduced part by part, all parts at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import linalg

from mlirfuse.analysis.arithmetic.combining import Combiner, combined, combiner_of
from mlirfuse.analysis.contractions.contraction import product_of
from mlirfuse.analysis.kernels import body, host_functions
from mlirfuse.analysis.loops.structure import OpStructure, structure_of
from mlirfuse.dialect.attributes import OPERATION
from mlirfuse.errors import PassError
from mlirfuse.passes.slices.sliced_ops import Range, Ranges, SlicedOps, behind, is_elementwise, slices_of
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import clone, erase, erase_dead


@dataclass(frozen=True)
class FuseReduceSlices(Pass):
    """Reduces equal slices of an array together, where other ops that need the result read just these slices.

    Requires functions of tensor ops. A normalised row whose halves are rotated is reduced over its whole length, and
    used over half of it: two iteration spaces, so two kernels. Over the length of a slice they are one: an element of
    the reduction combines one of each slice. Slices are blocks of an axis, or every second, third, ... element of it,
    and cover it. Elementwise ops between the array and the reduction are computed on slices. Declines where other ops
    read the whole array too, and where no op needs both a slice and the reduction's result.

    ```mlir
    %sum = linalg.generic {iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x128xf32>) ... {
    ^bb0(%a: f32, %out: f32):
      %0 = arith.addf %out, %a : f32
      linalg.yield %0 : f32
    } -> tensor<64xf32>
    %left = tensor.extract_slice %x[0, 0] [64, 64] [1, 1] : tensor<64x128xf32> to tensor<64x64xf32>
    %right = tensor.extract_slice %x[0, 64] [64, 64] [1, 1] : tensor<64x128xf32> to tensor<64x64xf32>
    ```
    becomes
    ```mlir
    %sum = linalg.generic {iterator_types = ["parallel", "reduction"]} ins(%left, %right : ...) ... {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %0 = arith.addf %a, %b : f32
      %1 = arith.addf %out, %0 : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    ```
    """

    name: ClassVar[str] = "fuse-reduce-slices"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for function in host_functions(module):
            while isinstance(change := _next(function), _Change):
                remarks.applied(self, change.apply(), function)
                erase_dead([op for op in body(function) if op.results])
            for reason in change:
                remarks.declined(self, reason, function)


Reduction = tuple[ir.Operation, int, Combiner]
"""An op that reduces, which of its loops runs along the sliced axis, and how it combines."""


@dataclass(frozen=True)
class _Change:
    """Reductions of an array, along an axis that slices cover in parts."""

    axis: int
    parts: list[Ranges]
    reductions: list[Reduction]

    def apply(self) -> str:
        """Makes the reductions combine the parts; says so."""
        sliced = SlicedOps()
        for op, loop, combiner in self.reductions:
            _reduce_parts(op, loop, combiner, self.parts, self.axis, sliced)
        return f"{len(self.reductions)} reduction(s) combine {len(self.parts)} slices of an axis"


def _next(function: ir.Operation) -> _Change | list[str]:
    """The first array with something to change; or why there is none. A change erases ops, values with them."""
    reasons = []
    for value in _values(function):
        if not (ways := _parts(value)):
            continue
        axis, parts = ways[0]
        reductions = _reductions(value, axis)
        if isinstance(reductions, str):
            reasons.append(reductions)
            continue
        slices = [op for op, ranges in slices_of(value) if ranges in parts]
        if _meet(slices, [op for op, _, _ in reductions]):
            return _Change(axis, parts, reductions)
        reasons.append("no op needs both a slice and a reduction of the array")
    return reasons or ["no array is read in equal slices that cover an axis"]


def _values(function: ir.Operation) -> list[ir.Value]:
    """All tensors of a function."""
    values = [*function.regions[0].blocks[0].arguments, *(value for op in body(function) for value in op.results)]
    return [value for value in values if isinstance(value.type, ir.RankedTensorType)]


def _parts(value: ir.Value) -> list[tuple[int, list[Ranges]]]:
    """The axes of a value that slices of it cover in equal parts, each with the ranges of the parts."""
    shape = ir.RankedTensorType(value.type).shape
    known = {ranges for _, ranges in slices_of(value)}
    found = []
    for axis, extent in enumerate(shape):
        own = [r[axis] for r in known if r[axis] is not None and not any(r[:axis]) and not any(r[axis + 1 :])]
        for count in sorted({extent // part.count for part in own if part is not None and part.count}):
            each = extent // count
            if count < 2 or each * count != extent or count > len(own):
                continue
            blocks = [Range(number * each, each) for number in range(count)]
            interleaved = [Range(number, each, count) for number in range(count)]
            found += [
                (axis, [tuple(part if a == axis else None for a in range(len(shape))) for part in parts])
                for parts in (blocks, interleaved)
                if set(parts) <= set(own)
            ]
    return found


def _reductions(value: ir.Value, axis: int) -> list[Reduction] | str:
    """The ops that reduce an axis of a value, or of what is computed of its elements; or why there are none to change:
    others read the value whole.
    """
    found: dict[ir.Operation, Reduction] = {}
    open_ = [(value, axis)]
    while open_:
        source, along = open_.pop()
        for use in source.uses:
            op, number = use.owner.operation, use.operand_number
            if op.name in ("tensor.extract_slice", "tensor.dim"):
                continue
            structure = structure_of(op) if op.name == "linalg.generic" and OPERATION not in op.attributes else None
            axes = structure.operand_axes[number] if structure is not None else None
            loop = axes[along] if axes is not None else None
            if structure is None or loop is None:
                return "an op reads the whole array in another way"
            if is_elementwise(op):
                open_.append((op.results[0], structure.result_axes[0].index(loop)))
            elif (reduction := _reduction(structure, loop)) is not None:
                found[op] = reduction
            else:
                return "an op reads the whole array, and does not reduce the axis"
    return list(found.values()) or "no op reduces the array"


def _reduction(structure: OpStructure, loop: int) -> Reduction | None:
    """An op that reduces a loop, and multiplies no matrices."""
    op = structure.op
    if loop not in structure.reduction_loops or len(op.results) != 1 or product_of(structure.op) is not None:
        return None
    try:
        return op, loop, combiner_of(structure)
    except PassError:
        return None


def _meet(slices: Sequence[ir.Operation], reductions: Sequence[ir.Operation]) -> bool:
    """Whether an op needs a slice and the result of a reduction."""
    needing = [set(behind(ops, lambda op: op.name == "linalg.generic")) for ops in (slices, reductions)]
    return not needing[0].isdisjoint(needing[1])


def _reduce_parts(
    op: ir.Operation, loop: int, combiner: Combiner, parts: Sequence[Ranges], axis: int, sliced: SlicedOps
) -> None:
    """Replaces a reduction by one that combines the elements of all parts in each step."""
    structure = structure_of(op)
    assert structure is not None  # checked by _reductions
    *inputs, init = op.operands
    *maps, written = ir.ArrayAttr(op.attributes["indexing_maps"])
    values: list[ir.Value] = []
    for part in parts:
        own = part[axis]
        for value, axes in zip(inputs, structure.operand_axes, strict=False):
            along = [own if axes is not None and each == loop else None for each in axes or ()]
            values.append(sliced.of(value, tuple(along)) if any(along) else value)
    with ir.InsertionPoint(op), op.location:
        new = linalg.GenericOp(
            [op.results[0].type],
            values,
            [init],
            ir.ArrayAttr.get([*(maps * len(parts)), written]),
            op.attributes["iterator_types"],
        ).operation
    old = op.regions[0].blocks[0]
    types = [ir.RankedTensorType(v.type).element_type if _is_tensor(v) else v.type for v in (*values, init)]
    block = new.regions[0].blocks.append(*types, arg_locs=[op.location] * len(types))
    arguments = list(block.arguments)
    with ir.InsertionPoint(block), op.location:
        elements = []
        for number in range(len(parts)):
            own_arguments = arguments[number * len(inputs) : (number + 1) * len(inputs)]
            mapping = dict(zip(list(old.arguments)[:-1], own_arguments, strict=True))
            for inner in [each.operation for each in old.operations][:-1]:
                if inner != combiner.op:
                    clone(inner, mapping)
            elements.append(mapping.get(combiner.element, combiner.element))
        accumulator = old.arguments[len(old.arguments) - 1]
        total = elements[0]
        for element in elements[1:]:
            total = combined(combiner, {accumulator: total, combiner.element: element})
        linalg.YieldOp([combined(combiner, {accumulator: arguments[-1], combiner.element: total})])
    op.results[0].replace_all_uses_with(new.results[0])
    erase(op)


def _is_tensor(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType)
