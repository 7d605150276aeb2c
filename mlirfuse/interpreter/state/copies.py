"""A block's asynchronous copies in flight, in groups that threads wait for in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

Copy = Callable[[], None]


@dataclass
class Copies:
    """A copy happens as late as its op allows: when the block waits for its group.

    Attributes:
        open: copies that are in no group yet.
        groups: those of each closed group that nobody has waited for, oldest first.
    """

    open: list[Copy] = field(default_factory=list)
    groups: list[list[Copy]] = field(default_factory=list)

    def close(self) -> None:
        """Makes a group of the copies started since the last group."""
        self.groups.append(self.open)
        self.open = []

    def wait(self, pending: int) -> None:
        """Carries out all groups but the last `pending`."""
        while len(self.groups) > pending:
            for copy in self.groups.pop(0):
                copy()
