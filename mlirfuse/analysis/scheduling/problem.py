"""Measures a tensor kernel for the schedule heuristics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd

from mlir import ir

from mlirfuse.analysis.arithmetic.combining import combiner_of
from mlirfuse.analysis.arithmetic.ranges import Ranges
from mlirfuse.analysis.extent_hints import expected_extents
from mlirfuse.analysis.grid_reduction import GridReduction, grid_reduction, needs_grid, second_stage_dims
from mlirfuse.analysis.kernels import argument_attributes, body, stored_values
from mlirfuse.analysis.loops.iteration_space import Conflict, IterationSpace
from mlirfuse.analysis.loops.order import reduction_depths
from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.analysis.scheduling.grid_persistent_problem import grid_persistent_problem
from mlirfuse.analysis.scheduling.instructions import (
    pass_instructions,
    shared_instructions,
    sliding_instructions,
)
from mlirfuse.analysis.scheduling.live import live_bytes
from mlirfuse.analysis.scheduling.operands import Operand, operands_of
from mlirfuse.dialect.gathered_view import is_check
from mlirfuse.errors import ScheduleError
from mlirfuse.schedule.layout import FEWEST_VECTORS
from mlirfuse.schedule.model.machine import WIDEST_ACCESS
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem, RowReduction, TransposedProblem
from mlirfuse.support.dtypes import element_bytes
from mlirfuse.support.rewriting import defining_op
from mlirfuse.target import LINE, SECTOR


def problem_of(kernel: ir.Operation, space: IterationSpace, structures: Sequence[OpStructure]) -> Problem:
    """The scheduling problem of a kernel on tensors."""
    operands = list(operands_of(kernel, space))
    whole = frozenset(d for d, extent in enumerate(space.extents) if extent != 1)
    full = [o for o in operands if whole <= set(o.axes)] or operands
    vector_dim, transposed_dim = _contiguous_dims(space, full)
    depths = reduction_depths(structures)
    returned = stored_values(kernel)
    grid_persistent = grid_persistent_problem(space, structures, returned)
    is_loop = grid_persistent is None
    persistent_loop, finer = _persistent_loops(kernel, space, structures, operands, vector_dim, is_needed=is_loop)
    range_of = Ranges().of
    work = pass_instructions(space, structures, depths, returned, range_of)
    live = live_bytes(space, structures, depths, returned)
    is_read = any(whole <= set(o.axes) for o in operands if not o.written and o.access.dims)
    shared = not is_read or any(o.access.slides or o.access.taps > 1 for o in operands)
    return Problem(
        extents=space.extents,
        reduced=space.reduced_dims,
        vector_dim=vector_dim,
        transposed=None if transposed_dim is None else _transposed(space, full, transposed_dim),
        vector=_vector(space, full, vector_dim),
        full_bytes=max(1, round(sum(o.moved_bytes for o in full))) if full else 0,
        read_bytes=round(sum(o.moved_bytes for o in full if not o.written)),
        live_bytes=live.most,
        shared_spill_bytes=live.shared_spill,
        column_bytes=sum(o.element_bytes for o in operands if o not in full and set(o.axes) & space.reduced_dims),
        early_column_bytes=_early_column_bytes(space, depths, whole),
        dependent_reductions=len({depths[op] for op in space.reduced}),
        reductions=tuple(_row_reduction(space, s) for s in structures if space.reduced.get(s.op)),
        unaligned_vector=_unaligned_vector(space, operands, full, vector_dim),
        line=_line(space, operands, full, vector_dim),
        persistent_loop=persistent_loop,
        finer_loop=finer,
        grid_persistent=grid_persistent,
        loop_is_optional=persistent_loop is not None and not needs_grid(space),
        arrays=tuple(o.access for o in operands),
        copied=not any(o.is_apart for o in operands if not o.written and whole <= set(o.axes)),
        checks=sum(map(is_check, argument_attributes(kernel))),
        instructions=work.once.plain,
        shared_instructions=shared_instructions(space, structures, range_of),
        sliding_instructions=sliding_instructions(space, structures, range_of) if shared else (0.0, 0.0),
        special=work.once.special,
        double=work.once.double,
        repeated=(work.again.plain, work.again.special, work.again.double),
        repeated_early=(work.again_early.plain, work.again_early.special, work.again_early.double),
        stores_early=work.stores_early,
        stores_last=work.stores_last,
        hints=expected_extents(kernel, space),
    )


def _early_column_bytes(space: IterationSpace, depths: Mapping[ir.Operation, int], whole: frozenset[int]) -> int:
    """Bytes, per element of a row, of operands that all rows share and that ops before any reduction read."""
    early = {
        op.operands[number]: axes
        for (op, number), axes in space.use_axes.items()
        if not depths[op] and set(axes) & space.reduced_dims and not whole <= set(axes)
    }
    return sum(element_bytes(value.type) for value in early if isinstance(value.type, ir.RankedTensorType))


def _transposed(space: IterationSpace, full: Sequence[Operand], dim: int) -> TransposedProblem:
    """Measures the operands that are contiguous along `dim`, while most operands are contiguous along another one."""
    transposed = [o for o in full if o.unit_axis is not None and o.axes[o.unit_axis] == dim]
    square = {space.rank - 1, space.rank - 2}
    swapped = [*range(space.rank - 2), space.rank - 1, space.rank - 2]
    read = dict.fromkeys((op.operands[number], axes) for (op, number), axes in space.use_axes.items())
    return TransposedProblem(
        dim=dim,
        vector=_vector(space, full, dim),
        bytes=sum(o.element_bytes for o in transposed),
        narrowest=min(o.element_bytes for o in full),
        mirrored=any(
            square <= set(axes) and (v, tuple(None if d is None else swapped[d] for d in axes)) in read
            for v, axes in read
        ),
    )


def narrow_accesses(kernel: ir.Operation, space: IterationSpace) -> str | None:
    """Why the threads of a kernel access less than 16 bytes at once; None if they access 16, or a whole row."""
    operands = list(operands_of(kernel, space))
    whole = frozenset(d for d, extent in enumerate(space.extents) if extent != 1)
    full = [o for o in operands if whole <= set(o.axes)] or operands
    dim, _ = _contiguous_dims(space, full)
    narrowest = min((o.element_bytes for o in full), default=WIDEST_ACCESS)
    width, extent = _vector(space, full, dim) * narrowest, space.extents[dim]
    if width >= min(WIDEST_ACCESS, (extent or WIDEST_ACCESS) * narrowest):
        return None
    width_text = f"threads move {width} bytes at once"
    if extent is not None and extent * narrowest % WIDEST_ACCESS:
        return f"{width_text}: rows of {extent * narrowest} bytes are not a multiple of {WIDEST_ACCESS} bytes long"
    return f"{width_text}: an array is not aligned to {WIDEST_ACCESS} bytes, or not contiguous along a row"


def _persistent_loops(
    kernel: ir.Operation,
    space: IterationSpace,
    structures: Sequence[OpStructure],
    operands: Sequence[Operand],
    vector_dim: int,
    *,
    is_needed: bool,
) -> tuple[PersistentLoopProblem | None, PersistentLoopProblem | None]:
    """The grid reductions of a kernel, needed or only possible: in tiles of whole rows, and in tiles of parts of rows.

    None for a form that is impossible. Raises `ScheduleError` where one is needed, and both are impossible.
    """
    if not space.reduced_dims:
        return None, None
    returned = stored_values(kernel)
    plan = grid_reduction(space, structures, returned)
    if isinstance(plan, Conflict):
        if is_needed and needs_grid(space):
            raise ScheduleError(f"the kernel's reductions share no grid: {plan.reason}", where=plan.op)
        return None, None
    persistent_loop = _persistent_loop(kernel, space, plan, operands)
    if vector_dim in plan.outer_dims:
        return persistent_loop, persistent_loop
    finer = grid_reduction(space, structures, returned, whole_rows=False)
    if isinstance(finer, Conflict) or finer.outer_dims == plan.outer_dims:
        return persistent_loop, None
    return persistent_loop, _persistent_loop(kernel, space, finer, operands)


def _persistent_loop(
    kernel: ir.Operation, space: IterationSpace, plan: GridReduction, operands: Sequence[Operand]
) -> PersistentLoopProblem:
    """The scheduling problem of the persistent loop of a plan."""
    return PersistentLoopProblem(
        dims=plan.outer_dims,
        kept=second_stage_dims(space, plan),
        accumulator_bytes=sum(element_bytes(s.op.results[0].type) for s in plan.reductions),
        column_bytes=sum(
            o.element_bytes
            for o in operands
            if not o.written and set(o.axes) - {None} and not set(o.axes) & set(plan.outer_dims)
        ),
        row_bytes=sum(
            o.element_bytes
            for o in operands
            if not o.written and (axes := set(o.axes) - {None}) and axes <= set(plan.outer_dims)
        ),
        outer_only=all(space.reduced[s.op] <= set(plan.outer_dims) for s in plan.reductions),
        inner=any(space.reduced.get(s.op) for s in plan.tile),
        wide=any(map(_sums_singles, plan.reductions)) and _returns_singles(kernel, plan),
        inner_reductions=_row_reductions(space, plan.tile, plan.outer_dims),
        outer_reductions=_row_reductions(space, plan.reductions, plan.outer_dims),
    )


def _row_reductions(
    space: IterationSpace, structures: Sequence[OpStructure], outer_dims: Sequence[int]
) -> tuple[RowReduction, ...]:
    """The reductions whose results vary within a tile's rows."""
    parts = [_row_reduction(space, s) for s in structures]
    rows = set(outer_dims)
    return tuple(part for part in parts if part.dims - rows and part.kept - rows)


