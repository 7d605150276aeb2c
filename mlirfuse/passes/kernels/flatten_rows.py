"""`fuse-flatten-rows`: the innermost dimensions of an elementwise kernel become one, whatever its operands lack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import func

from mlirfuse.analysis.contractions.contraction import contraction_in
from mlirfuse.analysis.kernels import body, functions, result_sources, symbol
from mlirfuse.analysis.scheduling.kernel_time import kernel_prediction
from mlirfuse.dialect.attributes import KERNEL, SCHEDULE
from mlirfuse.dialect.gathered_view import DEFINITION, gathered_view
from mlirfuse.dialect.module_target import device_of_module, target_of_module
from mlirfuse.dialect.scatter import scatter_of
from mlirfuse.errors import PassError, ScheduleError
from mlirfuse.machine.lookup import machine_of
from mlirfuse.passes.kernels.collapse_dims import collapsed_value, expanded_value
from mlirfuse.passes.kernels.collapse_kernel import DYNAMIC
from mlirfuse.passes.kernels.flattened_kernel import Flattened, FlatteningKernel, Kept
from mlirfuse.passes.kernels.host import launches
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.choice.choice import RESOLUTION
from mlirfuse.support.rewriting import defining_op, erase


@dataclass(frozen=True)
class FuseFlattenRows(Pass):
    """Makes the innermost dimensions of an elementwise kernel one, where that is predicted to be faster.

    Requires kernels on tensors, called by a host function. `fuse-collapse-dims` merges dimensions that every array has
    next to each other. A number for each channel keeps the pixels of an image apart from its channels: rows of 49
    pixels begin inside of vectors, and leave lanes of a warp without work. Such operands are read through a gathered
    view along the merged dimension instead, by an index for each element, while the other arrays are accessed in whole
    vectors. What is computed of them alone is computed for each element, too. Dimensions behind the last extent of run
    time are merged. Declines where an array is not contiguous along them, and where the kernel is predicted to take no
    longer as it is (`mlirfuse/schedule/predict`).

    ```mlir
    %y = call @f_0(%x, %s) : (tensor<?x512x49xf16>, tensor<512xf16>) -> tensor<?x512x49xf16>      // x * s[:, None]
    ```
    becomes
    ```mlir
    %rows = tensor.collapse_shape %x [[0], [1, 2]] : tensor<?x512x49xf16> into tensor<?x25088xf16>
    %view = "fuse.gathered_view"(%s) {basis = array<i64: 512, 49>, map = affine_map<(c, p) -> (c)>, ...}
        : (tensor<512xf16>) -> tensor<25088xf16>
    %0 = call @f_0(%rows, %view) : (tensor<?x25088xf16>, tensor<25088xf16>) -> tensor<?x25088xf16>
    ```
    """

    name: ClassVar[str] = "fuse-flatten-rows"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for host in [f for f in functions(module) if KERNEL not in f.attributes]:
            for call, kernel in launches(module, host).items():
                try:
                    flattened = _flattened(kernel)
                except Kept as kept:
                    remarks.declined(self, str(kept), kernel)
                    continue
                reason = _obstacle(call, flattened) or _loss(module, kernel, flattened.kernel)
                if reason is not None:
                    erase(flattened.kernel)
                    remarks.declined(self, reason, kernel)
                    continue
                remarks.applied(self, f"{len(flattened.gathers)} operands are views along one dimension", kernel)
                _replace(call, kernel, flattened)


def _flattened(kernel: ir.Operation) -> Flattened:
    if SCHEDULE in kernel.attributes:
        raise Kept("its schedule refers to its dimensions as they are")
    trial = FlatteningKernel.of(kernel)
    if contraction_in(trial.space, trial.structures) is not None:
        raise Kept("it has a contraction")
    if any(scatter_of(value) is not None for value in body(kernel)[-1].operands):
        raise Kept("it scatters a result")
    return trial.flattened()


def _obstacle(call: ir.Operation, flattened: Flattened) -> str | None:
    """Why the host cannot make the views, or None."""
    for number in flattened.gathers:
        maker = defining_op(call.operands[number])
        while maker is not None and maker.name in ("tensor.expand_shape", "tensor.collapse_shape"):
            maker = defining_op(maker.operands[0])
        if maker is not None and maker.name == DEFINITION.full_name:
            return "an operand is a gathered view already"
    return None


def _loss(module: ir.Operation, kernel: ir.Operation, flattened: ir.Operation) -> str | None:
    """Why the kernel should stay as it is, or None."""
    target = target_of_module(module)
    machine = machine_of(target, device_of_module(module))
    try:
        before, after = (kernel_prediction(each, target, machine).microseconds for each in (kernel, flattened))
    except (PassError, ScheduleError) as error:
        return f"it cannot be scheduled with one dimension: {error.message}"
    if after * RESOLUTION >= before:
        return f"it is predicted to take {before:.1f} us as it is, {after:.1f} us with one dimension"
    return None


def _replace(call: ir.Operation, kernel: ir.Operation, flattened: Flattened) -> None:
    """Calls the kernel with one innermost dimension instead, with views of the operands and of its results."""
    sources, name = result_sources(kernel), symbol(kernel)
    erase(kernel)
    flattened.kernel.attributes["sym_name"] = ir.StringAttr.get(name)
    with ir.InsertionPoint(call), call.location:
        operands = []
        for number, value in enumerate(call.operands):
            if number in flattened.gathers:
                operands.append(gathered_view(value, flattened.gathers[number]))
            else:
                groups = flattened.operands.get(number)
                operands.append(value if groups is None else collapsed_value(value, groups))
        types = ir.FunctionType(ir.TypeAttr(flattened.kernel.attributes["function_type"]).value).results
        new = func.CallOp(types, name, operands)
        pairs = iter(sources)
        for old, result, groups in zip(call.results, new.results, flattened.results, strict=True):
            extents = [next(pairs) for extent in ir.RankedTensorType(old.type).shape if extent == DYNAMIC]
            arrays, axes = [call.operands[a] for a, _ in extents], [axis for _, axis in extents]
            old.replace_all_uses_with(expanded_value(result, old.type, groups, arrays, axes))
    erase(call)
