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
    """Bytes that are live across reductions, per element of the iteration space.

    Attributes:
        most: bytes that are live across one reduction, for the reduction with the most.
        shared_spill: bytes of all values that are live across any reduction, each with its own shared memory
            (`fuse-spill-to-shared`). Independent reductions count as if they ran in sequence. Values computed from
            operands that all rows share are included, because each thread spills its elements of such a value.
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

    Counts values that vary along the reduced dimensions, are known before a reduction completes, and are used after the
    reduction. Results are written last. A widening cast counts as its source, which `fuse-pack-live-values` keeps.

    Args:
        space: the ops' iteration space.
        structures: the ops.
        depths: for each op the number of reductions that must complete before it (`reduction_depths`).
        returned: values that leave the kernel.
    """
    if not space.reduced_dims:
        return LiveBytes(0, 0)
    whole = frozenset(d for d, extent in enumerate(space.extents) if extent != 1)
    order = by_reduction_depth(structures)
    positions = {s.op: position for position, s in enumerate(order)}
    defined: dict[ir.Value, int] = {}
    last_use: dict[ir.Value, int] = {}
    full: set[ir.Value] = set()

    def record_use(value: ir.Value, axes: Sequence[int | None] | None, position: int, first: int) -> None:
        """Records a use of `value` at `position`; a value that no op of the kernel computes is defined at `first`."""
        if axes is None or not space.reduced_dims & set(axes):
            return
        source = narrow_source(value)
        is_computed = not isinstance(source.owner, ir.Block) and source.owner.operation in depths
        if whole <= set(axes):
            full.add(source)
        elif not is_computed:  # an argument that all rows share is read again, from a cache
            return
        defined.setdefault(source, positions[source.owner.operation] if is_computed else first)
        last_use[source] = position

    for s in order:
        for number, operand in enumerate(s.operands):
            if s.operand_axes[number] is not None:
                axes = space.value_axes.get(operand) or space.use_axes.get((s.op, number))
                position = positions[s.op]  # an argument is read at its first use
                record_use(operand, axes, position, position)
    for value in returned:
        record_use(value, space.value_axes[value], len(order), positions[value.owner.operation])
    ends = [positions[s.op] for s in order if s.reduction_loops]
    depth_ends = {depths[s.op]: positions[s.op] for s in order if s.reduction_loops}.values()
    live = {end: {v for v in defined if defined[v] <= end < last_use[v]} for end in ends}
    most = max((_bytes(live[end] & full) for end in depth_ends), default=0)
    return LiveBytes(most, _bytes(set().union(*live.values())))


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
