"""A block's asynchronous copies in flight, in groups that the block waits for in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

Copy = Callable[[], None]


@dataclass
class Copies:
    """Copies in flight. A copy takes effect as late as its op allows: when the block waits for the copy's group.

    Attributes:
        open: copies since the last group.
        groups: copies of each group without a wait, oldest first.
    """

    open: list[Copy] = field(default_factory=list)
    groups: list[list[Copy]] = field(default_factory=list)

    def close(self) -> None:
        """Makes a group of the copies started since the last group."""
        self.groups.append(self.open)
        self.open = []

    def wait(self, pending: int) -> None:
        """Performs the copies of all groups but the last `pending`."""
        while len(self.groups) > pending:
            for copy in self.groups.pop(0):
                copy()
