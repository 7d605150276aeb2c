"""Gathered elements of computed values, made by ops on gathered elements of what these ops read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

from mlir import ir
from mlir.dialects import linalg, tensor

from mlirfuse.analysis.arithmetic.instruction_counts import Instructions
from mlirfuse.analysis.arithmetic.ranges import Ranges
from mlirfuse.analysis.kernels import body
from mlirfuse.analysis.loops.maps import projection
from mlirfuse.analysis.loops.structure import OpStructure, structure_of
from mlirfuse.analysis.memory.host_views import RESHAPES, extents_of, is_host_view, is_memory_view
from mlirfuse.dialect.attributes import STORED
from mlirfuse.dialect.copies import COPIED
from mlirfuse.dialect.gathered_view import DEFINITION, Gather, gather_of, gathered_view
from mlirfuse.dialect.separation import VIEWED
from mlirfuse.passes.gathers.places import places_before
from mlirfuse.passes.gathers.readings import Reading, chosen_by, needed_ops, reading_of, used_operands
from mlirfuse.passes.slices.sliced_ops import SLICE, ranges_of, readers
from mlirfuse.support.postorder import postorder
from mlirfuse.support.rewriting import clone, defining_op, integer_of

_DIVISIONS = ("divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui")


@dataclass(frozen=True)
class Step:
    """How a value is made of others, element by element.

    Attributes:
        value: it.
        op: what makes it.
        structure: the op's loops, if it computes; None for an op that only gives elements other indices.
    """

    value: ir.Value
    op: ir.Operation
    structure: OpStructure | None


@dataclass
class Known:
    """What was found out of a function's ops, for as long as the function stays as it is.

    Attributes:
        structures: the loops of ops that compute element by element; None of others.
        readings: what ops need of their operands for elements at gathered places of their results.
        sources: what elements of a value at gathered places are made of, and the places in that.
        steps: how elements of a value at gathered places are made, and of what.
        instructions: what an element of an op's result takes.
        ranges: the numbers that values can be.
    """

    structures: dict[ir.Operation, OpStructure | None] = field(default_factory=dict)
    readings: dict[tuple[ir.Value, Gather], Reading] = field(default_factory=dict)
    sources: dict[tuple[ir.Value, Gather], list[tuple[ir.Value, Gather]]] = field(default_factory=dict)
    steps: dict[tuple[ir.Value, Gather], list[Step | ir.Value]] = field(default_factory=dict)
    instructions: dict[ir.Operation, Instructions] = field(default_factory=dict)
    ranges: Ranges = field(default_factory=Ranges)


class GatheredOps:
    """Elements of values at gathered places: of an op's result by that op on elements of its operands, as far as ops
    are elementwise, or are asked for.

    Slices, reshapes, and gathered views are followed to what they are of. Everything else is viewed itself, and so is
    what a gathered view leaves, which has zeros around. Elements at places that the view asked for leaves are any: of
    what is computed there nobody may ask. Parts of joined arrays that no place is in are left out.

    Args:
        kept: values that are in memory anyway, and viewed themselves.
        reduced: results of reductions (`reduction_of`) that are made of gathered elements too.
        known: what was found out before of the function as it is.
    """

    def __init__(self, kept: Collection[ir.Value] = (), reduced: Collection[ir.Value] = (), known: Known | None = None):
        self.kept = kept
        self.reduced = reduced
        self.known = known or Known()

    def step(self, value: ir.Value) -> Step | None:
        """How a value is made, where its elements are made of elements of others; None where it is viewed itself."""
        op = defining_op(value)
        if op is None or value in self.kept:
            return None
        if op.name == "linalg.fill":
            return Step(value, op, None)
        if op.name == DEFINITION.full_name:
            follows = not gather_of(op.attributes).joins_components
            if follows and gather_of(op.attributes).inside:  # of which nothing is read
                return Step(value, op, None)
        elif op.name == SLICE:
            follows = ranges_of(op, backwards=True) is not None
        elif op.name in RESHAPES:
            follows = None not in (*extents_of(value), *extents_of(op.operands[0]))
        else:
            structure = reduction_of(op) if value in self.reduced else self._elementwise(op)
            if structure is None or (is_host_view(op) and self.step(op.operands[0]) is None):
                return None
            return Step(value, op, structure)
        return Step(value, op, None) if follows else None

    def _elementwise(self, op: ir.Operation) -> OpStructure | None:
        if op not in self.known.structures:
            self.known.structures[op] = _elementwise(op)
        return self.known.structures[op]

    def _sources(self, found: Step, gather: Gather) -> list[tuple[ir.Value, Gather]]:
        """What elements at gathered places are made of: operands, and the places in these."""
        key = found.value, gather
        if key not in self.known.sources:
            self.known.sources[key] = self._made_of(found, gather)
        return self.known.sources[key]

    def _made_of(self, found: Step, gather: Gather) -> list[tuple[ir.Value, Gather]]:
        op = found.op
        if found.structure is not None:
            reads = self._reading(found.value, found.structure, gather).reads.values()
            return [(read.value, read.gather) for read in reads if read.gather is not None]
        if op.name == "linalg.fill" or (op.name == DEFINITION.full_name and gather_of(op.attributes).inside):
            return []
        return [(op.operands[0], places_before(op, gather))]

    def _reading(self, value: ir.Value, structure: OpStructure, gather: Gather) -> Reading:
        key = value, gather
        if key not in self.known.readings:
            self.known.readings[key] = reading_of(structure, gather)
        return self.known.readings[key]

    def steps(self, value: ir.Value, gather: Gather) -> Iterator[Step | ir.Value]:
        """How elements of a value are made from what is viewed, and what is viewed: as often as an element is made of
        different ones of it.
        """
        key = value, gather
        if key in self.known.steps:
            yield from self.known.steps[key]
            return
        found = []
        for step, _ in self._places(value, gather):
            found.append(step)
            yield step
        self.known.steps[key] = found

    def viewed(self, value: ir.Value, gather: Gather) -> set[tuple[ir.Value, Gather]]:
        """What is viewed for elements of a value, and the places in it."""
        return {(found, places) for found, places in self._places(value, gather) if not isinstance(found, Step)}

    def _places(self, value: ir.Value, gather: Gather) -> Iterator[tuple[Step | ir.Value, Gather]]:
        """The steps, and the places of each in its value."""
        open_, seen = [(value, gather)], set[tuple[ir.Value, Gather]]()
        while open_:
            value, gather = open_.pop()
            if (value, gather) in seen:
                continue
            seen.add((value, gather))
            found = self.step(value)
            if found is None:
                yield value, gather
            elif _has_zeros_around(value):
                yield found.op.operands[0], gather_of(found.op.attributes).selected(gather)
            else:
                yield found, gather
                open_ += self._sources(found, gather)

    def of(self, value: ir.Value, gather: Gather) -> ir.Value:
        """The elements of a value that a view of it would have; ops are built at the current insertion point."""
        built: dict[tuple[ir.Value, Gather], ir.Value] = {}
        for each in postorder([(value, gather)], lambda each: self._before(*each)):
            built[each] = self._build(*each, built)
        return built[value, gather]

    def _before(self, value: ir.Value, gather: Gather) -> list[tuple[ir.Value, Gather]]:
        """What is built before the elements of a value are."""
        found = self.step(value)
        return [] if found is None or _has_zeros_around(value) else self._sources(found, gather)

    def _build(self, value: ir.Value, gather: Gather, built: dict[tuple[ir.Value, Gather], ir.Value]) -> ir.Value:
        found = self.step(value)
        if found is None:
            return gathered_view(value, gather)
        op = found.op
        if op.name == "linalg.fill":
            init = tensor.EmptyOp(list(gather.shape), ir.RankedTensorType(value.type).element_type).result
            return linalg.fill(op.operands[0], outs=[init])
        if op.name == DEFINITION.full_name and (gather_of(op.attributes).inside or _has_zeros_around(value)):
            # A check reads nothing; zeros around a view are neither what is computed of zeros nor what a slice leaves.
            return gathered_view(op.operands[0], gather_of(op.attributes).selected(gather))
        inputs = [built[each] for each in self._sources(found, gather)]
        if found.structure is None:
            return inputs[0]
        return _computed(found.structure, self._reading(value, found.structure, gather), inputs, gather)


def _computed(structure: OpStructure, reading: Reading, gathered: Sequence[ir.Value], gather: Gather) -> ir.Value:
    """An op with the body and the attributes of another one, on gathered elements of those operands that have axes."""
    reads, known, rest = reading.reads, reading.known, list(gathered)
    inputs = [read.value if read.gather is None else rest.pop(0) for read in reads.values()]
    op, count = structure.op, len(gather.shape)
    rank = count + len(structure.reduction_loops)
    maps = [*(projection(rank, read.loops) for read in reads.values()), projection(rank, list(range(count)))]
    names = ["parallel"] * count + ["reduction"] * len(structure.reduction_loops)
    kinds = ir.ArrayAttr.get([ir.Attribute.parse(f"#linalg.iterator_type<{name}>") for name in names])
    own = op.regions[0].blocks[0]
    arguments = [*(own.arguments[number] for number in reads), own.arguments[-1]]
    with op.location:
        init = tensor.EmptyOp(list(gather.shape), ir.RankedTensorType(op.results[0].type).element_type).result
        start = defining_op(structure.operands[-1])
        if structure.reduction_loops and start is not None:  # a fill, of the number that sums start with
            init = linalg.fill(start.operands[0], outs=[init])
        new = linalg.GenericOp([init.type], inputs, [init], ir.ArrayAttr.get(maps), kinds)
    types = [argument.type for argument in arguments]
    block = new.regions[0].blocks.append(*types, arg_locs=[op.location] * len(types))
    mapping = dict(zip(arguments, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        for inner in (each.operation for each in own.operations):
            if (chosen := chosen_by(inner, known)) is not None:
                mapping[inner.results[0]] = mapping.get(chosen, chosen)
            elif inner in reading.needed:
                clone(inner, mapping)
    for name in op.attributes:
        if name.startswith("fuse."):
            new.operation.attributes[name] = op.attributes[name]
    return new.results[0]


def _has_zeros_around(value: ir.Value) -> bool:
    """Whether a value is a gathered view that leaves its source."""
    op = defining_op(value)
    if op is None or op.name != DEFINITION.full_name or gather_of(op.attributes).inside:
        return False
    return not stays_inside(gather_of(op.attributes), ir.RankedTensorType(op.operands[0].type).shape)


def divides_integers(op: ir.Operation) -> bool:
    """Whether an op divides integers by others than constants: it may not be computed of any elements."""
    inside = [inner.operation for region in op.regions for block in region.blocks for inner in block.operations]
    divisions = [inner for inner in inside if inner.name.startswith("arith.") and inner.name.endswith(_DIVISIONS)]
    return any(not integer_of(inner.operands[1]) for inner in divisions)


def is_whole_selection(gather: Gather, shape: Sequence[int]) -> bool:
    """Whether a view is one of undivided indices, stays inside of a source of that shape, and is no larger than it."""
    return prod(gather.shape) <= prod(shape) and stays_inside(gather, shape)


def stays_inside(gather: Gather, shape: Sequence[int]) -> bool:
    """Whether a view is one of undivided indices, and all of these are inside of a source of that shape."""
    if gather.inside or gather.joins_components:
        return False
    return all(gather.is_inside(axis, extent) for axis, extent in enumerate(shape))


def _elementwise(op: ir.Operation) -> OpStructure | None:
    """The loops of an op that computes a tensor element by element, in the order of its loops; None for another op."""
    if op.name != "linalg.generic" or COPIED in op.attributes or len(op.results) != 1:
        return None
    structure = structure_of(op)
    if structure is None or structure.reduction_loops or structure.operand_axes[-1] is not None:
        return None
    if list(structure.result_axes[0]) != list(range(structure.loop_count)):
        return None
    if any(axes is None for axes in structure.operand_axes[:-1]) or None in extents_of(op.results[0]):
        return None
    return None if _reads_indices(op) else structure


def reduction_of(op: ir.Operation) -> OpStructure | None:
    """The loops of an op that reduces a tensor of static extents along some of its axes; None for another op."""
    if op.name != "linalg.generic" or len(op.results) != 1 or None in extents_of(op.results[0]):
        return None
    structure, start = structure_of(op), defining_op(op.operands[len(op.operands) - 1])
    if structure is None or not structure.reduction_loops or start is None or start.name != "linalg.fill":
        return None
    kept = [loop for loop in range(structure.loop_count) if loop not in structure.reduction_loops]
    read = [axes for axes in structure.operand_axes[:-1] if axes is not None]
    if list(structure.result_axes[0]) != kept or len(read) != len(structure.operand_axes) - 1:
        return None
    if not set(range(structure.loop_count)) <= {
        loop for number in used_operands(op, {}, needed_ops(op, {})) for loop in read[number]
    }:
        return None
    return None if _reads_indices(op) else structure


def _reads_indices(op: ir.Operation) -> bool:
    """Whether an op computes with the indices of its loops."""
    return any(inner.operation.name == "linalg.index" for inner in op.regions[0].blocks[0].operations)


def stored_results(function: ir.Operation) -> set[ir.Value]:
    """Results of ops that have a kernel of their own (`fuse.stored`), as far as other ops read them, and of those whose
    views are read from memory (`fuse.viewed`).
    """
    own = [op for op in body(function) if STORED in op.attributes]
    read = [op for op in own if any(STORED not in reader.attributes for reader in readers(op, is_memory_view))]
    viewed = [op for op in body(function) if VIEWED in op.attributes]
    return {result for op in (*read, *viewed) for result in op.results}
