"""A launch, and one of a kernel that puts its results one beside the other, as a single launch."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TypeGuard

from mlir import ir
from mlir.dialects import func

from mlirfuse.analysis.joined_views import JoinedViews, joined_views
from mlirfuse.analysis.kernels import body, symbol
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.loops.structure import structure_of
from mlirfuse.analysis.scheduling.scheduling_problem import kernel_problem
from mlirfuse.dialect.attributes import SCHEDULE, STORED
from mlirfuse.dialect.gathered_view import DEFINITION as VIEW
from mlirfuse.dialect.gathered_view import Gather
from mlirfuse.dialect.scatter import bytes_in_order, interleaved_step, scatter, scatter_of, scatter_problem
from mlirfuse.passes.kernels.collapse_dims import expanded_value
from mlirfuse.passes.kernels.host import order_host_ops
from mlirfuse.passes.kernels.kernel_pair import KernelPair
from mlirfuse.passes.kernels.scattered_kernel import UnfitError
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.support.pointwise import pointwise
from mlirfuse.support.reshapes import reassociation
from mlirfuse.support.rewriting import clone, copy_body, defining_op, erase, erase_dead, nested
from mlirfuse.support.strides import row_major
from mlirfuse.tiling.kernel_signature import set_type


@dataclass(frozen=True)
class Join:
    """What a kernel does that only joins parts.

    Attributes:
        parts: what it joins: views that the host passes.
        ops: elementwise ops on the whole, in order, of which each takes what the one before it makes.
        order: the dimension of the joined parts that runs along each dimension of the result.
    """

    parts: JoinedViews
    ops: tuple[ir.Operation, ...]
    order: tuple[int, ...]

    @property
    def places(self) -> tuple[int, ...]:
        """The dimensions of the result in which parts follow one another."""
        return tuple(self.order.index(place) for place in self.parts.places)

    def extent(self, dim: int) -> int:
        """The extent of a part along a dimension of the result."""
        return self.parts.shape[self.parts.axes.index(self.order[dim])]


@dataclass(frozen=True)
class JoinedParts(KernelPair):
    """Two launches, of which the second joins results of the first."""

    def separated(self) -> str | None:
        """As of other pairs, but that a join which is stored apart from its readers is not apart from its parts."""
        stored = any(STORED in op.attributes for op in body(self.second))
        return None if stored else super().separated()

    def obstacle(self) -> str | None:
        """Why the pair should not become one launch, or None."""
        if reason := self.separated():
            return reason
        if SCHEDULE in self.second.attributes:
            return "a schedule is given for it"
        space, _ = kernel_space(self.first)
        problem = kernel_problem(self.first)
        if isinstance(problem, ContractionProblem):
            return "it computes a matrix product"
        needs_loop = problem.persistent_loop is not None and not problem.loop_is_optional
        if needs_loop or problem.needs_grid_persistent:
            return "its blocks reduce something together"
        try:
            parts = [self._part(view) for view in self._join().parts.views]
            whole = {d for d, extent in enumerate(space.extents) if extent != 1}
            returned = dict(zip(self.first_call.results, body(self.first)[-1].operands, strict=True))
            axes = [space.value_axes.get(returned[part]) for part in parts]  # of what is scattered already, none
            if not all(own is not None and whole <= set(own) for own in axes):
                return "a part is a result of fewer dimensions than its kernel has, or joined itself"
            trial = self.build()
        except UnfitError as error:
            return str(error)
        try:
            return _misfit(trial)
        finally:
            erase(trial)

    def merge(self, function: ir.Operation) -> None:
        """Replaces both kernels by one that stores its results where the second puts them."""
        merged, kept = self.build(), self._kept()
        (whole,) = self.second_call.results
        join, type_ = self._join(), ir.RankedTensorType(whole.type)
        joined = ir.RankedTensorType.get(self._shape(join), type_.element_type)
        with ir.InsertionPoint(self.second_call), self.second_call.location:
            types = [*(v.type for v in kept), joined]
            call = func.CallOp(types, symbol(self.first), list(self.first_call.operands))
            *others, last = call.results
            whole.replace_all_uses_with(expanded_value(last, whole.type, self._groups(join), [], []))
        for old, new in zip(kept, others, strict=True):
            old.replace_all_uses_with(new)
        views = [maker for value in self.second_call.operands if (maker := defining_op(value)) is not None]
        erase(self.second_call)
        reshapes = [maker for view in views if _is_reshape(maker := defining_op(view.operands[0]))]
        erase_dead(list(dict.fromkeys([*reshapes, *views])))
        erase(self.first_call)
        merged.attributes["sym_name"] = self.first.attributes["sym_name"]
        erase(self.first)
        erase(self.second)
        order_host_ops(function)

    def build(self) -> ir.Operation:
        """The kernel of both, next to the first in the module; raises `UnfitError`."""
        join, kept = self._join(), self._kept()
        positions, parts = self._positions(join), [self._part(view) for view in join.parts.views]
        with ir.InsertionPoint(self.first):
            kernel = self.first.clone()
        kernel.attributes["sym_name"] = ir.StringAttr.get(f"{symbol(self.first)}_{symbol(self.second)}")
        *_, terminator = body(kernel)
        made = dict(zip(self.first_call.results, terminator.operands, strict=True))
        with ir.InsertionPoint(terminator), terminator.location:
            values = [_computed(made[part], join.ops) for part in parts]
            joined = scatter(values, positions, join.parts.counts, self._shape(join))
            func.ReturnOp([*(made[value] for value in kept), joined])
        erase(terminator)
        set_type(kernel)
        return kernel

    def _kept(self) -> list[ir.Value]:
        """Results of the first kernel that other ops than the second call use."""
        return [result for result in self.first_call.results if not self._is_only_joined(result)]

    def _is_only_joined(self, value: ir.Value) -> bool:
        """Whether nothing but the second call uses a value, and views of it."""
        users = [use.owner.operation for use in value.uses]
        return all(
            user == self.second_call
            or ((user.name == VIEW.full_name or _is_reshape(user)) and self._is_only_joined(user.results[0]))
            for user in users
        )

    def _part(self, view: ir.Operation) -> ir.Value:
        """The result of the first call that a view is of; raises `UnfitError`."""
        source = view.operands[0]
        maker = defining_op(source)
        if _is_reshape(maker):
            source = maker.operands[0]
        if source not in list(self.first_call.results):
            raise UnfitError("a part is no result of it")
        return source

    def _positions(self, join: Join) -> Gather:
        """Where the elements of a part are in the whole, and those of the others, which the last components number."""
        parts, shape = join.parts, join.parts.shape
        maker = defining_op(parts.views[0].operands[0])
        groups = [[axis] for axis in range(len(shape))]
        if _is_reshape(maker):
            groups = reassociation(maker)
        places = [ir.AffineExpr.get_dim(parts.axes.index(d)) for d in join.order]
        for number, place in enumerate(join.places, len(shape)):
            places[place] = places[place] + ir.AffineExpr.get_dim(number) * join.extent(place)
        basis = tuple(tuple(shape[axis] for axis in group) for group in groups)
        if self._interleaves(join):
            whole = ir.RankedTensorType(self.second_call.results[0].type).shape
            *outer, last = self._groups(join)
            steps = row_major([whole[d] for d in last])
            index = sum((places[d] * step for d, step in zip(last, steps, strict=True)), ir.AffineExpr.get_constant(0))
            places = [*(places[d] for (d,) in outer), index]
        positions = Gather(basis, ir.AffineMap.get(len(shape) + len(parts.counts), 0, places))
        if problem := scatter_problem(positions, self._shape(join), parts.counts):
            raise UnfitError(problem)
        return positions

    def _interleaves(self, join: Join) -> bool:
        """Whether the elements of parts are neighbours in the whole: parts have one index along its last dimensions."""
        rank, places = len(join.order), join.places
        last = tuple(range(rank - len(places), rank))
        return places == last and last[0] > 0 and all(join.extent(d) == 1 for d in last)

    def _groups(self, join: Join) -> list[list[int]]:
        """The dimensions of the whole that are one as the kernel stores it: where parts interleave, rows of them."""
        rank = len(join.order)
        first = join.places[0] - 1 if self._interleaves(join) else rank
        return [*([d] for d in range(first)), *([list(range(first, rank))] if first < rank else [])]

    def _shape(self, join: Join) -> list[int]:
        """The shape of the whole as the kernel stores it."""
        shape = ir.RankedTensorType(self.second_call.results[0].type).shape
        return [prod(shape[d] for d in group) for group in self._groups(join)]

    def _join(self) -> Join:
        """What the second kernel does; raises `UnfitError` where that is more than to join parts of one shape."""
        given = dict(zip(self.second.regions[0].blocks[0].arguments, self.second_call.operands, strict=True))
        *ops, terminator = body(self.second)
        ops = [op for op in ops if op.name not in ("arith.constant", "tensor.empty", "linalg.fill")]
        if len(terminator.operands) != 1 or not ops or any(op.name != "linalg.generic" for op in ops):
            raise UnfitError("the second one does more than to join parts")
        selection, *after = ops
        parts = joined_views(selection, given.get)
        if isinstance(parts, str):
            raise UnfitError(parts)
        last, order = selection.results[0], list(range(len(parts.shape)))
        for op in after:
            moved = _axes_of_map(op, last)
            if moved is None:
                raise UnfitError("the second one computes with more than the parts")
            last, order = op.results[0], [order[axis] for axis in moved]
        if last != terminator.operands[0]:
            raise UnfitError("the second one returns something else than the joined parts")
        return Join(parts, tuple(after), tuple(order))


def _is_reshape(op: ir.Operation | None) -> TypeGuard[ir.Operation]:
    """Whether an op divides dimensions of a result."""
    return op is not None and op.name == "tensor.expand_shape"


def _axes_of_map(op: ir.Operation, value: ir.Value) -> list[int] | None:
    """The axis of a value that runs along each of an op's result, where the op computes a function of each element of
    the value, and of nothing else; None for another op.
    """
    inner = [each for each in nested(op) if each != op]
    reads = {operand for each in inner for operand in each.operands}
    outside = [v for v in reads if not isinstance(v.owner, ir.Block) and v.owner.operation.parent.operation != op]
    constant = all(v.owner.operation.name == "arith.constant" for v in outside)
    structure = structure_of(op)
    if structure is None or structure.reduction_loops or len(op.results) != 1 or not constant:
        return None
    if list(op.operands)[:-1] != [value] or "linalg.index" in [each.name for each in inner]:
        return None
    read, written = structure.operand_axes[0], structure.result_axes[0]
    if read is None or sorted(read, key=str) != sorted(written, key=str) or None in read or len(set(read)) < len(read):
        return None
    return [list(read).index(loop) for loop in written]


def _computed(value: ir.Value, ops: tuple[ir.Operation, ...]) -> ir.Value:
    """What elementwise ops make of a value."""
    for op in ops:
        captured: dict[ir.Value, ir.Value] = {}
        for inner in nested(op):
            for operand in inner.operands:
                maker = defining_op(operand)
                if inner != op and maker is not None and maker.parent.operation != op and operand not in captured:
                    clone(maker, captured)
        new = pointwise([value], ir.RankedTensorType(op.results[0].type).element_type)
        copy_body(op, new.operation, captured)
        value = new.results[0]
    return value


def _misfit(kernel: ir.Operation) -> str | None:
    """Why a kernel's results should not be scattered, or None."""
    for value in body(kernel)[-1].operands:
        op = scatter_of(value)
        if op is None or interleaved_step(op) is not None:
            continue
        if bytes_in_order(op) is None:
            return "neighbours in its results are apart in the whole"
    return None
