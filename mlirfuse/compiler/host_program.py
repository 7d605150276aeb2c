"""The host's part of a call as plain data: buffers, views and launches, with every extent an expression.

Extents are known once the shapes of the arguments are, so an expression's symbols are positions in
`HostProgram.extents`: (argument, dimension) pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from mlirfuse.compiler.expressions import Expression
from mlirfuse.support.dtypes import DType

_PACK: dict[str, Callable[[Sequence[Any]], Any]] = {"single": itemgetter(0), "tuple": tuple, "list": list}

Shape = tuple[Expression, ...]


@dataclass(frozen=True)
class HostArgument:
    """One argument of the host function.

    Attributes:
        name: the Python parameter's name (`arg0`, ... where the IR has none).
        dtype: element type; the scalar's type where it is no array.
        shape: static extents, None where dynamic; None for a scalar.
        strided: whether the program is compiled for an array that is not C-contiguous.
    """

    name: str
    dtype: DType
    shape: tuple[int | None, ...] | None
    strided: bool = False


@dataclass(frozen=True)
class Buffer:
    """Memory that a launch writes: an output or an intermediate.

    Attributes:
        dtype: element type.
        shape: extents; the memory is C-contiguous.
    """

    dtype: DType
    shape: Shape


@dataclass(frozen=True)
class Reshape:
    """The same elements, in C order, in another shape."""

    shape: Shape


@dataclass(frozen=True)
class Rearrange:
    """Dimensions in another order, repeated elements, or diagonals.

    Attributes:
        shape: extents of the view.
        axes: for each dimension of the view, the dimensions that it runs along: none where elements are repeated, two
            along a diagonal. Dimensions that no one names have an extent of 1.
    """

    shape: Shape
    axes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Slice:
    """Elements at regular distances.

    Attributes:
        offsets: for each dimension, the index of the first element.
        shape: extents of the view.
        steps: the distance of neighbours, which may be negative.
    """

    offsets: Shape
    shape: Shape
    steps: tuple[int, ...]


View = Reshape | Rearrange | Slice


@dataclass(frozen=True)
class Value:
    """A tensor or scalar of the host function: an argument or a buffer, or a view of one.

    Attributes:
        origin: `argument` or `buffer`.
        position: index of the argument or buffer.
        views: what makes the view, in order; empty for an argument or a buffer as it is.
    """

    origin: str
    position: int
    views: tuple[View, ...] = ()

    @property
    def shape(self) -> Shape | None:
        """Extents of the view; None for an argument or a buffer as it is."""
        return self.views[-1].shape if self.views else None


@dataclass(frozen=True)
class Launch:
    """One kernel launch.

    Attributes:
        kernel: the kernel's name.
        inputs: its arguments.
        outputs: positions of the buffers it writes.
    """

    kernel: str
    inputs: tuple[Value, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class HostProgram:
    """The host's part of one call.

    Attributes:
        name: the traced function's name.
        arguments: in call order.
        extents: the (argument, dimension) pair that each symbol of an expression stands for.
        buffers: what launches write; those that `results` name are outputs, the rest intermediates.
        launches: in order; empty where every result is a view of an argument.
        results: in return order.
        structure: how the Python function returned them: `single`, `tuple` or `list`.
    """

    name: str
    arguments: tuple[HostArgument, ...]
    extents: tuple[tuple[int, int], ...]
    buffers: tuple[Buffer, ...]
    launches: tuple[Launch, ...]
    results: tuple[Value, ...]
    structure: str = "tuple"

    def views(self) -> list[str]:
        """What `explain` says of results that are views of arguments, and where there is no kernel."""
        lines = []
        for number, value in enumerate(self.results):
            if value.origin == "argument":
                which = "the result" if len(self.results) == 1 else f"result {number}"
                how = "a view of " if value.views else ""
                lines.append(f"{which} is {how}{self.arguments[value.position].name}")
        if not self.launches:
            lines = [f"0 kernels: {', '.join(lines) if lines else 'no result has elements'}"]
        return lines

    @property
    def pack(self) -> Callable[[Sequence[Any]], Any]:
        """Packs the results in the structure that the Python function returned."""
        return _PACK[self.structure]
