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
class Value:
    """A tensor or scalar of the host function: an argument or a buffer, seen with a shape.

    Attributes:
        origin: `argument` or `buffer`.
        position: index of the argument or buffer.
        shape: extents of the view; None for an argument or a buffer as it is.
        axes: for each dimension of a transposed view, that of `shape` which it runs along; None for all in order.
        diagonal: for each dimension of `shape`, that of a diagonal which runs along it, or None for an extent of 1;
            None for a view that is no diagonal.
    """

    origin: str
    position: int
    shape: Shape | None = None
    axes: tuple[int, ...] | None = None
    diagonal: tuple[int | None, ...] | None = None


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

    @property
    def pack(self) -> Callable[[Sequence[Any]], Any]:
        """Packs the results in the structure that the Python function returned."""
        return _PACK[self.structure]
