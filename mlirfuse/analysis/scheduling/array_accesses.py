"""The arrays of a tensor kernel as the schedule heuristics see them: which dimensions lie where in memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir import ir

from mlirfuse.schedule.parts.array_access import ArrayAccess
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.strides import is_known

Axes = tuple[int | None, ...]


def array_access(
    tensor_type: ir.RankedTensorType, axes: Axes, strides: Sequence[int] | None, alignment: int, *, written: bool
) -> ArrayAccess:
    """Describes an array.

    Args:
        tensor_type: its type.
        axes: the dimension of the iteration space that runs along each axis; None for an extent of 1.
        strides: the entries of `fuse.strides` of an argument, of which a step back is taken for a step; None where
            the array is contiguous.
        alignment: bytes that its address is a multiple of, and each stride that run time has to say.
        written: whether the kernel writes it.
    """
    shape = [None if n == ir.ShapedType.get_dynamic_size() else n for n in tensor_type.shape]
    steps: list[int | None] = []
    for axis in range(len(shape)):
        inner = shape[axis + 1 :]
        if strides is not None:
            steps.append(abs(strides[axis]) if is_known(strides[axis]) else None)
        else:
            steps.append(None if None in inner else prod(n for n in inner if n is not None))
    places = [a for a, d in enumerate(axes) if d is not None and steps[a] != 0]
    if strides is not None:
        # Run-time strides are taken for larger ones than those that are known.
        places.sort(key=lambda a: (steps[a] is None, steps[a] or 0), reverse=True)
        if places and is_known(last := strides[places[-1]]) and last < 0:  # no wide access reads a reversed run
            alignment = from_mlir(tensor_type.element_type).bytes
    return ArrayAccess(
        dims=tuple(d for a in places if (d := axes[a]) is not None),
        strides=tuple(steps[a] for a in places),
        bytes=from_mlir(tensor_type.element_type).bytes,
        alignment=alignment,
        written=written,
        is_contiguous=strides is None,
    )
