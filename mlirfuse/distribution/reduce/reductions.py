"""The rule of `vector.multi_reduction`: reduces in registers, over lanes, then (through `exchange`) over warps and
blocks.

Every step combines in a fixed order, so that results have the same bits in every run: a few accumulators for a thread's
elements, a butterfly over lanes, and a pairwise tree or a butterfly over warps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlir import ir
from mlir.dialects import arith

from mlirfuse.analysis.arithmetic.combining import COMBINING, neutral
from mlirfuse.distribution.distributor import Distributor, rule
from mlirfuse.distribution.exchange.exchange import Exchange, LaneReduction, Receivers
from mlirfuse.distribution.exchange.partials import Combine, Partials, tree
from mlirfuse.distribution.threads.fragments import Fragments, Key, Uniform, elements, splat, widen
from mlirfuse.distribution.threads.scalars import constant, less
from mlirfuse.distribution.threads.shuffles import butterfly, lane_offsets
from mlirfuse.distribution.threads.threads import Threads
from mlirfuse.errors import PassError
from mlirfuse.schedule.layout import BlockedLayout


@rule("vector.multi_reduction")
def multi_reduction(d: Distributor, op: ir.Operation) -> None:
    """Reduces a tile along some dimensions; all threads along these dimensions get the same result.

    A reduction of neutral elements only needs no exchange.
    """
    start = d.tile(op.operands[1]) if op.operands[1] in d.tiles else Uniform(d.scalars[op.operands[1]])
    result_layout = _result_layout(d, op)
    if (number := _neutral_in_all(d, op, start)) is not None:
        reduced = ir.DenseI64ArrayAttr(op.attributes["reduction_dims"])
        shape = ir.VectorType(op.operands[0].type).shape
        d.tiles[op.results[0]] = splat(result_layout, [1 if n in reduced else e for n, e in enumerate(shape)], number)
        return
    source = d.fragments(op.operands[0])
    # All threads along a dimension of extent 1 hold copies, so nothing is combined there.
    dims = tuple(dim for dim in ir.DenseI64ArrayAttr(op.attributes["reduction_dims"]) if source.varies(dim))
    op_name = combining_op(op.attributes["kind"], source.element_type)
    combine = combiner(op_name)
    identity = arith.ConstantOp(source.element_type, neutral(op_name, source.element_type)).result

    inside = mask_padding(d, source, dims, identity)
    if isinstance(start, Fragments) and d.layout.is_alone(dims) and d.layout.vector_dim not in dims:
        d.tiles[op.results[0]] = add_in_thread(inside, dims, combine, start)
        return
    partial = reduce_in_thread(d, inside, dims, combine)
    result = Fragments(result_layout, partial.extents, partial.element_type)
    receivers = None if result_layout == d.layout else Receivers(result, Threads(result_layout, d.first_thread))

    def merge(partials: Partials, level: str) -> tuple[ir.Value, ...]:
        return (partials.combine(lambda p: p.values[0], combine, widen(identity, partial.width)),)

    def deliver(key: Key, values: tuple[ir.Value, ...]) -> None:
        value = values[0]
        if not (isinstance(start, Uniform) and _is_neutral(start.value, op_name)):
            initial = start.at(key) if isinstance(start, Fragments) else widen(start.value, partial.width)
            value = combine(initial, value)
        result.values[key] = value

    d.tiles[op.results[0]] = result
    d.pending.append(Exchange((partial,), dims, merge, deliver, LaneReduction(op_name, combine), receivers))
    if receivers is not None and (d.pending[-1].warps == 1 or d.pending[-1].blocks > 1):
        raise PassError(
            "the result of a reduction has another layout than its source, which only a reduction over several warps "
            "of one block may have",
            where=op,
            hint="use the result in the layout of its source",
        )
    if not d.pending[-1].needed:
        d.flush()


def _result_layout(d: Distributor, op: ir.Operation) -> BlockedLayout:
    """The layout in which a reduction's result is used: the layout of all of its users, or else that of its tile."""
    layouts = {layout for use in op.results[0].uses for layout in d.layouts_of(use.owner.operation)}
    return layouts.pop() if len(layouts) == 1 else d.layout


