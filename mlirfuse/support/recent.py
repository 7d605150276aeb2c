"""Results of costly questions, kept for the keys that were asked for last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Recent(Generic[_Key, _Value]):
    """What was computed for keys: `functools.lru_cache` where the key is not what it is computed from.

    Args:
        most: keys to keep.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: OrderedDict[_Key, _Value] = OrderedDict()
        _all.append(self)

    def of(self, key: _Key, compute: Callable[[], _Value]) -> _Value:
        """The value of a key, which is computed unless it is known; what computing it raises is not kept."""
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        value = self._known[key] = compute()
        while len(self._known) > self._most:
            self._known.popitem(last=False)
        return value


_all: list[Recent[Any, Any]] = []


def forget_recent() -> None:
    """Forgets all values, as benchmarks of first calls need it."""
    for each in _all:
        each._known.clear()
