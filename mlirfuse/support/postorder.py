"""Graphs in the order in which what comes first is found first, however long their paths are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

_Node = TypeVar("_Node", bound=Hashable)


def postorder(roots: Iterable[_Node], before: Callable[[_Node], Iterable[_Node]]) -> Iterator[_Node]:
    """Nodes of a graph without cycles, each once and behind those before it, as a recursion would visit them.

    Args:
        roots: where to begin, one after the other; they come last.
        before: the nodes that come before a node; it is called once for each, when the node is reached.
    """
    seen = set[_Node]()
    for root in roots:
        if root in seen:
            continue
        seen.add(root)
        path = [(root, iter(before(root)))]
        while path:
            node, rest = path[-1]
            new = next((each for each in rest if each not in seen), None)
            if new is None:
                path.pop()
                yield node
            else:
                seen.add(new)
                path.append((new, iter(before(new))))
