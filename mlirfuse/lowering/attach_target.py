"""`lower-attach-target`: attaches the target architecture to the kernels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from mlir import ir

from mlirfuse.dialect.module_target import target_of_module
from mlirfuse.lowering.async_ops.hopper import kernels_using
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import ops_named
from mlirfuse.target import Target


@dataclass(frozen=True)
class LowerAttachTarget(Pass):
    """Attaches the module's `fuse.target` to every `gpu.module` as `#nvvm.target`, replacing an earlier target.

    Lowering passes and `gpu-module-to-binary` read the architecture from that attribute. LLVM's default PTX version is
    too old for some chips, so the attribute also has the PTX version of `mlirfuse.target`.

    ```mlir
    module attributes {fuse.target = {chip = "sm_90a"}} { gpu.module @k { ... } }
    // lower-attach-target
    gpu.module @k [#nvvm.target<O = 3, chip = "sm_90a", features = "+ptx81">] { ... }
    ```

    Raises `TargetError` for kernels that wait for their predecessor in the
    stream where the chip has no such wait: LLVM would end the process.
    """

    name: ClassVar[str] = "lower-attach-target"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        target = target_of_module(module)
        found = ops_named(module, "gpu.module")
        for gpu_module in found:
            gpu_module.attributes["targets"] = ir.ArrayAttr.get([nvvm_target(target)])
        kernels_using(module, frozenset({"nvvm.griddepcontrol"}), lambda target: target.has_dependent_launch)
        if not found:
            remarks.declined(self, "the module has no gpu.module to attach a target to", module)


def nvvm_target(target: Target, links: Sequence[Path] = ()) -> ir.Attribute:
    """The `#nvvm.target` attribute of a target, with bitcode files to link; the bindings have no builder for it."""
    quoted = ", ".join(json.dumps(str(path), ensure_ascii=False) for path in links)
    linked = f", link = [{quoted}]" if links else ""
    return ir.Attribute.parse(f'#nvvm.target<O = 3, chip = "{target.chip}", features = "+ptx{target.ptx}"{linked}>')
