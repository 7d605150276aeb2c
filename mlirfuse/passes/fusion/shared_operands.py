"""`fuse-shared-operands`: contractions that share an operand become one kernel, which reads that operand once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.contractions.contraction import Contraction, contraction_in, has_products
from mlirfuse.analysis.contractions.epilogues import misfit
from mlirfuse.analysis.kernels import functions, symbol
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.scheduling.kernel_time import kernel_prediction
from mlirfuse.dialect.attributes import KERNEL, SCHEDULE
from mlirfuse.dialect.module_target import device_of_module, target_of_module
from mlirfuse.errors import PassError, ScheduleError
from mlirfuse.machine import MachineModel, machine_of
from mlirfuse.passes.fusion.joint_products import JointProducts, joint_products
from mlirfuse.passes.kernels.host import calls, launches
from mlirfuse.passes.kernels.kernel_pair import KernelPair
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.choice.choice import RESOLUTION
from mlirfuse.support.rewriting import erase
from mlirfuse.target import Target

MOST_PRODUCTS = 4
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
        for function in [f for f in functions(module) if KERNEL not in f.attributes and calls(f)]:
            declined: set[tuple[str, str]] = set()
            found = _contractions(module, function)
            while (pair := next(_pairs(found, declined), None)) is not None:
                names = symbol(pair.first), symbol(pair.second)
                reason = pair.obstacle(target, machine)
                if reason is None:
                    remarks.applied(self, f"{names[0]} and {names[1]} share an operand, and a kernel", pair.second_call)
                    pair.merge(function)
                    found = _contractions(module, function)
                    continue
                declined.add(names)
                message = f"{names[0]} and {names[1]} share an operand, and are kernels of their own: {reason}"
                remarks.declined(self, message, pair.second_call)


@dataclass(frozen=True, eq=False)
class _Launch:
    """A launch of a kernel with a contraction.

    Attributes:
        call: the launch.
        kernel: the kernel, on tensors.
        space: its iteration space.
        contraction: the contraction.
    """

    call: ir.Operation
    kernel: ir.Operation
    space: IterationSpace
    contraction: Contraction

    @cached_property
    def factors(self) -> set[ir.Value]:
        """The operands of the call that the contraction multiplies as they are."""
        op = self.contraction.structure.op
        passed = dict(zip(self.kernel.regions[0].blocks[0].arguments, self.call.operands, strict=True))
        return {passed[v] for pair in self.contraction.pairs for n in pair if (v := op.operands[n]) in passed}

    @cached_property
    def extents(self) -> list[tuple[int, ...]]:
        """The extents of the batch, of m, n and k, where known."""
        found = self.contraction
        groups = (found.batch, (found.m,), (found.n,), found.summed)
        return [tuple(sorted(self.space.extents[d] or 0 for d in dims)) for dims in groups]


def _contractions(module: ir.Operation, function: ir.Operation) -> list[_Launch]:
    """The launches of kernels with a contraction, in program order."""
    found = []
    for call, kernel in launches(module, function).items():
        if not has_products(kernel):
            continue
        space, structures = kernel_space(kernel)
        if (contraction := contraction_in(space, structures)) is not None:
            found.append(_Launch(call, kernel, space, contraction))
    return found


def _pairs(found: Sequence[_Launch], declined: set[tuple[str, str]]) -> Iterator[_Pair]:
    """Pairs of launches that share an operand, in program order, without declined ones."""
    for first, second in combinations(found, 2):
        if (symbol(first.kernel), symbol(second.kernel)) not in declined and first.factors & second.factors:
            yield _Pair(first, second)


class _Pair(KernelPair):
    """Two launches of contractions, the second of which may read results of the first."""

    def __init__(self, one: _Launch, other: _Launch):
        super().__init__(one.call, other.call, one.kernel, other.kernel)
        self.launches = (one, other)

    def obstacle(self, target: Target, machine: MachineModel) -> str | None:
        """Why the kernels should not be merged, or None."""
        if reason := self.separated():
            return reason
        if SCHEDULE in self.first.attributes or SCHEDULE in self.second.attributes:
            return "a schedule is given for it"
        if self.host_intervenes():
            return "the host computes on values that pass from one kernel to the other"
        one, other = self.launches
        if one.extents != other.extents:
            return "their results have other extents"
        count = len(one.contraction.pairs) + len(other.contraction.pairs)
        if count > MOST_PRODUCTS:
            return f"there are {count} products, and one kernel has {MOST_PRODUCTS} at most"
        trial = super().build()
        try:
            products = joint_products(trial)
            if isinstance(products, str):
                return products
            products.join()
            return _unfit(trial) or self._loss(trial, target, machine)
        except (PassError, ScheduleError) as error:
            return str(error)
        finally:
            erase(trial)

    def _loss(self, trial: ir.Operation, target: Target, machine: MachineModel) -> str | None:
        """Why the merged kernel is not clearly faster, or None."""
        merged, *own = (kernel_prediction(k, target, machine) for k in (trial, self.first, self.second))
        together, apart = merged.microseconds, sum(prediction.microseconds for prediction in own)
        if together * RESOLUTION > apart:
            return f"one kernel is predicted to take {together:.1f} us, two {apart:.1f} us"
        return None

    def build(self) -> ir.Operation:
        """The merged kernel, whose contractions are one op."""
        merged = super().build()
        products = joint_products(merged)
        assert isinstance(products, JointProducts)  # checked by obstacle
        products.join()
        return merged


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
