"""Einsums of two operands, and their kin, on bounded values: matrix products of operands with other dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from tests.fuzzing.bounds import Bounded
from tests.fuzzing.ops import elementwise
from tests.fuzzing.ops.contraction import matmul
from tests.fuzzing.ops.reductions import sum_of
from tests.fuzzing.types import Refused, kind


def einsum(a: Bounded, b: Bounded, equation: str, dtype: str | None = None) -> Bounded:
    """An equation in which each index is in the result, or in both operands; no index is twice in an operand."""
    inputs, result = equation.split("->")
    first, second = inputs.split(",")
    sizes = dict(zip(first, a.shape, strict=True)) | dict(zip(second, b.shape, strict=True))
    summed = [i for i in first if i in second and i not in result]
    batch = [i for i in first if i in second and i in result]
    rows, columns = ([i for i in term if i not in other] for term, other in ((first, second), (second, first)))
    x = _seen(a, lambda v: _grouped(v, first, (batch, rows, summed), sizes))
    y = _seen(b, lambda v: _grouped(v, second, (batch, summed, columns), sizes))
    if summed:
        found = matmul(x, y, dtype)
    elif kind(a.dtype) == "bool" or kind(b.dtype) == "bool" or dtype is not None:
        raise Refused("a product without a sum")
    else:
        found = elementwise.multiply(x, y)
    order = [*batch, *rows, *columns]
    shape = tuple(sizes[i] for i in order)
    return _seen(found, lambda v: v.reshape(shape).transpose([order.index(i) for i in result]))


def outer(a: Bounded, b: Bounded) -> Bounded:
    return elementwise.multiply(_seen(a, lambda v: v.reshape(-1, 1)), _seen(b, lambda v: v.reshape(1, -1)))


def tensordot(a: Bounded, b: Bounded, axes: int) -> Bounded:
    inner = prod(a.shape[len(a.shape) - axes :])
    found = matmul(_seen(a, lambda v: v.reshape(-1, inner)), _seen(b, lambda v: v.reshape(inner, -1)))
    shape = a.shape[: len(a.shape) - axes] + b.shape[axes:]
    return _seen(found, lambda v: v.reshape(shape))


def vecdot(a: Bounded, b: Bounded) -> Bounded:
    found = matmul(_seen(a, lambda v: v[..., None, :]), _seen(b, lambda v: v[..., :, None]))
    return _seen(found, lambda v: v[..., 0, 0])


def diagonal(x: Bounded) -> Bounded:
    return _seen(x, lambda v: np.diagonal(v, axis1=-2, axis2=-1))


def trace(x: Bounded) -> Bounded:
    return sum_of(diagonal(x).settled, (len(x.shape) - 2,))


def _seen(x: Bounded, view: Callable[[np.ndarray], np.ndarray]) -> Bounded:
    if x.weak is not None:
        raise Refused("a view of a number")
    value, error = np.ascontiguousarray(view(x.value)), np.ascontiguousarray(view(x.error))
    shape = view(x.error).shape  # of rank 0, too, which `ascontiguousarray` does not keep
    return replace(x.settled, value=value.reshape(shape), error=error.reshape(shape))


def _grouped(v: np.ndarray, term: str, groups: Sequence[Sequence[str]], sizes: dict[str, int]) -> np.ndarray:
    """The operand with a dimension for each group of indices."""
    order = [term.index(i) for group in groups for i in group]
    return v.transpose(order).reshape([prod(sizes[i] for i in group) for group in groups])
