"""Products that may become fused multiply-adds together with the additions that use them."""

from __future__ import annotations

from mlir import ir

from mlirfuse.analysis.arithmetic.casts import element_type
from mlirfuse.analysis.loops.structure import RENAMING_OPS, reduces

FASTMATH = "fastmath"
SUMS = frozenset({"arith.addf", "arith.subf"})
CONTRACT, NONE = "#arith.fastmath<contract>", "#arith.fastmath<none>"


def is_wide(value_type: ir.Type) -> bool:
    """Whether the elements of a type are of single or double precision."""
    return isinstance(element_type(value_type), (ir.F32Type, ir.F64Type))


def may_contract(op: ir.Operation) -> bool:
    """Whether an op carries `fastmath<contract>`, alone or with other flags."""
    return FASTMATH in op.attributes and "contract" in str(op.attributes[FASTMATH])


def allow_contraction(op: ir.Operation) -> bool:
    """Sets `fastmath<contract>` on an op without flags; returns False, and changes nothing, if the op has flags."""
    if FASTMATH in op.attributes and str(op.attributes[FASTMATH]) != NONE:
        return False
    op.attributes[FASTMATH] = ir.Attribute.parse(CONTRACT)
    return True


def only_summed(value: ir.Value) -> bool:
    """Whether all uses of a value of a `linalg` function, as a tensor or in a body, are sums over some dimension.

    Such a sum adds the value itself to its accumulator, not the result of a cast or of another op on the value.
    """
    uses = list(value.uses)
    return bool(uses) and all(_is_summed(use.owner.operation, use.operand_number) for use in uses)


def added_once(product: ir.Operation) -> bool:
    """Whether a product is an addend of a sum that is computed in one place only.

    Each value computed from the sum is then used once, up to one result of the function, so that no other copy with
    another rounding exists. The other addend is no product of the same factors, because `a * b - b * a` must be 0.
    """
    user = _only_reader(product.results[0])
    if user is None or user.name not in SUMS or not computed_once(product.results[0]):
        return False
    makers = [_producer(operand) for operand in user.operands]
    products = [_factors(producer) for producer in makers if producer is not None and producer.name == product.name]
    return len(products) < len(makers) or products[0] not in (products[1], products[1][::-1])


def computed_once(value: ir.Value) -> bool:
    """Whether a value has one use, by an elementwise op whose result has one use, and so on up to a result."""
    found: ir.Value | bool = value
    while isinstance(found, ir.Value):  # not by recursion, as chains of ops may be long
        found = _onwards(found)
    return found


def _onwards(value: ir.Value) -> ir.Value | bool:
    """What the only use of a value makes of it, elementwise; whether it is a result of the function, where nothing."""
    uses = list(value.uses)
    if len(uses) != 1:
        return False
    user, number = uses[0].owner.operation, uses[0].operand_number
    if user.name == "func.return":
        return True
    if user.name == "linalg.generic":
        is_input = number < len(user.operands) - len(user.results)
        return user.regions[0].blocks[0].arguments[number] if is_input and not reduces(user) else False
    if user.name == "linalg.yield":
        generic = user.parent.operation
        return generic.results[number] if generic.name == "linalg.generic" and not reduces(generic) else False
    follows = number == 0 if user.name in RENAMING_OPS else user.name.startswith(("arith.", "math."))
    return user.results[0] if follows else False


def _only_reader(value: ir.Value) -> ir.Operation | None:
    """The only op that uses a value, in the same body or in that of another generic; None if there are several."""
    uses = list(value.uses)
    if len(uses) != 1:
        return None
    user, number = uses[0].owner.operation, uses[0].operand_number
    if user.name == "linalg.yield" and user.parent.name == "linalg.generic":
        return _only_reader(user.parent.operation.results[number])
    if user.name == "linalg.generic":
        return _only_reader(user.regions[0].blocks[0].arguments[number])
    return user


def _producer(value: ir.Value) -> ir.Operation | None:
    """The op that computes a value, in the same body or in that of another generic; None for an argument."""
    if isinstance(value.owner, ir.Block):
        generic = value.owner.owner.operation
        if generic.name != "linalg.generic":
            return None
        return _producer(generic.operands[ir.BlockArgument(value).arg_number])
    op = value.owner.operation
    if op.name == "linalg.generic":
        last = list(op.regions[0].blocks[0].operations)[-1]
        return _producer(last.operands[ir.OpResult(value).result_number])
    return _producer(op.operands[0]) if op.name in RENAMING_OPS else op


def _factors(product: ir.Operation) -> list[ir.Value | ir.Attribute]:
    """The factors of a product in a body: tensors, constants, or values of the body."""
    return [_source(operand) for operand in product.operands]


def _source(value: ir.Value) -> ir.Value | ir.Attribute:
    if isinstance(value.owner, ir.Block):
        generic = value.owner.owner.operation
        known = generic.name == "linalg.generic"
        return generic.operands[ir.BlockArgument(value).arg_number] if known else value
    producer = value.owner.operation
    return producer.attributes["value"] if producer.name == "arith.constant" else value


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
