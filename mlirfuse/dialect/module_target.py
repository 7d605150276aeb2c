"""The target of a module, as the attribute `fuse.target`, which replaces target options of passes."""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.attributes import TARGET
from mlirfuse.errors import TargetError
from mlirfuse.target import Target, target_of

_HINT = 'it is {chip = "sm_90a", sms = 132 : i64}, where sms may be left out'


def set_target(module: ir.Operation, target: Target) -> None:
    """Sets the architecture that a `builtin.module` is compiled for, replacing an earlier one."""
    with module.context:
        sms = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), target.sms)
        module.attributes[TARGET] = ir.DictAttr.get({"chip": ir.StringAttr.get(target.chip), "sms": sms})


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
    if entries or not isinstance(chip, ir.StringAttr) or not isinstance(sms, ir.IntegerAttr | None):
        raise TargetError(f"{TARGET} of the module is {attribute}", where=module, hint=_HINT)
    target = target_of(chip.value)
    return target if sms is None else target.with_sms(sms.value)


def target_around(op: ir.Operation) -> Target:
    """The architecture that the module around an op is compiled for."""
    while op.parent is not None:
        op = op.parent.operation
    return target_of_module(op)
