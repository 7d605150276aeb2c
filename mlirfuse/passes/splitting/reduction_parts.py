"""Splits a kernel that reduces into one that reduces parts and one that combines them; part of `fuse-split-parts`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from mlir import ir
from mlir.dialects import arith, func, linalg, tensor

from mlirfuse.analysis.kernels import argument_attributes, body
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.maps import projected_axes, projection
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.loops.structure import OpStructure, extents_of_type
from mlirfuse.analysis.reduction_parts import SHAPES, of_parts, written_beside
from mlirfuse.dialect.attributes import ALIGN, GATHER, KERNEL, RESULT_EXTENTS, STRIDES
from mlirfuse.dialect.gathered_view import DEFINITION, Gather, gather_of, gathered_view, source_of, view_attributes
from mlirfuse.passes.splitting.partial_results import combined
from mlirfuse.passes.splitting.tensor_reductions import Beside
from mlirfuse.support.rewriting import backward_slice, clone, defining_op, integer_of, read_values
from mlirfuse.support.strides import attribute_of, entries_of, split
from mlirfuse.tiling.kernel_signature import change_signature, default_attributes, result_extents


@dataclass
class PartsSplit:
    """A kernel and its only launch, and the reduced dimension that is divided.

    Attributes:
        call: the launch.
        kernel: a kernel on tensors for which `obstacle` gives None.
        space: its iteration space.
        structures: its ops.
        dim: the divided dimension, whose extent is static.
        parts: parts of it; its extent where it is kept whole, so that nothing needs a view.
    """

    call: ir.Operation
    kernel: ir.Operation
    space: IterationSpace
    structures: Sequence[OpStructure]
    dim: int
    parts: int
    mapping: dict[ir.Value, ir.Value] = field(default_factory=dict)

    @cached_property
    def _arguments(self) -> list[ir.Value]:
        return list(self.kernel.regions[0].blocks[0].arguments)

    @cached_property
    def _written(self) -> list[ir.Value]:
        """The results of the kernel that the first one writes, part by part."""
        return written_beside(self.kernel, self.space, self.structures)

    @cached_property
    def _first(self) -> list[OpStructure]:
        """The ops of the first kernel: the reductions, results beside them, and what these depend on."""
        ops = of_parts(self.structures, self._written)
        return [s for s in self.structures if s.op in ops]

    @cached_property
    def _reductions(self) -> list[OpStructure]:
        return [s for s in self._first if s.reduction_loops]

    @property
    def _is_whole(self) -> bool:
        """Whether all of the dimension is left to the second kernel."""
        return self.parts == self.space.extents[self.dim]

    @property
    def _each(self) -> int:
        """Elements of a part."""
        return (self.space.extents[self.dim] or 1) // self.parts

    @property
    def _elements(self) -> int | None:
        """Elements that are reduced to one partial result; None where run time has to say."""
        extents = [self.space.extents[d] for d in self.space.reduced_dims]
        return None if None in extents else prod(extent or 1 for extent in extents) // self.parts

    def split(self, name: str) -> tuple[ir.Operation, ir.Operation]:
        """Replaces the kernel and its launch by two; returns the first kernel, and the launch of the second.

        Args:
            name: the symbol of the first kernel; the second keeps the kernel's.
        """
        known = argument_attributes(self.kernel)
        operands = list(self.call.operands)
        first, used = self._kernel_of_parts(name, known)
        with ir.InsertionPoint(self.call), self.call.location:
            views = [self._view(operands[number], self._axis(self._arguments[number])) for number in used]
            results = list(func.CallOp(first, views).results)
            count = len(results) - len(self._written)
            partials, written = results[:count], results[count:]
            self._replace_written(written)
        second = self._combine(operands, known, partials)
        return first.operation, second

    def _kernel_of_parts(self, name: str, known: Sequence[dict[str, ir.Attribute]]) -> tuple[func.FuncOp, list[int]]:
        """The kernel that reduces parts, and the numbers of the arguments that it reads."""
        scalars = self._scalar_ops()
        read = {v for op in [*scalars, *(s.op for s in self._first)] for v in read_values(op)}
        used = [number for number, a in enumerate(self._arguments) if a in read]
        inputs = [self._view_type(self._arguments[number]) for number in used]
        outputs = [self._partial_type(s, value) for s in self._reductions for value in s.op.results]
        outputs += [self._view_type(value) for value in self._written]
        with ir.InsertionPoint(self.kernel), self.kernel.location:
            kernel = func.FuncOp(name, ir.FunctionType.get(inputs, outputs), visibility="private")
        kernel.attributes[KERNEL] = ir.UnitAttr.get()
        layouts = [self._view_layout(self._arguments[number], known[number]) for number in used]
        kernel.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(layout) for layout in layouts])
        block = kernel.add_entry_block()
        self.mapping = dict(zip((self._arguments[number] for number in used), block.arguments, strict=True))
        with ir.InsertionPoint(block), self.kernel.location:
            for op in scalars:
                clone(op, self.mapping)
            for s in self._first:
                self._clone_on_parts(s)
            returned = [self.mapping[value] for s in self._reductions for value in s.op.results]
            returned += [self.mapping[value] for value in self._written]
            func.ReturnOp(returned)
        space, _ = kernel_space(kernel.operation)
        pairs = result_extents(space, list(block.arguments), returned, kernel.operation)
        kernel.attributes[RESULT_EXTENTS] = ir.DenseI64ArrayAttr.get(pairs)
        return kernel, used

    def _scalar_ops(self) -> list[ir.Operation]:
        """The ops that compute the scalars and constants that the first kernel needs."""
        ops = {s.op for s in self._first}
        makers = backward_slice([v for op in ops for v in read_values(op)], body(self.kernel)) - ops
        return [op for op in body(self.kernel) if op in makers and op.name not in SHAPES]

    def _clone_on_parts(self, s: OpStructure) -> None:
        """Clones an op of the first kernel, with a loop over parts beside the loop inside of a part."""
        loops = self.space.loops[s.op]
        position = loops.index(self.dim) if self.dim in loops else None
        if s.op.name != "linalg.generic":
            self._clone_joint(s, position)
            return
        inputs = dict(self.mapping)
        new_maps = []
        dims = self._dims(loops, position)
        for number, m in enumerate(ir.ArrayAttr(s.op.attributes["indexing_maps"])):
            value = s.op.operands[number]
            axes = list(self._axes_on_parts(projected_axes(m), position))
            if s.reduction_loops and position is not None and number >= len(s.op.operands) - len(s.op.results):
                axes.insert(self._parts_axis(s), position)
            new_maps.append(projection(len(dims), axes))
            maker = defining_op(value)
            if value not in inputs and maker is not None and maker.name in SHAPES:
                inputs[value] = self._initial(maker, [None if a is None else dims[a] for a in axes], value)
        new = clone(s.op, inputs)
        new.attributes["indexing_maps"] = ir.ArrayAttr.get(new_maps)
        if position is not None:
            kinds = list(ir.ArrayAttr(s.op.attributes["iterator_types"]))
            outer = ir.Attribute.parse("#linalg.iterator_type<parallel>")
            kinds[position : position + 1] = [outer] if self._is_whole else [outer, kinds[position]]
            new.attributes["iterator_types"] = ir.ArrayAttr.get(kinds)
        self._retype(s, new)

    def _clone_joint(self, s: OpStructure, position: int | None) -> None:
        """Clones a joint reduction, whose loops are the axes of its source."""
        assert position is not None  # reductions are all over the divided dimension
        new = clone(s.op, dict(self.mapping))
        dims = [d for d in s.reduction_loops if d != position or not self._is_whole]
        moved = [d + (d >= position and not self._is_whole) for d in dims]
        new.attributes["dims"] = ir.DenseI64ArrayAttr.get(moved)
        self._retype(s, new)

    def _retype(self, s: OpStructure, new: ir.Operation) -> None:
        """Gives an op's clone the types of parts, and takes its results for those of the op."""
        for value, made in zip(s.op.results, new.results, strict=True):
            made.set_type(self._partial_type(s, value) if s.reduction_loops else self._view_type(value))
            self.mapping[value] = made

    def _parts_axis(self, s: OpStructure) -> int:
        """The axis of a reduction's partial results that counts parts: where the divided dimension was in memory."""
        position = self.space.loops[s.op].index(self.dim)
        return sum(loop is not None and loop < position for loop in s.result_axes[0])

    def _axes_on_parts(self, axes: Sequence[int | None], position: int | None) -> tuple[int | None, ...]:
        """An operand's loops, once the loop at `position` is two."""
        if position is None or self._is_whole:
            return tuple(axes)
        found: list[int | None] = []
        for loop in axes:
            found += (
                [position, position + 1]
                if loop == position
                else [loop if loop is None or loop < position else loop + 1]
            )
        return tuple(found)

    def _dims(self, loops: Sequence[int | None], position: int | None) -> list[tuple[int | None, bool]]:
        """(dimension, whether it counts parts) of each loop of an op on parts."""
        dims = [(d, False) for d in loops]
        if position is not None:
            dims[position : position + 1] = (
                [(self.dim, True)] if self._is_whole else [(self.dim, True), (self.dim, False)]
            )
        return dims

    def _initial(
        self, maker: ir.Operation, dims: Sequence[tuple[int | None, bool] | None], value: ir.Value
    ) -> ir.Value:
        """A `tensor.empty`, or a fill of one, of other dimensions."""
        element = ir.RankedTensorType(value.type).element_type
        extents = [self._extent(*d) if d is not None else 1 for d in dims]
        empty = tensor.EmptyOp(extents, element).result
        if maker.name == "tensor.empty":
            return empty
        return linalg.fill(self.mapping[maker.operands[0]], outs=[empty])

    def _extent(self, dim: int | None, counts_parts: bool) -> ir.Value | int:
        """The extent of a dimension of the first kernel."""
        if dim is None:
            return 1
        if dim == self.dim:
            return self.parts if counts_parts else self._each
        extent = self.space.extents[dim]
        return self._dynamic(dim) if extent is None else extent

    def _dynamic(self, dim: int) -> ir.Value:
        """A dynamic extent, of an argument of the first kernel."""
        for (op, number), axes in self.space.use_axes.items():
            value = op.operands[number]
            if dim in axes and value in self.mapping and value in self._arguments:
                axis, divided = axes.index(dim), self._axis(value)
                moved = axis + (divided is not None and divided < axis and not self._is_whole)
                return tensor.DimOp(self.mapping[value], arith.ConstantOp(ir.IndexType.get(), moved).result).result
        raise AssertionError("obstacle() found no argument with a dynamic extent")

    def _axis(self, value: ir.Value) -> int | None:
        """The axis of a value along the divided dimension, or None."""
        for (op, number), axes in self.space.use_axes.items():
            if op.operands[number] == value and self.dim in axes:
                return axes.index(self.dim)
        axes = self.space.value_axes.get(value, ())
        return axes.index(self.dim) if self.dim in axes else None

    def _view_type(self, value: ir.Value) -> ir.Type:
        """The type of a value on parts."""
        axis = self._axis(value)
        return value.type if axis is None or self._is_whole else self._divided(value.type, axis)

    def _view_layout(self, value: ir.Value, known: dict[str, ir.Attribute]) -> dict[str, ir.Attribute]:
        """The attributes of an argument on parts, of which `known` are those of the whole."""
        axis = self._axis(value)
        if axis is None or self._is_whole or STRIDES not in known:
            return known
        if GATHER in known:
            gather, source = ir.DictAttr(known[GATHER]), {ALIGN: known[ALIGN]} if ALIGN in known else {}
            if "strides" in gather:
                source[STRIDES] = gather["strides"]
            return view_attributes(self._gather(gather, value, axis), source_of(gather), source)
        rank = ir.RankedTensorType(value.type).rank
        entries = split(entries_of(known[STRIDES]), self._groups(rank, axis), extents_of_type(self._view_type(value)))
        return {**known, STRIDES: attribute_of(entries)}

    def _gather(self, attributes: ir.DictAttr | ir.OpAttributeMap, value: ir.Value, axis: int) -> Gather:
        """What a gathered view is of its source where an axis is two."""
        return gather_of(attributes).reshaped(self._divided(value.type, axis).shape)

    @staticmethod
    def _groups(rank: int, axis: int) -> list[list[int]]:
        """The axes of a view in which one axis is two, for each axis."""
        return [[a] if a < axis else [a, a + 1] if a == axis else [a + 1] for a in range(rank)]

    def _divided(self, type_: ir.Type, axis: int) -> ir.RankedTensorType:
        shape = list(ir.RankedTensorType(type_).shape)
        shape[axis : axis + 1] = [self.parts, self._each]
        return ir.RankedTensorType.get(shape, ir.RankedTensorType(type_).element_type)

    def _partial_type(self, s: OpStructure, value: ir.Value) -> ir.RankedTensorType:
        """The type of a reduction's results of all parts."""
        type_ = ir.RankedTensorType(value.type)
        shape = list(type_.shape)
        shape.insert(self._parts_axis(s), self.parts)
        return ir.RankedTensorType.get(shape, type_.element_type)

    def _view(self, value: ir.Value, axis: int | None) -> ir.Value:
        """A host's array with the divided dimension as two."""
        if axis is None or self._is_whole:
            return value
        maker, type_ = defining_op(value), ir.RankedTensorType(value.type)
        if maker is not None and maker.name == DEFINITION.full_name:
            return gathered_view(maker.operands[0], self._gather(maker.attributes, value, axis))
        view = self._divided(type_, axis)
        sizes = [
            tensor.DimOp(value, arith.ConstantOp(ir.IndexType.get(), a).result).result
            for a in range(type_.rank)
            if type_.is_dynamic_dim(a)
        ]
        return tensor.ExpandShapeOp(view, value, self._groups(type_.rank, axis), sizes, list(view.shape)).result

    def _replace_written(self, written: Sequence[ir.Value]) -> None:
        """Has the host read results that the first kernel writes in place of the kernel's own."""
        made = dict(zip(self._written, written, strict=True))
        for value, result in zip(body(self.kernel)[-1].operands, self.call.results, strict=True):
            if value not in made:
                continue
            axis = self._axis(value)
            if axis is None or self._is_whole:
                result.replace_all_uses_with(made[value])
                continue
            rank = ir.RankedTensorType(value.type).rank
            groups = self._groups(rank, axis)
            result.replace_all_uses_with(tensor.CollapseShapeOp(value.type, made[value], groups).result)

    def _combine(
        self, operands: Sequence[ir.Value], known: Sequence[dict[str, ir.Attribute]], partials: Sequence[ir.Value]
    ) -> ir.Operation:
        """Makes the kernel combine partial results in place of its reductions; returns its new launch."""
        block = self.kernel.regions[0].blocks[0]
        waiting = iter([block.add_argument(partial.type, self.kernel.location) for partial in partials])
        reductions = [(s, [next(waiting) for _ in s.op.results]) for s in self._reductions]
        first, least = min(reductions, key=lambda each: len(self._partial_dims(each[0])))
        for s, own in reductions:
            with ir.InsertionPoint(s.op), s.op.location:
                made = combined(s, own, self._parts_axis(s), self._elements, self._beside(s, first, least[0]))
            for old, new in zip(s.op.results, made, strict=True):
                old.replace_all_uses_with(new)
            self._read_extents(s, own[0])
        return change_signature(
            self.call,
            self.kernel,
            [*operands, *partials],
            [*known, *(default_attributes() for _ in partials)],
            [value for value in body(self.kernel)[-1].operands if value not in self._written],
        )

    def _partial_dims(self, s: OpStructure) -> list[int | None]:
        """The dimension along each axis of a reduction's partial results."""
        dims = list(self.space.value_axes[s.op.results[0]])
        dims.insert(self._parts_axis(s), self.dim)
        return dims

    def _beside(self, s: OpStructure, first: OpStructure, partial: ir.Value) -> Beside | None:
        """The partial results of the first reduction, which no other reduction has fewer dimensions than."""
        if s.op == first.op:
            return None
        own = self._partial_dims(s)
        return partial, [None if d is None else own.index(d) for d in self._partial_dims(first)]

    def _read_extents(self, s: OpStructure, partial: ir.Value) -> None:
        """Has extents read from the partial results, so that what is reduced is no argument any more."""
        known = {dim: axis for axis, dim in enumerate(self._partial_dims(s)) if dim not in (None, self.dim)}
        for op in body(self.kernel):
            if op.name != "tensor.dim" or op.operands[0] not in self._arguments:
                continue
            dim = self._dim_of(op)
            if dim in known:
                with ir.InsertionPoint.at_block_begin(self.kernel.regions[0].blocks[0]), op.location:
                    axis = arith.ConstantOp(ir.IndexType.get(), known[dim]).result
                    op.results[0].replace_all_uses_with(tensor.DimOp(partial, axis).result)

    def _dim_of(self, op: ir.Operation) -> int | None:
        """The dimension of the space whose extent a `tensor.dim` of an argument reads."""
        index = integer_of(op.operands[1])
        for (reader, number), axes in self.space.use_axes.items():
            if index is not None and reader.operands[number] == op.operands[0]:
                return axes[index]
        return None
