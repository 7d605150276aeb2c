"""Extents that a kernel computes with, where dimensions are merged; part of `fuse-collapse-dims`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mlir import ir

from mlirfuse.analysis.kernels import body
from mlirfuse.analysis.loops.collapsing import Pair
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.support.rewriting import defining_op, integer_of

SIZED = ("tensor.empty", "tensor.expand_shape")
"""Ops whose extents follow from the space."""

PRODUCT = "arith.muli"


@dataclass(frozen=True)
class ExtentRead:
    """A product of extents that an op reads, of one or more.

    Attributes:
        user: the op.
        operand: which of its operands the product is.
        dims: the `tensor.dim`s among the factors.
        others: the other factors.
    """

    user: ir.Operation
    operand: int
    dims: tuple[ir.Operation, ...]
    others: tuple[ir.Value, ...]


def extent_reads(kernel: ir.Operation) -> Iterator[ExtentRead]:
    """The products of dynamic extents that the ops of a tensor kernel compute with."""
    seen = set()
    for op in body(kernel):
        for use in op.results[0].uses if op.name == "tensor.dim" else ():
            if use.owner.name in SIZED:
                continue
            for user, operand in _readers(use.owner.operation, use.operand_number):
                if (user, operand) not in seen:
                    seen.add((user, operand))
                    dims, others = _factors(user.operands[operand])
                    yield ExtentRead(user, operand, tuple(dims), tuple(others))


def _readers(user: ir.Operation, operand: int) -> Iterator[tuple[ir.Operation, int]]:
    """The ops that read a value, or a product of it with others."""
    if user.name != PRODUCT:
        yield user, operand
        return
    for use in user.results[0].uses:
        yield from _readers(use.owner.operation, use.operand_number)


def _factors(value: ir.Value) -> tuple[list[ir.Operation], list[ir.Value]]:
    maker = defining_op(value)
    if maker is not None and maker.name == PRODUCT:
        (dims, others), (more, more_others) = map(_factors, maker.operands)
        return dims + more, others + more_others
    return ([maker], []) if maker is not None and maker.name == "tensor.dim" else ([], [value])


def space_dim(dim: ir.Operation, space: IterationSpace) -> int | None:
    """The dimension of the space whose extent a `tensor.dim` is, where an op reads its tensor."""
    axis = integer_of(dim.operands[1])
    found = (axes for (op, number), axes in space.use_axes.items() if op.operands[number] == dim.operands[0])
    axes = next(found, None)
    return None if axes is None or axis is None else axes[axis]


def known_pairs(kernel: ir.Operation, space: IterationSpace, pairs: Iterable[Pair]) -> frozenset[Pair]:
    """The pairs after whose merging the extents that a kernel computes with are still known.

    A merged extent over the static ones of its dimensions is the extent of the dynamic one among them, or the product
    of several.
    """
    kept = frozenset(pairs)
    reads = [[space_dim(dim, space) for dim in read.dims] for read in extent_reads(kernel)]
    for group in merged_groups(kept):
        dynamic = [d for d in group if space.extents[d] is None]
        parts = ([d for d in dims if d in dynamic] for dims in reads)
        if any(part and len(dynamic) > 1 and sorted(part) != sorted(dynamic) for part in parts):
            kept -= {(a, b) for a, b in kept if a in group}
    return kept


def merged_groups(pairs: Iterable[Pair]) -> list[list[int]]:
    """The dimensions that pairs merge, by merged dimension."""
    after = dict(pairs)
    groups = []
    for first in sorted(after.keys() - after.values()):
        group = [first]
        while group[-1] in after:
            group.append(after[group[-1]])
        groups.append(group)
    return groups
