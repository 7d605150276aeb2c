"""Which values of a program are computed in one place: only there an elementwise sum may contract a product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fuzzing.program import Statement

SHAPES_ONLY = ("full_like", "zeros_like", "ones_like")
"""Operations that read no element of their first operand."""


def computed_once(statements: Sequence[Statement], outputs: Sequence[str]) -> set[str]:
    """Names whose values one statement reads, one what that makes of them, and so on up to a result.

    Statements that nothing needs do not count, and equal ones count as one, as they do for mlirfuse: where in doubt
    a value is computed once.
    """
    same = _equal_values(statements)
    readers: dict[str, set[str]] = {same.get(name, name): {""} for name in outputs}
    for statement in reversed(statements):
        name = same[statement.name]
        if name not in readers or name != statement.name:
            continue
        for argument in statement.args[1:] if statement.op in SHAPES_ONLY else statement.args:
            if isinstance(argument, str):
                readers.setdefault(same.get(argument, argument), set()).add(name)
    once = {""}
    for name in [s.name for s in reversed(statements)]:
        if readers.get(name, set()) <= once and len(readers.get(name, ())) == 1:
            once.add(name)
    return {name for name, first in same.items() if first in once}


def _equal_values(statements: Sequence[Statement]) -> dict[str, str]:
    """For each name the first one that is computed alike."""
    first: dict[str, str] = {}
    same: dict[str, str] = {}
    for s in statements:
        args = [same.get(a, a) if isinstance(a, str) else repr(a) for a in s.args]
        same[s.name] = first.setdefault(repr((s.op, args, sorted(s.params.items(), key=str))), s.name)
    return same
