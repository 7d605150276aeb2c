"""A progress bar that appears only if a kernel takes over two seconds."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import Progress

PATIENCE_SECONDS = 2.0


class BlockProgress:
    """Counts finished blocks; draws a bar on stderr once two seconds have passed.

    Args:
        name: the kernel's name.
        total: number of blocks.
        enabled: whether a bar may be drawn at all.
    """

    def __init__(self, name: str, total: int, *, enabled: bool):
        self._name, self._total, self._enabled = name, total, enabled
        self._done = 0
        self._start = time.monotonic()
        self._bar: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def advance(self) -> None:
        """Counts one block."""
        self._done += 1
        if not self._enabled:
            return
        if self._bar is None and time.monotonic() - self._start > PATIENCE_SECONDS:
            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._bar.add_task(f"interpreting {self._name}", total=self._total)
            self._bar.start()
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self._done)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
