"""The order in which pairs of an einsum's operands are contracted: opt_einsum's, by the number of multiplications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlirfuse.builder.extents import Dim, Extent
from mlirfuse.builder.source import at_user_line
from mlirfuse.errors import ArgumentError

UNKNOWN_EXTENT = 1024
"""What an extent of run time is taken for."""


def contraction_order(
    operands: Sequence[frozenset[str]], result: frozenset[str], extents: Mapping[str, Extent], algorithm: str
) -> list[tuple[int, int]]:
    """The positions of the two operands of each contraction, where each result is appended to what is left.

    Args:
        operands: the indices of each operand, two operands at least.
        result: the indices that are not summed over.
        extents: the extent of each index.
        algorithm: the name of one of opt_einsum's algorithms.

    Raises:
        ArgumentError: an algorithm that opt_einsum does not have.
    """
    from opt_einsum import paths  # 30 ms to import, and not needed for two operands

    sizes = {i: UNKNOWN_EXTENT if isinstance(e, Dim) else max(1, e) for i, e in extents.items()}
    try:
        find = paths.get_path_fn(algorithm)
    except KeyError:
        raise at_user_line(
            ArgumentError(f"einsum: opt_einsum has no algorithm {algorithm!r}", hint='optimize=True is "auto"')
        ) from None
    return in_pairs(find(list(operands), result, sizes, None), len(operands))


def in_pairs(path: Sequence[Sequence[int]], count: int) -> list[tuple[int, int]]:
    """A path over `count` operands with steps of two; raises `ArgumentError` for steps that are not there.

    Args:
        path: positions that each step contracts; the result is appended to the operands that are left.
        count: number of operands.
    """
    pairs: list[tuple[int, int]] = []
    for step in path:
        positions = sorted(step)
        if not positions or positions[0] < 0 or positions[-1] >= count or len(set(positions)) != len(positions):
            hint = f"steps name different ones of the {count} operands that are left"
            raise at_user_line(ArgumentError(f"einsum: optimize has the step {tuple(step)}", hint=hint))
        while len(positions) > 1:
            pairs.append((positions[0], positions[1]))
            count -= 1
            rest = [position - 2 for position in positions[2:]]
            positions = [*rest, count - 1] if rest else []
    if count != 1:
        raise at_user_line(ArgumentError(f"einsum: optimize leaves {count} operands", hint="contract all of them"))
    return pairs
