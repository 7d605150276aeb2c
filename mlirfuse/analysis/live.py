"""Bytes that a kernel must keep on chip between a reduction and the use of its result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mlir import ir

from mlirfuse.analysis.arithmetic.patterns import WIDENING, body_op, tensor_operand
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.order import by_reduction_depth
from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.support.dtypes import from_mlir


@dataclass(frozen=True)
class LiveBytes:
    """What lives across reductions, in bytes per element of the space.

    Attributes:
        most: of all values that live across the reduction with the most of them.
        shared_spill: of all that lives across any reduction, each with a place of its own in shared memory
            (`fuse-spill-to-shared`); of two independent reductions one comes first. Values computed from operands that
            all rows share count as well: each thread spills its elements of them.
    """

    most: int
    shared_spill: int


def live_bytes(
    space: IterationSpace,
    structures: Sequence[OpStructure],
    depths: dict[ir.Operation, int],
    returned: Iterable[ir.Value] = (),
) -> LiveBytes:
    """Measures the values that a kernel on tensors keeps from a reduction to their use.

    Counts values that vary along the reduced dimensions, are known before a reduction completes and are used after it,
    by ops that depend on the reduction or not. Results are written last. A value that is a widening cast counts as its
    source (`fuse-pack-live-values` keeps the source).

    Args:
        space: the ops' iteration space.
        structures: the ops.
        depths: for each op, how many reductions it waits for.
        returned: values that leave the kernel.
    """
    if not space.reduced_dims:
        return LiveBytes(0, 0)
    whole = frozenset(d for d, extent in enumerate(space.extents) if extent != 1)
    order = by_reduction_depth(structures)
    positions = {s.op: position for position, s in enumerate(order)}
    made: dict[ir.Value, int] = {}
    last_use: dict[ir.Value, int] = {}
    wide: set[ir.Value] = set()

    def used(value: ir.Value, axes: Sequence[int | None] | None, place: int, first: int) -> None:
        """Takes note of a use of `value` at `place`; it is made at `first`, unless some op here makes it."""
        if axes is None or not space.reduced_dims & set(axes):
            return
        source = narrow_source(value)
        is_made = not isinstance(source.owner, ir.Block) and source.owner.operation in depths
        if whole <= set(axes):
            wide.add(source)
        elif not is_made:  # what all rows share is read again, from a cache
            return
        made.setdefault(source, positions[source.owner.operation] if is_made else first)
        last_use[source] = place

    for s in order:
        for number, operand in enumerate(s.operands):
            if s.operand_axes[number] is not None:
                axes = space.value_axes.get(operand) or space.use_axes.get((s.op, number))
                used(operand, axes, positions[s.op], positions[s.op])  # an argument is read where it is first used
    for value in returned:
        used(value, space.value_axes[value], len(order), positions[value.owner.operation])
    ends = [positions[s.op] for s in order if s.reduction_loops]
    depth_ends = {depths[s.op]: positions[s.op] for s in order if s.reduction_loops}.values()
    across = {end: {v for v in made if made[v] <= end < last_use[v]} for end in ends}
    most = max((_bytes(across[end] & wide) for end in depth_ends), default=0)
    return LiveBytes(most, _bytes(set().union(*across.values())))


def _bytes(values: Iterable[ir.Value]) -> int:
    return sum(from_mlir(ir.RankedTensorType(v.type).element_type).bytes for v in values)


def narrow_source(value: ir.Value) -> ir.Value:
    """The value before widening casts."""
    found = body_op(value)
    while found is not None and found[1].name in WIDENING:
        source = tensor_operand(found[0], found[1].operands[0])
        if source is None or list(source.type.shape) != list(value.type.shape):
            break
        value = source
        found = body_op(value)
    return value
