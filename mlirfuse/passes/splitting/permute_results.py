"""`fuse-permute-results`: a result of rows in another order of memory gets a kernel that permutes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import func

from mlirfuse.analysis.contractions.contraction import contraction_in
from mlirfuse.analysis.kernels import argument_attributes, body, functions, symbol
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.scheduling.kernel_time import kernel_prediction
from mlirfuse.dialect.module_target import device_of_module, target_of_module
from mlirfuse.errors import PassError, ScheduleError
from mlirfuse.machine.lookup import machine_of
from mlirfuse.passes.kernels.hint_extents import FuseHintExtents
from mlirfuse.passes.kernels.host import launch_in, launches
from mlirfuse.passes.kernels.permuted_arrays import (
    copy_kernel,
    is_computed_to_return,
    order_of_source,
    permute_result,
)
from mlirfuse.passes.splitting.kernel_split import what_is_given
from mlirfuse.passes.splitting.split_time import split_microseconds
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.choice.choice import RESOLUTION
from mlirfuse.support.rewriting import erase
from mlirfuse.tiling.kernel_signature import change_signature, default_attributes


@dataclass(frozen=True)
class FusePermuteResults(Pass):
    """Splits a kernel between its rows and a result that it writes in another order, where two are predicted faster.

    Requires kernels on tensors, called by a host function. Blocks that reduce rows have few of them, and so few
    elements side by side of an array in which another dimension is the innermost: each write moves a whole sector for
    them. The result is written in the order of the rows instead, and another kernel permutes it, tile by tile through
    shared memory. Declines where nothing is reduced, where the innermost dimension stays, and where one kernel is
    predicted to take no longer (`mlirfuse/schedule/predict`).

    ```mlir
    %y = call @f_0(%x) : (tensor<?x4x1000xf32>) -> tensor<1000x?x4xbf16>    // softmax, and permute_dims (2, 0, 1)
    ```
    becomes
    ```mlir
    %r = call @f_0(%x) : (tensor<?x4x1000xf32>) -> tensor<?x4x1000xbf16>
    %y = call @f_0_result(%r) : (tensor<?x4x1000xbf16>) -> tensor<1000x?x4xbf16>
    ```
    """

    name: ClassVar[str] = "fuse-permute-results"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for host in list(functions(module)):
            for kernel in list(launches(module, host).values()):
                reason = _obstacle(host, kernel) or self._loss(module, host, kernel)
                if reason is not None:
                    remarks.declined(self, reason, kernel)
                    continue
                for maker in _split(module, host, kernel):
                    remarks.applied(self, f"{symbol(maker)} permutes a result of {symbol(kernel)}", kernel)
                FuseHintExtents().run(module, Remarks())

    def _loss(self, module: ir.Operation, host: ir.Operation, kernel: ir.Operation) -> str | None:
        """Why the kernel should write its results as it does, or None."""
        target = target_of_module(module)
        machine = machine_of(target, device_of_module(module))
        copy = module.clone(ip=False)
        try:
            together = split_microseconds(module, kernel)
            same, _, rows = launch_in(copy, host, kernel)
            makers = _split(copy, same, rows)
            FuseHintExtents().run(copy, Remarks())
            apart = split_microseconds(copy, rows)
            apart += sum(kernel_prediction(maker, target, machine).microseconds for maker in makers)
        except (PassError, ScheduleError) as error:
            return f"its result cannot be permuted by another kernel: {error.message}"
        finally:
            erase(copy)
        if apart * RESOLUTION >= together:
            return f"one kernel is predicted to take {together:.1f} us, with another one {apart:.1f} us"
        return None


def _obstacle(host: ir.Operation, kernel: ir.Operation) -> str | None:
    """Why a kernel's results cannot be permuted by another one, or None."""
    if reason := what_is_given(host, kernel):
        return reason
    if not _permuted_results(kernel):
        return "no result is written in another order of memory"
    space, structures = kernel_space(kernel)
    if contraction_in(space, structures) is not None:
        return "its tiles are those of a contraction"
    if not space.reduced_dims:
        return "nothing is reduced: tiles have any shape"
    return None


def _permuted_results(kernel: ir.Operation) -> dict[int, list[int]]:
    """The results that are computed from what has another innermost dimension, by number: the axis of the result for
    each axis of that.
    """
    found = {}
    for number, result in enumerate(body(kernel)[-1].operands):
        order = order_of_source(result) if is_computed_to_return(result) else None
        if order is not None and order[-1] != len(order) - 1:
            found[number] = order
    return found


def _split(module: ir.Operation, host: ir.Operation, kernel: ir.Operation) -> list[ir.Operation]:
    """Has other kernels permute a kernel's results; returns these kernels."""
    return [_permuted_apart(module, host, kernel, *each) for each in _permuted_results(kernel).items()]


def _permuted_apart(
    module: ir.Operation, host: ir.Operation, kernel: ir.Operation, number: int, order: Sequence[int]
) -> ir.Operation:
    """Makes a kernel return a result in the order of what it is computed from, and another kernel permute it."""
    type_ = body(kernel)[-1].operands[number].type
    permute_result(kernel, order, number)
    call = next(c for c, k in launches(module, host).items() if k == kernel)
    returned = list(body(kernel)[-1].operands)
    call = change_signature(call, kernel, list(call.operands), argument_attributes(kernel), returned)
    result = call.results[number]
    readers = [(use.owner.operation, use.operand_number) for use in result.uses]
    name = f"{symbol(kernel)}_result{number or ''}"
    back = [list(order).index(axis) for axis in range(len(order))]
    maker = copy_kernel(kernel, result.type, back, name, default_attributes())
    with ir.InsertionPoint.after(call), call.location:
        permuted = func.CallOp([type_], name, [result]).results[0]
    for reader, operand in readers:
        reader.operands[operand] = permuted
    return maker
