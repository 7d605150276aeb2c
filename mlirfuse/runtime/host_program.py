"""The host function of a compiled graph as plain data: buffers, views and launches, with every extent an expression.

Extents are known once the shapes of the arguments are, so an expression's symbols are positions in
`HostProgram.extents`: (argument, dimension) pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from mlir import ir

from mlirfuse.analysis.kernels import (
    KERNEL,
    LAUNCH,
    RESULT_EXTENTS,
    RESULTS,
    argument_attributes,
    body,
    functions,
    symbol,
)
from mlirfuse.dtypes import DType, from_mlir
from mlirfuse.errors import IRError
from mlirfuse.passes.base import location_text
from mlirfuse.runtime.expressions import Binary, Constant, Expression, Symbol

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

_PACK: dict[str, Callable[[Sequence[Any]], Any]] = {"single": itemgetter(0), "tuple": tuple, "list": list}

Shape = tuple[Expression, ...]


@dataclass(frozen=True)
class HostArgument:
    """One argument of the host function.

    Attributes:
        name: the Python parameter's name (`arg0`, ... where the IR has none).
        dtype: element type; the scalar's type where it is no array.
        shape: static extents, None where dynamic; None for a scalar.
    """

    name: str
    dtype: DType
    shape: tuple[int | None, ...] | None


@dataclass(frozen=True)
class Buffer:
    """Memory that a launch writes: an output or an intermediate.

    Attributes:
        dtype: element type.
        shape: extents; the memory is C-contiguous.
    """

    dtype: DType
    shape: Shape


@dataclass(frozen=True)
class Value:
    """A tensor or scalar of the host function: an argument or a buffer, seen with a shape.

    Attributes:
        origin: `argument` or `buffer`.
        position: which argument, or which buffer.
        shape: extents of the view; None for an argument or a buffer as it is.
    """

    origin: str
    position: int
    shape: Shape | None = None


@dataclass(frozen=True)
class Launch:
    """One kernel launch.

    Attributes:
        kernel: the kernel's name.
        inputs: its arguments.
        outputs: positions of the buffers it writes.
    """

    kernel: str
    inputs: tuple[Value, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class HostProgram:
    """What the host does in one call.

    Attributes:
        name: the traced function's name.
        arguments: in call order.
        extents: the (argument, dimension) pair that each symbol of an expression stands for.
        buffers: what launches write; those that `results` name are outputs, the rest intermediates.
        launches: in order; empty where every result is a view of an argument.
        results: in return order.
        structure: how the Python function returned them: `single`, `tuple` or `list`.
    """

    name: str
    arguments: tuple[HostArgument, ...]
    extents: tuple[tuple[int, int], ...]
    buffers: tuple[Buffer, ...]
    launches: tuple[Launch, ...]
    results: tuple[Value, ...]
    structure: str = "tuple"

    @property
    def pack(self) -> Callable[[Sequence[Any]], Any]:
        """Makes of the results what the Python function returned."""
        return _PACK[self.structure]


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
        raise IRError(f"expected one host function, found {len(hosts)}", where=location_text(module))
    return _Reader(hosts[0], declarations).read()


def _structure(function: ir.Operation) -> str:
    """How the results are returned; IR that was written by hand does not say, and gets a tuple."""
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
        self.indices: dict[ir.Value, Expression] = {}
        self.rules: dict[str, Callable[[ir.Operation], None]] = {
            "arith.constant": self._constant,
            "tensor.dim": self._dim,
            "tensor.expand_shape": self._expand_shape,
            "tensor.collapse_shape": self._collapse_shape,
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
                raise IRError(f"{op.name} is not an op of the host function", where=location_text(op))
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
            raise IRError("tensor.dim of a dimension that is not constant", where=location_text(op))
        self.indices[op.results[0]] = self._shape(op.operands[0])[dim.value]

    def _expand_shape(self, op: ir.Operation) -> None:
        sizes = iter([self._index(operand, op) for operand in list(op.operands)[1:]])
        static = ir.RankedTensorType(op.results[0].type).shape
        dynamic = ir.ShapedType.get_dynamic_size()
        self._view(op, tuple(next(sizes) if extent == dynamic else Constant(extent) for extent in static))

    def _collapse_shape(self, op: ir.Operation) -> None:
        source = self._shape(op.operands[0])
        groups = [
            [ir.IntegerAttr(d).value for d in ir.ArrayAttr(g)] for g in ir.ArrayAttr(op.attributes["reassociation"])
        ]
        self._view(op, tuple(_product([source[d] for d in group]) for group in groups))

    def _view(self, op: ir.Operation, shape: Shape) -> None:
        source = self.values[op.operands[0]]
        self.values[op.results[0]] = Value(source.origin, source.position, shape)

    def _launch(self, op: ir.Operation) -> None:
        callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
        if callee not in self.declarations:
            raise IRError(f"the host calls {callee}, which has no {LAUNCH}", where=location_text(op))
        attributes = self.declarations[callee].attributes
        operands = list(op.operands)
        flat = list(ir.DenseI64ArrayAttr(attributes[RESULT_EXTENTS]))
        sizes = iter([self._shape(operands[arg])[dim] for arg, dim in zip(flat[::2], flat[1::2], strict=True)])
        outputs = []
        for result in op.results:
            type_ = ir.RankedTensorType(result.type)
            dynamic = ir.ShapedType.get_dynamic_size()
            shape = tuple(next(sizes) if extent == dynamic else Constant(extent) for extent in type_.shape)
            self.values[result] = Value("buffer", len(self.buffers))
            outputs.append(len(self.buffers))
            self.buffers.append(Buffer(from_mlir(type_.element_type), shape))
        if any(operand not in self.values for operand in operands):
            raise IRError(f"the host passes {callee} a value that it computed", where=location_text(op))
        kernel = ir.FlatSymbolRefAttr(attributes[LAUNCH]).value
        self.launches.append(Launch(kernel, tuple(self.values[v] for v in operands), tuple(outputs)))

    def _return(self, op: ir.Operation) -> None:
        self.results = tuple(self.values[operand] for operand in op.operands)

    def _index(self, value: ir.Value, op: ir.Operation) -> Expression:
        if value not in self.indices:
            raise IRError(f"{op.name} uses an index that does not follow from extents", where=location_text(op))
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


def _product(factors: list[Expression]) -> Expression:
    result: Expression = Constant(1)
    for factor in factors:
        if isinstance(result, Constant) and isinstance(factor, Constant):
            result = Constant(result.value * factor.value)
        else:
            result = factor if result == Constant(1) else Binary("mul", result, factor)
    return result


def _argument(function: ir.Operation, position: int, type_: ir.Type) -> HostArgument:
    attributes = argument_attributes(function)[position]
    name = ir.StringAttr(attributes["fuse.name"]).value if "fuse.name" in attributes else f"arg{position}"
    if not isinstance(type_, ir.RankedTensorType):
        return HostArgument(name, from_mlir(type_), None)
    dynamic = ir.ShapedType.get_dynamic_size()
    shape = tuple(None if extent == dynamic else extent for extent in type_.shape)
    return HostArgument(name, from_mlir(type_.element_type), shape)
