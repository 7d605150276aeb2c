"""Rules of loops over tiles, and of shared memory that a tile program allocates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mlir import ir
from mlir.dialects import scf

from mlirfuse.dialect.attributes import PHASE
from mlirfuse.dialect.joint import JOINT_REDUCTIONS
from mlirfuse.distribution.distributor import Distributor, rule
from mlirfuse.distribution.exchange.steps import STEPS
from mlirfuse.distribution.threads.fragments import Fragments, Uniform, fragment_type, widen
from mlirfuse.distribution.threads.scalars import constant
from mlirfuse.errors import PassError
from mlirfuse.support.rewriting import nested

REDUCTIONS = JOINT_REDUCTIONS | {"vector.multi_reduction"}
"""Ops that may exchange partial results between warps."""


@rule("scf.for")
def for_loop(d: Distributor, op: ir.Operation) -> None:
    """The rule of `scf.for`: a loop that carries a tile carries the fragments of that tile."""
    lower, upper, step, *initial = op.operands
    shapes = [_carried(d, value) for value in initial]
    flat = [v for shape, value in zip(shapes, initial, strict=True) for v in _flatten(d, shape, value)]
    d.force_all()
    levels = tuple(STEPS) if any(inner.name in REDUCTIONS for inner in nested(op)) else ()
    flat += [d.phases[level] if level in d.phases else constant(0) for level in levels]
    loop = scf.ForOp(d.scalars[lower], d.scalars[upper], d.scalars[step], flat)
    block = op.regions[0].blocks[0]
    d.scalars[block.arguments[0]] = loop.induction_variable
    outer, d.in_loop = d.in_loop, True
    if not outer:
        d.loop_mbarriers = None  # the loop counts its own steps
    before, d.phases = d.phases, _last(loop.inner_iter_args, levels)
    layout, threads = d.layout, d.threads
    with ir.InsertionPoint(loop.body), _scope(d):
        _bind(d, shapes, list(block.arguments)[1:], list(loop.inner_iter_args))
        d.distribute_all([inner.operation for inner in block.operations][:-1])
        d.enter([layout])
        terminator = block.operations[len(block.operations) - 1]
        carried = [v for shape, y in zip(shapes, terminator.operands, strict=True) for v in _flatten(d, shape, y)]
        scf.YieldOp([*carried, *(d.phases[level] for level in levels)])
    d.in_loop, d.threads = outer, threads
    d.phases = before | _last(loop.results, levels) if outer else before
    _bind(d, shapes, list(op.results), list(loop.results))


@rule("scf.while")
def while_loop(d: Distributor, op: ir.Operation) -> None:
    """The rule of `scf.while`: the loop carries scalars only, and all threads of a block leave it in the same
    iteration.
    """
    if any(isinstance(value.type, ir.VectorType) for value in (*op.operands, *op.results)):
        raise PassError("an scf.while may carry scalars only, no tiles", where=op, hint="carry tiles in an scf.for")
    d.force_all()
    levels = tuple(STEPS) if any(inner.name in REDUCTIONS for inner in nested(op)) else ()
    phases = [d.phases[level] if level in d.phases else constant(0) for level in levels]
    types = [*(result.type for result in op.results), *(phase.type for phase in phases)]
    loop = scf.WhileOp(types, [*(d.scalars[value] for value in op.operands), *phases])
    outer, d.in_loop = d.in_loop, True
    if not outer:
        d.loop_mbarriers = None  # the loop counts its own steps
    before, layout, threads = d.phases, d.layout, d.threads
    for old, new in zip(op.regions, (loop.before, loop.after), strict=True):
        *inner, terminator = (each.operation for each in old.blocks[0].operations)
        arguments = list(old.blocks[0].arguments)
        block = new.blocks.append(*(argument.type for argument in arguments), *(phase.type for phase in phases))
        d.phases = _last(list(block.arguments), levels)
        with ir.InsertionPoint(block), _scope(d):
            d.scalars.update(zip(arguments, list(block.arguments)[: len(arguments)], strict=True))
            d.distribute_all(inner)
            d.enter([layout])
            values = [d.scalars[value] for value in terminator.operands]
            values += [d.phases[level] for level in levels]
            if terminator.name == "scf.condition":
                scf.ConditionOp(values[0], values[1:])
            else:
                scf.YieldOp(values)
    d.in_loop, d.threads = outer, threads
    d.phases = before | _last(list(loop.results), levels) if outer else before
    d.scalars.update(zip(op.results, list(loop.results)[: len(op.results)], strict=True))


@rule("scf.if")
def branch(d: Distributor, op: ir.Operation) -> None:
    """The rule of `scf.if`, with a condition that is the same in all threads of a block.

    Tiles defined outside that the branch uses are emitted before the branch.
    """
    d.force_all()
    shapes = [_carried(d, result) for result in op.results]
    types = [
        fragment_type(shape.width, shape.element_type) if shape is not None else result.type
        for shape, result in zip(shapes, op.results, strict=True)
        for _ in (shape.keys() if shape is not None else (0,))
    ]
    otherwise = bool(list(op.regions[1].blocks))
    new = scf.IfOp(d.scalars[op.operands[0]], types, has_else=otherwise)
    phases, d.phases = d.phases, {}  # phases counted inside could not be used after the branch
    layout, threads = d.layout, d.threads
    for region, block in zip(op.regions, [new.then_block, *([new.else_block] if otherwise else [])], strict=False):
        with ir.InsertionPoint(block), _scope(d):
            *inner, terminator = region.blocks[0].operations
            d.distribute_all([each.operation for each in inner])
            d.flush()
            d.enter([layout])
            values = zip(shapes, terminator.operation.operands, strict=True)
            scf.YieldOp([v for shape, value in values for v in _flatten(d, shape, value)])
        d.threads = threads
    d.phases = phases
    _bind(d, shapes, list(op.results), list(new.results))


@rule("memref.alloc")
def alloc(d: Distributor, op: ir.Operation) -> None:
    """Allocates the buffer in the block's shared memory."""
    memref_type = ir.MemRefType(op.results[0].type)
    if "workgroup" not in str(memref_type.memory_space):
        raise PassError(f"a tile program may allocate shared memory only, not {memref_type}", where=op)
    alignment = ir.IntegerAttr(op.attributes["alignment"]).value if "alignment" in op.attributes else 16
    marks = {PHASE: op.attributes[PHASE]} if PHASE in op.attributes else {}
    d.scalars[op.results[0]] = d.add_workgroup_buffer(memref_type, alignment, marks)


