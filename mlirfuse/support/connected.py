"""Groups of items that have something in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import Any, TypeVar

_Item = TypeVar("_Item")


def connected(items: Iterable[_Item], marks: Callable[[_Item], Set[Any]]) -> list[list[_Item]]:
    """Groups of items that have marks in common, by way of others or not; an item without marks is a group of its own.

    A group's items are in order; groups are in that of their last ones.
    """
    known = list(items)
    groups: list[tuple[Set[Any], list[int]]] = []
    for number, item in enumerate(known):
        own, members = marks(item), [number]
        for group in [group for group in groups if not group[0].isdisjoint(own)]:
            groups.remove(group)
            own, members = own | group[0], group[1] + members
        groups.append((own, members))
    return [[known[number] for number in sorted(members)] for _, members in groups]
