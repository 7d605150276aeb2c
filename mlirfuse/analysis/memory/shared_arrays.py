"""Which arguments of a kernel are one array, as far as its calls say."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.analysis.kernels import body, functions, symbol
from mlirfuse.analysis.memory.host_views import layout_of
from mlirfuse.dialect.attributes import ALIGN, LAUNCH
from mlirfuse.dialect.gathered_view import DEFINITION
from mlirfuse.schedule.model.machine import DEFAULT_ALIGNMENT, WIDEST_ACCESS
from mlirfuse.support.dtypes import element_bytes
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


def source_alignment(calls: Sequence[Sequence[ir.Value]], number: int, default: int) -> int:
    """Bytes that the arrays are aligned to that calls pass for an argument, or views of them; where there is no call,
    what is given.
    """
    declared = [layout_of(call[number]).get(ALIGN) for call in calls]
    known = [DEFAULT_ALIGNMENT if align is None else ir.IntegerAttr(align).value for align in declared]
    return min(known, default=default)


def component_of(value: ir.Value) -> tuple[ir.Value, int] | None:
    """The array that a value has every second, third, ... element of, along the last axis, and the first of these; None
    for any other value.
    """
    maker = defining_op(value)
    if maker is not None and maker.name == "tensor.collapse_shape":
        maker = defining_op(maker.operands[0])
    if maker is None or maker.name != "tensor.extract_slice":
        return None
    offsets, steps = (list(ir.DenseI64ArrayAttr(maker.attributes[f"static_{name}"])) for name in ("offsets", "strides"))
    outer = (*offsets[:-1], *(step - 1 for step in steps[:-1]))
    dynamic = ir.ShapedType.get_dynamic_size()
    return None if any(outer) or dynamic in (offsets[-1], steps[-1]) else (maker.operands[0], offsets[-1])


def is_part_of_access(type_: ir.Type) -> bool:
    """Whether rows of an array of that type are shorter than the widest access."""
    extent = last_extent(type_)
    return extent is not None and extent * element_bytes(type_) < WIDEST_ACCESS


def last_extent(type_: ir.Type) -> int | None:
    """Elements of a row of an array of that type; None where run time has to say."""
    shaped = ir.RankedTensorType(type_)
    last = shaped.rank - 1
    return 1 if last < 0 else None if shaped.is_dynamic_dim(last) else shaped.shape[last]


def _source(value: ir.Value) -> ir.Value:
    maker = defining_op(value)
    return maker.operands[0] if maker is not None and maker.name == DEFINITION.full_name else value
