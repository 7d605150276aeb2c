"""`fuse-hint-extents`: tells kernels what extents their arguments are expected to have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.extent_hints import HostExtents
from mlirfuse.analysis.kernels import argument_attributes, body, functions, is_tile_program, kernels, symbol
from mlirfuse.dialect.attributes import KERNEL
from mlirfuse.dialect.expected_extents import EXTENT_HINTS, hints_attribute
from mlirfuse.passmanager.base import Pass, Remarks


@dataclass(frozen=True)
class FuseHintExtents(Pass):
    """Computes `fuse.extent_hints` of the arguments of kernels on tensors from those of their host function.

    Requires kernels made by `fuse-segment`. The hint of a view, of a size that the host computes and of a kernel's
    result follow from those of the host function's arguments; of a kernel that is called twice, the first call counts.
    Static extents have no hint. Without a hint on the host function nothing changes, and kernels keep theirs.
    `analysis/extent_hints` gives the choice of schedules and of fusion what is expected of a kernel's loops.

    ```mlir
    func.func @f(%x: tensor<?x64xf32> {fuse.extent_hints = array<i64: 4096, 0>}) -> tensor<?xf32> {
      %0 = call @f_0(%x) : (tensor<?x64xf32>) -> tensor<?xf32>
    ```
    makes the kernel
    ```mlir
    func.func private @f_0(%x: tensor<?x64xf32> {fuse.extent_hints = array<i64: 4096, 0>}) -> tensor<?xf32>
    ```
    """

    name: ClassVar[str] = "fuse-hint-extents"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        called = {symbol(kernel): kernel for kernel in kernels(module) if not is_tile_program(kernel)}
        for function in functions(module):
            if KERNEL in function.attributes or not body(function):
                continue
            if not any(EXTENT_HINTS in known for known in argument_attributes(function)):
                remarks.declined(self, "no argument has a hint", function)
                continue
            extents, count = HostExtents(function), 0
            for call in body(function):
                if call.name == "func.call":
                    kernel = called.pop(ir.FlatSymbolRefAttr(call.attributes["callee"]).value, None)
                    count += kernel is not None and _hint(kernel, call, extents)
            remarks.applied(self, f"{count} kernel(s) have hints", function)


def _hint(kernel: ir.Operation, call: ir.Operation, extents: HostExtents) -> bool:
    """Puts the hints of a call's operands on a kernel's arguments; returns whether there are any."""
    attributes = argument_attributes(kernel)
    for operand, known in zip(call.operands, attributes, strict=True):
        known.pop(EXTENT_HINTS, None)
        if not isinstance(operand.type, ir.RankedTensorType):
            continue
        type_ = operand.type
        hints = [n if type_.is_dynamic_dim(d) else None for d, n in enumerate(extents.of(operand))]
        if any(hints):
            known[EXTENT_HINTS] = hints_attribute(hints)
    kernel.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(known) for known in attributes])
    return any(EXTENT_HINTS in known for known in attributes)
