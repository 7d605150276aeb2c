"""What a persistent kernel must keep on chip between a reduction and the use of its result."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.analysis.iteration_space import IterationSpace
from mlirfuse.analysis.patterns import WIDENING, body_op, tensor_operand
from mlirfuse.analysis.structure import OpStructure
from mlirfuse.dtypes import from_mlir


def live_bytes(space: IterationSpace, structures: Sequence[OpStructure], depths: dict[ir.Operation, int]) -> int:
    """Bytes per element of the space that live across the worst reduction.

    Counts values that vary along the reduced dimensions, are known before a reduction finishes and are used after it.
    A value that is a widening cast counts as what it was cast from (`fuse-pack-live-values` keeps it so).
    """
    if not space.reduced_dims:
        return 0
    whole = frozenset(d for d, extent in enumerate(space.extents) if extent != 1)
    made: dict[ir.Value, int] = {}
    last_use: dict[ir.Value, int] = {}
    for s in structures:
        for number, operand in enumerate(s.operands):
            axes = space.value_axes.get(operand) or space.use_axes.get((s.op, number))
            if axes is None or not whole <= set(axes) or s.operand_axes[number] is None:
                continue
            source = narrow_source(operand)
            # An argument is read where it is first used.
            depth = depths[source.owner.operation] if _made_inside(source, depths) else depths[s.op]
            made[source] = min(made.get(source, depth), depth)
            last_use[source] = max(last_use.get(source, 0), depths[s.op])
    worst = 0
    for level in range(max(depths.values(), default=0)):
        across = [v for v in made if made[v] <= level < last_use[v]]
        worst = max(worst, sum(from_mlir(ir.RankedTensorType(v.type).element_type).bytes for v in across))
    return worst


def narrow_source(value: ir.Value) -> ir.Value:
    """What a value was before widening casts."""
    found = body_op(value)
    while found is not None and found[1].name in WIDENING:
        source = tensor_operand(found[0], found[1].operands[0])
        if source is None or list(source.type.shape) != list(value.type.shape):
            break
        value = source
        found = body_op(value)
    return value


def _made_inside(value: ir.Value, depths: dict[ir.Operation, int]) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.operation in depths
