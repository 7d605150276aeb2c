"""Which arguments of a kernel are one array, as far as its calls say."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.analysis.kernels import body, functions, symbol
from mlirfuse.dialect.attributes import LAUNCH
from mlirfuse.dialect.gathered_view import DEFINITION
from mlirfuse.support.rewriting import defining_op

Calls = dict[str, list[Sequence[ir.Value]]]
"""What each call passes to a kernel, by the kernel's symbol: of a gathered view its source."""


def passed_arrays(module: ir.Operation) -> Calls:
    """What the calls of a module's functions pass to its kernels."""
    names = {
        symbol(f): ir.FlatSymbolRefAttr(f.attributes[LAUNCH]).value for f in functions(module) if LAUNCH in f.attributes
    }
    found: Calls = {}
    for function in functions(module):
        for op in body(function):
            if op.name == "func.call":
                callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
                found.setdefault(names.get(callee, callee), []).append([_source(v) for v in op.operands])
    return found


def shared_arrays(calls: Sequence[Sequence[ir.Value]]) -> list[int]:
    """For each argument the first one that all calls pass the same array for; nothing where there is no call."""
    first: dict[tuple[ir.Value, ...], int] = {}
    return [first.setdefault(tuple(each), number) for number, each in enumerate(zip(*calls, strict=True))]


def _source(value: ir.Value) -> ir.Value:
    maker = defining_op(value)
    return maker.operands[0] if maker is not None and maker.name == DEFINITION.full_name else value
