"""Places a call's intermediates and its kernels' workspace arguments in a stream's workspace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from mlirfuse.analysis.memory.workspaces import SCRATCH, SEMAPHORES
from mlirfuse.compiler.kernel_info import WorkspaceInfo

ALIGNMENT = 256
"""Alignment of every piece, bytes; that of new arrays."""


@dataclass(frozen=True)
class Place:
    """A piece of the workspace.

    Attributes:
        kind: `semaphores` or `scratch`, which have separate memory.
        offset: bytes from the start of its kind's memory.
        nbytes: its size.
    """

    kind: str
    offset: int
    nbytes: int


@dataclass(frozen=True)
class MemoryPlan:
    """The workspace of a call.

    Attributes:
        places: the intermediates, then the workspace arguments of each launch, in order.
    """

    places: tuple[Place, ...]

    @cached_property
    def nbytes(self) -> Mapping[str, int]:
        """How much memory of each kind the call needs."""
        ends: dict[str, int] = {}
        for place in self.places:
            ends[place.kind] = max(ends.get(place.kind, 0), place.offset + place.nbytes)
        return ends


class MemoryPlanner:
    """Places pieces one by one.

    A kernel's scratch memory and semaphores are reused by the next kernel of the call; a kernel leaves its semaphores
    zero. Intermediates live as long as the call.

    Args:
        intermediates: bytes of each.
    """

    def __init__(self, intermediates: Sequence[int]):
        self.places: list[Place] = []
        self._lasting = self._add_all([(SCRATCH, nbytes) for nbytes in intermediates], 0)

    def add_launch(self, workspaces: Sequence[WorkspaceInfo], shapes: Sequence[Sequence[int]]) -> None:
        """Places the workspace arguments of one launch."""
        sizes = [(w.kind, prod(shape) * w.element_bytes) for w, shape in zip(workspaces, shapes, strict=True)]
        self._add_all(sizes, self._lasting)

    def _add_all(self, sizes: Sequence[tuple[str, int]], scratch_start: int) -> int:
        """Places pieces one behind the other; returns the end of the scratch memory in use, bytes."""
        ends = {SEMAPHORES: 0, SCRATCH: scratch_start}
        for kind, nbytes in sizes:
            self.places.append(Place(kind, ends[kind], nbytes))
            ends[kind] += -(-nbytes // ALIGNMENT) * ALIGNMENT
        return ends[SCRATCH]
