"""`fuse-split-reductions`: a statistic that takes the whole grid gets a kernel of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from math import inf, prod
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.contractions.contraction import contraction_in
from mlirfuse.analysis.kernels import body, functions, symbol
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.loops.structure import reduces
from mlirfuse.analysis.scheduling.kernel_time import least_of_two, reduction_microseconds
from mlirfuse.analysis.scheduling.scheduling_problem import kernel_problem
from mlirfuse.dialect.attributes import SPLIT_KERNELS
from mlirfuse.dialect.module_target import device_of_module, target_of_module
from mlirfuse.errors import PassError, ScheduleError
from mlirfuse.machine.lookup import machine_of
from mlirfuse.machine.model import MachineModel
from mlirfuse.passes.kernels.hint_extents import FuseHintExtents
from mlirfuse.passes.kernels.host import launch_in, launches, to_be_split
from mlirfuse.passes.splitting.kernel_split import (
    KernelSplit,
    first_reductions,
    reduced_values,
    values_again,
    what_is_given,
)
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.choice.choice import RESOLUTION
from mlirfuse.schedule.predict.counts.space import with_extents
from mlirfuse.schedule.problem import Problem
from mlirfuse.support.dtypes import element_bytes
from mlirfuse.support.rewriting import erase
from mlirfuse.target import Target

Way = Callable[[ir.Operation, ir.Operation], KernelSplit]
"""How a launch and its kernel are split."""


@dataclass(frozen=True)
class FuseSplitReductions(Pass):
    """Splits a kernel between its first reductions and what uses their results, where two kernels are predicted faster.

    Requires kernels on tensors, called by a host function. A block, or a cluster of blocks, that reduces what the
    kernel needs again reads it once. Where so much is reduced that few blocks do all the work, the whole grid reduces
    it faster in a kernel of its own, and another kernel reads the data again. Both kernels compute elementwise ops that
    both need; or a kernel stores what these compute, and another one does the rest, where that is faster, as it is with
    windows of many elements. What is left is split again where that is faster still; ops that only the reductions had
    loops in common with get kernels of their own. Declines where a schedule is given, and where one kernel is predicted
    to take no longer (`mlirfuse/schedule/predict`), with large numbers for extents that are known at run time only. A
    kernel for
    which there is no schedule is split in any case, and so is one that `fuse.split_kernels` names: the assembler has
    shown that it spills with all fast schedules. Where nothing waits for the reductions of such a kernel, what they
    reduce is stored by one kernel, and reduced by another.

    ```mlir
    %0 = call @f_0(%x) : (tensor<67108864xf32>) -> tensor<67108864xf32>      // x * rsqrt(sum(x * x))
    ```
    becomes
    ```mlir
    %s = call @f_0_reductions(%x) : (tensor<67108864xf32>) -> tensor<1xf32>
    %0 = call @f_0(%x, %s) : (tensor<67108864xf32>, tensor<1xf32>) -> tensor<67108864xf32>
    ```


    Attributes:
        always: whether kernels are split whatever is predicted.
    """

    name: ClassVar[str] = "fuse-split-reductions"

    always: bool = False

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for host in list(functions(module)):
            asked = _asked(host)
            for call, kernel in launches(module, host).items():
                if symbol(kernel) in asked and (values := _last_reduced(host, kernel)):
                    asked.discard(symbol(kernel))
                    (first, *_), call = KernelSplit(call, kernel, [values], "values").split()
                    FuseHintExtents().run(module, Remarks())
                    remarks.applied(self, f"{symbol(first)} stores what {symbol(kernel)} reduces", kernel)
                while not isinstance(way := _obstacle(host, kernel) or self._way(module, host, kernel, asked), str):
                    asked.discard(symbol(kernel))
                    firsts, call = way(call, kernel).split()  # what is left may be split again
                    FuseHintExtents().run(module, Remarks())
                    for first in firsts:
                        uses = any(op.name == "linalg.generic" and reduces(op) for op in body(first))
                        how = "has no loops in common with {}"
                        if way == _values_of:
                            how = "stores what {} needs twice"
                        elif uses:
                            how = "reduces what {} uses"
                        remarks.applied(self, f"{symbol(first)} {how.format(symbol(kernel))}", kernel)
                remarks.declined(self, way, kernel)

    def _way(self, module: ir.Operation, host: ir.Operation, kernel: ir.Operation, asked: Collection[str]) -> Way | str:
        """How a kernel should be split, or why it should not."""
        if self.always:
            return _reductions_of
        target = target_of_module(module)
        machine = machine_of(target, device_of_module(module))
        together, least, stored = inf, 0.0, 0
        with suppress(ScheduleError):  # no schedule fits the kernel whole
            least, stored = _least_microseconds(kernel, machine), _stored_bytes(kernel)
            if symbol(kernel) not in asked:
                together = _microseconds(kernel, target, machine)
        if together <= least:
            return f"one kernel is predicted to take {together:.1f} us, what two move {least:.1f} us"
        ways: list[Way] = [_reductions_of]
        if stored and together > least + 2e6 * stored / machine.dram_bandwidth:
            ways.append(_values_of)
        times = [_apart(module, host, kernel, way, together, target, machine) for way in ways]
        reasons = [each for each in times if isinstance(each, str)]
        if len(reasons) == len(ways):
            return reasons[0]
        known = [inf if isinstance(each, str) else each for each in times]
        if min(known) * RESOLUTION >= together:
            return f"one kernel is predicted to take {together:.1f} us, two {min(known):.1f} us"
        return ways[known.index(min(known))]


def _apart(
    module: ir.Operation,
    host: ir.Operation,
    kernel: ir.Operation,
    way: Way,
    together: float,
    target: Target,
    machine: MachineModel,
) -> float | str:
    """Microseconds of the kernels of a split, without what is left where that has to be split again; or why there is
    none.
    """
    copy = module.clone(ip=False)
    try:
        same, call, second = launch_in(copy, host, kernel)
        firsts, _ = way(call, second).split()
        FuseHintExtents().run(copy, Remarks())  # what is left reads results that have no hints yet
        apart = sum(_microseconds(first, target, machine) for first in firsts)
        try:
            apart += _microseconds(second, target, machine)
        except ScheduleError:
            if together < inf or way == _values_of or _obstacle(same, second) is not None:
                raise
        return least_of_two(kernel, second, apart, target, machine) if together < inf else apart
    except (PassError, ScheduleError) as error:
        return f"its reductions are no kernel of their own: {error.message}"
    finally:
        erase(copy)


def _asked(host: ir.Operation) -> set[str]:
    """The kernels that are to be split whatever is predicted; the attribute that says so is taken away."""
    names = to_be_split(host)
    if names:
        del host.attributes[SPLIT_KERNELS]
    return names


def _last_reduced(host: ir.Operation, kernel: ir.Operation) -> list[ir.Operation]:
    """What a kernel computes for reductions that nothing waits for; nothing for another kernel."""
    space, structures = kernel_space(kernel)
    if what_is_given(host, kernel) or contraction_in(space, structures) or first_reductions(space, structures):
        return []
    return reduced_values(structures, list(body(kernel)[-1].operands))


def _reductions_of(call: ir.Operation, kernel: ir.Operation) -> KernelSplit:
    """The split of a kernel behind its first reductions."""
    return KernelSplit(call, kernel, first_reductions(*kernel_space(kernel)))


def _values_of(call: ir.Operation, kernel: ir.Operation) -> KernelSplit:
    """The split of a kernel behind what its first reductions and the rest both need."""
    return KernelSplit(call, kernel, [values_again(*kernel_space(kernel))], "values")


def _stored_bytes(kernel: ir.Operation) -> int:
    """Bytes of what the first reductions and the rest of a kernel both need."""
    values = [result for op in values_again(*kernel_space(kernel)) for result in op.results]
    return _elements(kernel) * sum(element_bytes(value.type) for value in values)


def _elements(kernel: ir.Operation) -> int:
    """Elements of a kernel's space, with large numbers for extents that are known at run time only."""
    problem = kernel_problem(kernel)
    assert isinstance(problem, Problem)  # no contraction
    return prod(extent or 1 for extent in with_extents(problem).extents)


