"""The rule of `vector.multi_reduction`: registers, then lanes, then (through `exchange`) warps and blocks.

Every step combines in a fixed order, so results are the same bits on every run: a pairwise tree over a thread's
elements, a butterfly over lanes, a pairwise tree over warps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir
from mlir.dialects import arith

from mlirfuse.distribution.distributor import Distributor, rule
from mlirfuse.distribution.exchange import Exchange
from mlirfuse.distribution.fragments import Fragments, Key, Uniform, elements, widen
from mlirfuse.distribution.scalars import constant, less
from mlirfuse.distribution.shuffles import butterfly
from mlirfuse.errors import PassError
from mlirfuse.tiling.combining import KINDS, neutral

Combine = Callable[[ir.Value, ir.Value], ir.Value]


@rule("vector.multi_reduction")
def multi_reduction(d: Distributor, op: ir.Operation) -> None:
    """Reduces a tile along some dimensions; the result is the same in all threads along them."""
    source = d.fragments(op.operands[0])
    start = d.tile(op.operands[1]) if op.operands[1] in d.tiles else Uniform(d.scalars[op.operands[1]])
    dims = tuple(ir.DenseI64ArrayAttr(op.attributes["reduction_dims"]))
    op_name = combining_op(op.attributes["kind"], source.element_type)
    combine = combiner(op_name)
    identity = arith.ConstantOp(source.element_type, neutral(op_name, source.element_type)).result

    partial = reduce_in_thread(mask_padding(d, source, dims, identity), dims, combine)
    partial = reduce_over_lanes(partial, dims, combine)
    result = partial.empty(partial.extents, partial.element_type)

    def finish(parts: Sequence[tuple[ir.Value, ...]], level: str) -> tuple[ir.Value, ...]:
        return (tree([part[0] for part in parts], combine),)

    def deliver(key: Key, values: tuple[ir.Value, ...]) -> None:
        value = values[0]
        if not (isinstance(start, Uniform) and _is_neutral(start.value, op_name)):
            initial = start.at(key) if isinstance(start, Fragments) else widen(start.value, partial.width)
            value = combine(initial, value)
        result.values[key] = value

    d.tiles[op.results[0]] = result
    d.pending.append(Exchange((partial,), dims, finish, deliver))
    if not d.pending[-1].needed:
        d.flush()


def combining_op(kind: ir.Attribute, element_type: ir.Type) -> str:
    """The `arith` op of a combining kind."""
    name = str(kind).split("<")[-1].rstrip(">")
    suffix = "i" if isinstance(element_type, ir.IntegerType) else "f"
    for op_name, known in KINDS.items():
        if known.name.lower() == name and (known.name not in ("ADD", "MUL") or op_name.endswith(suffix)):
            return op_name
    raise PassError(f"no rule for a reduction of kind {name}", hint=f"kinds: {', '.join(k.name for k in KINDS.values())}")


def combiner(op_name: str) -> Combine:
    """Builds `op_name(a, b)`."""

    def combine(a: ir.Value, b: ir.Value) -> ir.Value:
        return ir.Operation.create(op_name, results=[a.type], operands=[a, b]).results[0]

    return combine


def tree(values: Sequence[ir.Value], combine: Combine) -> ir.Value:
    """Combines values pairwise."""
    level = list(values)
    while len(level) > 1:
        paired = [combine(a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = paired + (level[-1:] if len(level) % 2 else [])
    return level[0]


def mask_padding(d: Distributor, source: Fragments, dims: Sequence[int], identity: ir.Value) -> Fragments:
    """The tile with `identity` in place of elements that lie past its extents along `dims`."""
    masked = source.empty(source.extents, source.element_type)
    inside: dict[tuple[int, int], ir.Value] = {}
    for key, value in source.values.items():
        for dim in dims:
            if not source.padded(key, dim):
                continue
            where = (dim, key[dim])
            if where not in inside:
                inside[where] = less(d.threads.index(dim, key[dim]), constant(source.extents[dim]))
            value = arith.SelectOp(inside[where], value, widen(identity, source.width)).result
        masked.values[key] = value
    return masked


def reduce_in_thread(source: Fragments, dims: Sequence[int], combine: Combine) -> Fragments:
    """Combines what one thread holds along `dims`."""
    extents = tuple(1 if d in dims else extent for d, extent in enumerate(source.extents))
    result = source.empty(extents, source.element_type)
    groups: dict[Key, list[ir.Value]] = {}
    for key in source.keys():
        kept = tuple(0 if d in dims else r for d, r in enumerate(key))
        groups.setdefault(kept, []).append(source.values[key])
    for key, values in groups.items():
        value = tree(values, combine)
        if source.width > 1 and source.layout.vector_dim in dims:
            value = tree(elements(value), combine)
        result.values[key] = value
    return result


def reduce_over_lanes(source: Fragments, dims: Sequence[int], combine: Combine) -> Fragments:
    """Combines over the lanes along `dims`; every one of them gets the result."""
    result = source.empty(source.extents, source.element_type)
    for key, value in source.values.items():
        for offset in lane_offsets(source, dims):
            value = combine(value, butterfly(value, offset))
        result.values[key] = value
    return result


def lane_offsets(source: Fragments, dims: Sequence[int]) -> list[int]:
    """The xor distances that join all lanes along `dims`."""
    offsets = []
    for dim in dims:
        step = 1
        for lanes in source.layout.lanes[dim + 1 :]:
            step *= lanes
        span = source.layout.lanes[dim]
        while span > 1:
            span //= 2
            offsets.append(span * step)
    return offsets


def _is_neutral(value: ir.Value, op_name: str) -> bool:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return False
    return owner.operation.attributes["value"] == neutral(op_name, value.type)


