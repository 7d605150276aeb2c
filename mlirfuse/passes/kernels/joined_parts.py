"""A launch, and one of a kernel that puts its results one beside the other, as a single launch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeGuard

from mlir import ir
from mlir.dialects import func, linalg, tensor

from mlirfuse.analysis.kernels import body, symbol
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.loops.structure import structure_of
from mlirfuse.analysis.scheduling.scheduling_problem import kernel_problem
from mlirfuse.dialect.attributes import SCHEDULE
from mlirfuse.dialect.gathered_view import DEFINITION as VIEW
from mlirfuse.dialect.gathered_view import Gather, gather_of
from mlirfuse.dialect.scatter import interleaved_step, scatter, scatter_problem, sources_of
from mlirfuse.passes.kernels.collapse_dims import expanded_value
from mlirfuse.passes.kernels.host import order_host_ops
from mlirfuse.passes.kernels.kernel_pair import KernelPair
from mlirfuse.schedule.model.machine import WIDEST_ACCESS
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.support.affine_expressions import coefficients
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.reshapes import reassociation
from mlirfuse.support.rewriting import clone, copy_body, defining_op, erase, erase_dead, nested
from mlirfuse.support.strides import row_major
from mlirfuse.tiling.kernel_signature import set_type


class UnfitError(Exception):
    """Why two launches do not become one."""


@dataclass(frozen=True)
class Join:
    """What a kernel does that only joins parts.

    Attributes:
        views: of the parts, in order of their places: operands of the call.
        axes: for each axis of a part the dimension of the whole that runs along it.
        place: the dimension of the whole in which parts follow one another.
        ops: elementwise ops on the whole, in order, of which each takes what the one before it makes.
    """

    views: tuple[ir.Value, ...]
    axes: tuple[int, ...]
    place: int
    ops: tuple[ir.Operation, ...]


@dataclass(frozen=True)
class JoinedParts(KernelPair):
    """Two launches, of which the second joins results of the first."""

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
            parts = [self._part(view) for view in self._join().views]
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
        type_ = ir.RankedTensorType(whole.type)
        joined, groups = ir.RankedTensorType.get(self._shape(self._join()), type_.element_type), _pairs_of(type_.rank)
        with ir.InsertionPoint(self.second_call), self.second_call.location:
            types = [*(v.type for v in kept), joined]
            call = func.CallOp(types, symbol(self.first), list(self.first_call.operands))
            *others, last = call.results
            whole.replace_all_uses_with(expanded_value(last, whole.type, groups, [], []))
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
        with ir.InsertionPoint(self.first):
            kernel = self.first.clone()
        kernel.attributes["sym_name"] = ir.StringAttr.get(f"{symbol(self.first)}_{symbol(self.second)}")
        *_, terminator = body(kernel)
        made = dict(zip(self.first_call.results, terminator.operands, strict=True))
        with ir.InsertionPoint(terminator), terminator.location:
            values = [_computed(made[self._part(view)], join.ops) for view in join.views]
            joined = scatter(values, self._positions(join), [len(values)], self._shape(join))
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

    def _part(self, view: ir.Value) -> ir.Value:
        """The result of the first call that a view is of; raises `UnfitError`."""
        source = view.owner.operation.operands[0]
        maker = defining_op(source)
        if _is_reshape(maker):
            source = maker.operands[0]
        if source not in list(self.first_call.results):
            raise UnfitError("a part is no result of it")
        return source

    def _positions(self, join: Join) -> Gather:
        """Where the elements of a part are in the whole, and those of the others, which the last component numbers."""
        source = join.views[0].owner.operation.operands[0]
        shape = list(ir.RankedTensorType(source.type).shape)
        maker = defining_op(source)
        groups = [[axis] for axis in range(len(shape))]
        if _is_reshape(maker):
            groups = reassociation(maker)
        places = [ir.AffineExpr.get_dim(join.axes.index(d)) for d in range(len(shape))]
        number = ir.AffineExpr.get_dim(len(shape))
        places[join.place] = places[join.place] + number * shape[join.axes.index(join.place)]
        basis = tuple(tuple(shape[axis] for axis in group) for group in groups)
        if self._interleaves(join):
            *places, outer, inner = places
            places.append(outer * len(join.views) + inner)
        positions = Gather(basis, ir.AffineMap.get(len(shape) + 1, 0, places))
        if problem := scatter_problem(positions, self._shape(join), [len(join.views)]):
            raise UnfitError(problem)
        return positions

    def _interleaves(self, join: Join) -> bool:
        """Whether the elements of parts are neighbours in the whole, whose last two dimensions are one then."""
        last = ir.RankedTensorType(self.second_call.results[0].type).rank - 1
        shape = ir.RankedTensorType(join.views[0].owner.operation.operands[0].type).shape
        return last > 0 and join.place == last and shape[join.axes.index(last)] == 1

    def _shape(self, join: Join) -> list[int]:
        """The shape of the whole as the kernel stores it."""
        shape = list(ir.RankedTensorType(self.second_call.results[0].type).shape)
        return [*shape[:-2], shape[-2] * shape[-1]] if self._interleaves(join) else shape

    def _join(self) -> Join:
        """What the second kernel does; raises `UnfitError` where that is more than to join parts of one shape."""
        given = dict(zip(self.second.regions[0].blocks[0].arguments, self.second_call.operands, strict=True))
        *ops, terminator = body(self.second)
        ops = [op for op in ops if op.name not in ("arith.constant", "tensor.empty", "linalg.fill")]
        if len(terminator.operands) != 1 or not ops or any(op.name != "linalg.generic" for op in ops):
            raise UnfitError("the second one does more than to join parts")
        selection, *after = ops
        views = [given[value] for value in _selected(selection, given)]
        last = selection.results[0]
        for op in after:
            if not _maps_elements(op, last):
                raise UnfitError("the second one computes with more than the parts")
            last = op.results[0]
        if last != terminator.operands[0]:
            raise UnfitError("the second one returns something else than the joined parts")
        axes, starts = zip(*(_places(view) for view in views), strict=True)
        shapes = {tuple(ir.RankedTensorType(view.owner.operation.operands[0].type).shape) for view in views}
        moved = [d for d in range(len(starts[0])) if len({start[d] for start in starts}) > 1]
        if len(set(axes)) > 1 or len(shapes) > 1 or len(moved) != 1:
            raise UnfitError("its parts have other shapes, or orders of dimensions")
        (place,) = moved
        (shape,) = shapes
        order = sorted(range(len(views)), key=lambda n: starts[n][place])
        if [starts[n][place] for n in order] != [n * shape[axes[0].index(place)] for n in range(len(views))]:
            raise UnfitError("its parts leave something out between them")
        return Join(tuple(views[n] for n in order), axes[0], place, tuple(after))


def _pairs_of(rank: int) -> list[list[int]]:
    """Groups of dimensions of which the last two are one."""
    return [[d] for d in range(rank - 2)] + [[rank - 2, rank - 1]]


def _is_reshape(op: ir.Operation | None) -> TypeGuard[ir.Operation]:
    """Whether an op divides dimensions of a result."""
    return op is not None and op.name == "tensor.expand_shape"


def _selected(op: ir.Operation, given: dict[ir.Value, ir.Value]) -> list[ir.Value]:
    """The kernel's arguments among which an op selects, each where it is inside of its part; raises `UnfitError`."""
    if not _is_elementwise(op) or any(value not in given for value in list(op.operands)[:-1]):
        raise UnfitError("the second one does more than to join parts")
    block = op.regions[0].blocks[0]
    arguments = dict(zip(block.arguments, op.operands, strict=True))
    value, found = list(block.operations)[-1].operands[0], list[ir.Value]()
    while (select := defining_op(value)) is not None and select.name == "arith.select":
        check, part, value = select.operands
        if check not in arguments or part not in arguments:
            raise UnfitError("the second one computes with parts before it joins them")
        view, inside = (defining_op(given[arguments[each]]) for each in (part, check))
        if view is None or inside is None or not view.name == inside.name == VIEW.full_name:
            raise UnfitError("a part is no view")
        same_shape = (
            ir.RankedTensorType(view.operands[0].type).shape == ir.RankedTensorType(inside.operands[0].type).shape
        )
        if not same_shape or gather_of(inside.attributes) != replace(gather_of(view.attributes), inside=True):
            raise UnfitError("a part is selected elsewhere than inside of it")
        found.append(arguments[part])
    if len(found) < 2 or (select is not None and select.name != "arith.constant"):
        raise UnfitError("the second one does more than to join parts")
    return found


