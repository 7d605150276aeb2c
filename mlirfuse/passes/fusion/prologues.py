"""`fuse-prologues`: fuses elementwise producers of operands into a contraction's kernel."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.contractions.contraction import contraction_in
from mlirfuse.analysis.contractions.contraction_operands import unfit_producers
from mlirfuse.analysis.contractions.problem import contraction_problem
from mlirfuse.analysis.kernels import functions, symbol
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.scheduling.kernel_time import kernel_prediction
from mlirfuse.dialect.attributes import SCHEDULE
from mlirfuse.dialect.gathered_view import DEFINITION
from mlirfuse.dialect.module_target import device_of_module, target_of_module
from mlirfuse.errors import PassError, ScheduleError
from mlirfuse.machine import MachineModel, machine_of
from mlirfuse.passes.fusion.order_choice import order_choice
from mlirfuse.passes.fusion.permuted_product import permuted_product
from mlirfuse.passes.fusion.viewed_producer import ViewedProducer
from mlirfuse.passes.kernels.host import callee, launches
from mlirfuse.passes.kernels.kernel_pair import KernelPair, Names, merge_pairs
from mlirfuse.passes.kernels.scatter_parts import joined_pairs
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.support.rewriting import defining_op, erase
from mlirfuse.target import Target

GATHERED = DEFINITION.full_name


@dataclass(frozen=True)
class FusePrologues(Pass):
    """Moves elementwise kernels whose results only a contraction reads into the contraction's kernel.

    Requires kernels on tensors, called by a host function. A kernel moves if all of its ops are elementwise, the
    contraction's is the only launch that reads its results, and each of its ops either computes one operand, along
    dimensions of that operand, or is needed on the result's tile (`analysis/contractions/contraction_operands.py`). The
    operand is then computed again for every tile of the result that uses it, so the kernels stay apart where the cost
    model estimates less time for two. Both forms are tried with arrays in other orders (`fuse-permute-operands`): a
    kernel of its own may store an operand in the order that suits the product, a prologue reads it as its sources lie.
    A kernel that only joins what another one computes takes no time apart, where that will store it in place.
    A user's schedule with a `contraction`, for either of the two, forces the fusion.
    Where fusion is off (`fuse.operation`), only kernels of one operation are fused. Where the contraction reads a
    gathered view of the result, as convolutions do, the kernel first becomes one that computes the view from views of
    its arguments (`viewed_producer.py`); it declines where an element depends on its index.

    ```mlir
    %w = call @f_0(%q, %scale) : (tensor<512x256xi8>, tensor<512xf16>) -> tensor<512x256xf16>   // casts and scales
    %y = call @f_1(%x, %w) : (tensor<64x256xf16>, tensor<512x256xf16>) -> tensor<64x512xf16>    // multiplies
    ```
    becomes
    ```mlir
    %y = call @f_0(%q, %scale, %x) : (tensor<512x256xi8>, tensor<512xf16>, tensor<64x256xf16>) -> tensor<64x512xf16>
    ```
    """

    name: ClassVar[str] = "fuse-prologues"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        target = target_of_module(module)
        machine = machine_of(target, device_of_module(module))
        merge_pairs(module, _pairs, lambda pair: pair.obstacle(target, machine), partial(self._report, remarks))

    def _report(self, remarks: Remarks, pair: _Pair, reason: str | None) -> None:
        first, second = symbol(pair.first), symbol(pair.second)
        if reason is None:
            remarks.applied(self, f"{first} becomes a prologue of {second}", pair.second_call)
        else:
            remarks.declined(self, f"{first} stays apart from {second}: {reason}", pair.second_call)


def _pairs(module: ir.Operation, function: ir.Operation, declined: Collection[Names]) -> Iterator[_Pair]:
    """Pairs of a launch that computes an operand and a contraction's launch that reads it, without declined ones."""
    known = launches(module, function)
    for second, kernel in known.items():
        views = [op for v in second.operands if (op := defining_op(v)) is not None and op.name == GATHERED]
        read = {first: next((v for v in views if v.operands[0] in first.results), None) for first in known}
        makers = [
            first
            for first, view in read.items()
            if (callee(first), callee(second)) not in declined
            and (view is not None or set(first.results) & set(second.operands))
        ]
        if makers and contraction_in(*kernel_space(kernel)) is not None:
            for first in makers:
                view = read[first]
                pair = (first, second, known[first], kernel)
                yield _Pair(*pair) if view is None else _ViewedPair(*pair, view)


