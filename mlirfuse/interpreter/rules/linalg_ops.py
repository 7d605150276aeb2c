"""`linalg`: a body runs once for a whole iteration space, with the space's points as threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from mlir import ir

from mlirfuse.analysis.memory.host_views import rearranged_axes
from mlirfuse.interpreter.access import Access
from mlirfuse.interpreter.registry import pure, rule, suspending
from mlirfuse.interpreter.rules.arith_float import BINARY as FLOAT
from mlirfuse.interpreter.rules.arith_int import BINARY as INT
from mlirfuse.interpreter.rules.vector_reduce import reduce_axes
from mlirfuse.interpreter.scheduler import Coroutine
from mlirfuse.interpreter.site import Site, gather
from mlirfuse.interpreter.state.affine import compile_map, plain_dims
from mlirfuse.interpreter.state.machine import Frame
from mlirfuse.interpreter.state.types import keyword

# Points of an iteration space that are held in memory at once; larger reductions run point by point.
AT_ONCE = 1 << 24

COMBINERS = {
    f"arith.{name}": function for name, function in {**FLOAT, **INT}.items() if name[:3] not in ("sub", "div", "rem")
}


@pure("linalg.transpose")
def _transpose(site: Site) -> Callable[..., np.ndarray]:
    order = site.ints("permutation")
    return lambda source, _init: source.transpose(order)


@rule("linalg.fill")
def _fill(site: Site) -> Callable[[Frame], None]:
    """Makes a new tensor; for a memref, which a tile program fills, writes every element."""
    number, init = site.operands
    if isinstance(site.op.operands[1].type, ir.MemRefType):
        shape = ir.MemRefType(site.op.operands[1].type).shape
        indices = [index[None] for index in np.indices(shape, sparse=True)]

        def store(frame: Frame) -> None:
            Access(site, frame, frame.values[init], indices).store(frame.values[number])

        return store

    def make(frame: Frame) -> None:
        tensor = frame.values[init]
        frame.values[site.results[0]] = np.full(tensor.shape, frame.values[number][0], tensor.dtype)

    return make


@rule("linalg.index")
def _index(site: Site) -> Callable[[Frame], None]:
    dimension, out = ir.IntegerAttr(site.op.attributes["dim"]).value, site.results[0]

    def step(frame: Frame) -> None:
        frame.values[out] = frame.iteration[dimension]

    return step


@dataclass(frozen=True)
class _Space:
    """An iteration space: the reduced dimensions, and the indexing map of each operand."""

    maps: Sequence[Callable[[Sequence[Any]], list[Any]]]
    plain: Sequence[Sequence[int | None]]
    reduced: tuple[int, ...]
    rank: int

    def extents(self, site: Site, operands: Sequence[np.ndarray]) -> list[int]:
        """Extent of each dimension, from operands with an axis that only this dimension indexes.

        Raises `InterpreterError` if operands disagree, or if no operand gives a dimension's extent.
        """
        extents: list[int | None] = [None] * self.rank
        for dims, operand in zip(self.plain, operands, strict=True):
            if not isinstance(operand, np.ndarray) or operand.ndim != len(dims):
                continue
            for dimension, extent in zip(dims, operand.shape, strict=True):
                if dimension is None:
                    continue
                if extents[dimension] not in (None, extent):
                    raise site.error(f"sizes do not match: dimension d{dimension} is {extents[dimension]} and {extent}")
                extents[dimension] = extent
        if None in extents:
            raise site.error(f"no operand gives the extent of d{extents.index(None)}")
        return [int(extent) for extent in extents if extent is not None]


def _space(site: Site) -> _Space:
    maps = [ir.AffineMapAttr(m).value for m in ir.ArrayAttr(site.op.attributes["indexing_maps"])]
    kinds = [keyword(kind) for kind in ir.ArrayAttr(site.op.attributes["iterator_types"])]
    reduced = tuple(d for d, kind in enumerate(kinds) if kind == "reduction")
    return _Space([compile_map(m) for m in maps], [plain_dims(m) for m in maps], reduced, len(kinds))


def _read(operand: np.ndarray, index: Sequence[Any], shape: Sequence[int]) -> np.ndarray:
    """An operand's element at each point of the space, as a one-dimensional array; a scalar operand has no index."""
    if not index:
        operand = operand.reshape(())
    return np.broadcast_to(operand[tuple(index)], shape).reshape(-1)