def _places(view: ir.Value) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """For each axis of a part the dimension of the whole that runs along it, and for each dimension where the part
    begins; raises `UnfitError`.
    """
    gather = gather_of(view.owner.operation.attributes)
    if gather.joins_components:
        raise UnfitError("the dimensions of the whole are joined")
    rank, axes, starts = len(gather.shape), list[int](), [0] * len(gather.shape)
    for expr in gather.map.results:
        linear = coefficients(expr, rank)
        dims = [d for d, factor in enumerate(linear[0]) if factor] if linear is not None else []
        if linear is None or len(dims) != 1 or linear[0][dims[0]] != 1 or dims[0] in axes:
            raise UnfitError("a part is no slice of the whole")
        axes.append(dims[0])
        starts[dims[0]] = -linear[1]
    if len(axes) != rank:
        raise UnfitError("a part is no slice of the whole")
    return tuple(axes), tuple(starts)


def _is_elementwise(op: ir.Operation) -> bool:
    """Whether an op runs over elements in the order of all its operands, and of its only result."""
    structure = structure_of(op)
    if structure is None or structure.reduction_loops or len(op.results) != 1:
        return False
    loops = list(range(structure.loop_count))
    axes = [*structure.operand_axes[:-1], structure.result_axes[0]]
    return all(each is not None and list(each) == loops for each in axes)


