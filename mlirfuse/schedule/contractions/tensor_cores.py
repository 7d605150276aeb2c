"""What the families of tensor cores have in common: types of operands, fragments of accumulators, rates."""

from __future__ import annotations

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.model.machine import MMA_K_BYTES
from mlirfuse.schedule.parts.contraction import ContractionSchedule
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.support.precision import TF32, TF32X3


def unsupported_type(instruction: str, problem: ContractionProblem) -> str | None:
    """Why tensor cores cannot multiply operands of a type in a precision, or None."""
    name, precision = problem.element.name, problem.precision
    if name in ("float16", "bfloat16") and problem.accumulator.name != "float32":
        return f"{instruction} adds up in float32, not in {problem.accumulator.name}"
    if name in ("float16", "bfloat16") or problem.element.is_float8:
        return None
    if name == "int8":
        sums = problem.accumulator.name
        return None if sums == "int32" else f"{instruction} adds up products of int8 in int32, not in {sums}"
    is_split = name == "float32" and precision in (TF32, TF32X3)
    return None if is_split else f"{instruction} does not multiply {name} as {precision}"


def check_fragments(contraction: ContractionSchedule, layout: BlockedLayout, problem: ContractionProblem) -> str | None:
    """What is wrong with steps along k, or with accumulators that lie as those of PTX's `m16n8` shapes, or None."""
    if contraction.k * problem.element.bytes % MMA_K_BYTES:
        return f"steps of {contraction.k} along k are not a multiple of {MMA_K_BYTES // problem.element.bytes}"
    m, n = layout.rank - 2, layout.rank - 1
    held = [(layout.lanes[d], layout.vector[d]) for d in (m, n)]
    if held != [(8, 1), (4, 2)] or layout.within(m) % 2 or layout.has_runs:
        return "an accumulator's fragment has lanes (8, 4), vectors of 2 columns and pairs of rows in a warp"
    return None


def holds_warpgroup_sums(layout: BlockedLayout) -> bool:
    """Whether a layout is that of `wgmma`'s accumulators: rows of whole warpgroups, columns of one warp."""
    m, n = layout.rank - 2, layout.rank - 1
    held = [(layout.lanes[d], layout.within(d), layout.vector[d]) for d in (m, n)]
    is_spread = layout.warps[n] == 1 and layout.warps[m] % 4 == 0 and not layout.has_runs
    return held == [(8, 2, 1), (4, 1, 2)] and is_spread


def product_flops(schedule: Schedule) -> int:
    """Multiply and add operations of one step along k of a tile."""
    assert schedule.contraction is not None
    *_, m, n = schedule.tile
    return 2 * m * n * schedule.contraction.k
