"""An elementwise kernel whose result is read through a gathered view, as one that reads its arguments through views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mlir import ir
from mlir.dialects import arith, func, linalg, tensor

from mlirfuse.analysis.kernels import argument_attributes, body, symbol
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.maps import projection
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.loops.structure import is_constant
from mlirfuse.dialect.attributes import GATHER, KERNEL, RESULT_EXTENTS, SCHEDULE
from mlirfuse.dialect.gathered_view import Gather, gather_of, gathered_view, view_attributes
from mlirfuse.support.affine_expressions import substituted, used_dims
from mlirfuse.support.rewriting import clone, erase, nested
from mlirfuse.tiling.tiles import zero

Dims = tuple[int, ...]
"""Dimensions of the view, in order, that a value varies along."""


@dataclass
class ViewedProducer:
    """An elementwise kernel, rewritten to compute a gathered view of its result from views of its arguments.

    Where the view leaves the result its elements are zero, whatever the kernel would make of zeros there: a view of one
    argument with `inside` says where that is.

    Attributes:
        call: the kernel's launch, which has one result.
        kernel: the kernel.
        view: the `fuse.gathered_view` of the result.
    """

    call: ir.Operation
    kernel: ir.Operation
    view: ir.Operation
    _values: dict[ir.Value, ir.Value] = field(default_factory=dict)
    _dims: dict[ir.Value, Dims] = field(default_factory=dict)
    _places: dict[int, int] = field(default_factory=dict)

    def obstacle(self) -> str | None:
        """Why the kernel cannot be rewritten, or None."""
        if len(self.call.results) != 1:
            return "it has several results, of which a view of one is read"
        space, structures = kernel_space(self.kernel)
        if space.reduced_dims:
            return "it contains a reduction"
        if any(s.op.name != "linalg.generic" for s in structures):
            return "it rearranges what a view of its result is read through"
        if any(op.name == "linalg.index" for op in nested(self.kernel)):
            return "its elements depend on their indices, which a view changes"
        inputs = [(s, operand) for s in structures for operand in s.operands[: len(s.operands) - len(s.op.results)]]
        if any(is_constant(operand) for _, operand in inputs):
            return "it reads a constant array"
        if not space.rank:
            return "it computes a single number"
        if any(GATHER in known for known in argument_attributes(self.kernel)):
            return "it reads a gathered view itself"
        if any(len(self._axes(space, argument)) > 1 for argument in self._arguments):
            return "it reads an argument in two orders"
        if self._whole(space) is None:
            return "no argument has the shape and the order of its result"
        return None

    def build(self) -> tuple[ir.Operation, ir.Operation]:
        """The launch of the rewritten kernel, in front of the view, and that kernel, beside the old one."""
        space, structures = kernel_space(self.kernel)
        gather, whole = gather_of(self.view.attributes), self._whole(space)
        assert whole is not None  # `obstacle` says so
        result = body(self.kernel)[-1].operands[0]
        self._places = {dim: axis for axis, dim in enumerate(space.value_axes[result]) if dim is not None}
        with ir.InsertionPoint(self.view), self.view.location:
            operands = [self._viewed(space, gather, argument) for argument in self._arguments]
            attributes = [self._attributes_of(value, n) for n, value in enumerate(operands)]
            shape = ir.RankedTensorType(whole.type).shape
            if not all(gather.is_inside(axis, extent) for axis, extent in enumerate(shape)):
                known = self._arguments.index(whole)
                operands.append(gathered_view(self.call.operands[known], replace(gather, inside=tuple(shape))))
                attributes.append(self._attributes_of(operands[-1], known))
            call = func.CallOp([self.view.results[0].type], f"{symbol(self.kernel)}_viewed", operands).operation
        with ir.InsertionPoint(self.kernel), self.kernel.location:
            function = func.FuncOp(
                f"{symbol(self.kernel)}_viewed",
                ir.FunctionType.get([v.type for v in operands], [self.view.results[0].type]),
                visibility="private",
            )
        function.attributes[KERNEL] = ir.UnitAttr.get()
        function.attributes[RESULT_EXTENTS] = ir.DenseI64ArrayAttr.get([])
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in attributes])
        if SCHEDULE in self.kernel.attributes:
            function.attributes[SCHEDULE] = self.kernel.attributes[SCHEDULE]
        block = function.add_entry_block()
        self._values = dict(zip(self._arguments, block.arguments, strict=False))
        computed = {s.op for s in structures}
        with ir.InsertionPoint(block), self.kernel.location:
            for op in body(self.kernel)[:-1]:
                if op in computed:
                    self._generic(op, space, gather)
                elif op.name != "tensor.empty":
                    clone(op, self._values)
            checks = list(block.arguments)[len(self._arguments) :]
            func.ReturnOp([self._spread(result, checks)])
        return call, function.operation

    def erase(self, call: ir.Operation, kernel: ir.Operation) -> None:
        """Takes back what `build` made."""
        views = [v.owner.operation for v in call.operands if not isinstance(v.owner, ir.Block)]
        erase(call)
        erase(kernel)
        for view in dict.fromkeys(views):
            if view.name == self.view.name and view != self.view and not list(view.results[0].uses):
                erase(view)

    @property
    def _arguments(self) -> list[ir.Value]:
        return list(self.kernel.regions[0].blocks[0].arguments)

    def _axes(self, space: IterationSpace, argument: ir.Value) -> set[tuple[int | None, ...]]:
        return {axes for (op, number), axes in space.use_axes.items() if op.operands[number] == argument}

    def _whole(self, space: IterationSpace) -> ir.Value | None:
        """An argument of the result's shape, whose axes run along the result's."""
        result = body(self.kernel)[-1].operands[0]
        shape, wanted = ir.RankedTensorType(result.type).shape, space.value_axes[result]
        for argument in self._arguments:
            is_alike = isinstance(argument.type, ir.RankedTensorType) and list(argument.type.shape) == list(shape)
            if is_alike and self._axes(space, argument) == {wanted}:
                return argument
        return None

    def _along(self, dims: Sequence[int | None], gather: Gather) -> Dims:
        """The dimensions of the view that dimensions of the kernel's space vary along."""
        exprs = [gather.map.results[self._places[dim]] for dim in dims if dim is not None]
        return tuple(sorted({gather.dims[c] for expr in exprs for c in used_dims(expr)}))

    def _viewed(self, space: IterationSpace, gather: Gather, argument: ir.Value) -> ir.Value:
        """The view of a launch's operand that its elements are read through; numbers as they are."""
        value = self.call.operands[self._arguments.index(argument)]
        if not isinstance(argument.type, ir.RankedTensorType):
            return value
        if argument == self._whole(space):
            # Along dimensions of extent 1 too, which spaces leave out: the view may leave the array there.
            self._dims[argument] = tuple(range(len(gather.shape)))
            return gathered_view(value, gather)
        axes = next(iter(self._axes(space, argument)), ())
        dims = self._along(axes, gather) or (len(gather.basis) - 1,)
        self._dims[argument] = dims
        kept = {c for c, dim in enumerate(gather.dims) if dim in dims}
        numbers = {c: n for n, c in enumerate(sorted(kept))}
        nothing = ir.AffineExpr.get_constant(0)
        new = [ir.AffineExpr.get_dim(numbers[c]) if c in kept else nothing for c in range(len(gather.components))]
        exprs = [nothing if dim is None else substituted(gather.map.results[self._places[dim]], new) for dim in axes]
        basis = tuple(gather.basis[dim] for dim in dims)
        return gathered_view(value, Gather(basis, ir.AffineMap.get(len(kept), 0, exprs)))

    def _attributes_of(self, value: ir.Value, number: int) -> dict[str, ir.Attribute]:
        """The attributes of the new kernel's argument that is a view of that number's operand, or the operand."""
        known = argument_attributes(self.kernel)[number]
        if not isinstance(value.type, ir.RankedTensorType):
            return known
        view = value.owner.operation
        return view_attributes(gather_of(view.attributes), ir.RankedTensorType(view.operands[0].type), known)

    def _generic(self, op: ir.Operation, space: IterationSpace, gather: Gather) -> None:
        """Clones an elementwise op to run along the dimensions of the view."""
        inputs = len(op.operands) - len(op.results)
        read = {d for operand in op.operands[:inputs] for d in self._dims.get(operand, ())}
        dims = tuple(sorted(read.union(self._along(space.loops[op], gather)))) or (len(gather.basis) - 1,)
        maps = [
            projection(len(dims), [dims.index(d) for d in self._dims.get(operand, ())])
            for operand in op.operands[:inputs]
        ]
        mapping = dict(self._values)
        for init in op.operands[inputs:]:
            shape = [gather.shape[d] for d in dims]
            mapping[init] = tensor.EmptyOp(shape, ir.RankedTensorType(init.type).element_type).result
        new = clone(op, mapping)
        identity = projection(len(dims), list(range(len(dims))))
        new.attributes["indexing_maps"] = ir.ArrayAttr.get([*maps, *[identity] * len(op.results)])
        kinds = list(ir.ArrayAttr(op.attributes["iterator_types"]))
        new.attributes["iterator_types"] = ir.ArrayAttr.get([kinds[0]] * len(dims))
        for old, made, init in zip(op.results, new.results, list(new.operands)[inputs:], strict=True):
            made.set_type(init.type)
            self._values[old], self._dims[old] = made, dims

    def _spread(self, result: ir.Value, checks: Sequence[ir.Value]) -> ir.Value:
        """The result over all of the view's dimensions, with zeros where the check says so."""
        type_ = ir.RankedTensorType(self.view.results[0].type)
        value, dims = self._values[result], self._dims[result]
        if not checks and len(dims) == type_.rank:
            return value
        rank = type_.rank
        empty = tensor.EmptyOp(list(type_.shape), type_.element_type).result
        identity = projection(rank, list(range(rank)))
        maps = [projection(rank, dims), *[identity] * len(checks), identity]
        kinds = ir.ArrayAttr.get([ir.Attribute.parse("#linalg.iterator_type<parallel>")] * rank)
        generic = linalg.GenericOp([type_], [value, *checks], [empty], ir.ArrayAttr.get(maps), kinds)
        elements = [type_.element_type, *[ir.IntegerType.get_signless(1)] * len(checks), type_.element_type]
        block = generic.regions[0].blocks.append(*elements)
        with ir.InsertionPoint(block):
            element = block.arguments[0]
            if checks:
                nothing = arith.ConstantOp(type_.element_type, zero(type_.element_type)).result
                element = arith.SelectOp(block.arguments[1], element, nothing).result
            linalg.YieldOp([element])
        return generic.results[0]
