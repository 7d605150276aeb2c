"""`fuse-operand-sums`: fuses sums of a contraction's operand into the contraction's kernel."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.contractions.contraction import contraction_in
from mlirfuse.analysis.contractions.epilogues import misfit
from mlirfuse.analysis.contractions.operand_sums import operand_sums, sum_problem
from mlirfuse.analysis.kernels import symbol
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.scheduling.kernel_time import kernel_prediction
from mlirfuse.dialect.attributes import SCHEDULE
from mlirfuse.dialect.module_target import device_of_module, target_of_module
from mlirfuse.errors import PassError, ScheduleError
from mlirfuse.machine import MachineModel, machine_of
from mlirfuse.passes.kernels.collapse_dims import collapse_alone
from mlirfuse.passes.kernels.host import callee, launches
from mlirfuse.passes.kernels.kernel_pair import KernelPair, Names, merge_pairs
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.predict import Prediction
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.support.rewriting import erase
from mlirfuse.target import Target


@dataclass(frozen=True)
class FuseOperandSums(Pass):
    """Moves kernels that sum up a contraction's operand, over what the contraction sums over, into its kernel.

    Requires kernels on tensors, called by a host function: `dw = dy.T @ x` and `db = sum(dy, 0)`, or the gradients of a
    convolution's filters and bias. A kernel moves if all that it reduces are sums of one operand, of elementwise
    functions of its elements that are zero at zero, and what follows them runs on the result's tile
    (`analysis/contractions/operand_sums.py`). A block then adds up the elements of the tiles that it copies for the
    product, in f32 registers, and partial sums are combined with those of the product. The kernels stay apart where
    the cost model predicts less time for two. A user's schedule with a `contraction`, for either of the two, forces the
    fusion. Where fusion is off (`fuse.operation`), only kernels of one operation are fused.

    ```mlir
    %dw = call @f_0(%dy, %x) : (tensor<8192x256xf16>, tensor<8192x512xf16>) -> tensor<256x512xf16>
    %db = call @f_1(%dy) : (tensor<8192x256xf16>) -> tensor<256xf16>
    ```
    becomes
    ```mlir
    %dw, %db = call @f_0(%dy, %x) : (tensor<8192x256xf16>, tensor<8192x512xf16>)
        -> (tensor<256x512xf16>, tensor<256xf16>)
    ```
    """

    name: ClassVar[str] = "fuse-operand-sums"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        target = target_of_module(module)
        machine = machine_of(target, device_of_module(module))
        merge_pairs(module, _pairs, lambda pair: pair.obstacle(target, machine), partial(self._report, remarks))

    def _report(self, remarks: Remarks, pair: _Pair, reason: str | None) -> None:
        names = f"{symbol(pair.first)} and {symbol(pair.second)}"
        if reason is None:
            remarks.applied(self, f"{names} read an operand in one kernel", pair.second_call)
        else:
            remarks.declined(self, f"{names} stay apart: {reason}", pair.second_call)


def _pairs(module: ir.Operation, function: ir.Operation, declined: Collection[Names]) -> Iterator[_Pair]:
    """Pairs, in program order, of a launch that contracts and one that reduces what the first reads."""
    known = launches(module, function)
    spaces = {call: kernel_space(kernel) for call, kernel in known.items()}
    contract = [call for call, found in spaces.items() if contraction_in(*found) is not None]
    order = list(known)
    for product in contract:
        for other in order:
            if other in contract or not spaces[other][0].reduced or not set(other.operands) & set(product.operands):
                continue
            first, second = sorted((product, other), key=order.index)
            if (callee(first), callee(second)) not in declined:
                yield _Pair(first, second, known[first], known[second])


class _Pair(KernelPair):
    """A launch that contracts, and one that reduces what the first reads, in program order."""

    def obstacle(self, target: Target, machine: MachineModel) -> str | None:
        """Why the kernels should not be fused, or None."""
        if reason := self.separated():
            return reason
        if self.host_intervenes():
            return "the host computes on values that pass from one kernel to the other"
        given = [schedule_of(k) for k in (self.first, self.second) if SCHEDULE in k.attributes]
        if any(schedule.contraction is None for schedule in given):
            return "a schedule is given for it"
        trial = self.build()
        try:
            if reason := _unfit(trial):
                return reason
            if given:
                return None
            one, first, second = (_prediction(k, target, machine) for k in (trial, self.first, self.second))
        except (PassError, ScheduleError) as error:
            return str(error)
        finally:
            erase(trial)
        dependent = set(self.first_call.results) & set(self.second_call.operands)
        if dependent:  # the second kernel's launch is hidden behind nothing
            second = replace(second, launch=max(second.launch, 1e6 * machine.graph_launch))
        together, apart = one.microseconds, first.microseconds + second.microseconds
        if together > apart:
            return f"one kernel is predicted to take {together:.1f} us, two {apart:.1f} us"
        return None


def _prediction(kernel: ir.Operation, target: Target, machine: MachineModel) -> Prediction:
    """What a kernel is predicted to take once `fuse-collapse-dims` has merged its dimensions."""
    trial = kernel.clone(ir.InsertionPoint(kernel))
    try:
        collapse_alone(trial)
        return kernel_prediction(trial, target, machine)
    finally:
        erase(trial)


def _unfit(kernel: ir.Operation) -> str | None:
    """Why a kernel of both is no kernel of a contraction and sums of its operand, or None."""
    space, structures = kernel_space(kernel)
    if not space.spanned():
        return "no op's loops span both iteration spaces"
    contraction = contraction_in(space, structures)
    if contraction is None:
        return "no contraction is among the ops"
    sums = operand_sums(space, contraction, structures)
    own = {contraction.structure.op, *(each.reduction.op for each in sums)}
    for s in structures:
        over = space.reduced.get(s.op, frozenset())
        if over & set(contraction.summed) and s.op not in own:
            return sum_problem(space, contraction, s) or "it sums up the other operand"
    return misfit(space, structures, sums=True) if sums else "it sums up no operand of the contraction"
