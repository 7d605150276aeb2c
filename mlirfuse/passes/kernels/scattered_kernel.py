"""Builds the kernel of two launches, of which the second reads a result of the first through a gathered view."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith, func, linalg, tensor

from mlirfuse.analysis.kernels import argument_attributes, body, symbol
from mlirfuse.analysis.loops.maps import projection
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.memory.inverse_gathers import Positions
from mlirfuse.dialect.attributes import ALIGN, GATHER, KERNEL, RESULT_EXTENTS, SCHEDULE, STRIDES
from mlirfuse.dialect.gathered_view import Gather, gather_of, view_attributes
from mlirfuse.dialect.scatter import of_sources, scatter
from mlirfuse.support.affine_expressions import substituted, used_dims
from mlirfuse.support.rewriting import clone, copy_body, defining_op, erase, nested
from mlirfuse.tiling.kernel_signature import set_type
from mlirfuse.tiling.tiles import zero

Along = Sequence[int | None]
"""The dimension of the first kernel's result that each axis of a value runs along; None for an axis of one element."""

Launch = tuple[ir.Operation, ir.Operation]
"""A call, and its kernel."""


class UnfitError(Exception):
    """Why two launches do not become one."""


class ScatteredKernel:
    """The kernel of both, on the loops of the first one's result, inserted next to the first kernel.

    The second kernel's ops run on the first one's result. What else they read is read in the order of that result,
    through gathered views where its own order is another, and their results are scattered. Where the view has zeros,
    there are further copies of the ops for these, each with a zero in place of the result's element.

    Args:
        launches: the two launches.
        passed: the first call's result that the view is of.
        view: the gathered view of it, an operand of the second call.
        positions: where the elements of `passed` and zeros are in the view.
        kept: the first call's results that the kernel returns too, in front of the second one's.

    Attributes:
        kernel: the kernel.
        inputs: the host's value for each argument, and the gather of a view of it that the host has to make, or None.

    Raises:
        UnfitError: the second kernel is not elementwise, or reads or writes something in an order that no view has.
    """

    def __init__(
        self,
        launches: tuple[Launch, Launch],
        passed: ir.Value,
        view: ir.Value,
        positions: Positions,
        kept: Sequence[ir.Value],
    ):
        self._first, self._second = launches
        self._all, self._view = positions, ir.RankedTensorType(view.type)
        self._positions, self._is_zero = positions.gather, False
        self._attributes: list[dict[str, ir.Attribute]] = []
        self._seen: ir.Value | None = None
        self._values: dict[ir.Value, ir.Value] = {}
        self._along: dict[ir.Value, Along] = {}
        self._axis_of_dim: dict[int, int] = {}
        self._space, _ = kernel_space(launches[1][1])
        self._operands: dict[ir.Value, tuple[ir.Value, dict[str, ir.Attribute]]] = {}
        self.inputs: list[tuple[ir.Value, Gather | None]] = []
        first = self._first[1]
        with ir.InsertionPoint(first), first.location:
            name = f"{symbol(first)}_{symbol(self._second[1])}"
            self.kernel = func.FuncOp(name, ir.FunctionType.get([], []), visibility="private").operation
            self._block = ir.Block.create_at_start(self.kernel.regions[0], [])
        try:
            with ir.InsertionPoint(self._block), first.location:
                self._emit(passed, view, kept)
        except UnfitError:
            erase(self.kernel)
            raise
        self._set_attributes()

    def _set_attributes(self) -> None:
        first = self._first[1]
        self.kernel.attributes[KERNEL] = ir.UnitAttr.get()
        self.kernel.attributes[RESULT_EXTENTS] = ir.DenseI64ArrayAttr.get([])
        if SCHEDULE in first.attributes:
            self.kernel.attributes[SCHEDULE] = first.attributes[SCHEDULE]
        set_type(self.kernel)
        self.kernel.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in self._attributes])

    def _emit(self, passed: ir.Value, view: ir.Value, kept: Sequence[ir.Value]) -> None:
        call, kernel = self._first
        own: dict[ir.Value, ir.Value] = {}
        for old, operand, known in _arguments(call, kernel):
            own[old] = self._argument(operand, None, old.type, known)
        *ops, terminator = body(kernel)
        for op in ops:
            clone(op, own)
        made = dict(zip(call.results, (own[v] for v in terminator.operands), strict=True))
        *_, terminator = body(self._second[1])
        emitted = []
        for number, positions in enumerate(of_sources(self._all.gather, self._all.zeros)):
            self._positions, self._is_zero = positions, number > 0
            emitted.append(self._emit_second(made[passed], view))
        results = [
            self._scattered(value, [values[value] for values in emitted if value in values])
            for value in terminator.operands
        ]
        func.ReturnOp([*(made[value] for value in kept), *results])

    def _emit_second(self, passed: ir.Value, view: ir.Value) -> dict[ir.Value, ir.Value]:
        """Emits the second kernel's ops for the positions of one source; returns the new value of each old one."""
        self._values, self._along, self._operands = {}, {}, {}
        for old, operand, known in _arguments(*self._second):
            if operand == view:
                self._axis_of_dim, self._seen = self._dims_of(old), old
                self._values[old], self._along[old] = passed, range(len(self._positions.basis))
            elif isinstance(operand.type, ir.RankedTensorType):
                self._operands[old] = (operand, known)
            else:
                self._values[old] = self._argument(operand, None, old.type, known)
        for op in body(self._second[1])[:-1]:
            if op in self._space.loops:
                self._move(op)
            elif op.name == "arith.constant":
                clone(op, self._values)
            elif op.name not in ("tensor.empty", "linalg.fill"):
                raise UnfitError(f"the reading kernel has {op.name}")
        return self._values

    def _dims_of(self, argument: ir.Value) -> dict[int, int]:
        """The view's axis along each dimension of the second kernel's space."""
        uses = {axes for (op, n), axes in self._space.use_axes.items() if op.operands[n] == argument}
        if len(uses) != 1:
            raise UnfitError("the reading kernel reads the view in two orders")
        return {dim: axis for axis, dim in enumerate(uses.pop()) if dim is not None}

    def _argument(
        self, operand: ir.Value, gather: Gather | None, type_: ir.Type, attributes: dict[str, ir.Attribute]
    ) -> ir.Value:
        """The argument for a value of the host, or for a view of it, which is new if there is none yet."""
        if (operand, gather) in self.inputs:
            return self._block.arguments[self.inputs.index((operand, gather))]
        self.inputs.append((operand, gather))
        self._attributes.append(attributes)
        return self._block.add_argument(type_, self.kernel.location)

    def _move(self, op: ir.Operation) -> None:
        """Emits an elementwise op of the second kernel on dimensions of the first one's result."""
        if op.name != "linalg.generic" or op in self._space.reduced:
            raise UnfitError(f"{op.name} of the reading kernel is not elementwise")
        if any(inner.name == "linalg.index" for inner in nested(op)):
            raise UnfitError("an op of the reading kernel depends on its indices")
        count = len(op.operands) - len(op.results)
        if any(list(argument.uses) for argument in list(op.regions[0].blocks[0].arguments)[count:]):
            raise UnfitError("an op of the reading kernel reads its initial values")
        if any(dim not in self._axis_of_dim for dim in self._space.loops[op] if dim is not None):
            raise UnfitError("an op of the reading kernel runs along other dimensions than the view's")
        read = [self._operand(op, number) for number in range(count)]
        axes = sorted({axis for _, along in read for axis in along if axis is not None})
        shape = [self._positions.shape[axis] for axis in axes]
        outs = [tensor.EmptyOp(shape, ir.RankedTensorType(v.type).element_type).result for v in op.results]
        maps = [projection(len(axes), [None if a is None else axes.index(a) for a in along]) for _, along in read]
        maps += [projection(len(axes), range(len(axes)))] * len(outs)
        kinds = ir.ArrayAttr.get([ir.Attribute.parse("#linalg.iterator_type<parallel>")] * len(axes))
        with op.location:
            types, inputs = [value.type for value in outs], [value for value, _ in read]
            new = linalg.GenericOp(types, inputs, outs, ir.ArrayAttr.get(maps), kinds)
        copy_body(op, new.operation, self._values)
        if self._is_zero:
            for number in (n for n in range(count) if op.operands[n] == self._seen):
                _replace_by_zero(new.regions[0].blocks[0], number)
        for old, result in zip(op.results, new.results, strict=True):
            self._values[old], self._along[old] = result, axes

    def _operand(self, op: ir.Operation, number: int) -> tuple[ir.Value, Along]:
        """The new operand for one of a moved op, and the dimension that each of its axes runs along."""
        value = op.operands[number]
        if value in self._along:
            return self._values[value], self._along[value]
        if not isinstance(value.type, ir.RankedTensorType):
            return self._values[value], ()
        maker = defining_op(value)
        if maker is None and (op, number) not in self._space.use_axes:
            raise UnfitError("an op of the reading kernel takes nothing but the shape of an argument")
        if maker is None:
            return self._read(value, self._space.use_axes[op, number])
        if maker.name == "linalg.fill":
            return self._values[maker.operands[0]], ()
        raise UnfitError(f"an op of the reading kernel reads the result of {maker.name}")

    def _read(self, argument: ir.Value, dims: Sequence[int | None]) -> tuple[ir.Value, Along]:
        """An argument of the second kernel, read in the order of the first one's result."""
        operand, attributes = self._operands[argument]
        type_, zero = ir.RankedTensorType(argument.type), ir.AffineExpr.get_constant(0)
        places = [zero if dim is None else self._positions.map.results[self._axis_of_dim[dim]] for dim in dims]
        along = [self._axis_of(expr, extent) for expr, extent in zip(places, type_.shape, strict=True)]
        if all(extent == 1 or axis is not None for extent, axis in zip(type_.shape, along, strict=True)):
            return self._argument(operand, None, type_, attributes), along
        if GATHER in attributes:
            operand, type_, attributes, places = _through(operand, attributes, places)
        of_component = [axis for axis, group in enumerate(self._positions.basis) for _ in group]
        axes = sorted({of_component[d] for expr in places for d in used_dims(expr)})
        numbers = [d for d, axis in enumerate(of_component) if axis in axes]
        exprs = [ir.AffineExpr.get_dim(numbers.index(d)) if d in numbers else zero for d in range(len(of_component))]
        map_ = ir.AffineMap.get(len(numbers), 0, [substituted(expr, exprs) for expr in places])
        gather = Gather(tuple(self._positions.basis[axis] for axis in axes), map_)
        seen = ir.RankedTensorType.get(list(gather.shape), type_.element_type)
        return self._argument(operand, gather, seen, view_attributes(gather, type_, attributes)), axes

    def _axis_of(self, expr: ir.AffineExpr, extent: int) -> int | None:
        """The dimension of the first kernel's result whose index an expression is, up to that extent; or None."""
        start = 0
        for axis, group in enumerate(self._positions.basis):
            large = [d for d, size in enumerate(group, start) if size > 1]
            if [ir.AffineExpr.get_dim(d) for d in large] == [expr] and self._positions.shape[axis] == extent:
                return axis
            start += len(group)
        return None

    def _scattered(self, value: ir.Value, sources: Sequence[ir.Value]) -> ir.Value:
        """A result of the second kernel, put in its order."""
        if not sources or list(self._along.get(value, ())) != list(range(len(self._positions.basis))):
            raise UnfitError("a result of the reading kernel does not depend on the whole view")
        axes = [None if dim is None else self._axis_of_dim[dim] for dim in self._space.value_axes[value]]
        rest = iter(sorted({*range(self._view.rank)} - {*axes}))  # of one element each, in order
        if len(axes) != self._view.rank:
            raise UnfitError("a result of the reading kernel has not the view's dimensions")
        whole = self._all.gather
        places = [whole.map.results[next(rest) if axis is None else axis] for axis in axes]
        positions = Gather(whole.basis, ir.AffineMap.get(whole.map.n_dims, 0, places))
        return scatter(sources, positions, self._all.zeros, ir.RankedTensorType(value.type).shape)


