"""A contraction whose arrays may lie in other orders: what these take, and the rewriting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, prod
from typing import NamedTuple

from mlir import ir
from mlir.dialects import func

from mlirfuse.analysis.contractions.array_orders import ArrayOrders, Dims, array_orders
from mlirfuse.analysis.contractions.contraction import Contraction, contraction_in, has_products
from mlirfuse.analysis.contractions.contraction_operands import Axes, ContractionOperand, operand_of
from mlirfuse.analysis.contractions.problem import unit_axis
from mlirfuse.analysis.extent_hints import expected_extents
from mlirfuse.analysis.kernels import argument_attributes, body, symbol
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.memory.host_views import RESHAPES
from mlirfuse.analysis.scheduling.kernel_time import kernel_prediction
from mlirfuse.analysis.scheduling.scheduling_problem import kernel_problem
from mlirfuse.dialect.attributes import GATHER, SCHEDULE, STRIDES
from mlirfuse.dialect.gathered_view import DEFINITION as VIEW
from mlirfuse.dialect.module_target import device_of_module, target_of_module
from mlirfuse.errors import PassError, ScheduleError
from mlirfuse.machine.lookup import machine_of
from mlirfuse.passes.kernels.collapse_dims import collapse_alone, pairs_of
from mlirfuse.passes.kernels.permuted_arrays import (
    copy_kernel,
    may_permute_result,
    permute_argument,
    permute_result,
    permuted,
)
from mlirfuse.schedule.contractions.candidates import gains_along_k
from mlirfuse.schedule.grid.products import MOST_SUMS
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.predict.predict import issue_microseconds
from mlirfuse.schedule.predict.work import US
from mlirfuse.schedule.problem import Problem
from mlirfuse.support.rewriting import defining_op, erase
from mlirfuse.support.strides import entries_of
from mlirfuse.tiling.kernel_signature import default_attributes

Order = tuple[int, ...]
"""The axis of an array for each axis of its permuted copy."""


class Maker(NamedTuple):
    """What computes an operand.

    Attributes:
        launch: a call of the host.
        kernel: the kernel that it launches.
        number: of the operand among the results.
    """

    launch: ir.Operation
    kernel: ir.Operation
    number: int

    def permute(self, kernel: ir.Operation, order: Order) -> None:
        """Makes the kernel, or a clone of it, write the operand in another order."""
        permute_result(kernel, order, self.number)


RESULT = 2
"""The number of the result among the arrays of a contraction; operands have 0 and 1."""


@dataclass
class PermutedProduct:
    """A launch of a contraction whose arrays may be permuted; arrays are the operands and the result.

    Attributes:
        call: the launch.
        kernel: the kernel.
        space: its iteration space.
        arguments: of each operand the number among the kernel's arguments; None where it stays as it is.
        axes: of each array the dimensions of its axes; None where the result stays as it is.
        makers: of each operand the launch that computes it for this one alone, and may write it in any order.
        own: of each array the dimensions that vary, as they lie in memory.
        along_k: whether faster instructions multiply operands that are contiguous along k.
    """

    call: ir.Operation
    kernel: ir.Operation
    space: IterationSpace
    arguments: tuple[int | None, int | None]
    axes: tuple[Axes, Axes, Axes | None]
    makers: list[Maker | None]
    own: tuple[Dims, Dims, Dims]
    along_k: bool
    _known: dict[tuple[int, Order], tuple[float, bool]] = field(default_factory=dict)

    @property
    def is_sized(self) -> bool:
        """Whether all extents are static, or somebody says what they will be."""
        expected = expected_extents(self.kernel, self.space)
        return all(n is not None or hint is not None for n, hint in zip(self.space.extents, expected, strict=True))

    def orders(self) -> Iterator[ArrayOrders]:
        """The orders of arrays that may be permuted, those with the least time apart from the contraction's first."""
        return iter(sorted(filter(self._allows, array_orders(*self.own, along_k=self.along_k)), key=self.apart))

    def _allows(self, orders: ArrayOrders) -> bool:
        operands = zip(orders.operands, self.arguments, strict=True)
        stays = orders.result is None or self.axes[RESULT] is not None
        if not stays or any(dims is not None and argument is None for dims, argument in operands):
            return False
        moved = {dim for dims in (*orders.operands, orders.result) for dim in dims or ()}
        if None in (self.space.extents[dim] for dim in moved):  # it would be copied by calls of any size
            return False
        return not self._is_one_array or self._order(0, orders.operands[0]) == self._order(1, orders.operands[1])

    @property
    def _is_one_array(self) -> bool:
        """Whether both operands are one argument, which has one order."""
        return self.arguments[0] is not None and self.arguments[0] == self.arguments[1]

    def apart(self, orders: ArrayOrders) -> float:
        """Microseconds of copies, and by which kernels that write another order are slower."""
        return sum(self._moving(number, order)[0] for number, order in self._moved(orders))

    def total(self, orders: ArrayOrders, *, waits: bool = False) -> float:
        """Microseconds with permuted arrays, of what happens apart from the contraction and of the contraction.

        Args:
            orders: of the arrays.
            waits: whether the contraction waits for another kernel, whatever is copied.
        """
        operands = [key for key in self._moved(orders) if key[0] != RESULT]
        copies = [key for key in operands if not self._moving(*key)[1]]
        return self.apart(orders) + microseconds(
            self.kernel, lambda trial: self.permute(trial, orders), waits=waits or bool(copies)
        )

    def permute(self, kernel: ir.Operation, orders: ArrayOrders) -> None:
        """Makes the kernel, or a clone of it, take and return permuted arrays."""
        for number, order in self._moved(orders):
            if number == RESULT:
                permute_result(kernel, order)
            else:
                permute_argument(kernel, self._argument(number), order)

    def apply(self, orders: ArrayOrders) -> str:
        """Permutes arrays of the kernel, has others compute or copy them, and says so."""
        moved, name = self._moved(orders), symbol(self.kernel)
        said = [self._move_operand(number, order) for number, order in moved if number != RESULT]
        copies = [self._copy(number, order) for number, order in moved if number == RESULT]
        self.permute(self.kernel, orders)
        for copy in copies:
            self._copy_result(copy)
            said.append(f"the result of {name} is copied from another order")
        return ", ".join(said)

    def _moved(self, orders: ArrayOrders) -> list[tuple[int, Order]]:
        """The numbers of the arrays that move, each with its order; of one array that is both operands the first."""
        each = {number: self._order(number, dims) for number, dims in enumerate((*orders.operands, orders.result))}
        if self._is_one_array:
            del each[1]
        return [(number, order) for number, order in each.items() if order is not None]

    def _order(self, number: int, dims: Dims | None) -> Order | None:
        axes = self.axes[number]
        if dims is None or axes is None:
            return None
        ones = (axis for axis, dim in enumerate(axes) if dim is None)
        return (*ones, *(axes.index(dim) for dim in dims))

    def _moving(self, number: int, order: Order) -> tuple[float, bool]:
        """The microseconds of having an array in another order, and whether what computes it writes it so."""
        if (number, order) not in self._known:
            slower = inf if number == RESULT else self._slower(number, order)
            copy = self._copy(number, order)
            copying = microseconds(copy, waits=number == RESULT, limit=slower)
            erase(copy)
            self._known[number, order] = (slower, True) if slower <= copying else (copying, False)
        return self._known[number, order]

    def _slower(self, number: int, order: Order) -> float:
        """The microseconds by which what computes an operand is slower if it writes another order; infinite where it
        may not, or has no schedule.
        """
        maker = self.makers[number]
        before = inf if maker is None else microseconds(maker.kernel)
        if maker is None or before == inf:
            return inf
        return max(0.0, microseconds(maker.kernel, lambda kernel: maker.permute(kernel, order)) - before)

    def _argument(self, number: int) -> int:
        argument = self.arguments[number]
        assert argument is not None  # checked by _allows
        return argument

    def _move_operand(self, number: int, order: Order) -> str:
        """Replaces an operand of the launch by one in another order."""
        argument, maker = self._argument(number), self.makers[number]
        old = self.call.operands[argument]
        what = f"operand {number} of {symbol(self.kernel)}"
        if maker is not None and self._moving(number, order)[1]:
            maker.permute(maker.kernel, order)
            self.call.operands[argument] = self._launch_again(maker, permuted(old.type, order))
            erase(maker.launch)
            return f"{what} is computed in another order by {symbol(maker.kernel)}"
        copy = self._copy(number, order)
        with ir.InsertionPoint(self.call), self.call.location:
            made = func.CallOp([permuted(old.type, order)], symbol(copy), [old])
        self.call.operands[argument] = made.results[0]
        return f"{what} is copied to another order"

    def _launch_again(self, maker: Maker, type_: ir.Type) -> ir.Value:
        """Replaces the launch of a kernel that now computes an operand of another type; returns the operand."""
        old = maker.launch
        types = [type_ if number == maker.number else each.type for number, each in enumerate(old.results)]
        with ir.InsertionPoint(old), old.location:
            new = func.CallOp(types, symbol(maker.kernel), list(old.operands)).operation
        for number, (before, after) in enumerate(zip(old.results, new.results, strict=True)):
            if number != maker.number:
                before.replace_all_uses_with(after)
        self.makers = [m._replace(launch=new) if m is not None and m.launch == old else m for m in self.makers]
        return new.results[maker.number]

    def _copy_result(self, copy: ir.Operation) -> None:
        """Replaces the launch by one of the permuted kernel, and a copy of its result."""
        old = self.call.results[0]
        with ir.InsertionPoint(self.call), self.call.location:
            (source,) = ir.FunctionType(ir.TypeAttr(copy.attributes["function_type"]).value).inputs
            made = func.CallOp([source], symbol(self.kernel), list(self.call.operands))
            copied = func.CallOp([old.type], symbol(copy), [made.results[0]])
        old.replace_all_uses_with(copied.results[0])
        erase(self.call)
        self.call = made.operation

    def _copy(self, number: int, order: Order) -> ir.Operation:
        """The kernel that copies an operand to another order, or the result from one."""
        if number == RESULT:
            source = permuted(self.call.results[0].type, order)
            back = [order.index(axis) for axis in range(len(order))]
            return copy_kernel(self.kernel, source, back, f"{symbol(self.kernel)}_result", default_attributes())
        argument = self._argument(number)
        attributes = argument_attributes(self.kernel)[argument]
        source = self.kernel.regions[0].blocks[0].arguments[argument].type
        return copy_kernel(self.kernel, source, order, f"{symbol(self.kernel)}_operand{number}", attributes)


