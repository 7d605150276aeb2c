"""`tensor`: tensors are arrays without a thread axis; reshapes and slices are views of the array."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mlir import ir

from mlirfuse.interpreter.registry import pure, rule
from mlirfuse.interpreter.site import Site, gather
from mlirfuse.interpreter.state.lanes import mixed
from mlirfuse.interpreter.state.machine import Frame
from mlirfuse.interpreter.state.types import element_dtype
from mlirfuse.support.reshapes import reassociation

Function = Callable[..., np.ndarray]
Step = Callable[[Frame], None]


def poison(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array with unspecified contents, whose bits are all set: NaN or -1."""
    array = np.empty(shape, dtype)
    array.reshape(-1).view(np.uint8)[...] = 1 if dtype == np.bool_ else 0xFF
    return array


@pure("tensor.empty")
def _empty(site: Site) -> Function:
    type_ = ir.RankedTensorType(site.op.results[0].type)
    static, dtype = list(type_.shape), element_dtype(type_)

    def apply(*sizes: np.ndarray) -> np.ndarray:
        return poison(tuple(int(extent) for extent in mixed(static, sizes)), dtype)

    return apply


@pure("tensor.dim")
def _dim(site: Site) -> Function:
    def apply(source: np.ndarray, dimension: np.ndarray) -> np.ndarray:
        if not 0 <= dimension[0] < source.ndim:
            raise site.error(f"dimension {dimension[0]} of a tensor of rank {source.ndim}")
        return np.array([source.shape[dimension[0]]], np.int64)

    return apply


@pure("tensor.cast")
def _cast(site: Site) -> Function:
    shape = list(ir.RankedTensorType(site.op.results[0].type).shape)

    def apply(source: np.ndarray) -> np.ndarray:
        if any(
            want not in (extent, ir.ShapedType.get_dynamic_size())
            for want, extent in zip(shape, source.shape, strict=True)
        ):
            raise site.error(f"a tensor of shape {source.shape} is not {site.op.results[0].type}")
        return source

    return apply


@pure("tensor.collapse_shape")
def _collapse_shape(site: Site) -> Function:
    groups = reassociation(site.op)
    return lambda source: source.reshape([int(np.prod([source.shape[d] for d in group])) for group in groups])


@pure("tensor.expand_shape")
def _expand_shape(site: Site) -> Function:
    static = site.ints("static_output_shape")

    def apply(source: np.ndarray, *sizes: np.ndarray) -> np.ndarray:
        shape = [int(extent) for extent in mixed(static, sizes)]
        if np.prod(shape, dtype=np.int64) != source.size:
            raise site.error(f"a tensor of {source.size} elements cannot have shape {tuple(shape)}")
        return source.reshape(shape)

    return apply


@pure("tensor.extract")
def _extract(site: Site) -> Function:
    """Extracts elements; indices may differ between the points of a linalg body's iteration space."""

    def apply(source: np.ndarray, *indices: np.ndarray) -> np.ndarray:
        for index, extent in zip(indices, source.shape, strict=True):
            if ((index < 0) | (index >= extent)).any():
                raise site.error(f"an index is out of bounds of a tensor of shape {source.shape}")
        return np.atleast_1d(source[indices])

    return apply


@pure("tensor.from_elements")
def _from_elements(site: Site) -> Function:
    shape = list(ir.RankedTensorType(site.op.results[0].type).shape)
    return lambda *elements: np.array([element[0] for element in elements]).reshape(shape)


@pure("tensor.splat")
def _splat(site: Site) -> Function:
    static = list(ir.RankedTensorType(site.op.results[0].type).shape)
    return lambda value, *sizes: np.full([int(extent) for extent in mixed(static, sizes)], value[0])


def _slices(site: Site, groups: list[list[int]]) -> Callable[[Frame, np.ndarray], tuple[slice, ...]]:
    statics = [site.ints(f"static_{name}") for name in ("offsets", "sizes", "strides")]

    def key(frame: Frame, whole: np.ndarray) -> tuple[slice, ...]:
        entries = [mixed(static, gather(frame.values, slots)) for static, slots in zip(statics, groups, strict=True)]
        for offset, size, stride, extent in zip(*entries, whole.shape, strict=True):
            if offset < 0 or (size > 0 and not 0 <= offset + (size - 1) * stride < extent):
                raise site.error(f"out-of-bounds slice: [{offset}, {size}, {stride}] of extent {extent}", frame)
        return tuple(_slice(o, n, s) for o, n, s in zip(*entries, strict=True))

    return key


def _slice(offset: int, size: int, step: int) -> slice:
    stop = offset + size * step
    return slice(offset, None if stop < 0 else stop, step) if size else slice(0, 0)


@rule("tensor.extract_slice")
def _extract_slice(site: Site) -> Step:
    (source, *_), *groups = site.segments()
    key, out = _slices(site, groups), site.results[0]
    result = ir.RankedTensorType(site.op.results[0].type)
    drop = ir.RankedTensorType(site.op.operands[0].type).rank - result.rank
    dropped = tuple([d for d, n in enumerate(site.ints("static_sizes")) if n == 1][:drop])

    def step(frame: Frame) -> None:
        whole = frame.values[source]
        frame.values[out] = np.squeeze(whole[key(frame, whole)], dropped)

    return step


@rule("tensor.insert_slice")
def _insert_slice(site: Site) -> Step:
    (source, *_), (target, *_), *groups = site.segments()
    key, out = _slices(site, groups), site.results[0]

    def step(frame: Frame) -> None:
        result = frame.values[target].copy()
        where = key(frame, result)
        result[where] = frame.values[source].reshape(result[where].shape)
        frame.values[out] = result

    return step