def _row_reduction(space: IterationSpace, structure: OpStructure) -> RowReduction:
    """The dimensions that a reduction reduces and keeps, and the bytes of its results."""
    op = structure.op
    dims = frozenset(space.reduced.get(op, ()))
    kept = frozenset(d for d in space.loops[op] if d is not None) - dims
    return RowReduction(dims, kept, sum(element_bytes(result.type) for result in op.results))


def _sums_singles(reduction: OpStructure) -> bool:
    """Whether a reduction sums in `f32`. In `f64` millions of numbers lose nothing that is seen."""
    type_ = ir.RankedTensorType(reduction.op.results[0].type).element_type
    return combiner_of(reduction).name == "arith.addf" and isinstance(type_, ir.F32Type)


def _returns_singles(kernel: ir.Operation, plan: GridReduction) -> bool:
    """Whether a reduction, or a value computed from one, is returned in `f32` at least."""
    late = {result for s in [*plan.reductions, *plan.second_stage] for result in s.op.results}
    types = [ir.RankedTensorType(v.type).element_type for v in body(kernel)[-1].operands if v in late]
    return any(isinstance(type_, ir.F32Type | ir.F64Type) for type_ in types)


def _contiguous_dims(space: IterationSpace, full: Sequence[Operand]) -> tuple[int, int | None]:
    """The dimension along which most bytes are contiguous, and the next one; None if there is no other."""
    weight = [0] * space.rank
    for operand in full:
        if operand.unit_axis is not None:
            dim = operand.axes[operand.unit_axis]
            if dim is not None:
                weight[dim] += operand.element_bytes
    first, *others = sorted(range(space.rank), key=lambda d: (weight[d], d), reverse=True)
    return first, others[0] if others and weight[others[0]] else None


