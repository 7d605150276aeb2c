"""The loops of a structured tensor op, in one form for every op that the graph passes understand.

`linalg.generic` has explicit loops, and joint reductions (`fuse.moments`, `fuse.exp_sum`) follow from their `dims`.
Transposes, and reshapes that only add or drop extents of 1, have implicit loops. A fill is a constant without loops. A
reshape that splits or merges dimensions has no loops, and neither has a diagonal: they are views between segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from mlir import ir

from mlirfuse.analysis.loops.maps import projected_axes, repeats_a_loop
from mlirfuse.analysis.memory.host_views import is_diagonal
from mlirfuse.dialect.joint import JOINT_REDUCTIONS
from mlirfuse.errors import IRError, errors_at
from mlirfuse.support.reshapes import reassociation

_DYNAMIC = ir.ShapedType.get_dynamic_size()

RENAMING_OPS = frozenset({"linalg.transpose", "tensor.expand_shape", "tensor.collapse_shape"})
"""Ops that change the indices of a value's elements, and compute nothing."""


@dataclass(frozen=True)
class OpStructure:
    """The loops of one op.

    Attributes:
        op: the op.
        loop_count: number of loops.
        reduction_loops: which loops reduce.
        operands: the tensor and scalar operands, inputs first and then inits.
        operand_axes: for each operand, the loop that each of its axes runs along (None: extent 1, or broadcast);
            None in place of the tuple for an operand whose elements are not read.
        result_axes: the same for each result.
        idle_extents: (loop, extent) pairs from operands without a read of elements; the extent is None if dynamic.
        idle_axes: (operand number, loop of each axis) of operands that hold data which the op does not read.
    """

    op: ir.Operation
    loop_count: int
    reduction_loops: tuple[int, ...]
    operands: tuple[ir.Value, ...]
    operand_axes: tuple[tuple[int | None, ...] | None, ...]
    result_axes: tuple[tuple[int | None, ...], ...]
    idle_extents: tuple[tuple[int, int | None], ...] = ()
    idle_axes: tuple[tuple[int, tuple[int | None, ...]], ...] = ()

    @cached_property
    def operand_extents(self) -> tuple[tuple[int | None, ...], ...]:
        """The extents of each operand, None where dynamic; a scalar has none."""
        return tuple(_extents_or_none(operand) for operand in self.operands)

    @cached_property
    def result_extents(self) -> tuple[tuple[int | None, ...], ...]:
        """The extents of each result, None where dynamic."""
        return tuple(_extents_or_none(result) for result in self.op.results)


def structure_of(op: ir.Operation) -> OpStructure | None:
    """The structure of an op, or None for an op without loops."""
    builder = _BUILDERS.get(op.name)
    return builder(op) if builder else None


def reduces(generic: ir.Operation) -> bool:
    """Whether a `linalg.generic` has a loop that reduces."""
    return bool(_reduction_loops(generic.attributes["iterator_types"]))


def is_constant(value: ir.Value) -> bool:
    """Whether a tensor is filled with one number, or is a `tensor.empty`."""
    owner = value.owner
    return not isinstance(owner, ir.Block) and owner.operation.name in ("linalg.fill", "tensor.empty")


def is_unit_reshape(op: ir.Operation) -> bool:
    """Whether a reshape only adds or drops extents of 1."""
    return op.name in ("tensor.expand_shape", "tensor.collapse_shape") and _reshape(op) is not None


def _generic(op: ir.Operation) -> OpStructure | None:
    maps, kinds = op.attributes["indexing_maps"], op.attributes["iterator_types"]
    if _repeats_a_loop(maps) and is_diagonal(op):
        return None
    operands, arguments = tuple(op.operands), op.regions[0].blocks[0].arguments
    constant = tuple([is_constant(operand) for operand in operands])
    # Elements of a constant operand, and of an init that the body does not use, are not read.
    unread = tuple(
        [
            is_filled or next(iter(argument.uses), None) is None
            for is_filled, argument in zip(constant, arguments, strict=True)
        ]
    )
    with errors_at(op):
        loops = _loops(maps, kinds, tuple([operand.type for operand in operands]), constant, unread)
    axes = _axes(maps)
    return OpStructure(
        op,
        loops.count,
        loops.reduced,
        operands,
        loops.operand_axes,
        axes[len(axes) - len(op.results) :],
        loops.idle_extents,
        loops.idle_axes,
    )


@dataclass(frozen=True)
class _Loops:
    """What the structure of a `linalg.generic` has that does not depend on where the op stands; see `OpStructure`."""

    count: int
    reduced: tuple[int, ...]
    operand_axes: tuple[tuple[int | None, ...] | None, ...]
    idle_extents: tuple[tuple[int, int | None], ...]
    idle_axes: tuple[tuple[int, tuple[int | None, ...]], ...]


@lru_cache(maxsize=256)  # passes ask for the same loops again and again; attributes and types keep their context alive
def _loops(
    maps: ir.Attribute,
    kinds: ir.Attribute,
    types: tuple[ir.Type, ...],
    constant: tuple[bool, ...],
    unread: tuple[bool, ...],
) -> _Loops:
    """The loops of ops with these attributes.

    Args:
        maps: the indexing maps.
        kinds: the iterator types.
        types: of the operands.
        constant: which operands are filled with one number.
        unread: the elements of which operands are not read, those of constants included.

    Raises:
        IRError: a map is no projection, or reads a part only.
    """
    axes = _axes(maps)
    return _Loops(
        len(ir.ArrayAttr(kinds)),
        _reduction_loops(kinds),
        tuple(None if skipped else axis for axis, skipped in zip(axes, unread, strict=True)),
        _idle_extents(types, axes, unread),
        tuple(
            (number, axis)
            for number, (is_filled, axis, skipped) in enumerate(zip(constant, axes, unread, strict=True))
            if skipped and not is_filled
        ),
    )


