"""The fragments that one thread holds of a tile value.

A fragment is emitted at its first use. A chain of ops on tiles is so emitted fragment by fragment in place of op by op,
which keeps few fragments live at once; ptxas's register allocation follows that order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from mlir import ir
from mlir.dialects import vector

from mlirfuse.dialect.optimization_barrier import optimization_barrier
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.model.machine import WIDEST_ACCESS
from mlirfuse.support.dtypes import from_mlir

Key = tuple[int, ...]
"""The number of a fragment in each dimension of the layout: the repeat, then the repeat within the warp."""


@dataclass(frozen=True)
class Uniform:
    """A tile value whose elements are all one number, held as a scalar."""

    value: ir.Value

    @property
    def element_type(self) -> ir.Type:
        return self.value.type


@dataclass
class Fragments:
    """The fragments of a tile value that one thread holds.

    Attributes:
        layout: the layout of the tile.
        extents: extent of the value in each dimension of the layout; 1 where it does not vary.
        element_type: type of one element.
        make: emits the fragment of a key; None if all are in `values`, or wait for an exchange between warps.
        rematerialize: emits a fragment again, after a given value is known; None if fragments stay in registers.
        values: the fragments so far: vectors along the layout's vector dimension, or scalars where the value does not
            vary along it or vectors have one element.
    """

    layout: BlockedLayout
    extents: tuple[int, ...]
    element_type: ir.Type
    make: Callable[[Key], ir.Value] | None = None
    rematerialize: Callable[[Key, ir.Value], ir.Value] | None = None
    values: dict[Key, ir.Value] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """Number of elements of one fragment."""
        d = self.layout.vector_dim
        return self.layout.vector[d] if self.varies(d) else 1

    @property
    def type(self) -> ir.Type:
        """The type of one fragment."""
        return fragment_type(self.width, self.element_type)

    def varies(self, dim: int) -> bool:
        return self.extents[dim] > 1

    def repeats(self, dim: int) -> int:
        """Number of fragments with data in a dimension; fragments of padding only are left out."""
        if not self.varies(dim):
            return 1
        if self.layout.blocks[dim] > 1:
            return self.layout.fragments(dim)
        covered = self.extents[dim] + self.layout.slack(dim)
        repeats = min(self.layout.repeats[dim], -(-covered // self.layout.repeat_stride(dim)))
        return repeats * self.layout.within(dim) * self.layout.neighbours(dim)

    def keys(self) -> Iterator[Key]:
        """The keys of all fragments, the last dimension fastest."""
        return product(*(range(self.repeats(d)) for d in range(self.layout.rank)))

    def at(self, key: Key) -> ir.Value:
        """The fragment for a key of a value that may vary along more dimensions, emitted if necessary."""
        own = self._own(key)
        if own not in self.values:
            assert self.make is not None
            self.values[own] = self.make(own)
        return self.values[own]

    def after(self, key: Key, value: ir.Value) -> ir.Value:
        """Like `at`, but no use of the fragment is computed before `value` is known."""
        return (
            self.rematerialize(self._own(key), value)
            if self.rematerialize is not None
            else optimization_barrier(self.at(key), value)
        )

    def _own(self, key: Key) -> Key:
        return tuple([r if extent > 1 else 0 for r, extent in zip(key, self.extents, strict=True)])

    def force(self) -> None:
        """Emits all fragments at the current insertion point."""
        for key in self.keys():
            self.at(key)

    @property
    def waits(self) -> bool:
        """Whether the value is the result of an exchange that has not been emitted."""
        return self.make is None and not self.values

    def like(
        self, extents: tuple[int, ...], element_type: ir.Type, make: Callable[[Key], ir.Value] | None = None
    ) -> Fragments:
        """Fragments of another value in the same layout."""
        return Fragments(self.layout, extents, element_type, make)

    def map(self, function: Callable[[ir.Value], ir.Value], element_type: ir.Type | None = None) -> Fragments:
        """Fragments of a value of the same extents, by applying `function` to each fragment."""
        return self.like(self.extents, element_type or self.element_type, lambda key: function(self.at(key)))

    def end(self, key: Key, dim: int) -> int:
        """The largest index plus one in `dim` of any thread's elements at this repeat; it may exceed the value's
        extent.
        """
        layout = self.layout
        if layout.blocks[dim] > 1:
            return layout.extents[dim]
        last_warp = (layout.warps[dim] - 1) * layout.within(dim) * layout.span(dim)
        last_lane = (layout.lanes[dim] - 1) * layout.step(dim)
        return layout.offset(dim, key[dim]) + last_warp + last_lane + layout.vector[dim]

    def padded(self, key: Key, dim: int) -> bool:
        """Whether some thread's elements at this repeat may be beyond the value's extent in `dim`."""
        return self.varies(dim) and self.end(key, dim) > self.extents[dim]

    def may_precede_row(self, key: Key, dim: int) -> bool:
        """Whether some thread's elements at this repeat may be before the first of a shifted row."""
        return self.varies(dim) and self.layout.is_shifted and self.layout.slack(dim) > 0 and key[dim] == 0


def fragment_type(width: int, element_type: ir.Type) -> ir.Type:
    """`vector<width x T>`, or plain `T` for one element."""
    return ir.VectorType.get([width], element_type) if width > 1 else element_type


def fragment_alignment(fragment: ir.Type) -> int:
    """Bytes that a fragment in shared memory is aligned to, where fragments of its type lie side by side."""
    vector_type = ir.VectorType(fragment)
    return min(WIDEST_ACCESS, vector_type.shape[0] * from_mlir(vector_type.element_type).bytes)


def widen(value: ir.Value, width: int) -> ir.Value:
    """A scalar broadcast to a fragment of `width` elements."""
    if width == 1 or isinstance(value.type, ir.VectorType):
        return value
    return vector.BroadcastOp(ir.VectorType.get([width], value.type), value).result


def splat(layout: BlockedLayout, extents: Sequence[int], number: ir.Value) -> Fragments:
    """A tile of the given extents with all elements equal to `number`."""
    tile = Fragments(layout, tuple(extents), number.type)
    tile.make = lambda key: widen(number, tile.width)
    return tile


def elements(value: ir.Value) -> list[ir.Value]:
    """The elements of a fragment as scalars."""
    if not isinstance(value.type, ir.VectorType):
        return [value]
    return list(vector.ToElementsOp(value).results)
