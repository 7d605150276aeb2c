"""Gives kernels that read the same data through different reshapes the dimensions that the shapes have in common.

A host reads an array of (8, 16, 64) elements as (128, 64) where a function sums rows of one and columns of the other.
Both kernels can run over 128 by 64 elements, if every op of the first treats the dimensions of 8 and 16 alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from mlir import ir

from mlirfuse.analysis.kernels import argument_attributes, body
from mlirfuse.analysis.loops.collapsing import Pair, mergeable_pairs
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.memory.strided_views import axes_apart
from mlirfuse.dialect.attributes import STRIDES
from mlirfuse.passes.kernels.collapse_dims import merge_dims, obstacle
from mlirfuse.passes.kernels.collapse_kernel import DYNAMIC
from mlirfuse.passes.kernels.kernel_pair import KernelPair
from mlirfuse.support.reshapes import reassociation
from mlirfuse.support.rewriting import defining_op, erase_dead

VIEWS = ("tensor.collapse_shape", "tensor.expand_shape")


@dataclass(frozen=True)
class SharedView:
    """One tensor that two launches have in different shapes.

    Attributes:
        pair: the launches.
        first: the first launch's value.
        second: the second launch's view of it.
    """

    pair: KernelPair
    first: ir.Value
    second: ir.Value

    def __str__(self) -> str:
        return f"it reads {_shape(self.first)} elements as {_shape(self.second)}"

    def align(self, function: ir.Operation) -> str | None:
        """Collapses dimensions of both kernels to those that the shapes have in common; returns why not, or None.

        A failed attempt leaves the kernels partly changed: try it on a copy.
        """
        edges = {value: _edges(value) for value in (self.first, self.second)}
        common = set(edges[self.first]) & set(edges[self.second])
        for kernel, call, value in (
            (self.pair.first, self.pair.first_call, self.first),
            (self.pair.second, self.pair.second_call, self.second),
        ):
            kept = [edge in common for edge in edges[value]]
            if all(kept):
                continue
            if reason := obstacle(kernel):
                return reason
            space, structures = kernel_space(kernel)
            needed = _needed(kernel, call, value, space, kept)
            arguments = kernel.regions[0].blocks[0].arguments
            known = zip(arguments, argument_attributes(kernel), strict=True)
            strided = {a: axes_apart(a.type, attributes) for a, attributes in known if STRIDES in attributes}
            if not needed <= mergeable_pairs(space, structures, strided, of_whole_arrays=True):
                return f"an op of a kernel does not allow its dimensions of {_shape(value)} to be merged"
            merge_dims(kernel, space, needed, [function])
        _fold(function)
        return None


def shared_views(pair: KernelPair) -> list[SharedView]:
    """The tensors that the second of two launches reads as a reshape of a value of the first."""
    has = [*dict.fromkeys([*pair.first_call.operands, *pair.first_call.results])]
    reads = list(dict.fromkeys(pair.second_call.operands))
    return [
        SharedView(pair, a, b) for b in reads for a in has if a != b and _many(a) and _many(b) and _root(a) == _root(b)
    ]


def _many(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and sum(n != 1 for n in value.type.shape) > 1


def _shape(value: ir.Value) -> str:
    tensor = ir.RankedTensorType(value.type)
    return " x ".join("?" if tensor.is_dynamic_dim(axis) else str(n) for axis, n in enumerate(tensor.shape))


def _root(value: ir.Value) -> ir.Value:
    while (op := defining_op(value)) is not None and op.name in VIEWS:
        value = op.operands[0]
    return value


def _edges(value: ir.Value) -> list[object]:
    """The element offsets at which the axes of a view end, in a form that is equal for equal offsets in one array.

    Views are contiguous, so that an edge has the same distance, in elements, from the array's end in all views. An edge
    of unknown distance is named by the array's axis, or by the shape into which a view splits an axis.
    """
    op, shape = defining_op(value), list(ir.RankedTensorType(value.type).shape)
    named: list[object]
    if op is None or op.name not in VIEWS:
        named = [("axis", axis) for axis in range(len(shape))]
    elif not (groups := reassociation(op)):  # of a single element
        named = [op] * len(shape)
    elif op.name == "tensor.collapse_shape":
        source = _edges(op.operands[0])
        named = [source[group[-1]] for group in groups]
    else:
        named = []
        for end, group in zip(_edges(op.operands[0]), groups, strict=True):
            inner = tuple(shape[axis] for axis in group)
            known: object = inner if inner.count(DYNAMIC) < 2 else op  # two unknown extents are not one number
            named += [*((known, n, end) for n in range(len(group) - 1)), end]
    behind = [shape[axis + 1 :] for axis in range(len(shape))]
    return [name if DYNAMIC in rest else prod(rest) for name, rest in zip(named, behind, strict=True)]


def _needed(
    kernel: ir.Operation, call: ir.Operation, value: ir.Value, space: IterationSpace, kept: Sequence[bool]
) -> frozenset[Pair]:
    """The neighbouring pairs of a kernel's dimensions, along axes of `value`, without a common edge between them."""
    found: set[Pair] = set()
    for number, operand in enumerate(call.operands):
        argument = kernel.regions[0].blocks[0].arguments[number]
        if operand == value:
            for (op, position), axes in space.use_axes.items():
                if op.operands[position] == argument:
                    found |= _inside(axes, kept)
    for result, returned in zip(call.results, body(kernel)[-1].operands, strict=True):
        if result == value:
            found |= _inside(space.value_axes[returned], kept)
    return frozenset(found)


def _inside(axes: Sequence[int | None], kept: Sequence[bool]) -> set[Pair]:
    return {
        (a, b)
        for (a, b), is_kept in zip(pairwise(axes), kept, strict=False)
        if not is_kept and a is not None and b is not None
    }


def _fold(function: ir.Operation) -> None:
    """Merges views of one array that have the same shape, and replaces views of its own shape by the array."""
    seen: dict[tuple[object, ...], ir.Value] = {}
    for op in [op for op in body(function) if op.name in VIEWS]:
        result, root = op.results[0], _root(op.results[0])
        for value in (root, result):
            seen.setdefault((root, value.type, *_edges(value)), value)
        known = seen[root, result.type, *_edges(result)]
        if known != result:
            result.replace_all_uses_with(known)
    erase_dead([op for op in body(function) if op.name in VIEWS])
