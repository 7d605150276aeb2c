"""Traces a Python function into the `linalg` stage (docs/architecture.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlir import ir
from mlir.dialects import func

from mlirfuse.builder.arguments import declare, erase_unused_sizes, make_symbols, traced_argument
from mlirfuse.builder.errors import ChangesOrder
from mlirfuse.builder.extents import Reordered, Symbol
from mlirfuse.builder.signature import bind
from mlirfuse.builder.source import Position, position_of_function
from mlirfuse.builder.spec import ArgumentSpec
from mlirfuse.builder.state import ScalarBase, TensorBase, TraceState
from mlirfuse.builder.tensor import Scalar, Tensor
from mlirfuse.builder.wrong_calls import wrong_call
from mlirfuse.dialect.attributes import EQUAL_EXTENTS, RESULTS
from mlirfuse.errors import TraceError


def trace(
    fn: Callable[..., Any],
    specs: Sequence[ArgumentSpec] | Mapping[str, ArgumentSpec],
    *,
    context: ir.Context,
    name: str | None = None,
    dynamic_products: bool = False,
    dynamic_reductions: bool = False,
    fusion: bool = True,
    known: Reordered | None = None,
) -> ir.Module:
    """Calls `fn` on traced values and returns a module with one `func.func` of what it computed.

    Args:
        fn: takes tensors and numbers; returns a tensor, or a tuple or list of tensors.
        specs: one per argument, in order or by parameter name. A parameter that is left out keeps its Python default,
            as a constant of the compilation.
        context: from `make_context`.
        name: the symbol's name; None takes the function's.
        dynamic_products: whether matrix products may have rows and columns of dynamic extents. Tiles are chosen by
            these extents, so the kernel may be slower than one for known ones.
        dynamic_reductions: whether `max` and `min`, and reductions over leading and further dimensions, may reduce
            leading dimensions of dynamic extents. These are taken to be 1 at least.
        fusion: whether operations of the function may share kernels; otherwise `fuse.operation` keeps them apart.
        known: dimensions whose order in memory the function may change; None for any.

    Besides those of docs/architecture.md, the function gets the attributes `fuse.results` and
    `fuse.equal_extents`, which `result_structure` and `equal_extents` read.

    Raises:
        ArgumentError: the specs do not fit the function's parameters, or a function of mlirfuse is called with
            arguments that it does not take.
        TraceError: the function cannot be traced, or returns anything but tensors.
        NeedsStatic: the function cannot be traced while a certain extent is dynamic.
        ChangesOrder: it changes the order in memory of dimensions that are not `known`.
    """
    signature = bind(fn, specs)
    position = position_of_function(fn)
    symbol_name = name or symbol_of(fn)
    with context, position.location(context):
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function = declare(symbol_name, signature.arguments)
        block = function.body.blocks[0]
        table = make_symbols(signature.arguments, block)
    state = TraceState(context, block, Tensor, dynamic_products, fusion, Scalar, dynamic_reductions)
    for symbol in (symbol for row in table for symbol in row if symbol is not None):
        symbol.state = state
    values = [
        traced_argument(state, name, spec, block.arguments[i], table[i])
        for i, (name, spec) in enumerate(signature.arguments)
    ]
    try:
        structure, results = _results(signature.call(values), state, position)
    except TypeError as error:
        raise wrong_call(error, Tensor) or error from None
    finally:
        state.close()
    if known is not None and state.reordered | known != known:
        raise ChangesOrder(state.reordered)
    with context, function.location:
        with ir.InsertionPoint(block):
            func.ReturnOp([result.value for result in results])
        inputs = function.type.inputs
        outputs = [result.value.type for result in results]
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, outputs))
        function.attributes[RESULTS] = ir.StringAttr.get(structure)
        _record_equalities(function, [symbol for row in table for symbol in row if symbol is not None])
        erase_unused_sizes(block)
    return module


def symbol_of(fn: Callable[..., Any]) -> str:
    """The symbol name of a Python function in the IR: its name, without characters that symbols cannot have."""
    return re.sub(r"\W+", "", getattr(fn, "__name__", "")) or "fused"


def result_structure(function: func.FuncOp) -> str:
    """How the Python function returned its results: `single`, `tuple` or `list`."""
    return ir.StringAttr(function.attributes[RESULTS]).value


def equal_extents(function: func.FuncOp) -> list[list[tuple[int, int]]]:
    """Groups of (argument, dimension) pairs whose extents the IR assumes equal; the caller must check the equality."""
    if EQUAL_EXTENTS not in function.attributes:
        return []
    flat = [list(ir.DenseI64ArrayAttr(group)) for group in ir.ArrayAttr(function.attributes[EQUAL_EXTENTS])]
    return [list(zip(group[::2], group[1::2], strict=True)) for group in flat]


def _results(returned: object, state: TraceState, position: Position) -> tuple[str, list[TensorBase]]:
    """The structure (`single`, `tuple` or `list`) and the tensors of the Python function's result."""
    structure = "tuple" if isinstance(returned, tuple) else "list" if isinstance(returned, list) else "single"
    items = list(returned) if isinstance(returned, tuple | list) else [returned]

    def fail(what: str) -> TraceError:
        hint = "return a tensor, or a tuple or list of tensors"
        return TraceError(f"{position.function} returned {what}", where=position.where, hint=hint)

    if not items:
        raise fail("no tensors")
    results = []
    for i, item in enumerate(items):
        if isinstance(item, TensorBase) and item.state is state:
            results.append(item)
            continue
        place = "" if structure == "single" else f" as result {i}"
        if isinstance(item, TensorBase):
            raise fail(f"a tensor of another trace{place}")
        raise fail(f"{'a run-time scalar' if isinstance(item, ScalarBase) else repr(item)}{place}")
    return structure, results


def _record_equalities(function: func.FuncOp, symbols: list[Symbol]) -> None:
    groups = {symbol.root: sorted(symbol.root.sources) for symbol in symbols}
    flat = [
        ir.DenseI64ArrayAttr.get([number for source in sources for number in source])
        for sources in groups.values()
        if len(sources) > 1
    ]
    if flat:
        function.attributes[EQUAL_EXTENTS] = ir.ArrayAttr.get(flat)
