"""Errors of tracing that callers tell apart from a plain `TraceError`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirfuse.errors import TraceError

if TYPE_CHECKING:
    from mlirfuse.builder.extents import Reordered


class ControlFlowError(TraceError):
    """Python asked for the value of a traced tensor, which exists only when the kernel runs."""


class UnsupportedError(TraceError):
    """A known operation that cannot be traced."""


class MissingAttributeError(UnsupportedError, AttributeError):
    """Access to an attribute that traced tensors or the module mlirfuse do not have; makes `hasattr` return False."""


class NeedsStatic(TraceError):
    """An operation needs the number behind a dynamic extent; tracing again with that extent static may succeed.

    Attributes:
        symbol: the extent's name.
        sources: (argument, dimension) pairs of the function's arguments that have this extent.
        tiled: whether a matrix product's tile is all that needs the number.
    """

    symbol: str
    sources: tuple[tuple[int, int], ...]
    tiled: bool = False


class ChangesOrder(TraceError):
    """A function changes the order of dimensions in memory, and its kernels had better be compiled for their extents.

    Attributes:
        reordered: these dimensions.
    """

    def __init__(self, reordered: Reordered):
        super().__init__("the function changes the order of dimensions in memory")
        self.reordered = reordered