@lru_cache(maxsize=64)
def _axes(maps: ir.Attribute) -> tuple[tuple[int | None, ...], ...]:
    """The loop of each axis of each operand; raises `IRError` for maps that are no projections."""
    return tuple(projected_axes(each) for each in ir.ArrayAttr(maps))


@lru_cache(maxsize=64)
def _repeats_a_loop(maps: ir.Attribute) -> bool:
    """Whether an operand is read along one loop twice, as a diagonal is."""
    return any(repeats_a_loop(each) for each in ir.ArrayAttr(maps))


@lru_cache(maxsize=64)
def _reduction_loops(kinds: ir.Attribute) -> tuple[int, ...]:
    """The loops of a `linalg.generic` that reduce."""
    return tuple(i for i, kind in enumerate(ir.ArrayAttr(kinds)) if "reduction" in str(kind))


def _idle_extents(
    types: Sequence[ir.Type], axes: Sequence[Sequence[int | None]], unread: Sequence[bool]
) -> tuple[tuple[int, int | None], ...]:
    """Extents of loops from operands without a read of elements; raises `IRError` for a map that reads a part only."""
    idle: dict[int, int | None] = {}
    for type_, loops, skipped in zip(types, axes, unread, strict=True):
        for axis, (loop, extent) in enumerate(zip(loops, extents_of_type(type_), strict=True)):
            if loop is None and extent != 1:
                raise IRError(
                    f"only the first element along axis {axis} of {type_} is read",
                    hint="only extents of 1 are broadcast",
                )
            if skipped and loop is not None and extent != 1:
                idle[loop] = idle.get(loop) or extent
    return tuple(idle.items())


def _transpose(op: ir.Operation) -> OpStructure:
    permutation = list(ir.DenseI64ArrayAttr(op.attributes["permutation"]))
    source: list[int | None] = [None] * len(permutation)
    for axis, comes_from in enumerate(permutation):
        source[comes_from] = axis
    return OpStructure(
        op, len(permutation), (), tuple(op.operands), (tuple(source), None), (tuple(range(len(permutation))),)
    )


def _joint_reduction(op: ir.Operation) -> OpStructure:
    rank = ir.ShapedType(op.operands[0].type).rank
    dims = tuple(ir.DenseI64ArrayAttr(op.attributes["dims"]))
    kept = tuple(d for d in range(rank) if d not in dims)
    return OpStructure(op, rank, dims, tuple(op.operands), (tuple(range(rank)),), (kept, kept))


def _reshape(op: ir.Operation) -> OpStructure | None:
    source = _extents(op.operands[0])
    result = _extents(op.results[0])
    groups = reassociation(op)
    expands = op.name == "tensor.expand_shape"
    many = result if expands else source
    few_axes: list[int | None] = []
    for group in groups:
        wide = [axis for axis in group if many[axis] != 1]
        if len(wide) > 1:
            return None
        few_axes.append(wide[0] if wide else None)
    many_axes = tuple(axis if extent != 1 else None for axis, extent in enumerate(many))
    source_axes = tuple(few_axes) if expands else many_axes
    result_axes = many_axes if expands else tuple(few_axes)
    # Only the first operand holds data; an expand_shape's others are extents.
    operand_axes = (source_axes, *([None] * (len(op.operands) - 1)))
    return OpStructure(op, len(many), (), tuple(op.operands), operand_axes, (result_axes,))


def _extents(value: ir.Value) -> Sequence[int]:
    return list(ir.ShapedType(value.type).shape)


def _extents_or_none(value: ir.Value) -> tuple[int | None, ...]:
    return extents_of_type(value.type)


@lru_cache(maxsize=64)
def extents_of_type(type_: ir.Type) -> tuple[int | None, ...]:
    """The extents of a tensor's type, None where dynamic; a scalar has none."""
    if not isinstance(type_, ir.RankedTensorType):
        return ()
    return tuple(None if extent == _DYNAMIC else extent for extent in type_.shape)


_BUILDERS = {
    "linalg.generic": _generic,
    "linalg.transpose": _transpose,
    **dict.fromkeys(JOINT_REDUCTIONS, _joint_reduction),
    "tensor.expand_shape": _reshape,
    "tensor.collapse_shape": _reshape,
}


def static_extents(
    axes: Sequence[Sequence[int | None]], values: Sequence[ir.Value], loop_count: int
) -> list[int] | None:
    """The extents of loops from the values that run along them, axis by axis; None where one is not static."""
    shapes = [ir.RankedTensorType(value.type) for value in values]
    if not all(shape.has_static_shape for shape in shapes):
        return None
    extents = [1] * loop_count
    for loops, shape in zip(axes, shapes, strict=True):
        for loop, extent in zip(loops, shape.shape, strict=True):
            if loop is not None:
                extents[loop] = max(extents[loop], extent)
    return extents