class _Pair(KernelPair):
    """A launch, and one of a contraction that reads its results."""

    def obstacle(self, target: Target, machine: MachineModel, alone: ir.Operation | None = None) -> str | None:
        """Why the kernels should not be fused, or None.

        Args:
            target: the architecture.
            machine: the speeds of the device.
            alone: the kernel that a fusion spares; the first one by default.
        """
        if reason := self.separated():
            return reason
        space, structures = kernel_space(self.first)
        if space.reduced_dims:
            return "it contains a reduction"
        if any(use.owner.operation != self.second_call for result in self.first_call.results for use in result.uses):
            return "its results are used elsewhere as well"
        if self.host_intervenes():
            return "the host computes on values that pass from one kernel to the other"
        given = [schedule_of(k) for k in (self.first, self.second) if SCHEDULE in k.attributes]
        if any(schedule.contraction is None for schedule in given):
            return "a schedule is given for it"
        trial = self.build()
        try:
            space, structures = kernel_space(trial)
            if not space.spanned():
                return "no op's loops span both iteration spaces"
            if reason := unfit_producers(space, structures):
                return reason
            if given or _problem(trial) == _problem(self.second):
                return None
            one, second = (kernel_prediction(k, target, machine) for k in (trial, self.second))
            spared = self._spared(alone or self.first, target, machine)
        except (PassError, ScheduleError) as error:
            return str(error)
        finally:
            erase(trial)
        # The second kernel's launch is hidden behind nothing, as it waits for the first.
        waiting = replace(second, launch=max(second.launch, 1e6 * machine.graph_launch))
        together, apart = one.microseconds, spared + waiting.microseconds
        host = self.second_call.parent
        product = permuted_product(self.second, launches(host.parent, host))
        if product is not None and product.is_sized:
            limit = together - spared
            apart = min(apart, spared + order_choice(product, limit=limit, waits=True).microseconds)
            if together > apart:
                together = min(together, self._in_best_order(limit=apart))
        if together > apart:
            return f"one kernel is predicted to take {together:.1f} us, two {apart:.1f} us"
        return None

    def _spared(self, alone: ir.Operation, target: Target, machine: MachineModel) -> float:
        """The microseconds of the first kernel; where all it does is to join results of another one, which then stores
        them in place (`fuse-scatter-parts`), what that takes more.
        """
        host = self.first_call.parent
        for pair in joined_pairs(host.parent, host, ()):
            if pair.second_call == self.first_call and pair.obstacle() is None:
                joined = pair.build()
                try:
                    each = [kernel_prediction(k, target, machine).microseconds for k in (joined, pair.first)]
                finally:
                    erase(joined)
                return each[0] - each[1]
        return kernel_prediction(alone, target, machine).microseconds

    def _in_best_order(self, limit: float) -> float:
        """The microseconds of the one kernel, as `fuse-permute-operands` would make it; exact below a limit."""
        host = self.second_call.parent
        module = host.parent.clone(ip=False)
        try:
            function = next(f for f in functions(module) if symbol(f) == symbol(host))
            launch = {symbol(kernel): (call, kernel) for call, kernel in launches(module, function).items()}
            (first_call, first), (second_call, second) = (launch[name] for name in self.names)
            KernelPair(first_call, second_call, first, second).merge(function)
            known = launches(module, function)
            merged = next(kernel for kernel in known.values() if symbol(kernel) == symbol(self.first))
            product = permuted_product(merged, known)
            return inf if product is None or not product.is_sized else order_choice(product, limit=limit).microseconds
        finally:
            erase(module)


@dataclass(frozen=True)
class _ViewedPair(_Pair):
    """A launch, and one of a contraction that reads a gathered view of its result.

    Attributes:
        view: the `fuse.gathered_view`.
    """

    view: ir.Operation

    def obstacle(self, target: Target, machine: MachineModel, alone: ir.Operation | None = None) -> str | None:
        producer = self._producer()
        readers = [use.owner.operation for v in (*self.first_call.results, *self.view.results) for use in v.uses]
        if any(reader not in (self.view, self.second_call) for reader in readers):
            return "its results are used elsewhere as well"
        if reason := self.separated() or producer.obstacle():
            return reason
        call, kernel = producer.build()
        self._pass(call.results[0])
        try:
            return _Pair(call, self.second_call, kernel, self.second).obstacle(target, machine, self.first)
        finally:
            self._pass(self.view.results[0], call.results[0])
            producer.erase(call, kernel)

    def merge(self, function: ir.Operation) -> None:
        call, kernel = self._producer().build()
        self._pass(call.results[0])
        _Pair(call, self.second_call, kernel, self.second).merge(function)
        for op in (self.view, self.first_call, self.first):
            erase(op)

    def _producer(self) -> ViewedProducer:
        return ViewedProducer(self.first_call, self.first, self.view)

    def _pass(self, new: ir.Value, old: ir.Value | None = None) -> None:
        """Replaces what the second launch reads."""
        for number, operand in enumerate(self.second_call.operands):
            if operand == (old or self.view.results[0]):
                self.second_call.operands[number] = new


def _problem(kernel: ir.Operation) -> ContractionProblem:
    space, structures = kernel_space(kernel)
    contraction = contraction_in(space, structures)
    assert contraction is not None  # checked by _pairs
    return contraction_problem(kernel, space, contraction)
