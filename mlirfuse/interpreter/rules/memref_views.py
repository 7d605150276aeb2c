"""`memref` ops that return a view of a memref, without a copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mlir import ir

from mlirfuse.interpreter.registry import direct, pure, rule
from mlirfuse.interpreter.site import Site, gather
from mlirfuse.interpreter.state.lanes import as_extent, as_lanes, mixed
from mlirfuse.interpreter.state.machine import Frame
from mlirfuse.interpreter.state.memory import Extent, MemRef, row_major
from mlirfuse.interpreter.state.types import element_dtype
from mlirfuse.support.reshapes import reassociation

Step = Callable[[Frame], None]


@pure("memref.dim")
def _dim(site: Site) -> Callable[[MemRef, np.ndarray], np.ndarray]:
    def apply(source: MemRef, dimension: np.ndarray) -> np.ndarray:
        if not 0 <= dimension[0] < len(source.shape):
            raise site.error(f"dimension {dimension[0]} of a memref of rank {len(source.shape)}")
        return as_lanes(source.shape[dimension[0]])

    return apply


@direct("memref.cast", "memref.memory_space_cast", "memref.assume_alignment")
def _cast(source: MemRef) -> MemRef:
    return source


def _view(source: MemRef, offset: Extent, shape: Sequence[Extent], strides: Sequence[Extent]) -> MemRef:
    return MemRef(source.buffer, source.dtype, offset, tuple(shape), tuple(strides), source.text, source.places)


@rule("memref.subview")
def _subview(site: Site) -> Step:
    (source, *_), offsets, sizes, strides = site.segments()
    statics = [site.ints(f"static_{name}") for name in ("offsets", "sizes", "strides")]
    result = ir.MemRefType(site.op.results[0].type)
    kept = _kept_dimensions(statics[1], list(result.shape))
    out = site.results[0]

    def step(frame: Frame) -> None:
        values = frame.values
        memref: MemRef = values[source]
        start, shape, scale = (
            mixed(static, gather(values, slots))
            for static, slots in zip(statics, (offsets, sizes, strides), strict=True)
        )
        offset = memref.offset + sum(o * s for o, s in zip(start, memref.strides, strict=True))
        steps = [a * b for a, b in zip(scale, memref.strides, strict=True)]
        for begin, size, by, extent in zip(start, shape, scale, memref.shape, strict=True):
            last = np.asarray(begin + (size - 1) * by)
            bad = (np.asarray(size) > 0) & ((np.asarray(begin) < 0) | (last >= extent))
            if frame.mask is not None and bad.ndim:
                bad = bad & frame.mask
            if bad.any():
                raise site.error(
                    f"out-of-bounds view: [{begin}, {size}, {by}] of extent {extent} of {memref.text}", frame
                )
        values[out] = _view(memref, offset, [shape[d] for d in kept], [steps[d] for d in kept])

    return step


def _kept_dimensions(sizes: Sequence[int], result: Sequence[int]) -> list[int]:
    """The dimensions that a rank-reducing view keeps: it drops the first extents of 1 that the result lacks."""
    kept, at = [], 0
    for dimension, size in enumerate(sizes):
        left_source, left_result = len(sizes) - dimension, len(result) - at
        if left_result and (size != 1 or left_source == left_result or result[at] == 1):
            kept.append(dimension)
            at += 1
    return kept


@rule("memref.reinterpret_cast")
def _reinterpret_cast(site: Site) -> Step:
    (source, *_), offsets, sizes, strides = site.segments()
    statics = [site.ints(f"static_{name}") for name in ("offsets", "sizes", "strides")]
    out = site.results[0]

    def step(frame: Frame) -> None:
        values = frame.values
        (offset,), shape, steps = (
            mixed(static, gather(values, slots))
            for static, slots in zip(statics, (offsets, sizes, strides), strict=True)
        )
        memref: MemRef = values[source]
        base = np.arange(frame.block.threads) * 0 if memref.buffer.space == "private" else 0
        values[out] = _view(memref, offset + base, shape, steps)

    return step


@rule("memref.view")
def _memref_view(site: Site) -> Step:
    """A view of bytes as elements, from a byte offset on."""
    type_ = ir.MemRefType(site.op.results[0].type)
    dtype, static, out = element_dtype(type_), tuple(type_.shape), site.results[0]
    source, shift, *sizes = site.operands

    def step(frame: Frame) -> None:
        values = frame.values
        memref: MemRef = values[source]
        start = memref.offset * memref.dtype.itemsize + values[shift]
        if (start % dtype.itemsize).any():
            raise site.error(f"misaligned view: byte offset {start[0]} for elements of {dtype.itemsize} bytes", frame)
        shape = tuple(mixed(static, gather(values, sizes)))
        values[out] = MemRef(
            memref.buffer, dtype, as_extent(start // dtype.itemsize), shape, row_major(shape), memref.text
        )

    return step


@pure("memref.transpose")
def _transpose(site: Site) -> Callable[[MemRef], MemRef]:
    order = [
        ir.AffineDimExpr(expr).position for expr in ir.AffineMapAttr(site.op.attributes["permutation"]).value.results
    ]

    def apply(source: MemRef) -> MemRef:
        return _view(source, source.offset, [source.shape[d] for d in order], [source.strides[d] for d in order])

    return apply


@pure("memref.collapse_shape")
def _collapse_shape(site: Site) -> Callable[[MemRef], MemRef]:
    groups = reassociation(site.op)

    def apply(source: MemRef) -> MemRef:
        shape: list[Any] = []
        strides: list[Any] = []
        for group in groups:
            extent: Any = 1
            for dimension in group:
                extent = extent * source.shape[dimension]
            shape.append(extent)
            strides.append(source.strides[group[-1]])
        return _view(source, source.offset, shape, strides)

    return apply


@rule("memref.expand_shape")
def _expand_shape(site: Site) -> Step:
    groups = reassociation(site.op)
    source, *sizes = site.operands
    static, out = site.ints("static_output_shape"), site.results[0]

    def step(frame: Frame) -> None:
        memref: MemRef = frame.values[source]
        shape = mixed(static, gather(frame.values, sizes))
        strides: list[Any] = [0] * len(shape)
        for dimension, group in enumerate(groups):
            by: Any = memref.strides[dimension]
            for inner in reversed(group):
                strides[inner] = by
                by = by * shape[inner]
        frame.values[out] = _view(memref, memref.offset, shape, strides)

    return step