@contextmanager
def _scope(d: Distributor) -> Iterator[None]:
    """Restores the tiles and `after_exchange` after a region.

    The values of a region are invalid after it, and `force_all` would otherwise emit its unused tiles there.
    """
    tiles, after_exchange = dict(d.tiles), d.after_exchange
    yield
    d.tiles, d.after_exchange = tiles, after_exchange


def _last(values: Sequence[ir.Value], levels: Sequence[str]) -> dict[str, ir.Value]:
    """The phases by level: a loop carries them as its last values."""
    return dict(zip(levels, list(values)[len(values) - len(levels) :], strict=True))


def _carried(d: Distributor, value: ir.Value) -> Fragments | None:
    """The shape of a carried tile; None for a scalar."""
    if not isinstance(value.type, ir.VectorType):
        return None
    vector_type = ir.VectorType(value.type)
    if vector_type.rank != d.layout.rank:
        raise PassError(f"a loop may carry tiles of rank {d.layout.rank}, not {vector_type}", where=value)
    return Fragments(d.layout, tuple(vector_type.shape), vector_type.element_type)


def _flatten(d: Distributor, shape: Fragments | None, value: ir.Value) -> list[ir.Value]:
    if shape is None:
        return [d.scalars[value]]
    tile = d.tile(value)
    if isinstance(tile, Uniform):
        return [widen(tile.value, shape.width) for _ in shape.keys()]
    return [tile.at(key) for key in shape.keys()]


def _bind(d: Distributor, shapes: list[Fragments | None], old: list[ir.Value], new: list[ir.Value]) -> None:
    values = iter(new)
    for shape, value in zip(shapes, old, strict=True):
        if shape is None:
            d.scalars[value] = next(values)
        else:
            tile = shape.like(shape.extents, shape.element_type)
            tile.values = {key: next(values) for key in shape.keys()}
            d.tiles[value] = tile
