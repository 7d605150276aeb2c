"""The upstream end of the pipeline: `gpu.func` kernels to NVVM to PTX.

All conversions are upstream's, and run in this process without a CUDA toolkit. The `lower-*` passes have run before.
The host function is left alone: every conversion is nested in `gpu.module`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import builtin, gpu
from mlir.passmanager import PassManager

from mlirfuse.dialect.attributes import ABI, SIGNED_STRIDES
from mlirfuse.distribution.exchange.partials import LOOP_ANNOTATION
from mlirfuse.errors import CompileError
from mlirfuse.lowering.attach_target import nvvm_target
from mlirfuse.lowering.ptx import libdevice
from mlirfuse.lowering.ptx.miscompilations import worked_around
from mlirfuse.lowering.ptx.signed_strides import allow_negative_strides
from mlirfuse.lowering.ptx.tile_pointers import point_to_tiles
from mlirfuse.support.diagnostics import describe
from mlirfuse.support.rewriting import ops_named
from mlirfuse.target import Target

CANONICALIZE = (
    'canonicalize{region-simplify=disabled disable-patterns="{anonymous}::RemoveDuplicateSuccessorInputUses"}'
)
"""Upstream's canonicalizer of one thread's code. Its search for values that a loop carries twice takes a time quadratic
in their number, which is that of a thread's accumulators, and `cse` has left none."""

TO_NVVM = (
    f"builtin.module(gpu.module({CANONICALIZE},cse,lower-affine,expand-strided-metadata,lower-affine,convert-nvgpu-to-nvvm,convert-scf-to-cf,"
    "convert-gpu-to-nvvm{use-bare-ptr-memref-call-conv=1 index-bitwidth=64},"
    "convert-vector-to-llvm,convert-ub-to-llvm,convert-math-to-llvm,convert-arith-to-llvm,convert-nvvm-to-llvm,"
    "reconcile-unrealized-casts,cse))"
)


@dataclass(frozen=True)
class KernelBinary:
    """One kernel's code.

    Attributes:
        name: its entry point.
        target: what it is compiled for.
        ptx: its PTX, one module a kernel.
    """

    name: str
    target: Target
    ptx: str


def to_nvvm(module: ir.Operation) -> None:
    """Converts the kernels of a `builtin.module`, which `lower-kernel-abi` has seen, to `llvm.func` in place.

    Raises:
        CompileError: an op in a kernel has no lowering.
    """
    _run(TO_NVVM, module, "the kernels could not be lowered to NVVM")
    with module.context:
        for op in ops_named(module, "llvm.func"):
            if ABI in op.attributes:
                _pass_tensor_maps_by_value(op)
            if SIGNED_STRIDES in op.attributes:
                allow_negative_strides(op)
            if "nvvm.kernel" in op.attributes:
                point_to_tiles(op)
        for op in ops_named(module, "llvm.br", "llvm.cond_br"):
            if LOOP_ANNOTATION in op.attributes:
                op.attributes["loop_annotation"] = op.attributes[LOOP_ANNOTATION]
                del op.attributes[LOOP_ANNOTATION]


def _pass_tensor_maps_by_value(kernel: ir.Operation) -> None:
    """Marks tensor maps, 128 bytes each, as by-value parameters; the conversion of `gpu.func` would drop the mark."""
    kinds = [ir.StringAttr(ir.DictAttr(entry)["kind"]).value for entry in ir.ArrayAttr(kernel.attributes[ABI])]
    if "tensor_map" not in kinds:
        return
    by_value = ir.Attribute.parse("{llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}")
    none = [ir.DictAttr.get({})] * len(kinds)
    known = list(kernel.attributes["arg_attrs"]) if "arg_attrs" in kernel.attributes else none
    kernel.attributes["arg_attrs"] = ir.ArrayAttr.get(
        [by_value if kind == "tensor_map" else marks for kind, marks in zip(kinds, known, strict=True)]
    )


def ptx(module: ir.Operation, target: Target) -> dict[str, KernelBinary]:
    """PTX of every kernel in a `builtin.module` at the `nvvm` stage, by kernel name. The module is not changed.

    libdevice is linked where a kernel calls into it, and only what is called remains. Instructions
    that assemblers are known to miscompile are replaced (`miscompilations.py`). No GPU is needed.

    Raises:
        CompileError: the backend refuses a kernel, or libdevice is needed and not there.
    """
    with module.context, module.location:
        clone = module.operation.clone()
        entries = _entries(clone)
        owners = [op.operation for op in clone.regions[0].blocks[0].operations if op.operation.name == "gpu.module"]
        for owner in owners:
            functions = libdevice.functions_used(owner)
            links = [libdevice.require(functions)] if functions else []
            owner.attributes["targets"] = ir.ArrayAttr.get([nvvm_target(target, links)])
        apart = _apart(owners)
        _run(_TO_BINARY, apart.operation, f"LLVM could not compile the kernels for {target.chip}")
        texts = {
            _text(op.attributes["sym_name"]): gpu.ObjectAttr(op.attributes["objects"][0]).object.decode().rstrip("\0")
            for inner in apart.body.operations
            for op in inner.regions[0].blocks[0].operations
        }
    return {kernel: KernelBinary(kernel, target, worked_around(texts[owner])) for kernel, owner in entries.items()}


_TO_BINARY = "builtin.module(builtin.module(gpu-module-to-binary{format=isa}))"


def _apart(owners: Sequence[ir.Operation]) -> ir.Module:
    """A module with a module for each `gpu.module`, which moves there: MLIR runs passes of neighbours at once."""
    apart = ir.Module.create()
    for owner in owners:
        with ir.InsertionPoint(apart.body):
            builtin.ModuleOp().body.append(owner)
    return apart


def _entries(module: ir.Operation) -> dict[str, str]:
    """Kernel name to the name of the `gpu.module` it is in."""
    return {
        _text(op.attributes["sym_name"]): _text(op.parent.attributes["sym_name"])
        for op in ops_named(module, "llvm.func")
        if "nvvm.kernel" in op.attributes
    }


def _text(attribute: ir.Attribute) -> str:
    return ir.StringAttr(attribute).value


def _run(pipeline: str, module: ir.Operation, failure: str) -> None:
    manager = PassManager.parse(pipeline, module.context)
    manager.enable_verifier(False)  # verified once, at the end, to save compile time
    try:
        manager.run(module)
        module.verify()
    except ir.MLIRError as error:
        message, place = describe(error)
        raise CompileError(f"{failure}: {message}", where=place) from error
