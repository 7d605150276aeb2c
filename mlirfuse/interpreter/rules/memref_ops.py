"""`memref`: allocation, element access and views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mlir import ir

from mlirfuse.interpreter.access import Access
from mlirfuse.interpreter.lanes import uniform
from mlirfuse.interpreter.machine import Frame
from mlirfuse.interpreter.memory import Extent, MemRef, allocate, row_major
from mlirfuse.interpreter.registry import pure, rule
from mlirfuse.interpreter.site import Site, gather
from mlirfuse.interpreter.types import DYNAMIC, element_dtype, is_workgroup

Step = Callable[[Frame], None]


def as_lanes(extent: Extent) -> np.ndarray:
    """A size or stride as a value with a thread axis."""
    return np.array([extent], np.int64) if isinstance(extent, int) else extent


def as_extent(value: np.ndarray) -> Extent:
    """A value with a thread axis as a size or stride: an int where all threads agree on it."""
    return int(value[0]) if value.shape[0] == 1 else value


def mixed(static: Sequence[int], dynamic: Sequence[np.ndarray]) -> list[Extent]:
    """Static entries with the dynamic ones filled in, as view-like ops encode them."""
    rest = iter(dynamic)
    return [as_extent(next(rest)) if entry == DYNAMIC else entry for entry in static]


@rule("memref.load")
def _load(site: Site) -> Step:
    source, indices, out = site.operands[0], site.operands[1:], site.results[0]
    alignment = site.integer("alignment")

    def step(frame: Frame) -> None:
        access = Access(site, frame, frame.values[source], gather(frame.values, indices))
        access.require_aligned(alignment)
        frame.values[out] = access.load()

    return step


@rule("memref.store")
def _store(site: Site) -> Step:
    value, target, indices = site.operands[0], site.operands[1], site.operands[2:]
    alignment = site.integer("alignment")

    def step(frame: Frame) -> None:
        access = Access(site, frame, frame.values[target], gather(frame.values, indices))
        access.require_aligned(alignment)
        access.store(frame.values[value])

    return step


@rule("memref.alloc", "memref.alloca")
def _alloc(site: Site) -> Step:
    """Workgroup memory belongs to the block, one allocation an op; other memory to each thread."""
    type_ = ir.MemRefType(site.op.results[0].type)
    dtype, shared = element_dtype(type_), is_workgroup(type_)
    static, alignment, out, sizes = tuple(type_.shape), site.integer("alignment"), site.results[0], site.operands
    name = f"{site.name} at {site.location}"

    def step(frame: Frame) -> None:
        block = frame.block
        dynamic = iter(uniform(frame.values[slot], frame) for slot in sizes)
        shape = tuple(next(dynamic) if extent == DYNAMIC else extent for extent in static)
        if None in shape:
            raise site.error("threads ask for different sizes", frame)
        shape = tuple(int(extent) for extent in shape)
        space = "shared" if shared else "private"

        def make() -> MemRef:
            copies = 1 if shared else block.threads
            return allocate(name, space, shape, dtype, alignment, checks=block.checks, copies=copies)

        frame.values[out] = block.shared(out, make) if shared else make()

    return step


@rule("memref.dealloc")
def _dealloc(site: Site) -> None:
    """Memory lives as long as its block."""


@rule("memref.get_global")
def _get_global(site: Site) -> Step:
    type_ = ir.MemRefType(site.op.results[0].type)
    if not is_workgroup(type_):
        raise site.error(f"global of type {type_}: only workgroup memory is supported")
    symbol = ir.FlatSymbolRefAttr(site.op.attributes["name"]).value
    alignment = site.compiler.interpreter.global_alignment(symbol)
    dtype, shape, out = element_dtype(type_), tuple(type_.shape), site.results[0]

    def step(frame: Frame) -> None:
        block = frame.block
        frame.values[out] = block.shared(
            symbol, lambda: allocate(f"@{symbol}", "shared", shape, dtype, alignment, checks=block.checks)
        )

    return step


@pure("memref.dim")
def _dim(site: Site) -> Callable[[MemRef, np.ndarray], np.ndarray]:
    def apply(source: MemRef, dimension: np.ndarray) -> np.ndarray:
        if not 0 <= dimension[0] < len(source.shape):
            raise site.error(f"dimension {dimension[0]} of a memref of rank {len(source.shape)}")
        return as_lanes(source.shape[dimension[0]])

    return apply


@pure("memref.cast", "memref.memory_space_cast", "memref.assume_alignment")
def _cast(site: Site) -> Callable[[MemRef], MemRef]:
    return lambda source: source


def _view(source: MemRef, offset: Extent, shape: Sequence[Extent], strides: Sequence[Extent]) -> MemRef:
    return MemRef(source.buffer, source.dtype, offset, tuple(shape), tuple(strides), source.text)


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
    """Which dimensions survive a rank-reducing view: as many extents of 1 are dropped as the ranks differ."""
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
    """Bytes seen as elements, from a byte offset on."""
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


@pure("memref.collapse_shape")
def _collapse_shape(site: Site) -> Callable[[MemRef], MemRef]:
    groups = [
        [ir.IntegerAttr(d).value for d in ir.ArrayAttr(g)] for g in ir.ArrayAttr(site.op.attributes["reassociation"])
    ]

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
    groups = [
        [ir.IntegerAttr(d).value for d in ir.ArrayAttr(g)] for g in ir.ArrayAttr(site.op.attributes["reassociation"])
    ]
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
