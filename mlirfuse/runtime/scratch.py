"""Memory for the intermediates of a launch plan."""

from __future__ import annotations

from collections.abc import Sequence

from mlirfuse.runtime.cuda import cupy


class Scratch:
    """The intermediates of one plan: allocated once a stream, so that a warm call allocates nothing.

    Launches of one stream run one after the other, so they may share memory. A stream that is being captured gets
    memory of its own for each call, kept as long as the plan: the graph may later run beside anything.

    Args:
        sizes: bytes of each intermediate.
    """

    def __init__(self, sizes: Sequence[int]):
        self._sizes = tuple(sizes)
        self._of_stream: dict[int, tuple[int, ...]] = {}
        self._kept: list[object] = []

    def pointers(self, stream: int) -> tuple[int, ...]:
        """Addresses of the intermediates for a launch on that stream."""
        if cupy().cuda.runtime.streamIsCapturing(stream):
            return self._allocate()
        if stream not in self._of_stream:
            self._of_stream[stream] = self._allocate()
        return self._of_stream[stream]

    def _allocate(self) -> tuple[int, ...]:
        blocks = [cupy().cuda.alloc(size) for size in self._sizes]
        self._kept += blocks
        return tuple(block.ptr for block in blocks)
