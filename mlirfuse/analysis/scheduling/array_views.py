"""Which arguments of a tensor kernel are views of one array, and how it reads these together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import gcd, prod

from mlir import ir

from mlirfuse.analysis.kernels import symbol
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.memory.shared_arrays import (
    component_of,
    is_part_of_access,
    last_extent,
    passed_arrays,
    shared_arrays,
    source_alignment,
)
from mlirfuse.analysis.scheduling.array_accesses import Axes
from mlirfuse.analysis.scheduling.windows import (
    Place,
    Sliding,
    components_access,
    inside_share,
    merged_extents,
    places_of,
    read_elements,
    shared_elements,
    sliding_access,
    sliding_of,
    windows_access,
)
from mlirfuse.dialect.attributes import STRIDES
from mlirfuse.dialect.gather_attribute import GATHER
from mlirfuse.dialect.gathered_view import gather_of, is_check, source_of
from mlirfuse.schedule.layout import WARP
from mlirfuse.schedule.parts.array_access import ArrayAccess
from mlirfuse.support.affine_expressions import without_constants
from mlirfuse.support.strides import entries_of, may_be_reversed

Attributes = Mapping[str, ir.Attribute]
Array = tuple[object, ...]
"""What views of one array, along the same dimensions, have in common."""


class ArrayViews:
    """Views of one array: gathered views of it, and its components, every second, third, ... element of rows or few
    neighbours in each, where these are read over all of the kernel's space.

    Args:
        kernel: on tensors; its calls in its module say which arguments are of one array.
        space: the kernel's iteration space.
        attributes: of its arguments.
    """

    def __init__(self, kernel: ir.Operation, space: IterationSpace, attributes: Mapping[ir.Value, Attributes]):
        self._attributes = attributes
        self._numbers = {argument: number for number, argument in enumerate(attributes)}
        self._joins = any(map(is_check, attributes.values()))
        self._places = {v: found for v, known in attributes.items() if (found := places_of(dict(known))) is not None}
        reads = dict.fromkeys((op.operands[number], axes) for (op, number), axes in space.use_axes.items())
        whole = {d for d, extent in enumerate(space.extents) if extent != 1}
        partial = {value for value, axes in reads if not whole <= {*axes}}
        strided = [v for v, known in attributes.items() if v not in partial and is_component(v, known)]
        # Only several views can be of one array, for which all calls of the module are looked at; whole arrays are too.
        whole_arrays = [v for v, known in attributes.items() if v not in partial and _is_whole_array(v, known)]
        self._places |= {v: _whole(v) for v in whole_arrays} if self._places else {}
        self._sliding = {read: slides for read in reads if (slides := self._slides(*read)) is not None}
        self._moved = {read: maps for read in reads if (maps := self._divided(*read)) is not None}
        several = any(len(views) > 1 for views in (self._places, strided, self._sliding, self._moved))
        self._calls = passed_arrays(kernel.parent).get(symbol(kernel), []) if several else []
        shared = shared_arrays(self._calls)
        self._first = {argument: shared[n] if shared else n for argument, n in self._numbers.items()}
        self._components = _components(self._calls, {value: self._numbers[value] for value in strided})
        self._views: dict[Array, list[Sequence[Place]]] = {}
        self._starts: dict[Array, set[int]] = {}
        self._alike: dict[Array, list[Sliding]] = {}
        for read, sliding in self._sliding.items():
            self._alike.setdefault(self._array(*read), []).append(sliding)
        self._times = Counter(self._array(*read) for read in self._moved)
        for value, axes in reads:
            if value in self._places and self._is_large(value):
                self._views.setdefault(self._array(value, axes), []).append(self._places[value])
            elif value in self._components:
                self._starts.setdefault(self._array(value, axes), set()).add(self._components[value][1])

    def _array(self, value: ir.Value, axes: Axes) -> Array:
        if value in self._components:
            steps = entries_of(self._attributes[value][STRIDES])
            along = [(d, step) for d, step in zip(axes, steps, strict=True) if d is not None]
            return self._components[value][0], tuple(along)
        if (value, axes) in self._sliding:
            return self._first[value], axes, self._sliding[value, axes][:-1]
        if (value, axes) in self._moved:
            return self._first[value], axes, self._moved[value, axes]
        return self._first[value], axes

    def _elsewhere(self, value: ir.Value) -> dict[str, ir.Attribute] | None:
        """The attributes of a gathered view that has elements of its own, not along one dimension of the view on each
        axis; None of other arguments.
        """
        known = dict(self._attributes.get(value, {}))
        if GATHER not in known or value in self._places or is_check(known) or shared_elements(known) is not None:
            return None
        return known

    def _slides(self, value: ir.Value, axes: Axes) -> Sliding | None:
        """How the windows of a gathered view move; None of other arguments."""
        known = self._elsewhere(value)
        return None if known is None else sliding_of(_source(value, known), known, axes)

    def _divided(self, value: ir.Value, axes: Axes) -> tuple[str, ...] | None:
        """The map of a gathered view that divides indices, but for what is added to them; None of other arguments."""
        known = self._elsewhere(value)
        if known is None or (value, axes) in self._sliding:
            return None
        gather = gather_of(ir.DictAttr(known[GATHER]))
        return str(gather.basis), *map(without_constants, gather.map.results)

    def together(
        self, value: ir.Value, axes: Axes, access: ArrayAccess, alignment: int
    ) -> tuple[Array, ArrayAccess] | None:
        """The array that an argument is one of several views of, and the access to all of them; None for another one.

        Args:
            value: the argument.
            axes: the dimensions of the space that run along its axes.
            access: to the argument alone.
            alignment: bytes that its address and rows are multiples of.
        """
        array, found = self._array(value, axes), None
        if value in self._places and self._is_large(value):
            align = source_alignment(self._calls, self._numbers[value], alignment)
            known = dict(self._attributes[value])
            extents = merged_extents(known) if GATHER in known else _source(value, known).shape
            found = windows_access(extents, access.bytes, self._views[array], axes, align)
        elif value in self._components:
            arrays, _ = self._components[value]
            row = ir.RankedTensorType(arrays[0].type).shape[-1] * access.bytes
            align = gcd(source_alignment([arrays], 0, alignment), row)
            found = components_access(access, sorted(self._starts[array]), last_extent(value.type), align)
        elif len(alike := self._alike.get(array, ())) > 1:
            align = source_alignment(self._calls, self._numbers[value], alignment)
            found = sliding_access(alike, access.bytes, align)
        elif self._times[array] > 1:
            found = replace(self.alone(value, axes, access, alignment), times=self._times[array])
        return None if found is None else (array, found)

    def union(self, value: ir.Value, access: ArrayAccess) -> float:
        """Elements that views which are moved against each other read together, for each that one of them does: no
        more than there are in their array.
        """
        own = access.most or prod(ir.RankedTensorType(value.type).shape)
        there = prod(_source(value, dict(self._attributes[value])).shape)
        return 1.0 if access.times == 1 else max(1.0, min(access.times, there / own))

    def alone(self, value: ir.Value, axes: Axes, access: ArrayAccess, alignment: int) -> ArrayAccess:
        """The access to a gathered view; the arguments are those of `together`."""
        known = dict(self._attributes[value])
        source = _source(value, known)
        if (shared := shared_elements(known)) is not None:
            count, side_by_side = shared
            return replace(access, strides=(*access.strides[:-1], int(side_by_side)), most=count, is_contiguous=False)
        if (value, axes) in self._sliding:
            return sliding_access([self._sliding[value, axes]], access.bytes, alignment)
        access = replace(access, inside=self.inside(value))
        return access if value in self._places else replace(access, most=read_elements(source, known))

    def moved_bytes(self, value: ir.Value, nbytes: int, elements: int) -> float:
        """Bytes of device memory for each of so many elements of the space, of a gathered view of elements of so many
        bytes: those inside of its source alone, and what all of them share but once.
        """
        shared = shared_elements(dict(self._attributes[value]))
        if shared is None:
            return nbytes * self.inside(value)
        return nbytes * min(1.0, shared[0] / max(1, elements))

    def inside(self, value: ir.Value) -> float:
        """The share of a gathered view's elements that are inside of its source."""
        known = dict(self._attributes[value])
        return inside_share(_source(value, known), known)

    def edges(self) -> set[ir.Value]:
        """Views of so few elements that less than one lane of a warp reads them, as edges beside joined arrays are."""
        found = {
            v: share for v in self._places if GATHER in self._attributes[v] and (share := self.inside(v)) < 1 / WARP
        }
        return set(found) if sum(found.values()) < 1 / 2 else set()

    def _is_large(self, value: ir.Value) -> bool:
        """Whether a view is a window: every one where nothing is joined, however padded; of joined arrays those of
        which most elements are inside of their source: an edge's are not, and only threads in its place read them.
        """
        if GATHER not in self._attributes[value] or not self._joins:
            return True
        return self.inside(value) > 0.5


