"""The target of a module, as the attribute `fuse.target`, which replaces target options of passes."""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.attributes import TARGET
from mlirfuse.errors import TargetError
from mlirfuse.target import Target, target_of

_HINT = 'it is {chip = "sm_90a", sms = 132 : i64, device = "NVIDIA H200"}, where sms and device may be left out'


def set_target(module: ir.Operation, target: Target, device: str | None = None) -> None:
    """Sets the architecture that a `builtin.module` is compiled for, replacing an earlier one.

    Args:
        module: the module.
        target: the architecture.
        device: the name that CUDA reports for the device; None where only the target is known.
    """
    with module.context:
        sms = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), target.sms)
        entries = {"chip": ir.StringAttr.get(target.chip), "sms": sms}
        if device is not None:
            entries["device"] = ir.StringAttr.get(device)
        module.attributes[TARGET] = ir.DictAttr.get(entries)


def target_of_module(module: ir.Operation) -> Target:
    """The architecture that a `builtin.module` is compiled for; `DEFAULT` without the attribute.

    Raises:
        TargetError: the attribute is not a dictionary of that form, or has an unknown architecture or less than one SM.
    """
    if TARGET not in module.attributes:
        return target_of(None)
    attribute = module.attributes[TARGET]
    entries = {entry.name: entry.attr for entry in attribute} if isinstance(attribute, ir.DictAttr) else {}
    chip, sms = entries.pop("chip", None), entries.pop("sms", None)
    device = entries.pop("device", None)
    named = isinstance(device, ir.StringAttr | None)
    if entries or not named or not isinstance(chip, ir.StringAttr) or not isinstance(sms, ir.IntegerAttr | None):
        raise TargetError(f"{TARGET} of the module is {attribute}", where=module, hint=_HINT)
    target = target_of(chip.value)
    return target if sms is None else target.with_sms(sms.value)


def device_of_module(module: ir.Operation) -> str | None:
    """The device that a `builtin.module` is compiled for, by CUDA's name; None where only its target is known."""
    target_of_module(module)
    if TARGET not in module.attributes or "device" not in (entries := ir.DictAttr(module.attributes[TARGET])):
        return None
    return ir.StringAttr(entries["device"]).value


def target_around(op: ir.Operation) -> Target:
    """The architecture that the module around an op is compiled for."""
    while op.parent is not None:
        op = op.parent.operation
    return target_of_module(op)
