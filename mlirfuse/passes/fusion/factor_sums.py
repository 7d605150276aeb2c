"""`fuse-factor-sums`: a sum over one factor's own dimensions moves into the kernel of the product that it scales."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import body, is_tile_program, symbol
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.dialect.attributes import FACTOR_SUM, SCHEDULE
from mlirfuse.errors import ScheduleError
from mlirfuse.passes.fusion.permuted_product import microseconds
from mlirfuse.passes.kernels.host import callee, launches
from mlirfuse.passes.kernels.kernel_pair import KernelPair, Names, merge_pairs
from mlirfuse.passes.kernels.summed_factor import SummedFactor, summed_factor
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import erase


@dataclass(frozen=True)
class FuseFactorSums(Pass):
    """Merges a kernel that sums a factor of an einsum over indices that no other factor has into the product's kernel.

    Requires kernels on tensors of static extents, called by a host function. An einsum sums such a factor first
    (`fuse.factor_sum`), which multiplies the least; multiplying before summing means the same, and is one kernel. That
    kernel reads the factor again for every element of the result, so it is taken where it is predicted to be faster
    than two: where arrays are small. Factors whose sum is rounded before it is multiplied, or is read by other ops
    too, stay apart.

    ```mlir
    %0 = call @f_0(%w) : (tensor<16x16xf32>) -> tensor<16xf32>                                  // sum_j w[j, k]
    %1 = call @f_1(%x, %0) : (tensor<2x16xf32>, tensor<16xf32>) -> tensor<2x16x16xf32>          // x[b, i] * %0[k]
    ```
    becomes
    ```mlir
    %1 = call @f_0(%w, %x) : (tensor<16x16xf32>, tensor<2x16xf32>) -> tensor<2x16x16xf32>       // sum_j x * w
    ```
    """

    name: ClassVar[str] = "fuse-factor-sums"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        merge_pairs(module, _pairs, _Pair.obstacle, partial(self._report, remarks))

    def _report(self, remarks: Remarks, pair: _Pair, reason: str | None) -> None:
        first, second = symbol(pair.first), symbol(pair.second)
        if reason is None:
            remarks.applied(self, f"{second} sums the factor that {first} has summed", pair.second_call)
        else:
            remarks.declined(self, f"{first} sums a factor of {second} by itself: {reason}", pair.second_call)


def _pairs(module: ir.Operation, function: ir.Operation, declined: Collection[Names]) -> Iterator[_Pair]:
    """Pairs of a launch that sums a factor and one that reads the sum, without declined ones."""
    known = launches(module, function)
    for first, kernel in known.items():
        if is_tile_program(kernel) or not any(FACTOR_SUM in op.attributes for op in body(kernel)):
            continue
        for second, reader in known.items():
            reads = set(first.results) & set(second.operands) and not is_tile_program(reader)
            if reads and (callee(first), callee(second)) not in declined:
                yield _Pair(first, second, kernel, reader)


class _Pair(KernelPair):
    """A launch that sums a factor, and one that reads the sum."""

    def obstacle(self) -> str | None:
        """Why the kernels should not be merged, or None."""
        if reason := self.separated():
            return reason
        if SCHEDULE in self.first.attributes or SCHEDULE in self.second.attributes:
            return "a schedule is given"
        if any(use.owner.operation != self.second_call for result in self.first_call.results for use in result.uses):
            return "the sum is used elsewhere as well"
        if self.host_intervenes():
            return "the host computes on values that pass from one kernel to the other"
        trial = super().build()
        try:
            found = summed_factor(trial)
            if not isinstance(found, SummedFactor):
                return found
            found.multiply_before_summing()
            space, _ = kernel_space(trial)
            if not space.spanned():
                return "no op's loops span both iteration spaces"
            if None in space.extents:
                return "an extent is dynamic"
            together, first, second = microseconds(trial), microseconds(self.first), _waiting(self.second)
        except ScheduleError as error:
            return error.message
        finally:
            erase(trial)
        if inf in (first, second) or together < first + second:
            return None
        return f"one kernel is predicted to take {together:.1f} us, two {first + second:.1f} us"

    def build(self) -> ir.Operation:
        """The merged kernel, which multiplies before it sums."""
        merged = super().build()
        found = summed_factor(merged)
        assert isinstance(found, SummedFactor)  # checked by obstacle
        found.multiply_before_summing()
        return merged


def _waiting(kernel: ir.Operation) -> float:
    """The microseconds of a kernel whose launch is hidden behind nothing, as it waits for another one."""
    return microseconds(kernel, waits=True)
