"""Composes a producer's indexing map into its consumer."""

from __future__ import annotations

from mlir import ir

from mlirfuse.analysis.loops.maps import projection, selected_loops, through
from mlirfuse.analysis.loops.structure import structure_of


def compose_producer(generic: ir.Operation, number: int, maker: ir.Operation) -> bool:
    """Makes a `linalg.generic` read an operand's source in place of the operand, through the composed indexing map.

    The block argument is left as it is; where the source has another element type, the caller sets it.

    Args:
        generic: the reader.
        number: which of its inputs.
        maker: the op that makes the operand elementwise from its own first input.

    Returns:
        Whether the operand was replaced; False where only the operand's shape gives the extent of a loop.
    """
    structure = structure_of(maker)
    assert structure is not None
    source_axes = structure.operand_axes[0]
    if source_axes is None:
        return False
    maps = list(ir.ArrayAttr(generic.attributes["indexing_maps"]))
    loops = maps[number].value.n_dims
    axes = through(selected_loops(maps[number]), structure.result_axes[0], source_axes)
    maps[number] = projection(loops, axes)
    if {axis for m in maps for axis in selected_loops(m)} - {None} != set(range(loops)):
        return False
    generic.operands[number] = maker.operands[0]
    generic.attributes["indexing_maps"] = ir.ArrayAttr.get(maps)
    return True