def combining_op(kind: ir.Attribute, element_type: ir.Type) -> str:
    """The `arith` op of a combining kind."""
    name = str(kind).split("<")[-1].rstrip(">")
    suffix = "i" if isinstance(element_type, ir.IntegerType) else "f"
    for op_name, known in COMBINING.items():
        if known.kind.name.lower() == name and (known.kind.name not in ("ADD", "MUL") or op_name.endswith(suffix)):
            return op_name
    raise PassError(
        f"no rule for a reduction of kind {name}",
        where=ir.Location.current,
        hint=f"kinds: {', '.join(k.kind.name.lower() for k in COMBINING.values())}",
    )


def combiner(op_name: str) -> Combine:
    """Builds `op_name(a, b)`."""

    def combine(a: ir.Value, b: ir.Value) -> ir.Value:
        return ir.Operation.create(op_name, results=[a.type], operands=[a, b]).results[0]

    return combine


def product_of_sum(a: ir.Value, b: ir.Value) -> ir.Value:
    """Builds `a * b` for a product that is only added: both ops may become one fused multiply-add."""
    return arith.MulFOp(a, b, fastmath=arith.FastMathFlags.contract).result


def mask_padding(d: Distributor, source: Fragments, dims: Sequence[int], identity: ir.Value) -> Fragments:
    """The tile with `identity` in place of elements beyond the tile's extents along `dims`."""
    inside: dict[tuple[int, int], ir.Value] = {}

    def masked(key: Key) -> ir.Value:
        value = source.at(key)
        for dim in dims:
            if not source.padded(key, dim) and not source.may_precede_row(key, dim):
                continue
            where = (dim, key[dim])
            if where not in inside:
                inside[where] = _inside(d, source, dim, key[dim])
            value = arith.SelectOp(inside[where], value, widen(identity, source.width)).result
        return value

    return source.like(source.extents, source.element_type, masked)


def _inside(d: Distributor, source: Fragments, dim: int, repeat: int) -> ir.Value:
    """Whether a fragment is inside the tile along `dim`; for a shifted or realigned row, a mask over the fragment's
    elements.
    """
    index, extent = d.threads.index(dim, repeat), source.extents[dim]
    if not source.layout.slack(dim):
        return less(index, constant(extent))
    i32 = ir.IntegerType.get_signless(32)
    vector_type = ir.VectorType.get([source.width], i32)
    column = arith.SubIOp(index, d.shift()).result if source.layout.is_shifted else index
    if source.layout.is_shifted_to_lines:
        return less(column, constant(extent))
    first = widen(arith.IndexCastOp(i32, column).result, source.width)
    steps = ir.DenseElementsAttr.get([ir.IntegerAttr.get(i32, n) for n in range(source.width)], vector_type)
    each = arith.AddIOp(first, arith.ConstantOp(vector_type, steps).result).result
    bound = ir.DenseElementsAttr.get_splat(vector_type, ir.IntegerAttr.get(i32, extent))
    return less(each, arith.ConstantOp(vector_type, bound).result)  # unsigned: negative indices are large


NARROW_ACCUMULATORS, FEWEST_ACCUMULATORS = 4, 2
"""Accumulators of a thread that has few registers: enough to hide the latency of an addition. Two suffice where
fragments are spilled to shared memory in order, because such a kernel has enough warps.
"""


def reduce_in_thread(d: Distributor, source: Fragments, dims: Sequence[int], combine: Combine) -> Fragments:
    """Combines one thread's elements along `dims`."""
    extents = tuple(1 if dim in dims else extent for dim, extent in enumerate(source.extents))
    result = source.like(extents, source.element_type)
    for key, keys in reduction_groups(source, dims).items():
        result.values[key] = reduce_fragments(d, source, keys, dims, combine)
    return result