def permuted_product(kernel: ir.Operation, known: Mapping[ir.Operation, ir.Operation]) -> PermutedProduct | None:
    """The product of a kernel where dimensions of one role lie apart, tiles of an array are not contiguous, or faster
    instructions need operands that are contiguous along k.

    Args:
        kernel: a kernel on tensors.
        known: the host's launches of kernels that no other call launches.
    """
    if not has_products(kernel):
        return None
    space, structures = kernel_space(kernel)
    contraction = contraction_in(space, structures)
    if contraction is None or len(contraction.pairs) > 1:
        return None
    operands = [operand_of(space, contraction, number) for number in (0, 1)]
    units = [f.axes[unit_axis(kernel, f.source, f.axes)] for f in operands]
    tiled = all(
        unit in (outer, contraction.k) for unit, outer in zip(units, (contraction.m, contraction.n), strict=True)
    )
    left, right = ({dim for dim in operand.axes if dim is not None} for operand in operands)
    parallel, pairs = set(contraction.parallel), pairs_of(kernel)
    roles = (parallel & left - right, parallel & right - left, set(contraction.summed))
    joined = all(len(dims) - sum(set(pair) <= dims for pair in pairs) <= 1 for dims in roles)
    call = next(call for call, launched in known.items() if launched == kernel)
    (*_, returned) = body(kernel)
    strided = not all(_is_tiled(space, contraction, value) for value in returned.operands)
    viewed = any(map(_is_viewed, call.results))
    along_k = units != [contraction.k] * 2 and _gains_along_k(kernel)
    if tiled and joined and not along_k and (viewed or not (strided or _is_small(kernel, space, roles[:2]))):
        return None
    arguments = [_argument(kernel, contraction, operand) for operand in operands]
    makers = [None if a is None else _maker(call.operands[a], known) for a in arguments]
    values = [*returned.operands, contraction.structure.op.results[0]]
    axes = space.value_axes[values[0]]
    whole = len(values) == 2 and parallel <= set(axes)
    own = [_memory_order(kernel, operand) for operand in operands]
    result = tuple(d for d in (axes if whole else space.value_axes[values[-1]]) if d is not None)
    return PermutedProduct(
        call,
        kernel,
        space,
        (arguments[0], arguments[1]),
        (operands[0].axes, operands[1].axes, axes if whole and may_permute_result(kernel) else None),
        makers,
        (own[0], own[1], result),
        along_k,
    )


