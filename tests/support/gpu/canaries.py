"""Memory with a pattern around it: what a kernel writes outside of its outputs and its workspace is seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import pytest

from mlirfuse.runtime import workspace

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")

PATTERN = 0xA5
MARGIN = 4096
"""Bytes in front and behind: more than a row of a tile."""


class GuardedOutput:
    """An output in the middle of memory that nobody may write.

    Args:
        shape: of the output, which is contiguous.
        dtype: of PyTorch.

    Attributes:
        array: the output; it holds the pattern too, so that what is never written is no result.
    """

    def __init__(self, shape: Sequence[int], dtype: Any):
        nbytes = prod(shape) * dtype.itemsize
        self._memory = torch.full((nbytes + 2 * MARGIN,), PATTERN, dtype=torch.uint8, device="cuda")
        self.array = self._memory[MARGIN : MARGIN + nbytes].view(dtype).view(*shape)

    def check(self) -> None:
        """Raises if the memory around the output was written. Waits."""
        assert (self._memory[:MARGIN] == PATTERN).all(), "written in front of an output"
        assert (self._memory[-MARGIN:] == PATTERN).all(), "written behind an output"


def guarded_outputs(results: Sequence[Any]) -> list[GuardedOutput]:
    """Outputs like results that a first call returned."""
    return [GuardedOutput(result.shape, result.dtype) for result in results]


def guarded_workspace(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Arenas of their own, exactly as large as what is asked for, with the pattern around them; a fixture's body.

    Scratch memory holds the pattern too. Yields a function that raises if a margin was written; it waits.
    """
    allocate, free = workspace._allocate, workspace._free
    live: dict[int, Any] = {}

    def check() -> None:
        torch.cuda.synchronize()
        for pointer, block in live.items():
            memory = cupy.cuda.UnownedMemory(pointer - MARGIN, block.nbytes + 2 * MARGIN, None)
            found = cupy.ndarray(memory.size, cupy.uint8, cupy.cuda.MemoryPointer(memory, 0)).get()
            assert (found[:MARGIN] == PATTERN).all(), "written in front of a workspace"
            assert (found[-MARGIN:] == PATTERN).all(), "written behind a workspace"

    def allocate_guarded(nbytes: int, *, zeroed: bool) -> Any:
        whole = allocate(nbytes + 2 * MARGIN, zeroed=False)
        cupy.cuda.runtime.memset(whole.pointer, PATTERN, whole.nbytes)
        block = workspace._Block(whole.pointer + MARGIN, nbytes)
        if zeroed:
            cupy.cuda.runtime.memset(block.pointer, 0, nbytes)
        torch.cuda.synchronize()
        live[block.pointer] = block
        return block

    def free_guarded(blocks: Sequence[Any]) -> None:
        check()
        free([workspace._Block(live.pop(block.pointer).pointer - MARGIN) for block in blocks])

    monkeypatch.setattr(workspace, "_allocate", allocate_guarded)
    monkeypatch.setattr(workspace, "_free", free_guarded)
    monkeypatch.setattr(workspace, "_ARENAS", {})
    monkeypatch.setattr(workspace, "_SMALLEST", dict.fromkeys(workspace._SMALLEST, 1))
    monkeypatch.setattr(workspace, "_HEADROOM", 1 << 62)
    yield check
    check()
    for arena in workspace._ARENAS.values():
        arena.close()
