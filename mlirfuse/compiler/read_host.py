"""Reading the host function of a compiled graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mlir import ir

from mlirfuse.analysis.kernels import argument_attributes, body, functions, result_sources, symbol
from mlirfuse.analysis.memory.host_views import rearranged_axes
from mlirfuse.compiler.expressions import Binary, Constant, Expression, Symbol
from mlirfuse.compiler.host_program import (
    Buffer,
    HostArgument,
    HostProgram,
    Launch,
    Rearrange,
    Reshape,
    Shape,
    Slice,
    Value,
    View,
)
from mlirfuse.dialect.attributes import KERNEL, LAUNCH, NAME, RESULTS, STRIDES
from mlirfuse.errors import IRError
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.reshapes import reassociation

_INDEX_OPS = {
    "arith.addi": "add",
    "arith.subi": "sub",
    "arith.muli": "mul",
    "arith.divui": "floordiv",
    "arith.divsi": "floordiv",
    "arith.floordivsi": "floordiv",
    "arith.ceildivsi": "ceildiv",
    "arith.ceildivui": "ceildiv",
    "arith.remui": "mod",
    "arith.remsi": "mod",
    "arith.minsi": "min",
    "arith.minui": "min",
    "arith.maxsi": "max",
    "arith.maxui": "max",
}


def host_program(module: ir.Operation) -> HostProgram:
    """The program of a module's host function: the `func.func` that is neither a kernel nor the declaration of one.

    Needs the stage after tiling, where the functions that the host calls are declarations with `fuse.launch`.

    Raises:
        IRError: there is not one such function, or it holds an op outside the contract.
    """
    found = list(functions(module))
    declarations = {symbol(f): f for f in found if LAUNCH in f.attributes}
    hosts = [f for f in found if LAUNCH not in f.attributes and KERNEL not in f.attributes]
    if len(hosts) != 1:
        raise IRError(f"expected one host function, found {len(hosts)}", where=module)
    return _Reader(hosts[0], declarations).read()


def _structure(function: ir.Operation) -> str:
    """The structure of the results; a tuple for hand-written IR without the attribute."""
    return ir.StringAttr(function.attributes[RESULTS]).value if RESULTS in function.attributes else "tuple"


class _Reader:
    """Walks the host function once and gathers the program's parts."""

    def __init__(self, function: ir.Operation, declarations: dict[str, ir.Operation]):
        self.function = function
        self.declarations = declarations
        self.extents: list[tuple[int, int]] = []
        self.buffers: list[Buffer] = []
        self.launches: list[Launch] = []
        self.results: tuple[Value, ...] = ()
        self.values: dict[ir.Value, Value] = {}
        self.empties: dict[ir.Value, Buffer] = {}
        self.destinations: dict[ir.Value, Shape] = {}
        self.indices: dict[ir.Value, Expression] = {}
        self.rules: dict[str, Callable[[ir.Operation], None]] = {
            "arith.constant": self._constant,
            "tensor.dim": self._dim,
            "tensor.expand_shape": self._expand_shape,
            "tensor.collapse_shape": self._collapse_shape,
            "tensor.empty": self._empty,
            "tensor.extract_slice": self._slice,
            "linalg.transpose": self._rearrange,
            "linalg.generic": self._rearrange,
            "fuse.gathered_view": self._gathered_view,
            "func.call": self._launch,
            "func.return": self._return,
        }

    def read(self) -> HostProgram:
        block = self.function.regions[0].blocks[0]
        for i, argument in enumerate(block.arguments):
            self.values[argument] = Value("argument", i)
        for op in body(self.function):
            rule = self._index_op if op.name in _INDEX_OPS else self.rules.get(op.name)
            if rule is None:
                raise IRError(f"{op.name} is not an op of the host function", where=op)
            rule(op)
        return HostProgram(
            name=symbol(self.function),
            arguments=tuple(_argument(self.function, i, a.type) for i, a in enumerate(block.arguments)),
            extents=tuple(self.extents),
            buffers=tuple(self.buffers),
            launches=tuple(self.launches),
            results=self.results,
            structure=_structure(self.function),
        )

    def _constant(self, op: ir.Operation) -> None:
        self.indices[op.results[0]] = Constant(ir.IntegerAttr(op.attributes["value"]).value)

    def _index_op(self, op: ir.Operation) -> None:
        left, right = (self._index(operand, op) for operand in op.operands)
        self.indices[op.results[0]] = Binary(_INDEX_OPS[op.name], left, right)

    def _dim(self, op: ir.Operation) -> None:
        dim = self._index(op.operands[1], op)
        if not isinstance(dim, Constant):
            raise IRError("tensor.dim of a dimension that is not constant", where=op)
        self.indices[op.results[0]] = self._shape(op.operands[0])[dim.value]

    def _empty(self, op: ir.Operation) -> None:
        """An empty result, or the destination of a view that a linalg op makes."""
        if all(use.owner.name.startswith("linalg.") for use in op.results[0].uses):
            self.destinations[op.results[0]] = self._empty_shape(op)
            return
        type_ = ir.RankedTensorType(op.results[0].type)
        if 0 not in type_.shape:
            raise IRError("tensor.empty has elements, which no kernel writes", where=op)
        self.empties[op.results[0]] = Buffer(from_mlir(type_.element_type), self._empty_shape(op))

    def _empty_shape(self, op: ir.Operation) -> Shape:
        return self._mixed(ir.RankedTensorType(op.results[0].type).shape, list(op.operands), op)

    def _mixed(self, static: Iterable[int], operands: Iterable[ir.Value], op: ir.Operation) -> Shape:
        """Numbers that an attribute or a type gives, and operands in the place of those that are dynamic."""
        sizes, dynamic = iter(operands), ir.ShapedType.get_dynamic_size()
        return tuple(self._index(next(sizes), op) if extent == dynamic else Constant(extent) for extent in static)

    def _expand_shape(self, op: ir.Operation) -> None:
        static = ir.RankedTensorType(op.results[0].type).shape
        self._view(op, Reshape(self._mixed(static, list(op.operands)[1:], op)))

    def _collapse_shape(self, op: ir.Operation) -> None:
        source = self._shape(op.operands[0])
        groups = reassociation(op)
        self._view(op, Reshape(tuple(_product([source[d] for d in group]) for group in groups)))

    def _slice(self, op: ir.Operation) -> None:
        counts = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
        operands, parts = list(op.operands), []
        for number, name in enumerate(("static_offsets", "static_sizes", "static_strides"), start=1):
            given = operands[sum(counts[:number]) : sum(counts[: number + 1])]
            parts.append(self._mixed(ir.DenseI64ArrayAttr(op.attributes[name]), given, op))
        offsets, shape, steps = parts
        if len(shape) != ir.RankedTensorType(op.results[0].type).rank:
            raise IRError("a slice that drops dimensions", where=op, hint="slice, and then collapse them")
        if not all(isinstance(step, Constant) for step in steps):
            raise IRError("a slice whose step is not constant", where=op)
        self._view(op, Slice(offsets, shape, tuple(s.value for s in steps if isinstance(s, Constant))))

    def _rearrange(self, op: ir.Operation) -> None:
        axes = rearranged_axes(op)
        if axes is None or op.operands[1] not in self.destinations:
            raise IRError(f"{op.name} is no view, and no op of the host function", where=op)
        self._view(op, Rearrange(self.destinations[op.operands[1]], axes))

    def _view(self, op: ir.Operation, view: View) -> None:
        source = self.values[op.operands[0]]
        self.values[op.results[0]] = Value(source.origin, source.position, (*source.views, view))

    def _gathered_view(self, op: ir.Operation) -> None:
        """A kernel that takes a gathered view is passed the view's source."""
        self.values[op.results[0]] = self.values[op.operands[0]]

    def _launch(self, op: ir.Operation) -> None:
        callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
        if callee not in self.declarations:
            raise IRError(f"the host calls {callee}, which has no {LAUNCH}", where=op)
        declaration = self.declarations[callee]
        operands = list(op.operands)
        sizes = iter([self._shape(operands[arg])[dim] for arg, dim in result_sources(declaration)])
        outputs = []
        for result in op.results:
            type_ = ir.RankedTensorType(result.type)
            dynamic = ir.ShapedType.get_dynamic_size()
            shape = tuple(next(sizes) if extent == dynamic else Constant(extent) for extent in type_.shape)
            self.values[result] = Value("buffer", len(self.buffers))
            outputs.append(len(self.buffers))
            self.buffers.append(Buffer(from_mlir(type_.element_type), shape))
        if any(operand not in self.values for operand in operands):
            raise IRError(f"the host passes {callee} a value that it computed", where=op)
        kernel = ir.FlatSymbolRefAttr(declaration.attributes[LAUNCH]).value
        self.launches.append(Launch(kernel, tuple(self.values[v] for v in operands), tuple(outputs)))

    def _return(self, op: ir.Operation) -> None:
        for operand in op.operands:
            if operand in self.empties:  # CSE has merged equal `tensor.empty` ops, which stay separate arrays
                self.values[operand] = Value("buffer", len(self.buffers))
                self.buffers.append(self.empties[operand])
            self.results += (self.values[operand],)

    def _index(self, value: ir.Value, op: ir.Operation) -> Expression:
        if value not in self.indices:
            raise IRError(f"{op.name} uses an index that does not follow from extents", where=op)
        return self.indices[value]

    def _shape(self, value: ir.Value) -> Shape:
        """The extents of a tensor value."""
        seen = self.values[value]
        if seen.shape is not None:
            return seen.shape
        if seen.origin == "buffer":
            return self.buffers[seen.position].shape
        type_ = ir.RankedTensorType(value.type)
        return tuple(
            self._extent(seen.position, d) if type_.is_dynamic_dim(d) else Constant(type_.shape[d])
            for d in range(type_.rank)
        )

    def _extent(self, argument: int, dim: int) -> Symbol:
        if (argument, dim) not in self.extents:
            self.extents.append((argument, dim))
        return Symbol(self.extents.index((argument, dim)))


def _product(extents: list[Expression]) -> Expression:
    result: Expression = Constant(1)
    for extent in extents:
        if isinstance(result, Constant) and isinstance(extent, Constant):
            result = Constant(result.value * extent.value)
        else:
            result = extent if result == Constant(1) else Binary("mul", result, extent)
    return result


def _argument(function: ir.Operation, position: int, type_: ir.Type) -> HostArgument:
    attributes = argument_attributes(function)[position]
    name = ir.StringAttr(attributes[NAME]).value if NAME in attributes else f"arg{position}"
    if not isinstance(type_, ir.RankedTensorType):
        return HostArgument(name, from_mlir(type_), None)
    dynamic = ir.ShapedType.get_dynamic_size()
    shape = tuple(None if extent == dynamic else extent for extent in type_.shape)
    return HostArgument(name, from_mlir(type_.element_type), shape, STRIDES in attributes)