def _gains_along_k(kernel: ir.Operation) -> bool:
    """Whether faster instructions multiply operands that are contiguous along k."""
    try:
        problem = kernel_problem(kernel)
    except PassError:
        return False
    return isinstance(problem, ContractionProblem) and gains_along_k(problem, target_of_module(kernel.parent.operation))


def _is_tiled(space: IterationSpace, contraction: Contraction, result: ir.Value) -> bool:
    """Whether a result is contiguous along rows or columns of tiles, or has not both."""
    dims = [d for d in space.value_axes[result] if d is not None and space.extents[d] != 1]
    tile = {contraction.m, contraction.n}
    return not tile <= set(dims) or dims[-1] in tile


def _is_small(kernel: ir.Operation, space: IterationSpace, roles: Sequence[set[int]]) -> bool:
    """Whether a thread could have all rows of one operand meet all rows of the other; not of gathered views."""
    extents = [space.extents[d] for dims in roles for d in dims]
    gathered = any(GATHER in known for known in argument_attributes(kernel))
    return not gathered and None not in space.extents and prod(extent or 1 for extent in extents) <= MOST_SUMS


def _is_viewed(value: ir.Value) -> bool:
    """Whether a gathered view of a result is read, whose order products may store it in (`fuse-scatter-results`)."""
    users = [use.owner.operation for use in value.uses]
    reshapes = [user for user in users if user.name in RESHAPES]
    return any(user.name == VIEW.full_name for user in users) or any(_is_viewed(user.results[0]) for user in reshapes)


