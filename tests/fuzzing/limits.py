"""What docs/limits.md says is refused."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

LIMITS = Path(__file__).parents[2] / "docs" / "limits.md"


@cache
def messages() -> tuple[str, ...]:
    """The messages of the second column of its tables; `...` stands for what differs from program to program."""
    rows = [line.split(" | ") for line in LIMITS.read_text().splitlines() if line.startswith("| ")]
    return tuple(text for row in rows for text in re.findall(r"`([^`]+)`", row[1]) if len(row) == 3)


def is_documented(message: str) -> bool:
    """Whether a line of an error is one of these."""
    patterns = (".*".join(map(re.escape, text.split("..."))) for text in messages())
    return any(re.search(pattern, message) for pattern in patterns)
