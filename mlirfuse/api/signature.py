"""Compile-time properties of a call's arguments: dynamic extents, equal extents, memory layout.

Leading dimensions are dynamic, so that one kernel serves every number of rows; the last one is static, because rows are
reduced over it and vectors run along it. A one-dimensional array is dynamic where its extent is a leading extent of
another array and no array's last extent: it then has one number a row. Extents of 1 are static, as they broadcast, and
extents of 0, so that no kernel is launched for empty arrays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mlirfuse.builder.errors import ChangesOrder, NeedsStatic
from mlirfuse.builder.extents import UNCHANGED, Reordered
from mlirfuse.builder.spec import Stride, TensorSpec
from mlirfuse.errors import ShapeError, UnreadExtentError
from mlirfuse.support.dtypes import DType

Source = tuple[int, int]
"""(argument, dimension)"""

SMALL = 128
"""Extents up to which a tile holds a dimension whole, so that a kernel that changes the order of memory is chosen by
them: channels, heads, windows, sides of patches and small images."""


@dataclass(frozen=True)
class Static:
    """Dimensions that are compiled for their extents.

    Attributes:
        needed: those that the function reduces or needs as a number.
        reordered: those whose order in memory it changes: the ones that become the innermost of an array, and of the
            others those that are small.
    """

    needed: frozenset[Source] = frozenset()
    reordered: Reordered = UNCHANGED

    def without(self, sources: frozenset[Source]) -> Static:
        """With some dimensions that the function needs as numbers left dynamic."""
        return replace(self, needed=self.needed - sources)

    def has(self, source: Source, extent: int) -> bool:
        """Whether a dimension is compiled for its extent, which is so many."""
        small = extent <= SMALL and source in self.reordered.inner
        return small or source in self.needed or source in self.reordered.innermost

    def after(self, found: NeedsStatic | UnreadExtentError | ChangesOrder) -> Static:
        """With what a trace or a pass found; raises that where it is known already."""
        if isinstance(found, ChangesOrder):
            more = replace(self, reordered=self.reordered | found.reordered)
        else:
            more = replace(self, needed=self.needed.union(found.sources))
        if more == self:
            raise found
        return more

    def why(self, source: Source) -> str:
        """What a dimension is compiled for."""
        if source in self.needed:
            return "the function reduces it or needs it as a number"
        up_to = "" if source in self.reordered.innermost else f", up to {SMALL}"
        return f"the function changes the order of memory{up_to}"


NONE = Static()
"""No dimension is compiled for its extent."""


class Extents:
    """Names the dynamic extents of one signature: equal numbers get equal names, in order of appearance.

    Args:
        static: dimensions that are compiled for their extents.
    """

    def __init__(self, static: Static = NONE):
        self.static = static
        self.names: dict[int, str] = {}
        self.rows: frozenset[int] = frozenset()

    def with_numbers(self, error: ShapeError) -> ShapeError:
        """The error with a hint that has the numbers of the extents that it names."""
        named = [(name, extent) for extent, name in self.names.items() if re.search(rf"\b{name}\b", error.message)]
        if named:
            numbers = ", ".join(f"{name} is {extent}" for name, extent in named)
            error.hint = f"{error.hint}; {numbers} in this call" if error.hint else f"{numbers} in this call"
            error.args = (str(error),)
        return error

    def observe(self, shapes: Iterable[Sequence[int]]) -> None:
        """Records the leading and last extents of an array; called for all arrays before `spec`."""
        wide = [shape for shape in shapes if len(shape) > 1]
        last = {shape[-1] for shape in wide}
        self.rows = frozenset(extent for shape in wide for extent in shape[:-1]) - last

    def spec(self, position: int, shape: Sequence[int], strides: Sequence[int], dtype: DType, align: int) -> TensorSpec:
        """The spec of an array argument.

        Args:
            position: the argument's number.
            shape: its extents.
            strides: its strides in elements.
            dtype: its element type.
            align: bytes that its address and outer strides are multiples of.
        """
        entries: list[int | str] = []
        for dim, extent in enumerate(shape):
            leads = dim < len(shape) - 1 or (len(shape) == 1 and extent in self.rows)
            dynamic = leads and extent > 1 and not self.static.has((position, dim), extent)
            entries.append(self.names.setdefault(extent, f"n{len(self.names)}") if dynamic else extent)
        layout = None if _is_contiguous(shape, strides) else _layout(shape, strides)
        return TensorSpec(entries, dtype, align=align, strides=layout, hints=[extent or None for extent in shape])


def _layout(shape: Sequence[int], strides: Sequence[int]) -> tuple[Stride, ...]:
    """The `strides` of the spec of an array that is not C-contiguous."""
    layout: list[Stride] = []
    inner: int | None = None  # the extent times the stride of the next dimension that has more than one element
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if stride in (0, 1):
            layout.append(0 if stride == 0 else 1)
        elif extent == 1:
            layout.append(None)
        else:
            layout.append("packed" if stride == inner else "negative" if stride < 0 else None)
        if extent != 1:
            inner = extent * stride
    return tuple(reversed(layout))


def _is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    expected = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != expected:
            return 0 in shape
        expected *= extent
    return True
