"""Which products may be contracted into the sums that they go into, each pair one fused multiply-add."""

from __future__ import annotations

from mlir import ir

from mlirfuse.analysis.casts import element_type
from mlirfuse.analysis.structure import RENAMING_OPS, reduces

FASTMATH = "fastmath"
CONTRACT, NONE = "#arith.fastmath<contract>", "#arith.fastmath<none>"


def is_wide(value_type: ir.Type) -> bool:
    """Whether the elements of a type are of single or double precision."""
    return isinstance(element_type(value_type), (ir.F32Type, ir.F64Type))


def may_contract(op: ir.Operation) -> bool:
    """Whether an op carries `fastmath<contract>`, alone or with other flags."""
    return FASTMATH in op.attributes and "contract" in str(op.attributes[FASTMATH])


def allow_contraction(op: ir.Operation) -> bool:
    """Puts `fastmath<contract>` on an op without flags; returns whether it did. Flags that an op has are kept."""
    if FASTMATH in op.attributes and str(op.attributes[FASTMATH]) != NONE:
        return False
    op.attributes[FASTMATH] = ir.Attribute.parse(CONTRACT)
    return True


def only_summed(value: ir.Value) -> bool:
    """Whether nothing but sums over some dimension read a value of a `linalg` function, as a tensor or in a body.

    A sum adds the value itself to its accumulator: not what a cast or another op makes of it.
    """
    uses = list(value.uses)
    return bool(uses) and all(_is_summed(use.owner.operation, use.operand_number) for use in uses)


def _is_summed(user: ir.Operation, number: int) -> bool:
    if user.name == "arith.addf":
        return _accumulates(user, number)
    if user.name == "linalg.yield":
        generic = user.parent.operation
        return generic.name == "linalg.generic" and not reduces(generic) and only_summed(generic.results[number])
    if user.name == "linalg.generic":
        is_input = number < len(user.operands) - len(user.results)
        return is_input and only_summed(user.regions[0].blocks[0].arguments[number])
    return user.name in RENAMING_OPS and number == 0 and only_summed(user.results[0])


def _accumulates(addition: ir.Operation, number: int) -> bool:
    """Whether an addition in the body of a reduction adds its operand of that number to an accumulator of the body."""
    generic, other = addition.parent.operation, addition.operands[1 - number]
    if generic.name != "linalg.generic" or not reduces(generic) or not isinstance(other.owner, ir.Block):
        return False
    accumulator = ir.BlockArgument(other).arg_number - (len(generic.operands) - len(generic.results))
    if accumulator < 0 or addition.operands[number] == other:
        return False
    uses = addition.results[0].uses
    return all(use.owner.name == "linalg.yield" and use.operand_number == accumulator for use in uses)
