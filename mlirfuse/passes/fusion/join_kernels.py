"""`fuse-join-kernels`: a kernel and one that reads its results become one, where that takes less time."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.contractions.contraction import has_products
from mlirfuse.analysis.grid_persistent import grid_persistent_ops
from mlirfuse.analysis.grid_reduction import grid_reduction
from mlirfuse.analysis.kernels import body, symbol
from mlirfuse.analysis.loops.iteration_space import Conflict, IterationSpace, space_of_structures
from mlirfuse.analysis.loops.structure import OpStructure, structure_of
from mlirfuse.analysis.scheduling.kernel_time import kernel_prediction, least_of_two
from mlirfuse.analysis.scheduling.scheduling_problem import depends_on_calls
from mlirfuse.analysis.segments.segments import joint_space
from mlirfuse.dialect.attributes import GRID_REDUCTION, MIX_ORDER, SCHEDULE
from mlirfuse.dialect.module_target import device_of_module, target_of_module
from mlirfuse.errors import ScheduleError
from mlirfuse.machine import MachineModel, machine_of
from mlirfuse.passes.fusion.cse import merge_equal_ops
from mlirfuse.passes.kernels.assumed_extents import with_assumed_extents
from mlirfuse.passes.kernels.host import launches
from mlirfuse.passes.kernels.kernel_pair import KernelPair, Names, later_gain, merge_pairs
from mlirfuse.passes.kernels.merge_exp_sums import merge_exp_sums
from mlirfuse.passes.kernels.merge_moments import merge_moments
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.recent import Recent
from mlirfuse.support.rewriting import erase
from mlirfuse.target import Target


@dataclass(frozen=True)
class FuseJoinKernels(Pass):
    """Merges a kernel into one that reads its results, where one kernel is predicted to take less time.

    A pair that would take more is merged where further kernels, merged with it, make up for that.
    Requires kernels on tensors without matrix products, called by a host function. `fuse-segment` groups ops once, in
    program order: a row's statistic cannot join the ops in front of it where these also reduce columns, and so what
    uses the statistic is a third kernel. Once `fuse-recompute` has both compute what they read from the first, they fit
    into one, which reads the rows once. The rules for the ops of one kernel are those of `fuse-segment`, but for two:

    - Reductions may run over different dimensions where they nest in a loop of the whole grid, as the mean of what is
      computed of each row does (`analysis/grid_reduction.py`). `fuse.mix_order = "split"` forbids it.
    - Reductions over a dynamic extent may be used in every tile, where a grid can visit its tiles twice around one
      barrier. Dependent reductions are then joint ones, such as mean and variance, which may also be all that is
      wanted (`analysis/grid_persistent.py`).

    ```mlir
    %s = call @f_1(%x, %max) : (tensor<?x2048xf32>, tensor<2048xf32>) -> tensor<?xf32>
    %y = call @f_2(%x, %max, %s) : (tensor<?x2048xf32>, tensor<2048xf32>, tensor<?xf32>) -> tensor<?x2048xf32>
    ```
    becomes
    ```mlir
    %y = call @f_1(%x, %max) : (tensor<?x2048xf32>, tensor<2048xf32>) -> tensor<?x2048xf32>
    ```
    """

    name: ClassVar[str] = "fuse-join-kernels"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        target = target_of_module(module)
        machine = machine_of(target, device_of_module(module))

        def report(pair: KernelPair, reason: str | None) -> None:
            names = f"{symbol(pair.first)} and {symbol(pair.second)}, which reads its results"
            if reason is None:
                remarks.applied(self, f"{names}, are one kernel", pair.second_call)
            else:
                remarks.declined(self, f"{names}, stay apart: {reason}", pair.second_call)

        merge_pairs(module, _pairs, lambda pair: _obstacle(pair, target, machine), report)


def _pairs(module: ir.Operation, function: ir.Operation, declined: Collection[Names]) -> Iterator[KernelPair]:
    """Launches of which the second reads results of the first, without declined ones and products."""
    known = [(call, kernel) for call, kernel in launches(module, function).items() if not has_products(kernel)]
    for (call, kernel), (later, reader) in combinations(known, 2):
        pair = _Pair(call, later, kernel, reader)
        if pair.names not in declined and set(call.results) & set(later.operands):
            yield pair


class _Pair(KernelPair):
    """A launch, and one that reads its results."""

    def build(self) -> ir.Operation:
        """The merged kernel; two dependent reductions become a joint one where all tiles need them."""
        kernel = super().build()
        if isinstance(joint_space(_structures(kernel)), Conflict):
            merge_equal_ops(kernel)
            merge_moments(kernel)
            merge_exp_sums(kernel)
        return kernel


def _structures(kernel: ir.Operation) -> list[OpStructure]:
    return [s for op in body(kernel) if (s := structure_of(op)) is not None]


def _space(kernel: ir.Operation, host: ir.Operation) -> IterationSpace | str:
    """The iteration space of a merged kernel, or why it is no kernel."""
    structures = _structures(kernel)
    space = joint_space(structures)
    if not isinstance(space, Conflict):
        return space
    if GRID_REDUCTION in host.attributes:
        return f"{space.reason}, and the caller says how reductions are combined"
    whole = space_of_structures(structures)
    if isinstance(whole, Conflict):
        return space.reason
    returned = body(kernel)[-1].operands
    if len({dims for dims in whole.reduced.values() if dims}) > 1:
        reason = _nesting_obstacle(whole, structures, returned, host)
        return whole if reason is None else f"{space.reason}; in one loop of the grid, {reason}"
    persistent = grid_persistent_ops(whole, structures, returned)
    if isinstance(persistent, Conflict):
        return f"{space.reason}; as a grid persistent kernel, {persistent.reason}"
    return whole


def _nesting_obstacle(
    space: IterationSpace, structures: Sequence[OpStructure], returned: Iterable[ir.Value], host: ir.Operation
) -> str | None:
    """Why reductions over different dimensions do not share one loop of the grid, or None."""
    if MIX_ORDER in host.attributes and ir.StringAttr(host.attributes[MIX_ORDER]).value == "split":
        return "the caller asked for separate kernels (split)"
    if not space.spanned():
        return "no op runs over all dimensions"
    plan = grid_reduction(space, structures, returned)
    return plan.reason if isinstance(plan, Conflict) else None


def _obstacle(pair: KernelPair, target: Target, machine: MachineModel) -> str | None:
    """Why two kernels should not be one, or None."""
    times = _times(pair, target, machine)
    if isinstance(times, str):
        return times
    loss = times.together - times.apart

    def gain(other: KernelPair) -> float | None:
        found = _times(other, target, machine)
        return None if isinstance(found, str) else found.apart - found.together

    if loss < 0 or (loss < _most_later(pair, target, machine) and loss < later_gain(pair, _pairs, gain)):
        return None
    return f"one kernel is predicted to take {times.together:.1f} us, two {times.apart:.1f} us"


def _most_later(pair: KernelPair, target: Target, machine: MachineModel) -> float:
    """Microseconds that further kernels save at most, merged with a pair: what they take."""
    host = pair.first_call.parent
    near = [p for p in _pairs(host.parent, host, (pair.names,)) if not {*p.names}.isdisjoint(pair.names)]
    others = {kernel for p in near for kernel in (p.first, p.second)} - {pair.first, pair.second}
    total = 0.0
    for kernel in others:
        with suppress(ScheduleError):  # no pair with it has a prediction
            total += kernel_prediction(kernel, target, machine).microseconds
    return total


@dataclass(frozen=True)
class _Times:
    """What one kernel and what two are predicted to take, in microseconds."""

    together: float
    apart: float


def _times(pair: KernelPair, target: Target, machine: MachineModel) -> _Times | str:
    """What a pair takes as one kernel and as two, or why it is no kernel."""
    if reason := pair.separated():
        return reason
    if any(SCHEDULE in kernel.attributes for kernel in (pair.first, pair.second)):
        return "a schedule is given"
    if pair.host_intervenes():
        return "the host computes on values that pass from one to the other"
    compute = partial(_predicted, pair, target, machine)
    if depends_on_calls(pair.first) or depends_on_calls(pair.second):
        return compute()
    host = pair.first_call.parent
    asked = tuple(
        str(host.attributes[name]) if name in host.attributes else None for name in (GRID_REDUCTION, MIX_ORDER)
    )
    return _known.of((pair.key, asked, target, machine), compute)


_known: Recent[Hashable, _Times | str] = Recent(1024)
"""By all that times follow from: chains of steps have the same pairs again and again."""


def _predicted(pair: KernelPair, target: Target, machine: MachineModel) -> _Times | str:
    trial = pair.build()
    try:
        merge_equal_ops(trial)
        space = _space(trial, pair.first_call.parent)
        if isinstance(space, str):
            return space
        if space.unread_dims:
            return "it would read nothing with one of its dynamic extents"
        try:
            together = kernel_prediction(trial, target, machine).microseconds
            with with_assumed_extents(pair, trial) as (first, second):
                apart = sum(kernel_prediction(k, target, machine).microseconds for k in (first, second))
                apart = least_of_two(trial, second, apart, target, machine)
        except ScheduleError as error:
            return error.message
    finally:
        erase(trial)
    return _Times(together, apart)
