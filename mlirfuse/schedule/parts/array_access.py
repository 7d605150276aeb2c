"""How one array of a kernel lies in memory, in terms of the kernel's iteration space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ArrayAccess:
    """An array that a kernel reads or writes. Axes along which it has one index, or the same for all, are left out.

    Attributes:
        dims: the dimension of the space that runs along each axis, the outermost in memory first.
        strides: elements from one index to the next one along each axis; None where run time has to say.
        bytes: of an element.
        alignment: bytes that the address is a multiple of, and each stride that run time has to say.
        written: whether the kernel writes it.
        is_contiguous: whether its axes are those of a contiguous array.
    """

    dims: tuple[int, ...]
    strides: tuple[int | None, ...]
    bytes: int
    alignment: int
    written: bool
    is_contiguous: bool

    @property
    def order(self) -> tuple[int, ...]:
        """The dimensions in the order of memory, the innermost first."""
        return self.dims[::-1]

    def steps(self, extents: Sequence[int]) -> dict[int, int]:
        """The stride of each dimension; those that run time has to say follow from the extents of the space."""
        found: dict[int, int] = {}
        inner = 1
        for dim, stride in zip(reversed(self.dims), reversed(self.strides), strict=True):
            found[dim] = inner if stride is None else stride
            inner = max(inner, found[dim] * extents[dim])
        return found

    def run(self, tile: Sequence[int], extents: Sequence[int]) -> int:
        """Elements side by side in memory of a tile of a space with these extents."""
        run, steps = 1, self.steps(extents)
        for d in self.order:
            if steps[d] != run:
                break
            here = min(tile[d], extents[d])
            run *= here
            if here < extents[d]:
                break
        return run
