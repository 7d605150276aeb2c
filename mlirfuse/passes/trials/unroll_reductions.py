"""`fuse-unroll-reductions`: reductions of a few elements become elementwise ops, for a kernel that reduces others."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf, prod
from typing import ClassVar

from mlir import ir
from mlir.dialects import linalg, tensor

from mlirfuse.analysis.arithmetic.combining import Combiner, combined, combiner_of
from mlirfuse.analysis.arithmetic.multiply_add import allow_contraction, is_wide, only_summed
from mlirfuse.analysis.contractions.contraction import product_of
from mlirfuse.analysis.kernels import body, host_functions
from mlirfuse.analysis.loops.maps import projection
from mlirfuse.analysis.loops.structure import OpStructure, structure_of
from mlirfuse.dialect.attributes import OPERATION
from mlirfuse.errors import PassError
from mlirfuse.passes.joins.joined_results import parts_of_result
from mlirfuse.passes.slices.sliced_ops import Range, SlicedOps, is_elementwise
from mlirfuse.passes.trials.trial import Comparison, Trial, needing, surrounded
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.connected import connected
from mlirfuse.support.rewriting import clone, defining_op, erase, erase_dead, ops_named
from mlirfuse.tiling.tiles import index

MOST_TERMS = 8
"""Elements that are combined in one op, at most: each takes what it is computed of."""

MOST_SLICES = 128
"""Slices that are computed of what reductions need, at most: each is an op, and compiling takes milliseconds an op."""


@dataclass(frozen=True)
class FuseUnrollReductions(Pass):
    """Unrolls a reduction that one over other loops needs, or a joined result, where kernels then take less time.

    Requires functions of tensor ops. Ops share a kernel if they reduce the same dimensions: of a sum over pairs of
    points of a function of their distances, the sum over three coordinates is a kernel of its own, which writes a
    distance for each pair. As an elementwise op on slices of one coordinate each it has no loop that reduces. Nor do
    the loops of a sum lie between what is computed of it and the places where a kernel stores that side by side, as the
    components of vectors that are solved for (`fuse-scatter-parts`). What the reduction reads is computed on slices
    too, and products that it adds up may stay parts of multiply-adds. Both forms, with the ops that they read and those
    that need the result, are scheduled on trial.

    ```mlir
    %d = linalg.generic {iterator_types = ["parallel", "parallel", "reduction"]} ins(%r : tensor<512x512x3xf32>) ... {
    ^bb0(%a: f32, %out: f32):
      %0 = arith.addf %out, %a : f32
      linalg.yield %0 : f32
    } -> tensor<512x512xf32>
    ```
    becomes
    ```mlir
    %x = tensor.extract_slice %r[0, 0, 0] [512, 512, 1] [1, 1, 1] : tensor<512x512x3xf32> to tensor<512x512x1xf32>
    ...
    %d = linalg.generic {iterator_types = ["parallel", "parallel"]} ins(%x, %y, %z : ...) ... {
    ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
      %0 = arith.addf %zero, %a : f32
      %1 = arith.addf %0, %b : f32
      %2 = arith.addf %1, %c : f32
      linalg.yield %2 : f32
    } -> tensor<512x512xf32>
    ```

    Reductions that need one another, as those of a loop's steps do, are unrolled together, or those of one shape.

    Attributes:
        always: whether such reductions are unrolled whatever is predicted.
    """

    name: ClassVar[str] = "fuse-unroll-reductions"
    always: bool = False

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for function in host_functions(module):
            found = [short for op in body(function) if (short := _ShortReduction.of(op)) is not None]
            if not found:
                remarks.declined(self, "no reduction of a few elements feeds one over other loops or a join", function)
            for group in connected(found, lambda short: {short.op, *needing([short.op])}):
                chosen: Sequence[_ShortReduction] | None = group
                what, why = _described(group), ""
                if not self.always:
                    before, after, chosen = _fastest(module, function, group)
                    why = f" predicted to take {after:.1f} us unrolled, {before:.1f} us as it is"
                    if after == inf:
                        why = f" not unrolled: over {MOST_SLICES} slices, or an extent that nothing reads"
                if chosen is None:
                    remarks.declined(self, what + why, group[0].op)
                    continue
                remarks.applied(self, what + why, group[0].op)
                _unroll(chosen)
            erase_dead([op for op in body(function) if op.results])


def _described(group: Sequence[_ShortReduction]) -> str:
    """The subject and the verb of a remark about reductions."""
    if len(group) == 1:
        return f"a reduction of {group[0].terms} elements is"
    return f"{len(group)} reductions of a few elements are"


def _fastest(
    module: ir.Operation, function: ir.Operation, group: Sequence[_ShortReduction]
) -> tuple[float, float, Sequence[_ShortReduction] | None]:
    """Predicted microseconds as reductions are and with some unrolled, and these if that is then clearly faster.

    Steps of a loop reduce alike and are unrolled together: all of a group's reductions, or those of one shape.
    """
    ops = surrounded([short.op for short in group])
    alike: dict[Hashable, list[_ShortReduction]] = {}
    for short in group:
        alike.setdefault((short.structure.operand_extents[0], *_reduced(short.structure)), []).append(short)
    forms = [group, *(alike.values() if len(alike) > 1 else ())]
    before = Trial(module, function, ops).microseconds()
    times = [_unrolled_microseconds(Trial(module, function, ops), form) for form in forms]
    found = Comparison(before, min(times))
    return before, found.after, forms[times.index(found.after)] if found.gains else None


def _unrolled_microseconds(trial: Trial, found: Sequence[_ShortReduction]) -> float:
    """Predicted microseconds of a trial with reductions unrolled; infinite where that takes too many slices."""
    copies = [_ShortReduction.any(trial.copies[short.op]) for short in found]
    is_small = _unroll([short for short in copies if short is not None], MOST_SLICES)
    return trial.microseconds() if is_small else inf


def _unroll(found: Sequence[_ShortReduction], most: float = inf) -> bool:
    """Replaces reductions, in program order, by elementwise ops on slices, of which all share the same.

    Returns:
        Whether that took at most so many slices; else it ends early.
    """
    sliced = SlicedOps()
    done: list[ir.Operation] = []
    for short in found:
        if sliced.count <= most:
            short.replace(sliced)
            done.append(short.op)
    for op in done:  # not before, as slices of their results are known by these
        erase(op)
    return sliced.count <= most


@dataclass(frozen=True)
class _ShortReduction:
    """A reduction of a few elements.

    Attributes:
        structure: of the op.
        extents: of its loops; None where dynamic, which those that reduce are not.
        combiner: how it combines elements.
        start: the number that it starts from.
    """

    structure: OpStructure
    extents: list[int | None]
    combiner: Combiner
    start: ir.Value

    @property
    def op(self) -> ir.Operation:
        return self.structure.op

    @property
    def terms(self) -> int:
        """Elements that are combined."""
        return prod(self._extent(loop) for loop in self.structure.reduction_loops)

    @classmethod
    def of(cls, op: ir.Operation) -> _ShortReduction | None:
        """The reduction that an op is; None for another op, or where no reduction over other loops needs the result."""
        found = cls.any(op)
        if found is None:
            return None
        behind = needing([op])
        others = [each for each in behind if not is_elementwise(each)]
        return found if any(not _is_alike(op, each) for each in others) or any(map(parts_of_result, behind)) else None

    @classmethod
    def any(cls, op: ir.Operation) -> _ShortReduction | None:
        """The reduction that an op is, whatever needs its result; None for another op."""
        if op.name != "linalg.generic" or len(op.results) != 1 or OPERATION in op.attributes:
            return None
        structure = structure_of(op)
        if structure is None or not structure.reduction_loops or product_of(op) is not None:
            return None
        *inputs, init = op.operands
        axes = structure.operand_axes[:-1]
        if None in axes or not all(isinstance(value.type, ir.RankedTensorType) for value in inputs):
            return None
        extents = _extents(structure)
        start = defining_op(init)
        if any(extents[loop] is None for loop in structure.reduction_loops):
            return None
        if start is None or start.name != "linalg.fill":
            return None
        try:
            found = cls(structure, extents, combiner_of(structure), start.operands[0])
        except PassError:
            return None
        return found if found.terms <= MOST_TERMS else None

    def replace(self, sliced: SlicedOps) -> None:
        """Has an elementwise op on slices computed in place of the reduction, which stays without uses."""
        structure, op = self.structure, self.op
        *inputs, _ = op.operands
        self._allow_contraction()
        kept = [loop for loop in range(structure.loop_count) if loop not in structure.reduction_loops]
        values: list[ir.Value] = []
        for tap in product(*(range(self._extent(loop)) for loop in structure.reduction_loops)):
            at = dict(zip(structure.reduction_loops, tap, strict=True))
            for value, axes in zip(inputs, structure.operand_axes, strict=False):
                values.append(sliced.of(value, tuple(self._one(loop, at) for loop in axes or ())))
        maps = [
            projection(len(kept), [kept.index(loop) if loop in kept else None for loop in axes or ()])
            for axes in structure.operand_axes[:-1]
        ]
        result = ir.RankedTensorType(op.results[0].type)
        written = projection(len(kept), [kept.index(loop) for loop in structure.result_axes[0] if loop is not None])
        kinds = [ir.Attribute.parse("#linalg.iterator_type<parallel>")] * len(kept)
        with ir.InsertionPoint(op), op.location:
            old = op.operands[len(op.operands) - 1]
            sizes = [tensor.dim(old, index(d)) for d in range(result.rank) if result.is_dynamic_dim(d)]
            init = ir.Operation.create("tensor.empty", [result], sizes).results[0]
            all_maps = ir.ArrayAttr.get([*(maps * self.terms), written])
            new = linalg.GenericOp([result], values, [init], all_maps, ir.ArrayAttr.get(kinds)).operation
        self._fill(new, len(inputs))
        op.results[0].replace_all_uses_with(new.results[0])

    def _allow_contraction(self) -> None:
        """Marks products that only sums read: `fuse-multiply-add` would of a reduction, but of few elementwise sums."""
        makers = [maker for value in self.op.operands if (maker := defining_op(value)) is not None]
        for factor in [each for maker in makers for each in ops_named(maker, "arith.mulf")]:
            if is_wide(factor.results[0].type) and only_summed(factor.results[0]):
                allow_contraction(factor)

    def _one(self, loop: int | None, at: dict[int, int]) -> Range | None:
        """What a term reads along an axis."""
        return Range(at[loop], 1) if loop in at and self._extent(loop) > 1 else None

    def _extent(self, loop: int) -> int:
        """The extent of a loop that reduces."""
        extent = self.extents[loop]
        assert extent is not None  # checked by `any`
        return extent

    def _fill(self, new: ir.Operation, inputs: int) -> None:
        """The body of the elementwise op: that of the reduction for each term, one after the other."""
        old = self.op.regions[0].blocks[0]
        types = [ir.RankedTensorType(value.type).element_type for value in new.operands]
        block = new.regions[0].blocks.append(*types, arg_locs=[self.op.location] * len(types))
        accumulator, total = old.arguments[len(old.arguments) - 1], self.start
        with ir.InsertionPoint(block), self.op.location:
            for term in range(self.terms):
                own = list(block.arguments)[term * inputs : (term + 1) * inputs]
                mapping = dict(zip(list(old.arguments)[:-1], own, strict=True))
                for inner in [each.operation for each in old.operations][:-1]:
                    if inner != self.combiner.op:
                        clone(inner, mapping)
                element = mapping.get(self.combiner.element, self.combiner.element)
                total = combined(self.combiner, {accumulator: total, self.combiner.element: element})
            linalg.YieldOp([total])


def _extents(structure: OpStructure) -> list[int | None]:
    """The extents of an op's loops, as far as an operand or the result has a number for them."""
    found: list[int | None] = [None] * structure.loop_count
    pairs = [*zip(structure.operand_axes, structure.operand_extents, strict=True)]
    pairs += zip(structure.result_axes, structure.result_extents, strict=True)
    for axes, extents in pairs:
        for loop, extent in zip(axes or (), extents, strict=False):
            if loop is not None and extent is not None:
                found[loop] = max(found[loop] or 1, extent)
    return found


def _is_alike(op: ir.Operation, other: ir.Operation) -> bool:
    """Whether another reduction has as many elements to reduce in the same axes, so that both share a kernel."""
    structures = [structure_of(each) for each in (op, other)]
    return (
        structures[0] is not None and structures[1] is not None and _reduced(structures[0]) == _reduced(structures[1])
    )


def _reduced(structure: OpStructure) -> list[tuple[int, int | None]]:
    """The axes of the first operand that are reduced, and their extents."""
    axes = structure.operand_axes[0] or ()
    return [(n, structure.operand_extents[0][n]) for n, loop in enumerate(axes) if loop in structure.reduction_loops]
