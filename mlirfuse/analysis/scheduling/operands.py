"""What a tensor kernel reads and writes, in terms of its iteration space."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import gcd, prod

from mlir import ir

from mlirfuse.analysis.kernels import argument_attributes, body
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.scheduling.array_accesses import Axes, array_access
from mlirfuse.analysis.scheduling.array_views import ArrayViews
from mlirfuse.analysis.scheduling.windows import components_access
from mlirfuse.dialect.attributes import ALIGN, STRIDES
from mlirfuse.dialect.gather_attribute import GATHER
from mlirfuse.dialect.gathered_view import is_check
from mlirfuse.dialect.scatter import interleaved_step, scatter_of, sources_of
from mlirfuse.schedule.model.machine import WIDEST_ACCESS
from mlirfuse.schedule.parts.array_access import ArrayAccess
from mlirfuse.support.dtypes import element_bytes, from_mlir
from mlirfuse.support.strides import entries_of
from mlirfuse.target import SECTOR


class Operand:
    """A tensor that the kernel reads or writes, in terms of the iteration space.

    Args:
        tensor_type: its type.
        axes: the dimension of the space that runs along each axis; None for an extent of 1.
        strides: the entries of `fuse.strides`; None where the array is contiguous.
        align: bytes that its address is a multiple of, and each stride that run time has to say.
        written: whether the kernel writes it.
    """

    def __init__(
        self,
        tensor_type: ir.RankedTensorType,
        axes: Axes,
        strides: Sequence[int] | None = None,
        align: int = WIDEST_ACCESS,
        *,
        written: bool = False,
    ):
        self.axes = axes
        self.written = written
        self.access = array_access(tensor_type, axes, strides, align, written=written)
        self.element_bytes = from_mlir(tensor_type.element_type).bytes
        self.moved_bytes: float = self.element_bytes  # of device memory, an element of the space
        shape = list(tensor_type.shape)
        self.unit_axis = (
            max((a for a, d in enumerate(axes) if d is not None), default=None)
            if strides is None
            else next((a for a, s in enumerate(strides) if s == 1 and axes[a] is not None), None)
        )
        kind = from_mlir(tensor_type.element_type).kind
        self.is_apart = kind == "bool" or (strides is not None and 1 not in strides)
        self.alignment = align
        # The last dimension, where rows can be realigned whole: rows follow each other, and the first one is aligned;
        # those of a gathered view may not.
        movable = strides is None and align >= WIDEST_ACCESS and kind != "bool"
        self.row_dim = axes[-1] if movable and axes else None
        if strides is None:
            # A contiguous tensor's outer strides are products of inner extents.
            for axis in range(self.unit_axis or 0):
                inner = prod(1 if n == ir.ShapedType.get_dynamic_size() else n for n in shape[axis + 1 :])
                if shape[axis] != 1:
                    self.alignment = gcd(self.alignment, inner * self.element_bytes)


def operands_of(kernel: ir.Operation, space: IterationSpace) -> Iterator[Operand]:
    """What a kernel on tensors reads, views of one array together, and what it writes."""
    attributes = dict(zip(kernel.regions[0].blocks[0].arguments, argument_attributes(kernel), strict=True))
    views = ArrayViews(kernel, space, attributes)
    seen, joined, edges = set(), set(), views.edges()
    alike = Counter(known.get(STRIDES) for known in attributes.values() if GATHER not in known)
    for (op, number), axes in space.use_axes.items():
        value = op.operands[number]
        if value not in attributes or not isinstance(value.type, ir.RankedTensorType) or (value, axes) in seen:
            continue
        seen.add((value, axes))
        if value in edges or is_check(attributes[value]):  # checks are in no memory
            continue
        strides = attributes[value].get(STRIDES)
        align = attributes[value].get(ALIGN)
        operand = Operand(
            value.type,
            axes,
            None if strides is None else entries_of(strides),
            WIDEST_ACCESS if align is None else ir.IntegerAttr(align).value,
        )
        windows = views.together(value, axes, operand.access, operand.alignment)
        if windows is not None or GATHER in attributes[value]:
            operand.row_dim = None
        if windows is not None:
            array, operand.access = windows
            if array in joined:
                continue
            joined.add(array)
            access = operand.access
            each = access.growth(space.extents) * views.union(value, access)
            operand.moved_bytes = access.bytes * access.inside * each
        elif GATHER in attributes[value]:
            operand.access = views.alone(value, axes, operand.access, operand.alignment)
            elements = prod(extent or 1 for extent in space.extents)
            operand.moved_bytes = views.moved_bytes(value, operand.element_bytes, elements)
        else:
            operand.access = replace(operand.access, spread=_spread(operand.access, alike[strides]))
        yield operand
    for value in body(kernel)[-1].operands:
        op = scatter_of(value)
        if op is None:
            yield Operand(value.type, space.value_axes[value], written=True)
            continue
        shape = ir.RankedTensorType(value.type).shape
        with op.context:
            sources, step = sources_of(op), interleaved_step(op)
        if step is not None:
            source, positions = sources[-1]
            yield _interleaved(source.type, space.value_axes[source], positions.strides_in(shape)[0], step)
            continue
        for source, positions in sources:
            strides, start = positions.strides_in(shape)
            align = gcd(WIDEST_ACCESS, start * element_bytes(source.type))
            yield Operand(source.type, space.value_axes[source], strides, align, written=True)


def _spread(access: ArrayAccess, alike: int) -> float:
    """Elements that device memory moves for one that is read, where arrays have every n-th element of others: those of
    its sector, shared by so many arrays that are alike, which may be of one array.
    """
    step = access.strides[-1] if access.strides else None
    return max(1.0, min(step or 1, SECTOR // access.bytes) / alike)


def _interleaved(type_: ir.RankedTensorType, axes: Axes, strides: Sequence[int], step: int) -> Operand:
    """A result of whose rows each of several values has every `step`-th element."""
    operand = Operand(type_, axes, strides, written=True)
    together = components_access(operand.access, range(step), None, WIDEST_ACCESS)
    if together is not None:
        operand.access = together
    operand.moved_bytes = step * operand.element_bytes
    return operand
