"""What ops need of their operands for elements of their results at gathered places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mlir import ir

from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.dialect.gathered_view import DEFINITION, Gather, gather_of
from mlirfuse.support.affine_expressions import bounds, substituted, used_dims
from mlirfuse.support.rewriting import defining_op, nested


@dataclass(frozen=True)
class Read:
    """What an op reads at gathered places.

    Attributes:
        value: an operand of the op.
        gather: the places in it; None for a number.
        loops: of the gathered op, along which the places vary.
    """

    value: ir.Value
    gather: Gather | None
    loops: tuple[int, ...]


@dataclass(frozen=True)
class Reading:
    """What an elementwise op needs for elements at gathered places.

    Attributes:
        reads: of its operands, by number.
        known: the arguments of its body that are checks which find the same at all places, and what they find.
        needed: the ops of its body.
    """

    reads: dict[int, Read]
    known: dict[ir.Value, bool]
    needed: set[ir.Operation]


def reading_of(structure: OpStructure, gather: Gather) -> Reading:
    """What an elementwise op, or one that reduces, needs for elements at these places of its result."""
    places = _over_loops(structure, gather)
    known = _known_checks(structure, places)
    needed = needed_ops(structure.op, known)
    reads = {number: _read(structure, number, places) for number in used_operands(structure.op, known, needed)}
    return Reading(reads, known, needed)


def _over_loops(structure: OpStructure, gather: Gather) -> Gather:
    """The places along each loop of an op, by those in its result; loops that reduce are dimensions behind these."""
    count = len(gather.shape)
    summed = {loop: count + n for n, loop in enumerate(structure.reduction_loops)}
    axes = list(structure.result_axes[0])
    places = [
        ir.AffineExpr.get_dim(summed[loop]) if loop in summed else gather.map.results[axes.index(loop)]
        for loop in range(structure.loop_count)
    ]
    extents = [loop_extent(structure, loop) for loop in summed]
    known = tuple((extent,) for extent in extents if extent is not None)  # all of those that are gathered
    return Gather((*gather.basis, *known), ir.AffineMap.get(count + len(summed), 0, places))


def loop_extent(structure: OpStructure, loop: int) -> int | None:
    """The extent of a loop along which operands are read; None where it is known at run time only."""
    read = zip(structure.operand_axes, structure.operand_extents, strict=True)
    pairs = ((own, extent) for axes, extents in read for own, extent in zip(axes or (), extents, strict=False))
    return next((extent for own, extent in pairs if own == loop and extent is not None), None)


def _read(structure: OpStructure, number: int, gather: Gather) -> Read:
    """What an op reads of an operand at places along its loops."""
    operand, axes = structure.operands[number], structure.operand_axes[number]
    if not axes:
        return Read(operand, None, ())
    rank, nothing = len(gather.shape), ir.AffineExpr.get_constant(0)
    chosen = [nothing if axis is None else gather.map.results[axis] for axis in axes]
    loops = sorted(frozenset[int]().union(*map(used_dims, chosen))) or list(range(rank))[-1:]
    places = [ir.AffineExpr.get_dim(loops.index(d)) if d in loops else nothing for d in range(rank)]
    own = ir.AffineMap.get(len(loops), 0, [substituted(expr, places) for expr in chosen])
    return Read(operand, Gather(tuple((gather.shape[d],) for d in loops), own), tuple(loops))


def _known_checks(structure: OpStructure, gather: Gather) -> dict[ir.Value, bool]:
    """The arguments of an op's body that are checks which find the same at all places along its loops, and what.

    None of a reduction, whose loops may have no other operand along them.
    """
    known: dict[ir.Value, bool] = {}
    if structure.reduction_loops:
        return known
    for number, operand in enumerate(structure.operands[:-1]):
        check = defining_op(operand)
        if check is None or check.name != DEFINITION.full_name or not gather_of(check.attributes).inside:
            continue
        own = _read(structure, number, gather).gather
        if own is None or gather_of(check.attributes).joins_components:
            continue
        found = gather_of(check.attributes).selected(own)
        ends = [bounds(expr, found.components) for expr in found.map.results]
        pairs = list(zip(ends, found.inside or (), strict=True))
        argument = structure.op.regions[0].blocks[0].arguments[number]
        if all(low >= 0 and high < extent for (low, high), extent in pairs):
            known[argument] = True
        elif any(high < 0 or low >= extent for (low, high), extent in pairs):
            known[argument] = False
    return known


def needed_ops(op: ir.Operation, known: Mapping[ir.Value, bool]) -> set[ir.Operation]:
    """The ops of a body that its result needs, where it is known what some checks find."""
    *_, end = op.regions[0].blocks[0].operations
    needed, open_ = set[ir.Operation](), [end.operation]
    while open_:
        inner = open_.pop()
        if inner not in needed:
            needed.add(inner)
            open_ += [made for value in _operands(inner, known) if (made := defining_op(value)) is not None]
    return needed


def used_operands(op: ir.Operation, known: Mapping[ir.Value, bool], needed: Iterable[ir.Operation]) -> list[int]:
    """The numbers of the operands that the needed ops of a body read, but the last, where it is known what some checks
    find.
    """
    used = {operand for inner in needed for operand in _operands(inner, known)}
    return [number for number, argument in enumerate(list(op.regions[0].blocks[0].arguments)[:-1]) if argument in used]


def _operands(op: ir.Operation, known: Mapping[ir.Value, bool]) -> list[ir.Value]:
    """What an op of a body needs: of a selection by a known check what is selected."""
    chosen = chosen_by(op, known)
    inner = [operand for each in nested(op) for operand in each.operands]
    return inner if chosen is None else [chosen]


def chosen_by(op: ir.Operation, known: Mapping[ir.Value, bool]) -> ir.Value | None:
    """What a selection by a known check selects; None for another op."""
    if op.name != "arith.select" or op.operands[0] not in known:
        return None
    return op.operands[1 if known[op.operands[0]] else 2]