def _replace_by_zero(block: ir.Block, number: int) -> None:
    """Makes a body compute with zero in place of an operand's elements, along whose axes the op still runs."""
    argument = block.arguments[number]
    with ir.InsertionPoint.at_block_begin(block), argument.owner.owner.location:
        argument.replace_all_uses_with(arith.ConstantOp(argument.type, zero(argument.type)).result)


def _through(
    view: ir.Value, attributes: dict[str, ir.Attribute], places: Sequence[ir.AffineExpr]
) -> tuple[ir.Value, ir.RankedTensorType, dict[str, ir.Attribute], list[ir.AffineExpr]]:
    """The source of the host's gathered view, its type and attributes, and the index in it at an index of the view.

    Where the index is outside of the view, any element will do, as no result is stored there.
    """
    maker, known = defining_op(view), ir.DictAttr(attributes[GATHER])
    gather = gather_of(known)
    if maker is None or gather.joins_components:
        raise UnfitError("the reading kernel reads another gathered view, whose dimensions are joined")
    if gather.inside:
        raise UnfitError("the reading kernel checks what is inside of another array")
    source = {name: value for name, value in attributes.items() if name == ALIGN}
    if "strides" in known:
        source[STRIDES] = known["strides"]
    indices = [substituted(expr, places) for expr in gather.map.results]
    return maker.operands[0], ir.RankedTensorType(maker.operands[0].type), source, indices


def _arguments(
    call: ir.Operation, kernel: ir.Operation
) -> Sequence[tuple[ir.Value, ir.Value, dict[str, ir.Attribute]]]:
    """A kernel's arguments, each with the call's operand for it, and its attributes."""
    return list(zip(kernel.regions[0].blocks[0].arguments, call.operands, argument_attributes(kernel), strict=True))