def _obstacle(host: ir.Operation, kernel: ir.Operation) -> str | None:
    """Why a kernel cannot be split, or None."""
    if reason := what_is_given(host, kernel):
        return reason
    space, structures = kernel_space(kernel)
    if contraction_in(space, structures) is not None:
        return "it has a contraction, which starts a kernel"
    if not first_reductions(space, structures):
        return "nothing along what it reduces waits for a reduction"
    if 0 in space.extents:
        return "it has no elements"
    return None


def _microseconds(kernel: ir.Operation, target: Target, machine: MachineModel) -> float:
    return reduction_microseconds(kernel, target, machine)


def _least_microseconds(kernel: ir.Operation, machine: MachineModel) -> float:
    """What two kernels take at least: their traffic, as both read what is reduced over the whole space."""
    problem = kernel_problem(kernel)
    assert isinstance(problem, Problem)  # no contraction
    problem = with_extents(problem)
    space, structures = kernel_space(kernel)
    first = [op for group in first_reductions(space, structures) for op in group]
    whole = {d for d, extent in enumerate(space.extents) if extent != 1}
    read_again = problem.read_bytes if any(whole <= set(space.loops[op]) for op in first) else 0
    bytes_moved = prod(extent or 1 for extent in problem.extents) * (problem.full_bytes + read_again)
    return bytes_moved / machine.dram_bandwidth * 1e6
