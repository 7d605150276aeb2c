"""The arguments of the traced `func.func`: types, attributes, and the symbols of their dynamic extents."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith, func, tensor

from mlirfuse.builder.emission.body import convert
from mlirfuse.builder.extents import Dim, Extent, Shape, Symbol
from mlirfuse.builder.spec import STRIDES, ScalarSpec, TensorSpec
from mlirfuse.builder.state import ScalarBase, TensorBase, TraceState
from mlirfuse.builder.tensor import Scalar
from mlirfuse.dialect import attributes
from mlirfuse.dialect.expected_extents import EXTENT_HINTS, hints_attribute
from mlirfuse.support.dtypes import bool_, float64, int64
from mlirfuse.support.strides import attribute_of

Named = Sequence[tuple[str, TensorSpec | ScalarSpec]]


def declare(symbol: str, arguments: Named) -> func.FuncOp:
    """A `func.func` with these arguments and an empty entry block, at the current insertion point."""
    types = [_type(spec) for _, spec in arguments]
    function = func.FuncOp(symbol, ir.FunctionType.get(types, []))
    function.arg_attrs = [_attributes(name, spec) for name, spec in arguments]
    function.add_entry_block()
    return function


def make_symbols(arguments: Named, block: ir.Block) -> list[list[Symbol | None]]:
    """For each argument and dimension the symbol of a dynamic extent; None for a static extent.

    A symbol's `tensor.dim` is emitted at the start of the block.
    """
    by_name: dict[str, Symbol] = {}
    order = 0
    table: list[list[Symbol | None]] = []
    with ir.InsertionPoint(block):
        indices: dict[int, ir.Value] = {}
        for i, (argument, spec) in enumerate(arguments):
            shape = spec.shape if isinstance(spec, TensorSpec) else ()
            row: list[Symbol | None] = []
            for d, extent in enumerate(shape):
                if isinstance(extent, int):
                    row.append(None)
                    continue
                symbol = None if extent is None else by_name.get(extent)
                if symbol is None:
                    symbol = Symbol(extent or f"{argument}.{d}", extent is not None, order)
                    order += 1
                    if d not in indices:
                        index = ir.IndexType.get()
                        indices[d] = arith.ConstantOp(index, ir.IntegerAttr.get(index, d)).result
                    symbol.value = tensor.DimOp(block.arguments[i], indices[d]).result
                    if extent is not None:
                        by_name[extent] = symbol
                symbol.sources.append((i, d))
                row.append(symbol)
            table.append(row)
    return table


def erase_unused_sizes(block: ir.Block) -> None:
    """Erases the `tensor.dim` ops, and the index constants, that nothing uses."""
    for op in reversed(list(block.operations)):
        if op.operation.name in ("tensor.dim", "arith.constant") and not list(op.results[0].uses):
            op.operation.erase()


def traced_argument(
    state: TraceState, name: str, spec: TensorSpec | ScalarSpec, value: ir.Value, symbols: Sequence[Symbol | None]
) -> TensorBase | ScalarBase:
    """The traced value that is passed to the Python function for an argument."""
    if isinstance(spec, TensorSpec):
        shape: Shape = tuple(_extent(extent, s) for extent, s in zip(spec.shape, symbols, strict=True))
        return state.wrap(value, shape, spec.dtype)
    if spec.kind == "bool":
        return Scalar(state, bool_, lambda: convert(value, int64, bool_), name)
    return Scalar(state, float64 if spec.kind == "float" else int64, lambda: value, name)


def _extent(extent: int | str | None, symbol: Symbol | None) -> Extent:
    if symbol is not None:
        return Dim(1, (symbol,))
    assert isinstance(extent, int)
    return extent


def _type(spec: TensorSpec | ScalarSpec) -> ir.Type:
    if isinstance(spec, ScalarSpec):
        return (float64 if spec.kind == "float" else int64).mlir()
    dynamic = ir.ShapedType.get_dynamic_size()
    return ir.RankedTensorType.get([e if isinstance(e, int) else dynamic for e in spec.shape], spec.dtype.mlir())


def _attributes(name: str, spec: TensorSpec | ScalarSpec) -> ir.DictAttr:
    known: dict[str, ir.Attribute] = {attributes.NAME: ir.StringAttr.get(name)}
    if isinstance(spec, TensorSpec):
        known[attributes.ALIGN] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), spec.align)
        if spec.strides is not None:
            known[attributes.STRIDES] = attribute_of([STRIDES[s] for s in spec.strides])
        if spec.hints is not None:
            run_time = [None if isinstance(n, int) else hint for n, hint in zip(spec.shape, spec.hints, strict=True)]
            if any(run_time):
                known[EXTENT_HINTS] = hints_attribute(run_time)
    return ir.DictAttr.get(known)
