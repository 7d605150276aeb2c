"""Rules of elementwise ops, and of ops that rename or repeat elements."""

from __future__ import annotations

from functools import partial
from math import prod

from mlir import ir
from mlir.dialects import arith

from mlirfuse.analysis.arithmetic.patterns import WIDENING
from mlirfuse.dialect.attributes import DIMS
from mlirfuse.distribution.distributor import Distributor, rule
from mlirfuse.distribution.threads.fragments import Fragments, Key, Uniform, fragment_type, splat, widen
from mlirfuse.errors import PassError
from mlirfuse.support.rewriting import defining_op
from mlirfuse.tiling.contractions.k_loop import widens_operand


@rule("elementwise")
def elementwise(d: Distributor, op: ir.Operation) -> None:
    """The rule of `arith` and `math` ops: the same op on every fragment."""
    if widens_operand(op):
        return
    operands = [d.tile(v) if v in d.tiles else Uniform(d.scalars[v]) for v in op.operands]
    attributes = {name: op.attributes[name] for name in op.attributes}
    shaped = [o for o in operands if isinstance(o, Fragments)]
    if not shaped:
        scalars = [o.value for o in operands if isinstance(o, Uniform)]
        results = [ir.VectorType(r.type).element_type for r in op.results]
        new = ir.Operation.create(op.name, results=results, operands=scalars, attributes=attributes)
        for old, value in zip(op.results, new.results, strict=True):
            d.tiles[old] = Uniform(value)
        return
    model = shaped[0]
    outputs = [model.like(model.extents, ir.VectorType(r.type).element_type) for r in op.results]

    def emit(key: Key, wanted: int) -> ir.Value:
        values = [o.at(key) if isinstance(o, Fragments) else widen(o.value, model.width) for o in operands]
        with op.location:
            new = ir.Operation.create(
                op.name, results=[o.type for o in outputs], operands=values, attributes=attributes
            )
        for output, value in zip(outputs, new.results, strict=True):
            output.values[key] = value
        return outputs[wanted].values[key]

    for number, (old, output) in enumerate(zip(op.results, outputs, strict=True)):
        output.make = partial(emit, wanted=number)
        d.tiles[old] = output


@rule("arith.constant")
def constant(d: Distributor, op: ir.Operation) -> None:
    """The rule of `arith.constant`: a splat becomes a uniform value, and a scalar is copied."""
    result_type = op.results[0].type
    value = op.attributes["value"]
    if not isinstance(result_type, ir.VectorType):
        d.scalars[op.results[0]] = arith.ConstantOp(result_type, value).result
        return
    dense = ir.DenseElementsAttr(value)
    if not dense.is_splat:
        raise PassError(
            f"the elements of a tile constant of type {result_type} differ: tile constants must be splats",
            where=op,
            hint="pass the numbers as an argument of the function",
        )
    d.tiles[op.results[0]] = Uniform(arith.ConstantOp(result_type.element_type, dense.get_splat_value()).result)


@rule("fuse.optimization_barrier")
def optimization_barrier(d: Distributor, op: ir.Operation) -> None:
    """The rule of `fuse.optimization_barrier`: each fragment depends on the corresponding fragment of `after`."""
    source, after = d.fragments(op.operands[0]), d.tile(op.operands[1])

    def emit(key: Key) -> ir.Value:
        return source.after(key, after.value if isinstance(after, Uniform) else after.at(key))

    d.tiles[op.results[0]] = source.like(source.extents, source.element_type, emit)


def recast(d: Distributor, value: ir.Value, after: Fragments) -> Fragments:
    """The fragments of a tile, made available only after `after`: a widening cast or a reload is emitted again then."""
    owner = widening_of(d, value)
    if owner is None:
        tile = d.fragments(value)
        if tile.rematerialize is None:
            return tile
        return tile.like(tile.extents, tile.element_type, lambda key: tile.after(key, after.at(key)))
    narrow = d.fragments(owner.operands[0])
    element_type = ir.VectorType(value.type).element_type
    return narrow.like(
        narrow.extents, element_type, lambda key: widened(owner, narrow.after(key, after.at(key)), element_type)
    )


def widening_of(d: Distributor, value: ir.Value) -> ir.Operation | None:
    """The widening cast that made a tile from a narrower one; None if none did."""
    owner = defining_op(value)
    if owner is None or owner.name not in WIDENING or owner.operands[0] not in d.tiles:
        return None
    return owner


def widened(cast: ir.Operation, fragment: ir.Value, element_type: ir.Type) -> ir.Value:
    """The cast `cast` applied to one fragment, with a result of `element_type`."""
    width = ir.VectorType(fragment.type).shape[0] if isinstance(fragment.type, ir.VectorType) else 1
    wide = fragment_type(width, element_type)
    return ir.Operation.create(cast.name, results=[wide], operands=[fragment]).results[0]


