"""Builds the tensor-level ops of the linalg stage. Every function emits at the end of the traced function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from mlir import ir
from mlir.dialects import arith, linalg, tensor

from mlirfuse.builder.emission.body import constant
from mlirfuse.builder.extents import Dim, Extent, Shape, is_one, needs_static, product, show
from mlirfuse.builder.source import at_user_line
from mlirfuse.builder.spec import MOST_BYTES
from mlirfuse.builder.state import Access, TensorBase, TraceState, size_values, static
from mlirfuse.errors import ShapeError
from mlirfuse.support.dtypes import DType

Body = Callable[..., ir.Value]


def pointwise(
    state: TraceState, inputs: Sequence[tuple[TensorBase, Access]], shape: Shape, dtype: DType, body: Body
) -> TensorBase:
    """A `linalg.generic` with one parallel loop per dimension of `shape`.

    `body` gets one element per input and returns the result's element.
    """
    rank = len(shape)
    _require_addressable(shape, dtype)
    with state.emitting():
        init = tensor.EmptyOp(_sizes(shape, range(rank), inputs), state.element_type(dtype)).result
        accesses = [access for _, access in inputs]
        value = _generic(state, [t.value for t, _ in inputs], accesses, init, tuple(range(rank)), rank, body)
    return state.wrap(value, shape, dtype)


def reduction(
    source: TensorBase, axes: tuple[int, ...], dtype: DType, start: float | int | bool, body: Body
) -> TensorBase:
    """A `linalg.generic` that reduces `axes` (ascending) of `source` into a tensor of `dtype` filled with `start`.

    `body` gets an element of the source and the accumulator, and returns the new accumulator. The result does not have
    the reduced dimensions.
    """
    state, rank = source.state, source.ndim
    kept = tuple(d for d in range(rank) if d not in axes)
    shape = tuple(source.shape[d] for d in kept)
    with state.emitting():
        sizes = _sizes(shape, kept, [(source, tuple(range(rank)))])
        empty = tensor.EmptyOp(sizes, state.element_type(dtype)).result
        init = linalg.fill(constant(state.element_type(dtype), start), outs=[empty])
        value = _generic(state, [source.value], [tuple(range(rank))], init, kept, rank, body, axes, accumulate=True)
    return state.wrap(value, shape, dtype)


def contraction(
    inputs: Sequence[tuple[TensorBase, Access]], shape: Shape, rank: int, dtype: DType, body: Body
) -> TensorBase:
    """A `linalg.generic` over `rank` loops that sums into a tensor of zeros of `shape` and `dtype`.

    The loops of `shape` come first, in order, and the reduction loops last. `body` gets an element of each input and
    the accumulator, and returns the new accumulator.
    """
    state = inputs[0][0].state
    out_access = tuple(range(len(shape)))
    _require_addressable(shape, dtype)
    with state.emitting():
        empty = tensor.EmptyOp(_sizes(shape, out_access, inputs), state.element_type(dtype)).result
        init = linalg.fill(constant(state.element_type(dtype), 0), outs=[empty])
        values, accesses = [t.value for t, _ in inputs], [access for _, access in inputs]
        reduced = tuple(range(len(shape), rank))
        value = _generic(state, values, accesses, init, out_access, rank, body, reduced, accumulate=True)
    return state.wrap(value, shape, dtype)


def regroup(source: TensorBase, groups: Sequence[tuple[Sequence[int], Shape]], shape: Shape) -> TensorBase:
    """A reshape to `shape` as `tensor.collapse_shape`, then `tensor.expand_shape`, each only if needed.

    Args:
        source: the tensor.
        groups: (source dimensions, result extents) pairs in order, with equal numbers of elements in both. No groups
            means that one side has rank 0 and all extents of the other side are 1.
        shape: the result's shape.
    """
    state = source.state
    result = source
    _require_addressable(shape, source.dtype)
    with state.emitting():
        middle = tuple(product(tuple(source.shape[d] for d in dims)) for dims, _ in groups)
        if len(middle) < source.ndim:
            type_ = state.tensor_type(middle, source.dtype)
            collapsed = tensor.CollapseShapeOp(type_, result.value, [list(dims) for dims, _ in groups])
            state.number(collapsed.operation)
            result = state.wrap(collapsed.result, middle, source.dtype)
        if len(middle) < len(shape):
            starts = [sum(len(extents) for _, extents in groups[:i]) for i in range(len(groups))]
            indices = [list(range(s, s + len(extents))) for s, (_, extents) in zip(starts, groups, strict=True)]
            sizes = [size for size in size_values(shape) if isinstance(size, ir.Value)]
            type_ = state.tensor_type(shape, source.dtype)
            expanded = tensor.ExpandShapeOp(type_, result.value, indices, sizes, [static(e) for e in shape])
            state.number(expanded.operation)
            result = state.wrap(expanded.result, shape, source.dtype)
    return result


def empty(state: TraceState, shape: Shape, dtype: DType) -> TensorBase:
    """A tensor without elements."""
    with state.emitting():
        value = tensor.EmptyOp(size_values(shape), state.element_type(dtype)).result
    return state.wrap(value, shape, dtype)


def transpose(source: TensorBase, permutation: Sequence[int]) -> TensorBase:
    """`linalg.transpose`: dimension i of the result is dimension `permutation[i]` of the source."""
    state = source.state
    shape = tuple(source.shape[d] for d in permutation)
    with state.emitting():
        sizes = _sizes(shape, permutation, [(source, tuple(range(source.ndim)))])
        init = tensor.EmptyOp(sizes, state.element_type(source.dtype)).result
        op = linalg.transpose(source.value, outs=[init], permutation=list(permutation))
        state.number(op.operation)
        value = op.results[0]
    return state.wrap(value, shape, source.dtype)


def broadcast_access(source: Shape, target: Shape) -> Access:
    """How loops over `target` index a tensor of shape `source`, which broadcasts to it."""
    offset = len(target) - len(source)
    return tuple(
        None if is_one(extent) and not is_one(target[offset + d]) else offset + d for d, extent in enumerate(source)
    )


def _require_addressable(shape: Shape, dtype: DType) -> None:
    """Raises `ShapeError` for more elements than a GPU can address; extents of 0 are ignored, as in NumPy."""
    known = prod(extent.factor if isinstance(extent, Dim) else extent or 1 for extent in shape)
    if known * dtype.bytes > MOST_BYTES:
        raise at_user_line(ShapeError(f"shape {show(shape)} has more bytes than can be addressed"))


def _sizes(shape: Shape, loops: Sequence[int], inputs: Sequence[tuple[TensorBase, Access]]) -> list[ir.Value | int]:
    """The size of each dimension of `shape`, an index value or a number; `loops` has the loop of each dimension.

    A product of extents is read by `tensor.dim` from an input, because kernels take no indices computed on the host.
    """
    sizes = size_values([1 if _is_product(extent) else extent for extent in shape])
    for d, (extent, loop) in enumerate(zip(shape, loops, strict=True)):
        if not isinstance(extent, Dim) or not _is_product(extent):
            continue
        found = [(t, access.index(loop)) for t, access in inputs if loop in access]
        source, axis = next(((t, a) for t, a in found if isinstance(t.shape[a], Dim)), (None, 0))
        if source is None:
            needs_static(extent, f"a result with the extent {extent}, which no operand has,")
        sizes[d] = tensor.DimOp(source.value, arith.ConstantOp(ir.IndexType.get(), axis).result).result
    return sizes


def _is_product(extent: Extent) -> bool:
    """Whether an extent is computed from the arguments' extents, and not equal to one of them."""
    return isinstance(extent, Dim) and (extent.factor != 1 or len(extent.symbols) > 1)


def _generic(
    state: TraceState,
    inputs: list[ir.Value],
    accesses: list[Access],
    init: ir.Value,
    out_access: Access,
    rank: int,
    body: Body,
    reduced: tuple[int, ...] = (),
    accumulate: bool = False,
) -> ir.Value:
    maps = [state.indexing_map(rank, access) for access in (*accesses, out_access)]
    op = linalg.GenericOp([init.type], inputs, [init], ir.ArrayAttr.get(maps), state.iterator_types(rank, reduced))
    state.number(op.operation)
    location = ir.Location.current
    element_types = [ir.RankedTensorType(v.type).element_type for v in (*inputs, init)]
    block = op.regions[0].blocks.append(*element_types, arg_locs=[location] * len(element_types))
    arguments = list(block.arguments)
    with ir.InsertionPoint(block):
        linalg.YieldOp([body(*(arguments if accumulate else arguments[:-1]))])
    return op.results[0]