def _argument(kernel: ir.Operation, contraction: Contraction, operand: ContractionOperand) -> int | None:
    """The number of the argument that an operand is; None if it is read elsewhere too, or is no plain array."""
    arguments = list(kernel.regions[0].blocks[0].arguments)
    uses = [use.owner.operation for use in operand.source.uses]
    if operand.ops or operand.source not in arguments or set(uses) != {contraction.structure.op}:
        return None
    number = arguments.index(operand.source)
    return None if GATHER in argument_attributes(kernel)[number] else number


def _maker(value: ir.Value, known: Mapping[ir.Operation, ir.Operation]) -> Maker | None:
    """What computes a value that is used once, if it may write the value in any order."""
    launch = defining_op(value)
    if launch is None or launch not in known or len(list(value.uses)) != 1:
        return None
    maker = Maker(launch, known[launch], list(launch.results).index(value))
    return maker if SCHEDULE not in maker.kernel.attributes and may_permute_result(*maker[1:]) else None


def _memory_order(kernel: ir.Operation, operand: ContractionOperand) -> Dims:
    """The dimensions of an operand's axes that vary, as they lie in memory."""
    arguments = list(kernel.regions[0].blocks[0].arguments)
    attributes = argument_attributes(kernel)[arguments.index(operand.source)]
    axes = [axis for axis, dim in enumerate(operand.axes) if dim is not None]
    if STRIDES in attributes:
        strides = entries_of(attributes[STRIDES])
        if all(stride >= 0 for stride in strides):
            axes.sort(key=lambda axis: -strides[axis])
    return tuple(dim for axis in axes if (dim := operand.axes[axis]) is not None)


def microseconds(
    kernel: ir.Operation,
    change: Callable[[ir.Operation], None] | None = None,
    *,
    waits: bool = False,
    limit: float = inf,
) -> float:
    """The microseconds that a kernel is predicted to take; infinite where there is no schedule.

    Of a kernel that takes `limit` or more by a lower bound that bound, which saves looking for its schedule.

    Args:
        kernel: a kernel on tensors, which stays as it is.
        change: what happens to the kernel before.
        waits: whether the kernel waits for a copy, so that its launch is hidden behind nothing.
        limit: microseconds of what the kernel is compared with.
    """
    module = kernel.parent.operation
    target = target_of_module(module)
    with ir.InsertionPoint(kernel):
        trial = kernel.clone().operation
    try:
        if change is not None:
            change(trial)
        collapse_alone(trial)
        machine = machine_of(target, device_of_module(module))
        problem = kernel_problem(trial)
        if isinstance(problem, Problem) and (least := issue_microseconds(problem, machine)) >= limit:
            return least
        found = kernel_prediction(trial, target, machine)
        launch = max(found.launch, US * machine.graph_launch) if waits else found.launch
        return replace(found, launch=launch).microseconds
    except (PassError, ScheduleError):
        return inf
    finally:
        erase(trial)
