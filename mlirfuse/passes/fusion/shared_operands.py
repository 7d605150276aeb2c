"""`fuse-shared-operands`: contractions that share an operand become one kernel, which reads that operand once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.contractions.contraction import Contraction, contraction_in
from mlirfuse.analysis.contractions.epilogues import misfit
from mlirfuse.analysis.kernels import body, functions, kernels, symbol
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.scheduling.kernel_time import kernel_prediction
from mlirfuse.dialect.attributes import KERNEL, SCHEDULE
from mlirfuse.dialect.module_target import device_of_module, target_of_module
from mlirfuse.errors import PassError, ScheduleError
from mlirfuse.machine import MachineModel, machine_of
from mlirfuse.passes.fusion.joint_products import JointProducts, joint_products
from mlirfuse.passes.fusion.kernel_pair import KernelPair
from mlirfuse.passes.kernels.host import callee, calls, launches
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.choice.choice import RESOLUTION
from mlirfuse.support.rewriting import erase
from mlirfuse.target import Target

MOST_PRODUCTS = 3
"""Products in one kernel at most: accumulators of each take registers, so that tiles become small."""


@dataclass(frozen=True)
class FuseSharedOperands(Pass):
    """Merges two kernels whose contractions share an operand, where one kernel is clearly predicted to take less time.

    Requires kernels on tensors, called by a host function. Both contractions multiply arguments, share operand A or
    operand B in the same order, and have the same loops, precision and element types, from zero: `x @ gate` and
    `x @ up`, or the projections to queries, keys and values. Their ops become one `linalg.generic` of several results,
    whose tile program copies the shared operand's tile once a step along k. What followed either contraction, or both,
    is the epilogue. The accumulators of all products share a thread's registers, so tiles are smaller than those of two
    kernels; `schedule/contractions/several.py` predicts the kernel as one product whose other operands lie side by
    side. Pairs merge up to `MOST_PRODUCTS` products. Kernels with a given schedule stay as they are.

    ```mlir
    %g = call @f_0(%x, %gate) : (tensor<?x512xbf16>, tensor<768x512xbf16>) -> tensor<?x768xbf16>
    %y = call @f_1(%x, %up, %g) : (tensor<?x512xbf16>, tensor<768x512xbf16>, tensor<?x768xbf16>) -> tensor<?x768xbf16>
    ```
    becomes
    ```mlir
    %y = call @f_0(%x, %gate, %up)
        : (tensor<?x512xbf16>, tensor<768x512xbf16>, tensor<768x512xbf16>) -> tensor<?x768xbf16>
    ```
    with in `@f_0`
    ```mlir
    %0:2 = linalg.generic {indexing_maps = [#mk, #nk, #nk, #mn, #mn], ...} ins(%x, %gate, %up) outs(%zeros, %zeros) {
    ^bb0(%a: bf16, %b: bf16, %c: bf16, %g: f32, %u: f32):
      ...
      linalg.yield %gate_sum, %up_sum : f32, f32
    }
    ```
    """

    name: ClassVar[str] = "fuse-shared-operands"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        target = target_of_module(module)
        machine = machine_of(target, device_of_module(module))
        if sum(map(_contracts, kernels(module))) < 2:
            return
        for function in [f for f in functions(module) if KERNEL not in f.attributes and calls(f)]:
            declined: set[tuple[str, str]] = set()
            while (pair := next(_pairs(module, function, declined), None)) is not None:
                names = symbol(pair.first), symbol(pair.second)
                reason = pair.obstacle(target, machine)
                if reason is None:
                    remarks.applied(self, f"{names[0]} and {names[1]} share an operand, and a kernel", pair.second_call)
                    pair.merge(function)
                    continue
                declined.add(names)
                message = f"{names[0]} and {names[1]} share an operand, and are kernels of their own: {reason}"
                remarks.declined(self, message, pair.second_call)


def _contracts(kernel: ir.Operation) -> bool:
    return _contraction(kernel) is not None


def _contraction(kernel: ir.Operation) -> tuple[IterationSpace, Contraction] | None:
    """The contraction of a kernel on tensors and its iteration space; None for any other kernel."""
    if not any(op.name == "linalg.generic" for op in body(kernel)):
        return None
    try:
        space, structures = kernel_space(kernel)
    except (PassError, ScheduleError):
        return None
    contraction = contraction_in(space, structures)
    return None if contraction is None else (space, contraction)


def _pairs(module: ir.Operation, function: ir.Operation, declined: set[tuple[str, str]]) -> Iterator[_Pair]:
    """Pairs of launches of contractions that share an operand, in program order, without declined ones."""
    known = launches(module, function)
    found = [(call, kernel, _factors(call, kernel)) for call, kernel in known.items() if _contracts(kernel)]
    for (first, one, read), (second, other, also) in combinations(found, 2):
        if (callee(first), callee(second)) not in declined and read & also:
            yield _Pair(first, second, one, other)


def _factors(call: ir.Operation, kernel: ir.Operation) -> set[ir.Value]:
    """The operands of a call that the kernel's contraction multiplies as they are."""
    found = _contraction(kernel)
    assert found is not None  # checked by _pairs
    op = found[1].structure.op
    passed = dict(zip(kernel.regions[0].blocks[0].arguments, call.operands, strict=True))
    return {passed[v] for pair in found[1].pairs for n in pair if (v := op.operands[n]) in passed}


class _Pair(KernelPair):
    """Two launches of contractions, the second of which may read results of the first."""

    def obstacle(self, target: Target, machine: MachineModel) -> str | None:
        """Why the kernels should not be merged, or None."""
        if reason := self.separated():
            return reason
        if SCHEDULE in self.first.attributes or SCHEDULE in self.second.attributes:
            return "a schedule is given for it"
        if self.host_intervenes():
            return "the host computes on values that pass from one kernel to the other"
        trial = super().build()
        try:
            products = self._products(trial)
            if isinstance(products, str):
                return products
            products.join()
            if reason := _unfit(trial):
                return reason
            one, first, second = (kernel_prediction(k, target, machine) for k in (trial, self.first, self.second))
        except (PassError, ScheduleError) as error:
            return str(error)
        finally:
            erase(trial)
        together, apart = one.microseconds, first.microseconds + second.microseconds
        if together * RESOLUTION > apart:
            return f"one kernel is predicted to take {together:.1f} us, two {apart:.1f} us"
        return None

    def build(self) -> ir.Operation:
        """The merged kernel, whose contractions are one op."""
        merged = super().build()
        products = self._products(merged)
        assert isinstance(products, JointProducts)  # checked by obstacle
        products.join()
        return merged

    def _products(self, merged: ir.Operation) -> JointProducts | str:
        """The products of both kernels in the merged one, or why these cannot be one op."""
        found = [_contraction(kernel) for kernel in (self.first, self.second)]
        counts = [0 if each is None else len(each[1].pairs) for each in found]
        if sum(counts) > MOST_PRODUCTS:
            return f"there are {sum(counts)} products, and one kernel has {MOST_PRODUCTS} at most"
        return joint_products(merged)


def _unfit(kernel: ir.Operation) -> str | None:
    """Why a kernel with joint products is no kernel, or None."""
    space, structures = kernel_space(kernel)
    if not space.spanned():
        return "no op's loops span both iteration spaces"
    contraction = contraction_in(space, structures)
    if contraction is None or len(contraction.pairs) == 1:
        return "the products have loops of different roles"
    side = 0 if len(contraction.sides[0]) > 1 else 1
    if space.extents[contraction.n if side else contraction.m] is None:
        return "the extent along which their other operands would lie side by side is dynamic"
    return misfit(space, structures)
