"""Results that are kept for the keys asked for last."""

from __future__ import annotations

import pytest

from mlirfuse.support.recent import Recent, forget_recent


def test_values_are_computed_once_while_they_are_kept() -> None:
    recent, asked = Recent[str, int](2), list[str]()

    def of(key: str) -> int:
        return recent.of(key, lambda: asked.append(key) or len(asked))

    assert [of("a"), of("b"), of("a")] == [1, 2, 1]
    assert of("c") == 3  # "b" was asked for longest ago
    assert [of("a"), of("b")] == [1, 4]
    forget_recent()
    assert of("b") == 5


def test_errors_are_not_kept() -> None:
    recent = Recent[str, int](2)
    with pytest.raises(ZeroDivisionError):
        recent.of("a", lambda: 1 // 0)
    assert recent.of("a", lambda: 7) == 7
