"""`vector` ops that only rearrange elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mlirfuse.interpreter.registry import direct, pure
from mlirfuse.interpreter.site import Site
from mlirfuse.interpreter.state.lanes import common_lanes, over_lanes
from mlirfuse.interpreter.state.types import DYNAMIC, element_dtype, vector_shape

Function = Callable[..., Any]


@pure("vector.broadcast")
def _broadcast(site: Site) -> Function:
    shape = vector_shape(site.op.results[0].type)

    def apply(source: np.ndarray) -> np.ndarray:
        lanes, inner = source.shape[0], source.shape[1:]
        padded = source.reshape(lanes, *[1] * (len(shape) - len(inner)), *inner)
        return np.broadcast_to(padded, (lanes, *shape))

    return apply


@pure("vector.shape_cast")
def _shape_cast(site: Site) -> Function:
    shape = vector_shape(site.op.results[0].type)
    return lambda source: source.reshape(source.shape[0], *shape)


@pure("vector.bitcast")
def _bitcast(site: Site) -> Function:
    dtype = element_dtype(site.op.results[0].type)
    return lambda source: np.ascontiguousarray(source).view(dtype)


@pure("vector.transpose")
def _transpose(site: Site) -> Function:
    order = [0, *(1 + d for d in site.ints("permutation"))]
    return lambda source: source.transpose(order)


def _position(site: Site, operands: tuple[np.ndarray, ...], lanes: int, source: np.ndarray) -> tuple[Any, ...]:
    """A NumPy index (threads, *position) from a static position with dynamic entries filled in."""
    dynamic: Iterator[np.ndarray] = iter(operands)
    entries: list[Any] = []
    for axis, entry in enumerate(site.ints("static_position")):
        if entry == DYNAMIC:
            index = next(dynamic)
            if ((index < 0) | (index >= source.shape[1 + axis])).any():
                raise site.error(f"a position along axis {axis} is outside of extent {source.shape[1 + axis]}")
            entries.append(over_lanes(index, lanes))
        else:
            entries.append(entry)
    return (np.arange(lanes), *entries)


@pure("vector.extract")
def _extract(site: Site) -> Function:
    position = site.ints("static_position")
    if DYNAMIC not in position:
        key = (slice(None), *position)
        return lambda source: source[key]

    def apply(source: np.ndarray, *indices: np.ndarray) -> np.ndarray:
        lanes = common_lanes(source, *indices)
        return over_lanes(source, lanes)[_position(site, indices, lanes, source)]

    return apply


@pure("vector.insert")
def _insert(site: Site) -> Function:
    def apply(value: np.ndarray, target: np.ndarray, *indices: np.ndarray) -> np.ndarray:
        lanes = common_lanes(value, target, *indices)
        result = over_lanes(target, lanes).copy()
        result[_position(site, indices, lanes, target)] = value
        return result

    return apply


@pure("vector.from_elements")
def _from_elements(site: Site) -> Function:
    shape = vector_shape(site.op.results[0].type)

    def apply(*elements: np.ndarray) -> np.ndarray:
        result = np.empty((common_lanes(*elements), len(elements)), elements[0].dtype)
        for position, element in enumerate(elements):  # much faster than `stack` on small arrays
            result[:, position] = element
        return result.reshape(-1, *shape)

    return apply


@pure("vector.to_elements")
def _to_elements(site: Site) -> Function:
    if len(site.results) == 1:
        return lambda source: source.reshape(source.shape[0])
    return lambda source: tuple(source.reshape(source.shape[0], -1).T)


@direct("vector.interleave")
def _interleave(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    pair = np.stack(np.broadcast_arrays(a, b), axis=-1)
    return pair.reshape(*pair.shape[:-2], -1)


@direct("vector.deinterleave")
def _deinterleave(source: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return source[..., 0::2], source[..., 1::2]


@pure("vector.shuffle")
def _shuffle(site: Site) -> Function:
    mask = np.array(site.ints("mask"))

    def apply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        lanes = common_lanes(a, b)
        return np.concatenate([over_lanes(a, lanes), over_lanes(b, lanes)], axis=1)[:, np.maximum(mask, 0)]

    return apply


def _slices(site: Site, shape: tuple[int, ...], sizes: list[int]) -> tuple[slice, ...]:
    """The NumPy index of a strided slice; dimensions without sizes are taken entirely."""
    offsets, strides = site.ints("offsets"), site.ints("strides")
    named = [slice(o, o + (n - 1) * s + 1, s) for o, n, s in zip(offsets, sizes, strides, strict=True)]
    return (slice(None), *named, *[slice(None)] * (len(shape) - len(named)))


@pure("vector.extract_strided_slice")
def _extract_strided_slice(site: Site) -> Function:
    key = _slices(site, vector_shape(site.op.operands[0].type), site.ints("sizes"))
    return lambda source: source[key]


@pure("vector.insert_strided_slice")
def _insert_strided_slice(site: Site) -> Function:
    """The source fills the innermost dimensions; an outer offset picks one position."""
    inner, outer = vector_shape(site.op.operands[0].type), vector_shape(site.op.operands[1].type)
    offsets, strides = site.ints("offsets"), site.ints("strides")
    lead = len(outer) - len(inner)
    named = [slice(o, o + (n - 1) * s + 1, s) for o, n, s in zip(offsets[lead:], inner, strides, strict=True)]
    key: tuple[Any, ...] = (slice(None), *offsets[:lead], *named)

    def apply(source: np.ndarray, target: np.ndarray) -> np.ndarray:
        result = over_lanes(target, common_lanes(source, target)).copy()
        result[key] = source
        return result

    return apply


@pure("vector.create_mask")
def _create_mask(site: Site) -> Function:
    shape = vector_shape(site.op.results[0].type)

    def apply(*bounds: np.ndarray) -> np.ndarray:
        mask = np.ones((common_lanes(*bounds), *shape), bool)
        for axis, (extent, bound) in enumerate(zip(shape, bounds, strict=True)):
            along = np.arange(extent).reshape([1] * (1 + axis) + [extent] + [1] * (len(shape) - 1 - axis))
            mask &= along < bound.reshape([-1] + [1] * len(shape))
        return mask

    return apply


@pure("vector.constant_mask")
def _constant_mask(site: Site) -> Function:
    mask = np.zeros((1, *vector_shape(site.op.results[0].type)), bool)
    inside: tuple[Any, ...] = (0, *(slice(n) for n in site.ints("mask_dim_sizes")))
    mask[inside] = True
    return lambda: mask


@pure("vector.step")
def _step(site: Site) -> Function:
    steps = np.arange(vector_shape(site.op.results[0].type)[0], dtype=np.int64)[None]
    return lambda: steps