def _view(axes: Sequence[Sequence[int]], source: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """An array whose dimensions run along those of its source that `axes` lists."""
    strides = [sum(source.strides[d] for d in dims) for dims in axes]
    plain = source.view(f"u{source.itemsize}")  # NumPy's own dtypes alone can be strided: float8 is none
    return np.lib.stride_tricks.as_strided(plain, shape, strides).view(source.dtype)


@suspending("linalg.generic")
def _generic(site: Site) -> Callable[[Frame], Coroutine]:
    axes = rearranged_axes(site.op) if site.op.parent.name == "func.func" else None
    return _computed(site) if axes is None else _viewed(site, axes)


def _viewed(site: Site, axes: Sequence[Sequence[int]]) -> Callable[[Frame], Coroutine]:
    (source,), (init,) = site.segments()

    def step(frame: Frame) -> Coroutine:
        yield from ()
        frame.values[site.results[0]] = _view(axes, frame.values[source], frame.values[init].shape)

    return step


def _computed(site: Site) -> Callable[[Frame], Coroutine]:
    space, body = _space(site), site.region(0)
    inputs, outputs = site.segments()
    combiners = _simple_reduction(site, len(inputs)) if space.reduced else None

    def run(
        frame: Frame, grid: Sequence[np.ndarray], shape: Sequence[int], accumulators: Sequence[np.ndarray]
    ) -> Coroutine:
        """The body at all points of `grid`, with the accumulators as the output arguments."""
        operands = gather(frame.values, inputs)
        arguments = [_read(operand, map_(grid), shape) for operand, map_ in zip(operands, space.maps, strict=False)]
        mask, iteration = frame.mask, frame.iteration
        frame.mask = None
        frame.iteration = [np.broadcast_to(axis, shape).reshape(-1) for axis in grid]
        yield from body.call(frame, [*arguments, *accumulators])
        frame.mask, frame.iteration = mask, iteration

    def step(frame: Frame) -> Coroutine:
        inits = gather(frame.values, outputs)
        extents = space.extents(site, [*gather(frame.values, inputs), *inits])
        results = [init.copy() for init in inits]
        kept = [1 if d in space.reduced else extent for d, extent in enumerate(extents)]
        points = np.ogrid[tuple(slice(0, extent) for extent in kept)] if kept else []
        indices = [map_(points) for map_ in space.maps[len(inputs) :]]
        accumulators = [_read(init, index, kept) for init, index in zip(inits, indices, strict=True)]
        if 0 not in extents:
            if combiners is not None and np.prod(extents, dtype=np.int64) <= AT_ONCE:
                grid = np.ogrid[tuple(slice(0, extent) for extent in extents)]
                size = int(np.prod(extents))
                yield from run(frame, grid, extents, [np.broadcast_to(init.dtype.type(0), (size,)) for init in inits])
                for position, (function, slot) in enumerate(combiners):
                    terms = np.broadcast_to(frame.values[slot], (size,)).reshape(extents)
                    reduced = reduce_axes(function, terms, space.reduced).reshape(-1)
                    accumulators[position] = function(accumulators[position], reduced)
            else:
                accumulators = yield from iterate(frame, extents, kept, accumulators)
        for result, index, accumulator in zip(results, indices, accumulators, strict=True):
            target = np.broadcast_to(accumulator, (int(np.prod(kept)),)).reshape(kept)
            result[tuple(index)] = target if index else target.reshape(())
        for slot, result in zip(site.results, results, strict=True):
            frame.values[slot] = result

    def iterate(frame: Frame, extents: Sequence[int], kept: Sequence[int], accumulators: list[np.ndarray]) -> Any:
        """Runs any body, for all parallel points at once, and for one reduced point after the other."""
        points = np.ogrid[tuple(slice(0, extent) for extent in kept)] if kept else []
        for reduced in np.ndindex(*[extents[d] for d in space.reduced]):
            grid = list(points)
            for dimension, at in zip(space.reduced, reduced, strict=True):
                grid[dimension] = np.full([1] * space.rank, at)
            yield from run(frame, grid, kept, accumulators)
            accumulators = body.outcome(frame)
        return accumulators

    return step


def _simple_reduction(site: Site, inputs: int) -> list[tuple[Callable[..., np.ndarray], int]] | None:
    """For a body of the form `acc = combine(acc, f(inputs))` for every output, (combine, slot of f) of each output.

    f then runs once over the whole space. None for any other body, which runs point by point.
    """
    block = site.op.regions[0].blocks[0]
    accumulators = list(block.arguments)[inputs:]
    *_, terminator = block.operations
    found = []
    for accumulator, value in zip(accumulators, terminator.operands, strict=True):
        uses = list(accumulator.uses)
        if len(uses) != 1 or not isinstance(value, ir.OpResult):
            return None
        op = uses[0].owner.operation
        if op.name not in COMBINERS or op.results[0] != value or len(list(value.uses)) != 1:
            return None
        other = op.operands[1 if op.operands[0] == accumulator else 0]
        found.append((COMBINERS[op.name], site.compiler.slot(other)))
    return found
