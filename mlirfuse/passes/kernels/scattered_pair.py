"""A launch, and one of an elementwise kernel that reads its result through a gathered view, as a single launch."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mlir import ir
from mlir.dialects import func

from mlirfuse.analysis.contractions.contraction import contraction_in
from mlirfuse.analysis.kernels import body, symbol
from mlirfuse.analysis.loops.iteration_space import Conflict
from mlirfuse.analysis.loops.structure import structure_of
from mlirfuse.analysis.memory.inverse_gathers import Positions, inverse
from mlirfuse.analysis.segments.segments import joint_space
from mlirfuse.dialect.attributes import SCHEDULE
from mlirfuse.dialect.gathered_view import gather_of, gathered_view
from mlirfuse.dialect.scatter import bytes_in_order, scatter_of
from mlirfuse.passes.kernels.host import depends_on, order_host_ops
from mlirfuse.passes.kernels.kernel_pair import KernelPair
from mlirfuse.passes.kernels.scattered_kernel import ScatteredKernel, UnfitError
from mlirfuse.schedule.model.machine import WIDEST_ACCESS
from mlirfuse.support.reshapes import reassociation
from mlirfuse.support.rewriting import erase

MOST_SOURCES = 16
"""Elements of a result that a thread stores for each element of the product, at most: each is code of its own."""


@dataclass(frozen=True)
class ScatteredPair(KernelPair):
    """Two launches, of which the second reads a result of the first through a gathered view.

    Attributes:
        view: the `fuse.gathered_view`.
        reshape: the `tensor.expand_shape` of the first launch's result that the view reads; None where it reads the
            result itself.
    """

    view: ir.Operation
    reshape: ir.Operation | None

    def obstacle(self) -> str | None:
        """Why the pair should not become one launch, or None."""
        if reason := self.separated():
            return reason
        if SCHEDULE in self.second.attributes:
            return "a schedule is given for it"
        passed = self.view.results[0]
        if len(list(passed.uses)) > 1:
            return "the view is read elsewhere as well"
        if self.reshape is not None and len(list(self.reshape.results[0].uses)) > 1:
            return "other views are read of the result"
        if any(value != passed and depends_on(value, self.first_call) for value in self.second_call.operands):
            return "the host computes on values that pass from one kernel to the other"
        try:
            trial = self._merged().kernel
        except UnfitError as error:
            return str(error)
        try:
            return _misfit(trial)
        finally:
            erase(trial)

    def merge(self, function: ir.Operation) -> None:
        """Replaces both kernels by the one of both, and both calls by one call of it."""
        made, kept = self._merged(), self._kept()
        outputs = [*kept, *self.second_call.results]
        with ir.InsertionPoint(self.second_call), self.second_call.location:
            inputs = [value if gather is None else gathered_view(value, gather) for value, gather in made.inputs]
            call = func.CallOp([v.type for v in outputs], symbol(self.first), inputs)
        for old, new in zip(outputs, call.results, strict=True):
            old.replace_all_uses_with(new)
        for op in (self.second_call, self.view, self.reshape, self.first_call):
            if op is not None:
                erase(op)
        made.kernel.attributes["sym_name"] = self.first.attributes["sym_name"]
        erase(self.first)
        erase(self.second)
        order_host_ops(function)

    def _kept(self) -> list[ir.Value]:
        """Results of the first kernel that other ops than the pair's use."""
        own = self.view if self.reshape is None else self.reshape
        return [r for r in self.first_call.results if any(use.owner.operation != own for use in r.uses)]

    def _merged(self) -> ScatteredKernel:
        """The kernel of both, next to the first in the module; raises `UnfitError`."""
        passed = (self.view if self.reshape is None else self.reshape).operands[0]
        calls = ((self.first_call, self.first), (self.second_call, self.second))
        return ScatteredKernel(calls, passed, self.view.results[0], self._positions(), self._kept())

    def _positions(self) -> Positions:
        """Where the elements of the first launch's result, and zeros, are in the view; raises `UnfitError`."""
        shape = ir.RankedTensorType(self.view.operands[0].type).shape
        runs = [[axis] for axis in range(len(shape))]
        if self.reshape is not None:
            runs = reassociation(self.reshape)
        found = inverse(gather_of(self.view.attributes), [[shape[axis] for axis in run] for run in runs])
        if isinstance(found, str):
            raise UnfitError(found)
        if (copies := prod(found.zeros)) > MOST_SOURCES:
            raise UnfitError(f"each of its elements would be stored with {copies - 1} zeros")
        return found


def _misfit(kernel: ir.Operation) -> str | None:
    """Why a kernel with scattered results is no product whose rows are stored in whole accesses, or None."""
    structures = [s for op in body(kernel) if (s := structure_of(op)) is not None]
    space = joint_space(structures)
    if isinstance(space, Conflict):
        return space.reason
    if contraction_in(space, structures) is None:
        return "it is no matrix product"
    for value in body(kernel)[-1].operands:
        op = scatter_of(value)
        if op is None:
            continue
        size = bytes_in_order(op)
        if size is None:
            return "neighbours in its result would be apart in the other kernel's"
        if size < WIDEST_ACCESS:
            return f"its rows lie apart in runs of {size} bytes, less than an access of {WIDEST_ACCESS}"
    return None
