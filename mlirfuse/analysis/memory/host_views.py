"""Ops that only give the elements of an array other indices: which, and the strides of the view.

The host makes such a view without a kernel. A chain of them ends in a result, or in an argument of a kernel, whose
`fuse.strides` then say how the kernel reads the view's source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd

from mlir import ir

from mlirfuse.analysis.kernels import argument_attributes
from mlirfuse.analysis.memory.strided_views import reshaped_layout
from mlirfuse.dialect.attributes import ALIGN, STRIDES
from mlirfuse.dialect.copies import COPIED
from mlirfuse.dialect.gathered_view import DEFINITION as GATHERED_VIEW
from mlirfuse.schedule.model.machine import DEFAULT_ALIGNMENT
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import defining_op
from mlirfuse.support.strides import (
    NEGATIVE,
    PACKED,
    RUN_TIME,
    attribute_of,
    contiguous,
    entries_of,
    is_known,
    may_be_reversed,
)

RESHAPES = frozenset({"tensor.expand_shape", "tensor.collapse_shape"})

_SLICE = ("offsets", "sizes", "strides")
_DYNAMIC = ir.ShapedType.get_dynamic_size()

Layout = Mapping[str, ir.Attribute]
"""The attributes of an array that say where its elements lie: `fuse.strides`, and `fuse.align`."""


def rearranged_axes(op: ir.Operation) -> tuple[tuple[int, ...], ...] | None:
    """For each dimension of a view, the dimensions of its source that it runs along; None for an op that is no view.

    The op is a `linalg.transpose`, or an elementwise `linalg.generic` that yields its one input: it then broadcasts,
    permutes, drops dimensions of extent 1, or takes a diagonal, where a loop indexes two dimensions. What reads a
    gathered view computes: such a view is never in memory.
    """
    if op.name not in ("linalg.transpose", "linalg.generic") or len(op.operands) != 2:
        return None
    source = defining_op(op.operands[0])
    if source is not None and source.name == GATHERED_VIEW.full_name:
        return None
    if op.name == "linalg.transpose":
        return tuple((axis,) for axis in ir.DenseI64ArrayAttr(op.attributes["permutation"]))
    if not yields_its_input(op) or COPIED in op.attributes:
        return None
    read, written = (m.value for m in ir.ArrayAttr(op.attributes["indexing_maps"]))
    axes: list[list[int]] = [[] for _ in range(read.n_dims)]
    extents = ir.RankedTensorType(op.operands[0].type).shape
    for axis, expr in enumerate(read.results):
        if isinstance(expr, ir.AffineDimExpr):
            axes[expr.position].append(axis)
        elif not (isinstance(expr, ir.AffineConstantExpr) and expr.value == 0 and extents[axis] == 1):
            return None
    loops = [expr.position for expr in written.results if isinstance(expr, ir.AffineDimExpr)]
    if sorted(loops) != list(range(written.n_dims)) or len(loops) != len(list(written.results)):
        return None
    return tuple(tuple(axes[loop]) for loop in loops)


def is_diagonal(op: ir.Operation) -> bool:
    """Whether a view runs along several dimensions of its source at once, which no kernel reads by itself."""
    axes = rearranged_axes(op)
    return axes is not None and any(len(dims) > 1 for dims in axes)


def is_host_view(op: ir.Operation) -> bool:
    """Whether the host can make an op's result as a view of its first operand."""
    return op.name in RESHAPES or op.name == "tensor.extract_slice" or rearranged_axes(op) is not None


def is_memory_view(op: ir.Operation) -> bool:
    """Whether an op's result is its first operand's elements, as the host or a kernel that loads them finds these."""
    return is_host_view(op) or op.name == GATHERED_VIEW.full_name


def viewed(value: ir.Value) -> ir.Value:
    """What a value is a view of on the host; the value where it is no view."""
    while (maker := defining_op(value)) is not None and is_host_view(maker):
        value = maker.operands[0]
    return value


def view_layout(op: ir.Operation, source: Layout) -> Layout | None:
    """The layout of a view, given that of its source; None for a reshape that may need a copy.

    Args:
        op: a reshape, a `tensor.extract_slice`, or an op with `rearranged_axes`.
        source: without `fuse.strides` where the source is C-contiguous.
    """
    if op.name in RESHAPES:
        if STRIDES not in source:
            return source
        with op.context:
            seen = reshaped_layout(op, source)
        return None if seen is None else {**source, **seen}
    known = _Known.of(op.operands[0], source)
    if op.name == "tensor.extract_slice":
        strides = known.sliced(op)
    else:
        axes = rearranged_axes(op)
        assert axes is not None
        strides = known.along(axes)
    with op.context:
        align = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), known.align)
        layout = {**source, ALIGN: align, STRIDES: attribute_of(strides)}
    if strides == contiguous(extents_of(op.results[0])):
        del layout[STRIDES]
    return layout


