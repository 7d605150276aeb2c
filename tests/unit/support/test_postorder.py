"""What comes before a node is found before it, once, and as deep as it may be."""

from __future__ import annotations

from mlirfuse.support.postorder import postorder

GRAPH = {"f": ("d", "e"), "e": ("c", "d"), "d": ("a", "b"), "c": ("b",), "b": (), "a": ()}


def test_order_is_that_of_a_recursion() -> None:
    assert list(postorder("f", GRAPH.__getitem__)) == ["a", "b", "d", "c", "e", "f"]
    assert list(postorder("cdc", GRAPH.__getitem__)) == ["b", "c", "a", "d"]
    assert list(postorder("", GRAPH.__getitem__)) == []


def test_paths_may_be_longer_than_the_interpreter_nests() -> None:
    assert list(postorder([100_000], lambda n: [n - 1] if n else [])) == [*range(100_001)]