def _vector(space: IterationSpace, full: Sequence[Operand], vector_dim: int) -> int:
    """Elements of one access: 16 bytes of the narrowest type, or less for poorly aligned operands or odd extents.

    Elements after the last whole vector of a dynamic extent are accessed one by one; reductions cannot mask them.
    """
    narrowest = min((o.element_bytes for o in full), default=WIDEST_ACCESS)
    vector = WIDEST_ACCESS // narrowest
    for operand in full:
        contiguous = operand.unit_axis is not None and operand.axes[operand.unit_axis] == vector_dim
        if contiguous:
            vector = min(vector, max(1, operand.alignment // narrowest))
    extent = space.extents[vector_dim]
    if extent is None:
        return 1 if space.reduced_dims else vector
    return gcd(vector, extent)


WIDE_ENOUGH = 8
"""Bytes of a thread's access from which on shifted rows are not worthwhile."""


def _unaligned_vector(
    space: IterationSpace, operands: Sequence[Operand], full: Sequence[Operand], vector_dim: int
) -> int:
    """Elements of one access if rows of any alignment are shifted; 0 if rows may not be shifted."""
    narrowest = min((o.element_bytes for o in full), default=WIDEST_ACCESS)
    vector = WIDEST_ACCESS // narrowest
    if _vector(space, full, vector_dim) * narrowest >= WIDE_ENOUGH:
        return 0
    return vector if _may_be_shifted(space, operands, full, vector_dim, vector) else 0


def _line(space: IterationSpace, operands: Sequence[Operand], full: Sequence[Operand], vector_dim: int) -> int:
    """Elements of a cache line, if rows may start within a sector and may be shifted to lines; otherwise 0.

    A single row starts at the start of its array, and is not shifted.
    """
    if all(extent == 1 for d, extent in enumerate(space.extents) if d != vector_dim):
        return 0
    narrowest = min((o.element_bytes for o in full), default=WIDEST_ACCESS)
    vector = _vector(space, full, vector_dim)
    if vector * narrowest < WIDE_ENOUGH or (space.extents[vector_dim] or 0) * narrowest % SECTOR == 0:
        return 0
    return LINE // narrowest if _may_be_shifted(space, operands, full, vector_dim, vector) else 0


def _may_be_shifted(
    space: IterationSpace, operands: Sequence[Operand], full: Sequence[Operand], vector_dim: int, vector: int
) -> bool:
    """Whether rows may be shifted: all operands that vary along a row are stored in rows, and rows are reduced."""
    extent = space.extents[vector_dim]
    if extent is None or space.reduced_dims != {vector_dim} or extent < FEWEST_VECTORS * vector:
        return False
    in_rows = all(o.row_dim == vector_dim for o in operands if vector_dim in o.axes)
    # An operand that varies over the whole space determines the shift of rows; `full` may have only smaller ones.
    whole = {d for d, extent in enumerate(space.extents) if extent != 1}
    read = any(whole <= set(o.axes) for o in full if not o.written)
    # The first such operand determines the shift of rows, and every reduction must depend on one.
    return in_rows and read and all(_reads_whole(space, op, whole) for op in space.reduced)


def _reads_whole(space: IterationSpace, op: ir.Operation, whole: set[int]) -> bool:
    """Whether an op depends on an argument that varies along all dimensions in `whole`."""
    seen, waiting = {op}, [op]
    while waiting:
        reader = waiting.pop()
        for number, value in enumerate(reader.operands):
            producer = defining_op(value)
            if producer is None and whole <= set(space.use_axes.get((reader, number), ())):
                return True
            if producer is not None and producer not in seen:
                seen.add(producer)
                waiting.append(producer)
    return False
