"""Elementwise results of which gathered views are read, and how these are computed of what the results are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from math import ceil, floor, prod

from mlir import ir
from mlir.dialects import arith, linalg

from mlirfuse.analysis.arithmetic.instruction_counts import instructions_of
from mlirfuse.analysis.contractions.contraction import products_of
from mlirfuse.analysis.kernels import body
from mlirfuse.analysis.memory.host_views import extents_of, is_host_view, is_memory_view
from mlirfuse.dialect.attributes import OPERATION
from mlirfuse.dialect.gathered_view import DEFINITION, Gather, gather_of, gathered_view
from mlirfuse.machine.model import MachineModel
from mlirfuse.passes.fusion.cse import merge_equal_ops
from mlirfuse.passes.gathers.gathered_ops import (
    GatheredOps,
    Known,
    Step,
    divides_integers,
    is_whole_selection,
    stays_inside,
)
from mlirfuse.passes.joins.joined_results import JoinedResults
from mlirfuse.schedule.model.machine import WIDEST_ACCESS
from mlirfuse.schedule.predict.counts.instructions import ACCESS_INSTRUCTIONS
from mlirfuse.support.affine_expressions import single_dim
from mlirfuse.support.dtypes import bytes_of, element_bytes
from mlirfuse.support.equivalence import operation_key
from mlirfuse.support.pointwise import pointwise
from mlirfuse.support.rewriting import defining_op, erase, erase_unused
from mlirfuse.tiling.tiles import zero

MOST_LOADS = 24
"""Elements of arrays, at most, that an element of a composed view is computed of: code at edges has all of them."""


def compose(
    function: ir.Operation,
    machine: MachineModel,
    kept: set[ir.Value],
    report: Callable[[ir.Operation, str], None] = lambda op, reason: None,
    *,
    whatever_it_takes: bool = False,
) -> int:
    """Computes views of elementwise results of gathered elements, one result after the other; returns how many views.

    Args:
        function: of tensor ops.
        machine: the speeds of the device.
        kept: results that stay in memory, to which those that are declined are added.
        report: is told the op of each result that is declined, and why.
        whatever_it_takes: whether results are not declined that are predicted to take longer so, each by itself.
    """
    views, joins, known = 0, JoinedResults(), Known()
    while (result := next(viewed_results(function, kept, known), None)) is not None:
        reason = result.obstacle(joins)
        if reason is None and not whatever_it_takes and (longer := result.loss(machine)) >= 0:
            reason = f"computing the elements of views would take {1e6 * longer:.1f} us longer"
        if reason is not None:
            kept.add(result.base)
            known.steps.clear()  # which end at what is kept
            report(result.base.owner.operation, reason)
            continue
        views += len(result.views)
        result.replace()
        joins, known = JoinedResults(), Known()
        erase_unused(function)
    if views:
        merge_views(function)
    return views


def merge_views(function: ir.Operation) -> None:
    """Replaces each gathered view by the first equal one, and then ops that compute the same: upstream's `cse` knows
    nothing of views.
    """
    first: dict[Hashable, ir.Operation] = {}
    for view in [op for op in body(function) if op.name == DEFINITION.full_name]:
        earlier = first.setdefault(operation_key(view), view)
        if earlier != view:
            view.results[0].replace_all_uses_with(earlier.results[0])
            erase(view)
    merge_equal_ops(function)


def viewed_results(function: ir.Operation, kept: set[ir.Value], known: Known | None = None) -> Iterator[ViewedResult]:
    """Elementwise results of which gathered views are read, in program order, without those that are kept.

    `known` is what was found out before of the function as it is.
    """
    gathered = GatheredOps(kept, known=known)
    found: dict[ir.Value, list[ir.Operation]] = {}
    for view in body(function):
        if view.name != DEFINITION.full_name or gather_of(view.attributes).inside or not list(view.results[0].uses):
            continue
        base = _base(view.operands[0], gathered)
        step = gathered.step(base)
        if step is not None and step.structure is not None:
            found.setdefault(base, []).append(view)
    order = {op: number for number, op in enumerate(body(function))}
    for base in sorted(found, key=lambda value: order[value.owner.operation]):
        yield ViewedResult(base, found[base], gathered)


def _base(value: ir.Value, gathered: GatheredOps) -> ir.Value:
    """What a value is a slice, or a reshape, of, as far as gathered elements are computed of it."""
    while (step := gathered.step(value)) is not None and is_host_view(step.op) and step.op.name.startswith("tensor."):
        value = step.op.operands[0]
    return value


@dataclass
class ViewedResult:
    """An elementwise op's result, and gathered views of it.

    Attributes:
        base: the result.
        views: gathered views of it, or of slices and reshapes of it.
        gathered: what is computed at gathered places.
        checks: for each view those under which alone its elements are selected; none where any element is used.
    """

    base: ir.Value
    views: list[ir.Operation]
    gathered: GatheredOps
    checks: dict[ir.Operation, list[ir.Operation]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.checks = {view: checks_of(view) for view in self.views}

    def obstacle(self, joins: JoinedResults) -> str | None:
        """Why the views are left alone whatever it takes, or None."""
        if any(gather_of(view.attributes).joins_components for view in self.views):
            return "dimensions of a view are joined"
        if any(self.checks[view] and joins.have(view) for view in self.views):
            return "it is a part of a result, which a kernel stores where it belongs"
        for view in self.views:
            shape = ir.RankedTensorType(view.operands[0].type).shape
            if not is_whole_selection(gather_of(view.attributes), shape) and not _is_computed_with(view):
                return "a view leaves the result, or has an element of it more than once, for a product or a result"
        if not all(self._is_free(use.owner.operation) for use in self.base.uses):
            return "the result is in memory anyway"
        loads = (step for view in self.views for step in self._made(view) if not isinstance(step, Step))
        if next(islice(loads, MOST_LOADS, None), None) is not None:
            return f"the elements of views would be computed of more than {MOST_LOADS} elements of arrays"
        leaving = [step for view in self.views if self._leaves(view) for step in self._steps(view)]
        if any(divides_integers(step.op) for step in leaving if isinstance(step, Step)):
            return "integers are divided, and may be zeros past the end"
        return None

    def replace(self) -> None:
        """Computes the elements of the views, and makes checks those of what is in memory."""
        for view in self.views:
            gather = gather_of(view.attributes)
            with ir.InsertionPoint(view), view.location:
                new = self.gathered.of(view.operands[0], gather)
                if self._leaves(view) and not self.checks[view]:
                    new = _inside_only(new, gather, view.operands[0])
            view.results[0].replace_all_uses_with(new)
        for check in checks_by(self.base):
            read_nothing(check)

    def _leaves(self, view: ir.Operation) -> bool:
        return not stays_inside(gather_of(view.attributes), ir.RankedTensorType(view.operands[0].type).shape)

    def _is_free(self, user: ir.Operation) -> bool:
        """Whether an op does not need the result in memory."""
        if user.name == DEFINITION.full_name:
            return True
        if is_host_view(user):
            is_followed = self.gathered.step(user.results[0]) is not None
            return is_followed and all(self._is_free(use.owner.operation) for use in user.results[0].uses)
        return _computes(user) and OPERATION not in user.attributes

    def _made(self, view: ir.Operation) -> Iterator[Step | ir.Value]:
        """How elements of a view are made, and of what."""
        return self.gathered.steps(view.operands[0], gather_of(view.attributes))

    def _steps(self, view: ir.Operation) -> list[Step | ir.Value]:
        """All of these."""
        return list(self._made(view))

    def _loads(self, view: ir.Operation) -> list[ir.Value]:
        """What is read of memory for an element of a view, each as often as it is read."""
        return [step for step in self._steps(view) if not isinstance(step, Step)]

    @property
    def loads(self) -> int:
        """Elements of arrays that an element of each view is computed of, together."""
        return sum(len(self._loads(view)) for view in self.views)

    def loss(self, machine: MachineModel) -> float:
        """Seconds by which computing the elements of the views takes longer than storing the result, for a kernel that
        reads these.
        """
        again = -self._seconds(machine, prod(ir.RankedTensorType(self.base.type).shape), self._whole())
        for view in self.views:
            again += self._seconds(machine, _places_inside(view), self._steps(view))
            again -= _places_inside(view) * _access(self.base, machine)
        read = {value for view in self.views for value in self._loads(view)}
        made = {value for value in read if _is_made(value)} - {*self.gathered.kept}  # stored in place of the result
        stored = _bytes(self.base) - sum(map(_bytes, made))
        saved = 2 * stored / machine.dram_bandwidth + (0.0 if made else machine.next_launch)
        return max(0.0, again) / machine.sms - saved

    def _whole(self) -> list[Step | ir.Value]:
        """How all elements of the result are made."""
        shape = ir.RankedTensorType(self.base.type).shape
        identity = Gather(tuple((extent,) for extent in shape), ir.AffineMap.get_identity(len(shape)))
        return list(self.gathered.steps(self.base, identity))

    def _seconds(self, machine: MachineModel, count: int, steps: Iterable[Step | ir.Value]) -> float:
        """Seconds of one SM for so many elements that are made in such steps."""
        each, times, known = 0.0, Counter[ir.Operation](), self.gathered.known.instructions
        for step in steps:
            if not isinstance(step, Step):
                each += _access(step, machine)
            elif step.structure is not None:
                times[step.op] += 1
        for op, often in times.items():
            if (needs := known.get(op)) is None:
                needs = known[op] = instructions_of(op, self.gathered.known.ranges.of)
            each += often * (needs.plain / machine.issue_per_sm + needs.special / machine.special_per_sm)
        return count * each


def _access(value: ir.Value, machine: MachineModel) -> float:
    """Seconds of one SM for an access to an element of an array, beside its neighbours."""
    return ACCESS_INSTRUCTIONS * element_bytes(value.type) / WIDEST_ACCESS / machine.issue_per_sm


def _is_made(value: ir.Value) -> bool:
    """Whether a kernel computes a value, or what it is a view of."""
    op = defining_op(value)
    if op is None:
        return False
    return _is_made(op.operands[0]) if is_memory_view(op) else bool(op.operands)


def _bytes(value: ir.Value) -> int:
    return bytes_of(value.type)


def _places_inside(view: ir.Operation) -> int:
    """The places of a view that are inside of its source, by the axes along which one dimension moves it alone."""
    gather, places = gather_of(view.attributes), dict(enumerate(gather_of(view.attributes).components))
    for expr, extent in zip(gather.map.results, ir.RankedTensorType(view.operands[0].type).shape, strict=True):
        place = single_dim(expr, len(places))
        if place is not None:
            dim, step, first = place
            count = sum(0 <= first + step * n < extent for n in (0, gather.components[dim] - 1))
            if count < 2:
                ends = sorted(((-first) / step, (extent - 1 - first) / step))
                low, high = max(0, ceil(ends[0])), min(gather.components[dim] - 1, floor(ends[1]))
                places[dim] = min(places[dim], max(0, high - low + 1))
    return prod(places.values())


def _is_computed_with(view: ir.Operation) -> bool:
    """Whether all that reads a view computes with its elements, no product among them."""
    return all(_computes(use.owner.operation) for use in view.results[0].uses)


def _computes(op: ir.Operation) -> bool:
    return op.name == "linalg.generic" and not is_host_view(op) and not products_of(op)


def checks_of(view: ir.Operation) -> list[ir.Operation]:
    """The views of checks under which alone the elements of a view are selected; none where any element is used."""
    checks: dict[ir.Operation, None] = {}
    for use in view.results[0].uses:
        reader, number = use.owner.operation, use.operand_number
        if reader.name != "linalg.generic":
            return []
        maps = list(ir.ArrayAttr(reader.attributes["indexing_maps"]))
        arguments = list(reader.regions[0].blocks[0].arguments)
        for inner in arguments[number].uses:
            select = inner.owner.operation
            condition = select.operands[0] if select.name == "arith.select" and inner.operand_number == 1 else None
            if condition is None or condition not in arguments:
                return []
            checked = arguments.index(condition)
            check = defining_op(reader.operands[checked])
            if check is None or maps[checked] != maps[number] or not _checks(check, view):
                return []
            checks[check] = None
    return list(checks)


def _checks(check: ir.Operation, view: ir.Operation) -> bool:
    """Whether an op says which elements of a view are inside of its source."""
    if check.name != DEFINITION.full_name:
        return False
    shape = tuple(ir.RankedTensorType(view.operands[0].type).shape)
    return gather_of(check.attributes) == replace(gather_of(view.attributes), inside=shape)


def checks_by(base: ir.Value) -> Iterator[ir.Operation]:
    """The checks whose source is a value, or a slice or a reshape of it."""
    for use in list(base.uses):
        user = use.owner.operation
        if user.name == DEFINITION.full_name:
            if gather_of(user.attributes).inside:
                yield user
        elif is_host_view(user):
            yield from checks_by(user.results[0])


def read_nothing(check: ir.Operation) -> None:
    """Makes a check one of something that its readers have in memory, or of any argument, in front of each of them."""
    gather = gather_of(check.attributes)
    for use in list(check.results[0].uses):
        reader, number = use.owner.operation, use.operand_number
        others = [operand for operand in reader.operands if operand != check.results[0]]
        arguments = check.parent.regions[0].blocks[0].arguments
        anchor = next((found for each in (*others, *arguments) if (found := _in_memory(each)) is not None), None)
        if anchor is not None:
            with ir.InsertionPoint(reader), check.location:
                reader.operands[number] = gathered_view(anchor, gather)


def _inside_only(value: ir.Value, gather: Gather, source: ir.Value) -> ir.Value:
    """The elements of a view inside of its source, and zeros."""
    type_ = ir.RankedTensorType(value.type)
    anchor = _in_memory(value)
    check = gathered_view(
        source if anchor is None else anchor, replace(gather, inside=tuple(ir.RankedTensorType(source.type).shape))
    )
    op = pointwise([value, check], type_.element_type)
    types = [type_.element_type, ir.IntegerType.get_signless(1), type_.element_type]
    block = op.regions[0].blocks.append(*types, arg_locs=[op.location] * len(types))
    with ir.InsertionPoint(block):
        nothing = arith.ConstantOp(type_.element_type, zero(type_.element_type)).result
        linalg.YieldOp([arith.SelectOp(block.arguments[1], block.arguments[0], nothing).result])
    return op.results[0]


def _in_memory(value: ir.Value) -> ir.Value | None:
    """An array of static extents in memory that a value is computed of; None for a constant."""
    open_, seen = [value], set[ir.Value]()
    while open_:
        value = open_.pop()
        op = defining_op(value)
        if value in seen:
            continue
        seen.add(value)
        if op is None:
            if isinstance(value.type, ir.RankedTensorType) and None not in extents_of(value):
                return value
        elif op.name == DEFINITION.full_name and not gather_of(op.attributes).inside:
            return op.operands[0]
        elif is_host_view(op):
            open_.append(op.operands[0])
        elif op.name == "linalg.generic":
            open_ += reversed(list(op.operands)[:-1])
    return None