def is_component(value: ir.Value, known: Attributes) -> bool:
    """Whether an argument with these attributes may have every second, third, ... element of another array's rows, or
    fewer neighbours in each than an access may have.
    """
    if STRIDES not in known or GATHER in known:
        return False
    steps, type_ = entries_of(known[STRIDES]), ir.RankedTensorType(value.type)
    wide = [step for step, extent in zip(steps, type_.shape, strict=True) if extent != 1]
    if not wide or 1 in wide[:-1] or any(map(may_be_reversed, wide)):
        return False
    return wide[-1] > 1 or is_part_of_access(type_)


def _components(
    calls: Sequence[Sequence[ir.Value]], numbers: Mapping[ir.Value, int]
) -> dict[ir.Value, tuple[tuple[ir.Value, ...], int]]:
    """Of arguments that are components of one array in each call these arrays, and each one's first element there."""
    found: dict[ir.Value, tuple[tuple[ir.Value, ...], int]] = {}
    for value, number in numbers.items() if calls else ():
        parts = [component_of(call[number]) for call in calls]
        known = [part for part in parts if part is not None]
        if len(known) == len(parts) and len({first for _, first in known}) == 1:
            found[value] = tuple(array for array, _ in known), known[0][1]
    return found


def _source(value: ir.Value, known: Attributes) -> ir.RankedTensorType:
    """The type of the source of a gathered view with these attributes, or of another array itself."""
    if GATHER not in known:
        return ir.RankedTensorType(value.type)
    return source_of(ir.DictAttr(known[GATHER]))


def _is_whole_array(value: ir.Value, known: Attributes) -> bool:
    """Whether an argument with these attributes is a contiguous array, and no view."""
    if GATHER in known or STRIDES in known or not isinstance(value.type, ir.RankedTensorType):
        return False
    return ir.RankedTensorType(value.type).has_static_shape


def _whole(value: ir.Value) -> list[Place]:
    """The places of an array in itself."""
    return [(axis, 1, 0) for axis in range(ir.RankedTensorType(value.type).rank)]
