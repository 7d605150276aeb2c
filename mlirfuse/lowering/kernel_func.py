"""Finding the kernels of a module, and rebuilding a `gpu.func` with another signature."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import gpu

from mlirfuse.analysis.kernels import gpu_kernels
from mlirfuse.errors import PassError
from mlirfuse.target import Target, target_of

_CHIP = re.compile(r'chip = "([^"]+)"')


@dataclass(frozen=True)
class Argument:
    """An argument or a workgroup attribution of a `gpu.func`: its type and its attributes."""

    type: ir.Type
    attributes: ir.DictAttr


def kernels(module: ir.Operation) -> list[gpu.GPUFuncOp]:
    """The `gpu.func` kernels of a module, in order."""
    return [kernel.opview for kernel in gpu_kernels(module)]


def has_target(func: gpu.GPUFuncOp) -> bool:
    """Whether a target is attached to the kernel's `gpu.module`."""
    return "targets" in func.operation.parent.attributes


def target_of_kernel(func: gpu.GPUFuncOp) -> Target:
    """The target attached to the kernel's `gpu.module`; raises `PassError` where there is none."""
    gpu_module = func.operation.parent
    attached = gpu_module.attributes.get("targets", [])
    for attribute in attached:
        match = _CHIP.search(str(attribute))
        if match:
            return target_of(match.group(1))
    raise PassError(
        f"kernel {func.attributes['sym_name']} has no NVVM target",
        where=func,
        hint="run lower-attach-target first",
    )


def entry_block(func: gpu.GPUFuncOp) -> ir.Block:
    """The only block of a kernel; raises `PassError` if control flow is no longer structured."""
    blocks = list(func.regions[0].blocks)
    if len(blocks) != 1:
        raise PassError(
            f"kernel {func.attributes['sym_name']} has {len(blocks)} blocks, and needs structured control flow in one",
            where=func,
            hint="run this pass before convert-scf-to-cf",
        )
    return blocks[0]


def parameters(func: gpu.GPUFuncOp) -> list[Argument]:
    """The arguments of a kernel, without its attributions."""
    types = ir.FunctionType(ir.TypeAttr(func.attributes["function_type"]).value).inputs
    return _with_attributes(func, types, "arg_attrs")


def attributions(func: gpu.GPUFuncOp) -> list[Argument]:
    """The workgroup (shared memory) attributions of a kernel."""
    block, first = entry_block(func), len(parameters(func))
    count = (
        ir.IntegerAttr(func.attributes["workgroup_attributions"]).value
        if "workgroup_attributions" in func.attributes
        else 0
    )
    types = [argument.type for argument in list(block.arguments)[first : first + count]]
    return _with_attributes(func, types, "workgroup_attrib_attrs")


def rebuild(
    func: gpu.GPUFuncOp, arguments: Sequence[Argument], workgroup: Sequence[Argument]
) -> tuple[gpu.GPUFuncOp, ir.Block]:
    """An empty kernel in front of `func` with its name and attributes but these arguments and attributions.

    The caller fills the returned entry block (`move_body` moves the old body there) and erases `func`.
    """
    changed = ("function_type", "arg_attrs", "workgroup_attributions", "workgroup_attrib_attrs", "sym_name")
    attributes = {name: func.attributes[name] for name in _names(func) if name not in changed}
    types = [argument.type for argument in arguments]
    attributes["sym_name"] = func.attributes["sym_name"]
    attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))
    attributes["arg_attrs"] = ir.ArrayAttr.get([argument.attributes for argument in arguments])
    if workgroup:
        attributes["workgroup_attributions"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), len(workgroup))
        attributes["workgroup_attrib_attrs"] = ir.ArrayAttr.get([attribution.attributes for attribution in workgroup])
    old = entry_block(func)
    if len(old.arguments) != len(parameters(func)) + len(attributions(func)):
        raise PassError(f"kernel {func.attributes['sym_name']} has private attributions", where=func)
    new = ir.Operation.create(
        "gpu.func", attributes=attributes, regions=1, loc=func.location, ip=ir.InsertionPoint(func)
    )
    all_types = [*types, *(attribution.type for attribution in workgroup)]
    locations = [func.location] * len(all_types)
    block = ir.Block.create_at_start(new.regions[0], all_types, locations)
    return new.opview, block


def move_body(func: gpu.GPUFuncOp, block: ir.Block) -> None:
    """Moves all ops of a kernel to the end of `block`; the uses of the kernel's arguments must have been replaced."""
    for op in list(entry_block(func).operations):
        block.append(op)


def dictionary(attributes: dict[str, ir.Attribute]) -> ir.DictAttr:
    """A dictionary attribute."""
    return ir.DictAttr.get(attributes)


def _names(func: gpu.GPUFuncOp) -> list[str]:
    return [name if isinstance(name, str) else name.name for name in func.attributes]


def _with_attributes(func: gpu.GPUFuncOp, types: Sequence[ir.Type], name: str) -> list[Argument]:
    dictionaries = list(func.attributes[name]) if name in func.attributes else [ir.DictAttr.get({})] * len(types)
    return [Argument(type_, ir.DictAttr(d)) for type_, d in zip(types, dictionaries, strict=True)]
