"""`fuse-permute-operands`: contractions whose arrays lie in another order, by copies or by what computes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.contractions.contraction import contraction_in, has_products
from mlirfuse.analysis.extent_hints import expected_extents
from mlirfuse.analysis.kernels import argument_attributes, functions, is_tile_program, symbol
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.scheduling.scheduling_problem import kernel_problem
from mlirfuse.dialect.attributes import GATHER, KERNEL, SCHEDULE
from mlirfuse.dialect.module_target import device_of_module, target_of_module
from mlirfuse.errors import PassError, ScheduleError
from mlirfuse.machine.lookup import machine_of
from mlirfuse.passes.fusion.order_choice import order_choice, reduce_by_rows
from mlirfuse.passes.fusion.permuted_product import PermutedProduct, microseconds, permuted_product
from mlirfuse.passes.kernels.host import calls, launches, order_host_ops
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.choice.contraction_choice import choose_contraction
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem

LEAST_FILLED = 0.25
"""Share of a product's tiles that is no padding, from which on it stays a product."""

DOUBT = 1.25
"""Ratio of predicted times up to which a product stays one: predictions of other families than a product's may be off
by a quarter."""


@dataclass(frozen=True)
class FusePermuteOperands(Pass):
    """Changes the order in which arrays of a contraction lie, where kernels are predicted to be faster so.

    Requires kernels on tensors, called by a host function; a dynamic extent needs a hint, and arrays that have it stay.
    Candidates are contractions with several dimensions of m, of n or of k that `fuse-collapse-dims` cannot merge, with
    an array that is contiguous along a dimension in which tiles have one element, or with operands that faster
    instructions would multiply if they were contiguous along k, as `wgmma` does those of 8 bits. In another order
    (`analysis/contractions/array_orders.py`) such dimensions are one, or the last. The kernel that computes an operand
    writes the operand so, if nothing else reads it; any other operand is copied by a kernel of its own, and so is a
    result. A contraction may also be predicted faster as a reduction over rows (`fuse.by_rows`): small ones, and those
    of a few columns and terms. A remark has the times.

    ```mlir
    %y = call @f_0(%a, %b) : (tensor<4x64x256x256xbf16>, tensor<4x256x64x256xbf16>) -> ...   // bijk, bklj -> bli
    ```
    becomes
    ```mlir
    %c = call @f_0_operand1(%b) : (tensor<4x256x64x256xbf16>) -> tensor<4x64x256x256xbf16>   // bklj -> bljk
    %y = call @f_0(%a, %c) : (tensor<4x64x256x256xbf16>, tensor<4x64x256x256xbf16>) -> ...
    ```
    """

    name: ClassVar[str] = "fuse-permute-operands"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for function in [f for f in functions(module) if KERNEL not in f.attributes and calls(f)]:
            known = launches(module, function)
            for kernel in list(known.values()):
                if is_tile_program(kernel) or SCHEDULE in kernel.attributes:
                    continue
                product = permuted_product(kernel, known)
                if product is None:
                    if not _shares_an_operand(kernel, known):
                        self._try_rows(kernel, remarks)
                elif self._permute(product, remarks):
                    known = launches(module, function)
            order_host_ops(function)

    def _try_rows(self, kernel: ir.Operation, remarks: Remarks) -> None:
        """Makes a contraction of one product a reduction over rows where that is predicted to be faster."""
        if not has_products(kernel) or any(GATHER in known for known in argument_attributes(kernel)):
            return
        space, structures = kernel_space(kernel)
        contraction = contraction_in(space, structures)
        if contraction is None or len(contraction.pairs) > 1 or None in _known(kernel, space):
            return
        if _filled(kernel) > LEAST_FILLED:
            return
        in_place = microseconds(kernel)
        by_rows = microseconds(kernel, reduce_by_rows, limit=in_place)
        if by_rows * DOUBT < in_place:
            reduce_by_rows(kernel)
            times = f"{in_place:.1f} us as a product, {by_rows:.1f} us as a reduction over rows"
            remarks.applied(self, f"{symbol(kernel)} is no product: {times}", kernel)

    def _permute(self, product: PermutedProduct, remarks: Remarks) -> bool:
        """Permutes the arrays of one contraction where that is predicted to be faster; returns whether it did."""
        kernel, call = product.kernel, product.call
        if not product.is_sized:
            why = "nobody says what a dynamic extent will be"
            remarks.declined(self, f"{symbol(kernel)} reads arrays in their own orders: {why}", call)
            return False
        choice = order_choice(product)
        in_place, permuted, by_rows = choice.in_place, choice.permuted, choice.by_rows
        bound = "at least " if by_rows >= min(in_place, permuted) else ""
        rows = f"{bound}{by_rows:.1f} us as a reduction over rows"
        times = f"{in_place:.1f} us as it is, {rows}, {permuted:.1f} us permuted"
        if choice.orders is not None and permuted < min(in_place, by_rows):
            what = product.apply(choice.orders)
            remarks.applied(self, f"{what}: {times}", product.call)
            return True
        if by_rows < in_place:
            reduce_by_rows(kernel)
        remarks.declined(self, f"{symbol(kernel)} reads arrays in their own orders: {times}", call)
        return False


def _known(kernel: ir.Operation, space: IterationSpace) -> list[int | None]:
    """The extents of a kernel's loops, or what is expected of them."""
    expected = expected_extents(kernel, space)
    return [hint if extent is None else extent for extent, hint in zip(space.extents, expected, strict=True)]


def _shares_an_operand(kernel: ir.Operation, known: Mapping[ir.Operation, ir.Operation]) -> bool:
    """Whether another product reads what a kernel reads: both may be one kernel (`fuse-shared-operands`)."""
    products = {call: each for call, each in known.items() if has_products(each)}
    reads = {value for call, each in products.items() if each == kernel for value in call.operands}
    return any(each != kernel and not reads.isdisjoint(call.operands) for call, each in products.items())


def _filled(kernel: ir.Operation) -> float:
    """The share of what the tiles of a contraction multiply that is no padding; 1 where there is no schedule."""
    module = kernel.parent.operation
    target = target_of_module(module)
    try:
        problem = kernel_problem(kernel)
        assert isinstance(problem, ContractionProblem)  # it has a contraction
        schedule = choose_contraction(problem, target, machine_of(target, device_of_module(module)))
    except (PassError, ScheduleError):
        return 1.0
    part = schedule.contraction_part
    m, n = schedule.tile[-2:][::-1] if part.swapped else schedule.tile[-2:]
    pairs = ((problem.m or m, m), (problem.n or n, n), (problem.k, part.k))
    return prod(extent / (-(-extent // side) * side) for extent, side in pairs)
