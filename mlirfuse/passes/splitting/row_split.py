"""Splits a kernel that reduces rows into one on parts of rows and one on their results; part of `fuse-split-rows`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from mlir import ir
from mlir.dialects import arith, func, linalg, tensor

from mlirfuse.analysis.arithmetic.combining import combiner_of
from mlirfuse.analysis.kernels import argument_attributes, body, result_sources, symbol
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.maps import projected_axes
from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.dialect.attributes import KERNEL, RESULT_EXTENTS
from mlirfuse.passes.splitting.tensor_reductions import reduce_rows
from mlirfuse.support.rewriting import backward_slice, clone, defining_op, erase, read_values

ROWS = (0, 1)
"""The dimensions of an array of rows: the second is reduced."""

DYNAMIC = ir.ShapedType.get_dynamic_size()


def leading_to(reduction: OpStructure, structures: Sequence[OpStructure]) -> set[ir.Operation]:
    """A reduction, and the ops with loops of its kernel that it depends on."""
    return {reduction.op} | backward_slice(reduction.operands, [s.op for s in structures])


@dataclass(frozen=True)
class RowSplit:
    """A kernel that reduces rows, and the number of parts of a row.

    Attributes:
        call: its only launch.
        kernel: a kernel on tensors whose iteration space is `ROWS`, with one reduction, which depends only on
            `linalg.generic`s that read whole contiguous rows and numbers.
        space: its iteration space.
        structures: its ops.
        parts: parts of a row.
    """

    call: ir.Operation
    kernel: ir.Operation
    space: IterationSpace
    structures: Sequence[OpStructure]
    parts: int

    @cached_property
    def _arguments(self) -> list[ir.Value]:
        return list(self.kernel.regions[0].blocks[0].arguments)

    @cached_property
    def _known(self) -> dict[ir.Value, dict[str, ir.Attribute]]:
        """The attributes of each argument."""
        return dict(zip(self._arguments, argument_attributes(self.kernel), strict=True))

    @cached_property
    def _reduction(self) -> OpStructure:
        (reduction,) = (s for s in self.structures if s.reduction_loops)
        return reduction

    @cached_property
    def _result(self) -> ir.Value:
        """The reduction's result."""
        return self._reduction.op.results[0]

    @cached_property
    def _first_stage(self) -> list[OpStructure]:
        """The ops of the first kernel: the reduction, and the ops that it depends on."""
        ops = leading_to(self._reduction, self.structures)
        return [s for s in self.structures if s.op in ops]

    @cached_property
    def _scalar_ops(self) -> list[ir.Operation]:
        """The ops that compute the scalars that the reduction depends on."""
        ops = {s.op for s in self._first_stage}
        makers = backward_slice([v for op in ops for v in read_values(op)], body(self.kernel)) - ops
        shapes = ("tensor.empty", "tensor.dim", "linalg.fill")
        return [op for op in body(self.kernel) if op in makers and op.name not in shapes]

    @cached_property
    def _first_stage_arguments(self) -> list[ir.Value]:
        """The kernel's arguments that the reduction depends on."""
        read = {v for op in [*self._scalar_ops, *(s.op for s in self._first_stage)] for v in read_values(op)}
        return [a for a in self._arguments if a in read]

    def split(self) -> ir.Operation:
        """Replaces the kernel and its launch by two; returns the second kernel, which keeps the name."""
        first, second, kept = self._kernel_of_parts(), *self._kernel_of_rows()
        operands = dict(zip(self._arguments, self.call.operands, strict=True))
        with ir.InsertionPoint(self.call), self.call.location:
            inputs = [self._view(operands[a]) if self._is_rows(a) else operands[a] for a in self._first_stage_arguments]
            (part,) = func.CallOp(first, inputs).results
            rows = next(operands[a] for a in self._first_stage_arguments if self._is_rows(a))
            results = func.CallOp(second, [self._results_of_rows(part, rows), *(operands[a] for a in kept)]).results
        for old, new in zip(self.call.results, results, strict=True):
            old.replace_all_uses_with(new)
        erase(self.call)
        name = self.kernel.attributes["sym_name"]
        erase(self.kernel)
        second.attributes["sym_name"] = name
        results[0].owner.attributes["callee"] = ir.FlatSymbolRefAttr.get(ir.StringAttr(name).value)
        return second.operation

    def _kernel_of_parts(self) -> func.FuncOp:
        """The kernel that reduces parts as if they were rows."""
        inputs = [self._part_type(a) if self._is_rows(a) else a.type for a in self._first_stage_arguments]
        known = [self._known[a] for a in self._first_stage_arguments]
        kernel = self._function(f"{symbol(self.kernel)}_parts", inputs, [self._result.type], known)
        rows = next(i for i, a in enumerate(self._first_stage_arguments) if self._is_rows(a))
        kernel.attributes[RESULT_EXTENTS] = ir.DenseI64ArrayAttr.get([rows, 0])
        block = kernel.add_entry_block()
        mapping = dict(zip(self._first_stage_arguments, block.arguments, strict=True))
        with ir.InsertionPoint(block), self.kernel.location:
            count = tensor.DimOp(block.arguments[rows], _index(0)).result
            for op in self._scalar_ops:
                clone(op, mapping)
            for s in self._first_stage:
                self._clone_on_parts(s, mapping, count)
            func.ReturnOp([mapping[self._result]])
        return kernel

    def _clone_on_parts(self, s: OpStructure, mapping: dict[ir.Value, ir.Value], count: ir.Value) -> None:
        """Clones an op of the first stage, on parts instead of rows."""
        maps = [projected_axes(m) for m in ir.ArrayAttr(s.op.attributes["indexing_maps"])]
        loops = self.space.loops[s.op]
        dims = {
            operand: [None if loop is None else loops[loop] for loop in axes]
            for operand, axes in zip(s.operands, maps, strict=True)
        }
        inputs = dict(mapping)
        for operand in s.operands:
            maker = defining_op(operand)
            if operand not in inputs and maker is not None:
                inputs[operand] = self._constant(maker, dims[operand], mapping, count)
        new = clone(s.op, inputs)
        result = s.op.results[0]
        if 1 in self.space.value_axes[result]:
            new.results[0].set_type(self._part_type(result))
        mapping[result] = new.results[0]

    def _constant(
        self, maker: ir.Operation, dims: Sequence[int | None], mapping: dict[ir.Value, ir.Value], count: ir.Value
    ) -> ir.Value:
        """A `tensor.empty`, or a fill of one, of the shape of parts."""
        type_ = ir.RankedTensorType(maker.results[0].type)
        extents: list[ir.Value | int] = list(type_.shape)
        for axis, dim in enumerate(dims):
            if type_.is_dynamic_dim(axis):
                extents[axis] = count
            elif dim == 1:
                extents[axis] = type_.shape[axis] // self.parts
        empty = tensor.EmptyOp(extents, type_.element_type).result
        if maker.name == "tensor.empty":
            return empty
        return linalg.fill(mapping[maker.operands[0]], outs=[empty])

    def _kernel_of_rows(self) -> tuple[func.FuncOp, list[ir.Value]]:
        """The kernel that reduces the parts' results and computes everything after that, and its further arguments."""
        *ops, terminator = body(self.kernel)
        remaining = backward_slice(
            terminator.operands, [op for op in ops if op not in {s.op for s in self._first_stage}]
        )
        remaining_ops = [op for op in ops if op in remaining]
        counts = [
            op for op in remaining_ops if op.name == "tensor.dim" and op.operands[0] in self._first_stage_arguments
        ]
        read = {v for op in remaining_ops if op not in counts for v in read_values(op)} | set(terminator.operands)
        kept = [a for a in self._arguments if a in read]
        type_ = ir.RankedTensorType(self._result.type)
        kernel = self._function(
            f"{symbol(self.kernel)}_rows",
            [ir.RankedTensorType.get([*type_.shape, self.parts], type_.element_type), *(a.type for a in kept)],
            [v.type for v in terminator.operands],
            [{}, *(self._known[a] for a in kept)],
        )
        sources = [
            (1 + kept.index(self._arguments[n]), axis) if self._arguments[n] in kept else (0, 0)
            for n, axis in result_sources(self.kernel)
        ]
        kernel.attributes[RESULT_EXTENTS] = ir.DenseI64ArrayAttr.get([n for pair in sources for n in pair])
        block = kernel.add_entry_block()
        part, *others = block.arguments
        mapping = dict(zip(kept, others, strict=True))
        with ir.InsertionPoint(block), self.kernel.location:
            mapping[self._result] = reduce_rows(combiner_of(self._reduction).name, part, [], [1], lambda row: row[0])
            for op in remaining_ops:
                if op in counts:
                    mapping[op.results[0]] = tensor.DimOp(part, _index(0)).result
                else:
                    clone(op, mapping)
            func.ReturnOp([mapping[v] for v in terminator.operands])
        return kernel, kept

    def _function(
        self,
        name: str,
        inputs: Sequence[ir.Type],
        outputs: Sequence[ir.Type],
        attributes: Sequence[dict[str, ir.Attribute]],
    ) -> func.FuncOp:
        with ir.InsertionPoint(self.kernel), self.kernel.location:
            kernel = func.FuncOp(name, ir.FunctionType.get(list(inputs), list(outputs)), visibility="private")
        kernel.attributes[KERNEL] = ir.UnitAttr.get()
        kernel.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(known) for known in attributes])
        return kernel

    def _is_rows(self, argument: ir.Value) -> bool:
        reads = ((op.operands[number], axes) for (op, number), axes in self.space.use_axes.items())
        return any(value == argument and axes == ROWS for value, axes in reads)

    def _part_type(self, value: ir.Value) -> ir.RankedTensorType:
        """The type of an array of rows, reshaped to parts."""
        type_ = ir.RankedTensorType(value.type)
        return ir.RankedTensorType.get([DYNAMIC, type_.shape[1] // self.parts], type_.element_type)

    def _view(self, rows: ir.Value) -> ir.Value:
        """Rows of the host as parts."""
        type_ = ir.RankedTensorType(rows.type)
        shape = [DYNAMIC, self.parts, type_.shape[1] // self.parts]
        count = tensor.DimOp(rows, _index(0)).result
        split = ir.RankedTensorType.get(shape, type_.element_type)
        divided = tensor.ExpandShapeOp(split, rows, [[0], [1, 2]], [count], shape).result
        return tensor.CollapseShapeOp(self._part_type(rows), divided, [[0, 1], [2]]).result

    def _results_of_rows(self, part: ir.Value, rows: ir.Value) -> ir.Value:
        """The results of all parts, reshaped to one row of results for each row of the input."""
        shape = [DYNAMIC, self.parts]
        count = tensor.DimOp(rows, _index(0)).result
        type_ = ir.RankedTensorType.get(shape, ir.RankedTensorType(part.type).element_type)
        return tensor.ExpandShapeOp(type_, part, [[0, 1]], [count], shape).result


def _index(value: int) -> ir.Value:
    return arith.ConstantOp(ir.IndexType.get(), value).result