def add_in_thread(source: Fragments, dims: Sequence[int], combine: Combine, start: Fragments) -> Fragments:
    """Combines one thread's elements along `dims` with `start`, fragment by fragment: of what is kept, only the
    innermost dimension varies faster than what is reduced, so that neighbouring instructions do not wait for one
    another, and few elements are live at once.
    """
    result = source.like(tuple(1 if dim in dims else n for dim, n in enumerate(source.extents)), source.element_type)
    outer = [dim for dim in range(source.layout.rank) if dim not in dims and source.repeats(dim) > 1][:-1]
    for key in sorted(source.keys(), key=lambda key: [key[dim] for dim in outer]):
        kept = tuple(0 if dim in dims else r for dim, r in enumerate(key))
        before = result.values[kept] if kept in result.values else start.at(kept)
        result.values[kept] = combine(before, source.at(key))
    return result


def reduction_groups(source: Fragments, dims: Sequence[int]) -> dict[Key, list[Key]]:
    """The fragments that are combined into one, by the key of the result."""
    groups: dict[Key, list[Key]] = {}
    for key in source.keys():
        kept = tuple(0 if dim in dims else r for dim, r in enumerate(key))
        groups.setdefault(kept, []).append(key)
    return groups


def reduce_fragments(
    d: Distributor, source: Fragments, keys: Iterable[Key], dims: Sequence[int], combine: Combine
) -> ir.Value:
    """Combines fragments of a thread into one that does not vary along `dims`."""
    fragments = (source.at(key) for key in keys)
    if source.width == 1 or source.layout.vector_dim not in dims:
        return _accumulate(fragments, combine)
    most = FEWEST_ACCUMULATORS if d.in_order else NARROW_ACCUMULATORS if d.depth_first else source.width
    return _accumulate_elements(fragments, combine, min(most, source.width))


def reduce_packed(source: Fragments, keys: Iterable[Key], dims: Sequence[int], combine: Combine) -> ir.Value:
    """Like `reduce_fragments`, but combines whole fragments first, so that half precision ops process two elements at a
    time.
    """
    combined = _accumulate((source.at(key) for key in keys), combine)
    horizontal = source.width > 1 and source.layout.vector_dim in dims
    return tree(elements(combined), combine) if horizontal else combined


def _accumulate_elements(fragments: Iterable[ir.Value], combine: Combine, count: int) -> ir.Value:
    """Combines all elements of some fragments in `count` accumulators.

    Each fragment is emitted just before its elements are combined.
    """
    accumulators: list[ir.Value] = []
    for fragment in fragments:
        for position, element in enumerate(elements(fragment)):
            if len(accumulators) < count:
                accumulators.append(element)
            else:
                slot = position % count
                accumulators[slot] = combine(accumulators[slot], element)
    return tree(accumulators, combine)


def _accumulate(fragments: Iterable[ir.Value], combine: Combine) -> ir.Value:
    combined = None
    for fragment in fragments:
        combined = fragment if combined is None else combine(combined, fragment)
    assert combined is not None  # a tile has at least one fragment
    return combined


def reduce_over_lanes(source: Fragments, dims: Sequence[int], combine: Combine) -> Fragments:
    """Combines over the lanes along `dims`; every lane gets the result."""
    result = source.like(source.extents, source.element_type)
    for key in source.keys():
        value = source.at(key)
        for offset in lane_offsets(source.layout, dims):
            value = combine(value, butterfly(value, offset))
        result.values[key] = value
    return result


def _neutral_in_all(d: Distributor, op: ir.Operation, start: Fragments | Uniform) -> ir.Value | None:
    """The result of a reduction that combines nothing but neutral elements."""
    tile = d.tile(op.operands[0])
    if not isinstance(tile, Uniform) or not isinstance(start, Uniform):
        return None
    op_name = combining_op(op.attributes["kind"], tile.element_type)
    return tile.value if _is_neutral(tile.value, op_name) and _is_neutral(start.value, op_name) else None


def _is_neutral(value: ir.Value, op_name: str) -> bool:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return False
    return owner.operation.attributes["value"] == neutral(op_name, value.type)
