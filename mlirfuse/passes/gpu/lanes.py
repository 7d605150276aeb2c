"""How integers of one thread's code differ between the lanes of a warp."""

from __future__ import annotations

from math import gcd

from mlir import ir
from mlir.dialects import affine, arith

from mlirfuse.distribution.threads.scalars import constant, divide, multiply
from mlirfuse.schedule.layout import WARP
from mlirfuse.support.affine_expressions import coefficients
from mlirfuse.support.divisors import divisor_of
from mlirfuse.support.rewriting import defining_op, integer_of

CASTS = frozenset({"arith.index_cast", "arith.index_castui", "arith.extui", "arith.extsi", "arith.trunci"})
SAME = frozenset(f"arith.{name}" for name in ("divui", "remui", "divsi", "minui", "maxui", "cmpi", "andi"))
"""Ops whose results are the same in all lanes where their operands are."""


def lane_step(value: ir.Value) -> int | None:
    """What an integer grows by from one lane of a warp to the next; None where that is not known, or not one number.

    Threads are numbered along x, and loops have the same bounds in all lanes where these are known to have.
    """
    op = defining_op(value)
    if op is None:
        return _step_of_argument(value)
    name = op.name
    if name == "gpu.thread_id":
        return 1 if "dim x" in str(op.attributes["dimension"]) else None
    if name in CASTS:
        return lane_step(op.operands[0])
    if name in ("arith.addi", "arith.subi"):
        left, right = map(lane_step, op.operands)
        return None if left is None or right is None else left + right if name == "arith.addi" else left - right
    if name == "arith.muli":
        return _step_of_product(*op.operands)
    if name == "affine.apply":
        return _step_of_map(op)
    if _counts_warps(op):
        return 1 if name == "arith.remui" else 0
    if (step := _step_inside(op)) is not None:
        return step
    if not op.operands or name in SAME:
        return 0 if all(lane_step(operand) == 0 for operand in op.operands) and not op.regions else None
    return None


def in_first_lane(value: ir.Value) -> ir.Value:
    """What an integer is in the first lane of each warp, where `lane_step` knows a number; emitted here."""
    op = defining_op(value)
    if op is None or lane_step(value) == 0:
        return value
    if op.name == "gpu.thread_id":
        return multiply(divide(value, WARP), WARP)
    if op.name in CASTS:
        new = in_first_lane(op.operands[0])
        return ir.Operation.create(op.name, results=[value.type], operands=[new]).results[0]
    if op.name == "affine.apply":
        return affine.AffineApplyOp(op.attributes["map"], [in_first_lane(v) for v in op.operands]).result
    if _counts_warps(op):  # the rest of a division by whole warps
        first = multiply(divide(op.operands[0], WARP), WARP)
        by = integer_of(op.operands[1])
        return constant(0) if by == WARP else arith.RemUIOp(first, op.operands[1]).result
    return ir.Operation.create(op.name, results=[value.type], operands=[in_first_lane(v) for v in op.operands]).results[
        0
    ]


def _step_inside(op: ir.Operation) -> int | None:
    """The step of a quotient, or a remainder, by a number of which no multiple lies between two lanes of a warp; None
    of another op.
    """
    if op.name not in ("arith.divui", "arith.remui"):
        return None
    by, step = integer_of(op.operands[1]), lane_step(op.operands[0])
    if by is None or not step or step < 0 or by % (WARP * step):
        return None
    first = _first_modulo(op.operands[0], WARP * step)
    if first is None or first >= step:
        return None
    return step if op.name == "arith.remui" else 0


def _first_modulo(value: ir.Value, by: int) -> int | None:
    """What an integer is modulo a number in the first lane of each warp; None where that is not known."""
    if by == 1:
        return 0
    if (number := integer_of(value)) is not None:
        return number % by
    op = defining_op(value)
    if op is None:
        return None
    counts_lanes = _counts_warps(op) and op.name == "arith.remui"
    if counts_lanes or (op.name == "gpu.thread_id" and lane_step(value) == 1):  # a multiple of whole warps
        return 0 if WARP % by == 0 or (counts_lanes and integer_of(op.operands[1]) == WARP) else None
    if op.name in CASTS:
        return _first_modulo(op.operands[0], by)
    if op.name in ("arith.addi", "arith.subi"):
        left, right = (_first_modulo(operand, by) for operand in op.operands)
        if left is None or right is None:
            return None
        return (left + right if op.name == "arith.addi" else left - right) % by
    if op.name == "arith.muli":
        left, right = op.operands
        for a, b in ((left, right), (right, left)):
            if (factor := integer_of(b)) is not None:
                part = _first_modulo(a, by // gcd(by, factor)) if factor else 0
                return None if part is None else part * factor % by
    return 0 if lane_step(value) == 0 and divisor_of(value) % by == 0 else None


def _step_of_argument(value: ir.Value) -> int | None:
    """The step of an argument of a kernel, or of a loop's number."""
    argument = ir.BlockArgument(value)
    parent = argument.owner.owner.operation
    if parent.name == "gpu.func":
        return 0
    if parent.name != "scf.for" or argument.arg_number:
        return None
    return 0 if all(lane_step(bound) == 0 for bound in list(parent.operands)[:3]) else None


def _step_of_product(left: ir.Value, right: ir.Value) -> int | None:
    for a, b in ((left, right), (right, left)):
        if (factor := integer_of(b)) is not None:
            step = lane_step(a)
            return None if step is None else step * factor
    return 0 if lane_step(left) == lane_step(right) == 0 else None


def _step_of_map(op: ir.Operation) -> int | None:
    steps = [lane_step(operand) for operand in op.operands]
    if all(step == 0 for step in steps):
        return 0
    map_ = ir.AffineMapAttr(op.attributes["map"]).value
    linear = coefficients(map_.results[0], len(steps)) if not map_.n_symbols else None
    if linear is None:
        return None
    known = [step for step in steps if step is not None]
    if len(known) < len(steps):
        return None
    return sum(step * factor for step, factor in zip(known, linear[0], strict=True))


def _counts_warps(op: ir.Operation) -> bool:
    """Whether an op divides a thread's number by that of whole warps: lanes stay together then."""
    if op.name not in ("arith.divui", "arith.remui"):
        return False
    by, maker = integer_of(op.operands[1]), defining_op(op.operands[0])
    return by is not None and by % WARP == 0 and maker is not None and maker.name == "gpu.thread_id"
