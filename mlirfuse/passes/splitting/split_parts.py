"""`fuse-split-parts`: a reduction with few results is computed in parts, which a second kernel combines."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from math import inf
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import functions, symbol
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.reduction_parts import obstacle, reduced_in_parts
from mlirfuse.analysis.scheduling.kernel_time import kernel_prediction
from mlirfuse.analysis.scheduling.scheduling_problem import kernel_problem
from mlirfuse.dialect.module_target import device_of_module, target_of_module
from mlirfuse.errors import ScheduleError
from mlirfuse.machine.lookup import machine_of
from mlirfuse.passes.kernels.host import launches
from mlirfuse.passes.splitting.kernel_split import what_is_given
from mlirfuse.passes.splitting.reduction_parts import PartsSplit
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.choice.choice import RESOLUTION
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.reduction_parts import best_parts, least_microseconds


@dataclass(frozen=True)
class FuseSplitParts(Pass):
    """Splits a kernel of reductions into one that reduces parts of a dimension, and one that combines their results.

    Requires kernels on tensors, called by a host function. Few results of much data are few blocks' work, unless
    several blocks share in each result. Persistent loops do so where the extents of results are static; parts do so for
    all extents, and for joint reductions (`fuse.moments`, `fuse.exp_sum`), whose parts merge as pairs. The host passes
    a view in which the divided dimension is two; a dimension that is kept whole needs none. Applies where two kernels
    are predicted to take less time than one (`mlirfuse/schedule/reduction_parts.py`). Declines where a schedule is
    given, where no reduced dimension of static extent has a divisor, and where what is reduced is needed again: by what
    depends on the reductions. Results that do not, such as a gradient beside a loss, are written part by part.

    ```mlir
    %0 = call @f_0(%x) : (tensor<?x32768x64xf32>) -> tensor<?x64xf32>      // maxima over d1
    ```
    becomes
    ```mlir
    %parts = tensor.expand_shape %x [[0], [1, 2], [3]] ... into tensor<?x128x256x64xf32>
    %1 = call @f_0_parts(%parts) : (tensor<?x128x256x64xf32>) -> tensor<?x128x64xf32>
    %0 = call @f_0(%1) : (tensor<?x128x64xf32>) -> tensor<?x64xf32>
    ```

    Attributes:
        parts: how many parts the first dimension has that has so many; 0 for what is predicted to be the fastest.
    """

    name: ClassVar[str] = "fuse-split-parts"

    parts: int = 0

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for host in list(functions(module)):
            for call, kernel in launches(module, host).items():
                reason = what_is_given(host, kernel) or self._split(module, call, kernel, remarks)
                if reason is not None:
                    remarks.declined(self, reason, kernel)

    def _split(self, module: ir.Operation, call: ir.Operation, kernel: ir.Operation, remarks: Remarks) -> str | None:
        """Splits a kernel if that pays; returns why not, or None."""
        space, structures = kernel_space(kernel)
        if reason := obstacle(kernel, space, structures):
            return reason
        dims, whole = reduced_in_parts(kernel, space, structures)
        if not dims and not whole:
            return "no reduced dimension can be divided"
        if self.parts:
            all_, others = (*dims, *whole), len(dims + whole) > 1
            found = [d for d in all_ if self._divides(space.extents[d] or 1, d in dims, others)]
            if not found:
                return f"no reduced dimension has {self.parts} equal parts"
            dim, parts = found[0], self.parts
        else:
            target = target_of_module(module)
            machine = machine_of(target, device_of_module(module))
            problem, together = kernel_problem(kernel, (space, structures)), inf
            assert isinstance(problem, Problem)  # no contraction
            with suppress(ScheduleError):  # no schedule fits the kernel whole
                together = kernel_prediction(kernel, target, machine).microseconds
            if together <= RESOLUTION * least_microseconds(problem, machine):
                return f"one kernel is predicted to take {together:.1f} us, as long as two at least"
            best = best_parts(problem, target, machine, dims, whole)
            if best is None:
                return "no reduced dimension has equal parts"
            if best.microseconds * RESOLUTION >= together:
                return f"one kernel is predicted to take {together:.1f} us, two {best.microseconds:.1f} us"
            dim, parts = best.dim, best.parts
        first, _ = PartsSplit(call, kernel, space, structures, dim, parts).split(_name(module, kernel))
        remarks.applied(self, f"{symbol(first)} reduces dimension {dim} in {parts} parts", kernel)
        return None

    def _divides(self, extent: int, divisible: bool, others: bool) -> bool:
        """Whether a dimension has so many equal parts: less than it has elements, or as many if others are reduced."""
        return (divisible and extent % self.parts == 0 < extent - self.parts) or (others and extent == self.parts)


def _name(module: ir.Operation, kernel: ir.Operation) -> str:
    """A symbol that the module does not have."""
    known = {symbol(function) for function in functions(module)}
    names = (f"{symbol(kernel)}_parts{number or ''}" for number in count())
    return next(name for name in names if name not in known)