def layout_of(value: ir.Value) -> Layout:
    """The layout of a value of a host function: of an argument, a view, or an array that a kernel writes."""
    if isinstance(value.owner, ir.Block):
        argument = ir.BlockArgument(value)
        return argument_attributes(argument.owner.owner.operation)[argument.arg_number]
    op = value.owner.operation
    if not is_host_view(op):
        return {}
    return view_layout(op, layout_of(op.operands[0])) or {}


class _Known:
    """What is known of the strides of an array, and of the alignment of its pointer and its run-time strides."""

    def __init__(self, strides: list[int], align: int, extents: Sequence[int | None], element_bytes: int):
        self.strides, self.align, self.extents, self.element_bytes = strides, align, extents, element_bytes

    @classmethod
    def of(cls, value: ir.Value, layout: Layout) -> _Known:
        extents = extents_of(value)
        strides = entries_of(layout[STRIDES]) if STRIDES in layout else contiguous(extents)
        align = ir.IntegerAttr(layout[ALIGN]).value if ALIGN in layout else DEFAULT_ALIGNMENT
        return cls(strides, align, extents, from_mlir(ir.RankedTensorType(value.type).element_type).bytes)

    def sliced(self, op: ir.Operation) -> list[int]:
        """The strides of a slice, whose start and steps lower the alignment."""
        offsets, sizes, steps = (list(ir.DenseI64ArrayAttr(op.attributes[f"static_{n}"])) for n in _SLICE)
        after = extents_of(op.results[0])
        whole = [
            step == 1 and (offset == 0 and size in (extent, _DYNAMIC))
            for offset, size, step, extent in zip(offsets, sizes, steps, self.extents, strict=True)
        ]
        result = []
        for dim, (offset, step) in enumerate(zip(offsets, steps, strict=True)):
            inner = self._inner(dim)
            packed = self.strides[dim] == PACKED and step == 1 and (inner is None or whole[inner])
            stride = self.resolved(dim)
            if offset:
                self._lower((stride or 1) * (1 if offset == _DYNAMIC else offset) if is_known(stride) else 0)
            if packed:
                result.append(PACKED)
            elif after[dim] == 1:
                result.append(RUN_TIME if stride else 0)
            elif is_known(stride):
                result.append(stride * step)
            else:
                result.append(NEGATIVE if step < 0 else stride)
        return result

    def along(self, axes: Sequence[Sequence[int]]) -> list[int]:
        """The strides of a view along these dimensions."""
        if [*axes] == [(dim,) for dim in range(len(self.strides))]:
            return self.strides
        result = []
        for dims in axes:
            strides = [self.resolved(dim) for dim in dims if self.extents[dim] != 1 or len(dims) == 1]
            known = [s for s in strides if is_known(s)]
            if len(known) == len(strides):
                result.append(sum(known))
                continue
            if known:
                self._lower(sum(known))
            result.append(NEGATIVE if any(map(may_be_reversed, strides)) else RUN_TIME)
        return result

    def resolved(self, dim: int) -> int:
        """A stride that says nothing of the next dimension's."""
        stride = self.strides[dim]
        if stride != PACKED:
            return stride
        inner = self._inner(dim)
        if inner is None:
            return RUN_TIME
        behind, extent = self.resolved(inner), self.extents[inner]
        if not is_known(behind):
            return behind
        if extent is not None:
            return behind * extent
        self._lower(behind)
        return RUN_TIME if behind >= 0 else NEGATIVE

    def _inner(self, dim: int) -> int | None:
        """The next dimension whose extent is not 1."""
        return next((d for d in range(dim + 1, len(self.extents)) if self.extents[d] != 1), None)

    def _lower(self, elements: int) -> None:
        """Notes that an address or a run-time stride is a multiple of so many elements only."""
        self.align = gcd(self.align, abs(elements) * self.element_bytes)


def extents_of(value: ir.Value) -> list[int | None]:
    """The extents of a tensor; None where they are dynamic."""
    type_ = ir.RankedTensorType(value.type)
    return [None if type_.is_dynamic_dim(d) else n for d, n in enumerate(type_.shape)]


def yields_its_input(generic: ir.Operation) -> bool:
    """Whether a `linalg.generic` only gives the elements of one tensor other places."""
    if len(generic.results) != 1:
        return False
    if not isinstance(generic.operands[0].type, ir.RankedTensorType):
        return False
    block = generic.regions[0].blocks[0]
    if block.operations[len(block.operations) - 1].operation.operands[0] != block.arguments[0]:
        return False
    return all("parallel" in str(kind) for kind in ir.ArrayAttr(generic.attributes["iterator_types"]))