@rule("vector.broadcast")
def broadcast(d: Distributor, op: ir.Operation) -> None:
    """The rule of `vector.broadcast`: repeats a value along dimensions of extent 1, or a scalar along all."""
    source = op.operands[0]
    if source not in d.tiles:
        d.tiles[op.results[0]] = Uniform(d.scalars[source])
        return
    tile = d.tile(source)
    shape = tuple(ir.VectorType(op.results[0].type).shape)
    if isinstance(tile, Uniform) or (len(shape) != d.layout.rank and set(shape) <= {1}):
        d.tiles[op.results[0]] = tile
        return
    extents = _extents_in_layout(d, op)
    widened: dict[ir.Value, ir.Value] = {}

    def repeat(key: Key) -> ir.Value:
        value = tile.at(key)
        if value not in widened:
            widened[value] = widen(value, result.width)
        return widened[value]

    result = tile.like(extents, tile.element_type, repeat)
    d.tiles[op.results[0]] = result


def _extents_in_layout(d: Distributor, op: ir.Operation) -> tuple[int, ...]:
    """The extent of a broadcast's result in each dimension of the layout.

    Canonicalisation may drop unit dimensions before the broadcast, so the result type alone does not identify the
    layout dimensions; the transfer write that stores the result does.
    """
    shape, rank = tuple(ir.VectorType(op.results[0].type).shape), d.layout.rank
    if len(shape) == rank:
        return shape
    for use in op.results[0].uses:
        written = use.owner.operation
        if written.name == "vector.transfer_write" and DIMS in written.attributes:
            kept = dict(zip(ir.DenseI64ArrayAttr(written.attributes[DIMS]), shape, strict=True))
            return tuple(kept.get(dim, 1) for dim in range(rank))
    raise PassError(
        f"a broadcast to {shape} does not say which of the {rank} dimensions of its layout these are",
        where=op,
        hint="broadcast in all dimensions, and drop those of extent 1 with a vector.shape_cast",
    )


@rule("vector.shape_cast")
def shape_cast(d: Distributor, op: ir.Operation) -> None:
    """The rule of `vector.shape_cast`, which adds or drops dimensions of extent 1; fragments stay the same."""
    source, result = ([n for n in ir.VectorType(v.type).shape if n != 1] for v in (op.operands[0], op.results[0]))
    if source != result:
        raise PassError(
            f"a tile's shape_cast may only add or drop extents of 1, not change {op.operands[0].type} "
            f"to {op.results[0].type}",
            where=op,
        )
    tile = d.tiles[op.operands[0]]
    shape, rank = ir.VectorType(op.operands[0].type).shape, d.layout.rank
    if isinstance(tile, Uniform) and len(shape) == rank > ir.VectorType(op.results[0].type).rank:
        tile = splat(d.layout, shape, tile.value)  # the result type does not identify the remaining dimensions
    # A shape cast reads no element, so fragments that wait for an exchange stay pending.
    d.tiles[op.results[0]] = tile


@rule("vector.extract")
def extract(d: Distributor, op: ir.Operation) -> None:
    """The scalar of a tile with one element. Canonicalisation turns reductions over unit dimensions into
    `vector.extract`.
    """
    source = ir.VectorType(op.operands[0].type)
    if prod(source.shape) != 1 or isinstance(op.results[0].type, ir.VectorType):
        raise PassError(f"only a tile of one element becomes a scalar, not {source}", where=op)
    d.scalars[op.results[0]] = d.number(op.operands[0])


@rule("vector.extract_strided_slice")
def extract_repeats(d: Distributor, op: ir.Operation) -> None:
    """The rule of `vector.extract_strided_slice`: each thread takes some of its own fragments.

    Raises:
        PassError: the slice does not begin at a thread's first fragment of a repeat, or has parts of a repeat.
    """
    source = d.tile(op.operands[0])
    if isinstance(source, Uniform):
        d.tiles[op.results[0]] = source
        return
    layout, shape = source.layout, tuple(ir.VectorType(op.results[0].type).shape)
    offsets = [ir.IntegerAttr(n).value for n in op.attributes["offsets"]]
    firsts = []
    for dim, (offset, extent, whole) in enumerate(zip(offsets, shape, source.extents, strict=True)):
        repeat, beyond = divmod(offset, layout.repeat_stride(dim))
        if extent != whole and (beyond or extent % layout.repeat_stride(dim) or layout.slack(dim)):
            raise PassError(f"elements {offset} to {offset + extent} are no whole repeats of {layout}", where=op)
        firsts.append(repeat * layout.within(dim) * layout.neighbours(dim))

    def make(key: Key) -> ir.Value:
        return source.at(tuple(first + number for first, number in zip(firsts, key, strict=True)))

    d.tiles[op.results[0]] = source.like(shape, source.element_type, make)
