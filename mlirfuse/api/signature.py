"""Compile-time properties of a call's arguments: dynamic extents, equal extents, memory layout.

Leading dimensions are dynamic, so that one kernel serves every number of rows; the last one is static, because rows are
reduced over it and vectors run along it. A one-dimensional array is dynamic where its extent is a leading extent of
another array and no array's last extent: it then has one number a row. Extents of 1 are static, as they broadcast, and
extents of 0, so that no kernel is launched for empty arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlirfuse.builder.spec import Stride, TensorSpec
from mlirfuse.support.dtypes import DType

Source = tuple[int, int]
"""(argument, dimension)"""


class Extents:
    """Names the dynamic extents of one signature: equal numbers get equal names, in order of appearance.

    Args:
        static: dimensions that have to be static because the function needs their extents as numbers.
    """

    def __init__(self, static: frozenset[Source] = frozenset()):
        self.static = static
        self.names: dict[int, str] = {}
        self.rows: frozenset[int] = frozenset()

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
            dynamic = leads and extent > 1 and (position, dim) not in self.static
            entries.append(self.names.setdefault(extent, f"n{len(self.names)}") if dynamic else extent)
        layout = None if _is_contiguous(shape, strides) else _layout(shape, strides)
        return TensorSpec(entries, dtype, align=align, strides=layout)


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
