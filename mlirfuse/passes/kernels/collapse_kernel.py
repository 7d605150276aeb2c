"""Rewrites a tensor kernel so that mergeable dimensions are one; part of `fuse-collapse-dims`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

from mlir import ir
from mlir.dialects import arith, linalg, tensor

from mlirfuse.analysis.kernels import argument_attributes, body
from mlirfuse.analysis.loops.collapsing import Axes, Pair, runs
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.maps import projected_axes, projection
from mlirfuse.analysis.loops.structure import is_constant
from mlirfuse.analysis.memory.strided_views import merged_strides
from mlirfuse.dialect.attributes import RESULT_EXTENTS, STRIDES
from mlirfuse.passes.kernels.merged_extents import ExtentRead, extent_reads, space_dim
from mlirfuse.support.reshapes import reassociation
from mlirfuse.support.rewriting import defining_op, erase_dead
from mlirfuse.tiling.kernel_signature import set_type

DYNAMIC = ir.ShapedType.get_dynamic_size()

Groups = list[list[int]]


@dataclass
class KernelCollapser:
    """Rewrites a kernel in place.

    Attributes:
        kernel: a kernel function of `linalg.generic`s, transposes, reshapes by extents of 1 and constants.
        space: its iteration space before.
        pairs: the dimensions to merge, as `mergeable_pairs` gives them.
    """

    kernel: ir.Operation
    space: IterationSpace
    pairs: frozenset[Pair]

    def __post_init__(self) -> None:
        self.heads = {b: a for a, b in self.pairs}
        self.arguments = list(self.kernel.regions[0].blocks[0].arguments)
        # For each argument, the dimensions of its axes at each read: the rows of a matrix that is multiplied by itself
        # run along two dimensions. `mergeable_pairs` groups the axes alike at all reads.
        self.readings: dict[ir.Value, list[Axes]] = {}
        for (op, number), axes in self.space.use_axes.items():
            if op.operands[number] in self.arguments:
                self.readings.setdefault(op.operands[number], []).append(axes)
        # What stands for an operand that nobody reads, by its dimensions: ops that share it share their loops.
        self.shapes: dict[tuple[ir.Value, tuple[int, ...]], ir.Value] = {}

    def collapse(self) -> tuple[dict[int, list[list[int]]], list[list[list[int]]]]:
        """Rewrites the kernel; returns the groups of merged axes of each tensor argument, and of each result."""
        ops = body(self.kernel)
        # An op's hash depends on its types, so nothing is looked up by op once these change.
        known = [(op, self.space.loops.get(op, ()), self._source_axes(op), list(map(_type, op.operands))) for op in ops]
        returned = [self.space.value_axes[v] for v in ops[-1].operands]
        groups = {i: runs(self.readings[a][0], self.pairs) for i, a in enumerate(self.arguments) if a in self.readings}
        reads = [(read, [space_dim(dim, self.space) for dim in read.dims]) for read in extent_reads(self.kernel)]
        self._merge_strides(groups)
        for i, merged in groups.items():
            self.arguments[i].set_type(collapsed_type(self.arguments[i].type, merged))
        for read, dims in reads:
            self._read_merged(read, dims)
        for op, loops, source_axes, types in known[:-1]:
            with ir.InsertionPoint(op), op.location:
                if op.name == "linalg.generic":
                    self._generic(op, loops, types)
                elif op.name == "linalg.transpose":
                    self._transpose(op, types)
                elif op.name in ("tensor.expand_shape", "tensor.collapse_shape"):
                    self._reshape(op, source_axes)
        erase_dead([op for op in body(self.kernel) if op.results])
        set_type(self.kernel)
        outputs = [value.type for value in ops[-1].operands]
        extents = [n for t, axes in zip(outputs, returned, strict=True) for n in self._result_extents(t, axes)]
        self.kernel.attributes[RESULT_EXTENTS] = ir.DenseI64ArrayAttr.get(extents)
        return groups, [runs(axes, self.pairs) for axes in returned]

    def _merge_strides(self, groups: dict[int, Groups]) -> None:
        """Gives arguments that are not contiguous the strides of their merged axes."""
        attributes = argument_attributes(self.kernel)
        for i, merged in groups.items():
            if STRIDES in attributes[i]:
                attributes[i][STRIDES] = merged_strides(self.arguments[i].type, attributes[i], merged)
        if any(STRIDES in known for known in attributes):
            self.kernel.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(known) for known in attributes])

    def _read_merged(self, read: ExtentRead, dims: Sequence[int | None]) -> None:
        """Has an op compute with extents of merged dimensions over the static ones that they are merged with."""
        factors, done = list(read.others), set[int]()
        top = read.user
        while top.parent.operation != self.kernel:
            top = top.parent.operation
        for dim, along in zip(read.dims, dims, strict=True):
            if along is None:
                factors.append(dim.results[0])
                continue
            first = self._first(along)
            extents = self._extents(first)
            if first in done and extents.count(None) > 1:
                continue  # the merged extent has this factor too
            done.add(first)
            with ir.InsertionPoint(top), read.user.location:
                merged = self._size(first)
            static = prod(extent for extent in extents if extent is not None)
            with ir.InsertionPoint(read.user), read.user.location:
                divisor = arith.ConstantOp(ir.IndexType.get(), static).result
                factors.append(merged if static == 1 else arith.DivUIOp(merged, divisor).result)
        with ir.InsertionPoint(read.user), read.user.location:
            read.user.operands[read.operand] = reduce(lambda a, b: arith.MulIOp(a, b).result, factors)

    def _source_axes(self, op: ir.Operation) -> Axes:
        """The dimensions of an op's first operand, where it is a tensor that holds data."""
        source = op.operands[0] if op.operands else None
        return self.space.use_axes.get((op, 0)) or self.space.value_axes.get(source, ())

    def _generic(self, op: ir.Operation, loops: Axes, types: Sequence[ir.Type]) -> None:
        kept = [i for i, d in enumerate(loops) if d is None or d not in self.heads]
        number = {loop: new for new, loop in enumerate(kept)}
        maps = [projected_axes(m) for m in ir.ArrayAttr(op.attributes["indexing_maps"])]
        kinds = list(ir.ArrayAttr(op.attributes["iterator_types"]))
        inputs = len(op.operands) - len(op.results)
        new_maps = []
        for position, axes in enumerate(maps):
            dims = tuple(None if loop is None else loops[loop] for loop in axes)
            retyped = self._is_retyped(op.operands[position], dims)
            if position < inputs and self._is_shape_only(op, position) and not retyped:
                along = self._replace_constant(op, position, dims)
                heads: list[int | None] = [loops.index(dim) for dim in along]
            else:
                merged = runs(dims, self.pairs)
                heads = [axes[group[0]] for group in merged]
                if position >= inputs:
                    self._retype_init(op, position, types[position], merged, dims)
            new_maps.append(projection(len(kept), [None if loop is None else number[loop] for loop in heads]))
        op.attributes["indexing_maps"] = ir.ArrayAttr.get(new_maps)
        op.attributes["iterator_types"] = ir.ArrayAttr.get([kinds[loop] for loop in kept])
        for result in op.results:
            result.set_type(collapsed_type(result.type, runs(self.space.value_axes[result], self.pairs)))

    def _transpose(self, op: ir.Operation, types: Sequence[ir.Type]) -> None:
        permutation = list(ir.DenseI64ArrayAttr(op.attributes["permutation"]))
        axes = self.space.value_axes[op.results[0]]
        result = runs(axes, self.pairs)
        source_axes: list[int | None] = [None] * len(permutation)
        for axis, comes_from in enumerate(permutation):
            source_axes[comes_from] = axes[axis]
        source = {group[0]: i for i, group in enumerate(runs(tuple(source_axes), self.pairs))}
        op.attributes["permutation"] = ir.DenseI64ArrayAttr.get([source[permutation[group[0]]] for group in result])
        self._retype_init(op, 1, types[1], result, axes)
        op.results[0].set_type(collapsed_type(op.results[0].type, result))

    def _reshape(self, op: ir.Operation, source_axes: Axes) -> None:
        """Replaces a reshape that adds or drops extents of 1 by one between the merged shapes."""
        expands = op.name == "tensor.expand_shape"
        result_axes = self.space.value_axes[op.results[0]]
        few_axes, many_axes = (source_axes, result_axes) if expands else (result_axes, source_axes)
        old = reassociation(op)
        many = runs(many_axes, self.pairs)
        new_axis = {axis: i for i, group in enumerate(many) for axis in group}
        groups = [
            sorted({new_axis[axis] for few in group for axis in old[few]}) for group in runs(few_axes, self.pairs)
        ]
        type_ = collapsed_type(op.results[0].type, runs(result_axes, self.pairs))
        if expands:
            sizes = [self._size(result_axes[g[0]]) for g, n in zip(many, type_.shape, strict=True) if n == DYNAMIC]
            new = tensor.ExpandShapeOp(type_, op.operands[0], groups, sizes, list(type_.shape)).result
        else:
            new = tensor.CollapseShapeOp(type_, op.operands[0], groups).result
        op.results[0].replace_all_uses_with(new)

    def _is_retyped(self, value: ir.Value, dims: Axes) -> bool:
        """Whether a value with these dimensions has its merged shape anyway: it is computed here, or read from memory.

        An op that reads no element of such a value keeps it: nothing else may tie the op's loops to the others'.
        """
        if is_constant(value):
            return False
        return self.space.value_axes.get(value) == dims or dims in self.readings.get(value, ())

    def _is_shape_only(self, op: ir.Operation, position: int) -> bool:
        """Whether no element of an operand is in memory: the operand is a fill, or the body does not read it."""
        if is_constant(op.operands[position]):
            return True
        return op.name == "linalg.generic" and not list(op.regions[0].blocks[0].arguments[position].uses)

    def _replace_constant(self, op: ir.Operation, position: int, dims: Axes) -> list[int]:
        """Replaces an input used only for its shape by one of merged dimensions; returns the first dimension of each.

        The input is not in memory, so that its axes may have any order.
        """
        along = list(dict.fromkeys(self._first(dim) for dim in dims if dim is not None))
        known = op.operands[position], tuple(along)
        if known in self.shapes:
            op.operands[position] = self.shapes[known]
            return along
        shape = [self._extent(dim) for dim in along]
        element = ir.RankedTensorType(op.operands[position].type).element_type
        self._replace(op, position, ir.RankedTensorType.get(shape, element), along)
        self.shapes[known] = op.operands[position]
        return along

    def _retype_init(
        self, op: ir.Operation, position: int, type_: ir.Type, groups: list[list[int]], dims: Axes
    ) -> None:
        """Replaces an init of that type by one of the merged shape, where it is used for its shape only."""
        if not self._is_shape_only(op, position):
            return
        self._replace(op, position, collapsed_type(type_, groups), [dims[group[0]] for group in groups])

    def _replace(
        self, op: ir.Operation, position: int, type_: ir.RankedTensorType, along: Sequence[int | None]
    ) -> None:
        """Replaces an operand by a fill with the same number, or by a `tensor.empty` where the operand is no fill."""
        maker = defining_op(op.operands[position])
        sizes = [self._size(dim) for dim, extent in zip(along, type_.shape, strict=True) if extent == DYNAMIC]
        value = ir.Operation.create("tensor.empty", results=[type_], operands=sizes).results[0]
        if maker is not None and maker.name == "linalg.fill":
            value = linalg.fill(maker.operands[0], outs=[value])
        op.operands[position] = value

    def _first(self, dim: int) -> int:
        """The first dimension of the merged one that contains `dim`."""
        while dim in self.heads:
            dim = self.heads[dim]
        return dim

    def _extent(self, first: int) -> int:
        """The extent of the merged dimension that `first` begins."""
        merged = self._extents(first)
        return DYNAMIC if None in merged else prod(extent for extent in merged if extent is not None)

    def _extents(self, first: int) -> list[int | None]:
        """The extents of the dimensions that are merged to the one that `first` begins."""
        return [extent for d, extent in enumerate(self.space.extents) if self._first(d) == first]

    def _source(self, dim: int | None) -> tuple[int, int]:
        """An (argument, axis) pair with the extent of the merged dimension that begins with `dim`."""
        for argument, readings in self.readings.items():
            for axes in readings:
                for axis, group in enumerate(runs(axes, self.pairs)):
                    if axes[group[0]] == dim:
                        return self.arguments.index(argument), axis
        raise AssertionError(f"no argument runs along dimension {dim}, whose extent is dynamic")

    def _size(self, dim: int | None) -> ir.Value:
        argument, axis = self._source(dim)
        index = arith.ConstantOp(ir.IndexType.get(), axis).result
        return tensor.DimOp(self.arguments[argument], index).result

    def _result_extents(self, type_: ir.Type, axes: Axes) -> list[int]:
        return [
            n
            for group, extent in zip(runs(axes, self.pairs), ir.RankedTensorType(type_).shape, strict=True)
            if extent == DYNAMIC
            for n in self._source(axes[group[0]])
        ]


def _type(value: ir.Value) -> ir.Type:
    return value.type


def collapsed_type(type_: ir.Type, groups: Sequence[Sequence[int]]) -> ir.RankedTensorType:
    """A tensor type with each group of its axes made one."""
    source = ir.RankedTensorType(type_)
    shape = []
    for group in groups:
        extent = 1
        for axis in group:
            n = source.shape[axis]
            extent = DYNAMIC if DYNAMIC in (n, extent) else extent * n
        shape.append(extent)
    return ir.RankedTensorType.get(shape, source.element_type)
