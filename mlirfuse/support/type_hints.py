"""The types of a dataclass's fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

_KNOWN: dict[type, Mapping[str, Any]] = {}


def type_hints(cls: type) -> Mapping[str, Any]:
    """The annotations of a class as types; cached, as evaluating their text is slow."""
    if cls not in _KNOWN:
        _KNOWN[cls] = get_type_hints(cls)
    return _KNOWN[cls]