def _maps_elements(op: ir.Operation, value: ir.Value) -> bool:
    """Whether an op computes a function of each element of a value, and of nothing else."""
    inner = [each for each in nested(op) if each != op]
    reads = {operand for each in inner for operand in each.operands}
    outside = [v for v in reads if not isinstance(v.owner, ir.Block) and v.owner.operation.parent.operation != op]
    constant = all(v.owner.operation.name == "arith.constant" for v in outside)
    own = [each.name for each in inner]
    return list(op.operands)[:-1] == [value] and _is_elementwise(op) and constant and "linalg.index" not in own


def _computed(value: ir.Value, ops: tuple[ir.Operation, ...]) -> ir.Value:
    """What elementwise ops make of a value."""
    for op in ops:
        type_ = ir.RankedTensorType(value.type)
        init = tensor.EmptyOp(list(type_.shape), ir.RankedTensorType(op.results[0].type).element_type).result
        identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(type_.rank))
        kinds = ir.ArrayAttr.get([ir.Attribute.parse("#linalg.iterator_type<parallel>")] * type_.rank)
        new = linalg.GenericOp([init.type], [value], [init], ir.ArrayAttr.get([identity] * 2), kinds)
        captured: dict[ir.Value, ir.Value] = {}
        for inner in nested(op):
            for operand in inner.operands:
                maker = defining_op(operand)
                if inner != op and maker is not None and maker.parent.operation != op and operand not in captured:
                    clone(maker, captured)
        copy_body(op, new.operation, captured)
        value = new.results[0]
    return value


def _misfit(kernel: ir.Operation) -> str | None:
    """Why runs of a kernel's scattered results are too short, or None."""
    for value in body(kernel)[-1].operands:
        maker = defining_op(value)
        if maker is None or maker.name != "fuse.scatter":
            continue
        type_ = ir.RankedTensorType(value.type)
        if interleaved_step(maker) is not None:
            continue
        for source, positions in sources_of(maker):
            dim, run = positions.unit(type_.shape, row_major(type_.shape))
            if dim is None or any(extent != 1 for extent in ir.RankedTensorType(source.type).shape[dim + 1 :]):
                return "neighbours in its results are apart in the whole"
            if (size := run * from_mlir(type_.element_type).bytes) < WIDEST_ACCESS:
                return f"its parts are runs of {size} bytes, less than an access of {WIDEST_ACCESS}"
    return None
