"""Which kernels can reduce parts of a dimension, whose results another kernel combines, and which dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.analysis.arithmetic.combining import combiner_of, neutral
from mlirfuse.analysis.contractions.contraction import contraction_in
from mlirfuse.analysis.kernels import body
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.order import reduction_depths
from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.dialect.joint import JOINT_REDUCTIONS
from mlirfuse.support.rewriting import backward_slice, defining_op, nested

SHAPES = ("tensor.empty", "tensor.dim", "linalg.fill")
"""Ops that make shapes and initial values."""


def obstacle(kernel: ir.Operation, space: IterationSpace, structures: Sequence[OpStructure]) -> str | None:
    """Why a kernel cannot reduce parts, whichever dimension is divided; None where it can."""
    reductions = [s for s in structures if s.reduction_loops]
    if not reductions or 0 in space.extents or contraction_in(space, structures) is not None:
        return "it reduces nothing, or is a contraction"
    dims = {space.reduced.get(s.op, frozenset()) for s in reductions}
    if len(dims) > 1 or any(reduction_depths(structures)[s.op] for s in reductions):
        return "its reductions depend on one another, or are over different dimensions"
    if any(s.op.name not in JOINT_REDUCTIONS and not starts_neutral(s) for s in reductions):
        return "a reduction does not start from its neutral element"
    if any(s.op.name == "fuse.moments" for s in reductions) and any(
        space.extents[d] is None for d in space.reduced_dims
    ):
        return "a variance is over an extent that is known at run time only"
    kept = [set(space.loops[s.op]) for s in reductions]
    if not all(min(kept, key=len) <= each for each in kept):
        return "its results have no dimensions in common"
    beside = written_beside(kernel, space, structures)
    first = of_parts(structures, beside)
    read = {d for (op, _), axes in space.use_axes.items() if op in first for d in axes}
    along = {d for s in structures if s.op in first for d in space.loops[s.op] if d is not None}
    if any(space.extents[d] is None and d not in read for d in along):
        return "nothing that its reductions read has one of its dynamic extents"
    for s in structures:
        is_reduced = not space.reduced_dims.isdisjoint(space.loops[s.op])
        if s.op not in first and is_reduced:
            return "what is reduced is needed again"
        if s.op in first and (reason := _op_obstacle(s, first, beside, is_reduced)):
            return reason
    if any(
        op.name == "tensor.dim"
        and any(use.owner.name not in ("tensor.empty", "linalg.fill") for use in op.results[0].uses)
        for op in body(kernel)
    ):
        return "it computes with an extent"
    return None


def written_beside(kernel: ir.Operation, space: IterationSpace, structures: Sequence[OpStructure]) -> list[ir.Value]:
    """The results of a kernel that have all that its reductions reduce, and depend on none of these."""
    late: set[ir.Value] = set()
    for s in structures:
        if s.reduction_loops or any(operand in late for operand in s.operands):
            late.update(s.op.results)
    results = dict.fromkeys(body(kernel)[-1].operands)
    return [v for v in results if v not in late and space.reduced_dims <= set(space.value_axes.get(v, ()))]


def of_parts(structures: Sequence[OpStructure], beside: Sequence[ir.Value]) -> set[ir.Operation]:
    """The reductions of a kernel, and the ops with loops that they and results beside them depend on."""
    reductions = {s.op for s in structures if s.reduction_loops}
    values = [*(operand for op in reductions for operand in op.operands), *beside]
    return reductions | backward_slice(values, [s.op for s in structures])


def _op_obstacle(s: OpStructure, first: set[ir.Operation], beside: Sequence[ir.Value], along: bool) -> str | None:
    """Why an op cannot be computed on parts, or None."""
    if s.op.name != "linalg.generic" and s.op.name not in JOINT_REDUCTIONS:
        return f"{s.op.name} depends on the number of dimensions"
    if s.op.name == "linalg.generic" and len(s.op.results) != 1:
        return "an op has several results"
    if any(inner.name == "linalg.index" for inner in nested(s.op)):
        return "it uses linalg.index"
    users = ((result, _outermost(use.owner.operation, s.op)) for result in s.op.results for use in result.uses)
    again = any(user not in first and not (value in beside and user.name == "func.return") for value, user in users)
    if along and not s.reduction_loops and again:
        return "what is reduced is needed again"
    for operand in s.operands:
        maker = defining_op(operand)
        is_dense = maker is not None and maker not in first and maker.name not in SHAPES
        if is_dense and isinstance(operand.type, ir.RankedTensorType):
            return "an array is a constant"
    return None


def _outermost(op: ir.Operation, beside: ir.Operation) -> ir.Operation:
    """The op around `op` that is in the same block as `beside`."""
    while op.parent.operation != beside.parent.operation:
        op = op.parent.operation
    return op


def reduced_in_parts(
    kernel: ir.Operation, space: IterationSpace, structures: Sequence[OpStructure]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The reduced dimensions of static extent that may be divided, and those that may only be kept whole, each of whose
    indices is a part: arrays must have the first along one axis, in one order, for a view of them to divide it.
    """
    axes: dict[tuple[ir.Value, int], set[int | None]] = {}
    for (op, number), dims in space.use_axes.items():
        for dim in space.reduced_dims:
            axes.setdefault((op.operands[number], dim), set()).add(dims.index(dim) if dim in dims else None)
    apart = {dim for (_, dim), found in axes.items() if len(found) > 1}
    if not all(space.reduced_dims <= set(space.loops[s.op]) for s in structures if s.reduction_loops):
        return (), ()
    known = [d for d in sorted(space.reduced_dims) if (space.extents[d] or 1) > 1]
    return tuple(d for d in known if d not in apart), tuple(d for d in known if d in apart and len(known) > 1)


def starts_neutral(structure: OpStructure) -> bool:
    """Whether a reduction starts from a fill with its neutral element."""
    fill = defining_op(structure.operands[-1])
    constant = None if fill is None or fill.name != "linalg.fill" else defining_op(fill.operands[0])
    if constant is None or constant.name != "arith.constant":
        return False
    element = ir.RankedTensorType(structure.op.results[0].type).element_type
    return bool(constant.attributes["value"] == neutral(combiner_of(structure).name, element))
