"""The state of one trace, and the two kinds of traced value: tensors and run-time scalars."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from types import CodeType, FrameType

from mlir import ir
from mlir.dialects import arith

from mlirfuse.builder.extents import UNCHANGED, Dim, Extent, Shape, Symbol, show
from mlirfuse.builder.source import at_user_line, outermost_call, position_of, user_frame
from mlirfuse.dialect.attributes import OPERATION
from mlirfuse.errors import TraceError
from mlirfuse.support.dtypes import DType, int64

LEAK_HINT = "do not keep tensors beyond the call that made them"

# Per dimension of a tensor: the loop dimension that indexes it, or None where its extent of 1 is broadcast.
Access = tuple[int | None, ...]

Range = tuple[Extent, Extent, int]
"""The first index along a dimension, how many there are, and their distance, which may be negative."""


class TraceState:
    """The insertion point of a trace, and a cache of attributes and types that many ops share.

    Args:
        context: the MLIR context of the module.
        block: the body of the `func.func`.
        tensor_class: the class of the values that user code sees.
        dynamic_products: whether rows and columns of matrix products may have dynamic extents.
        fusion: whether operations may share kernels. Otherwise their ops get numbers (`fuse.operation`).
        scalar_class: the class of numbers of run time that user code sees.
        dynamic_reductions: whether all reductions over leading dimensions may have dynamic extents.
    """

    def __init__(
        self,
        context: ir.Context,
        block: ir.Block,
        tensor_class: type[TensorBase],
        dynamic_products: bool = False,
        fusion: bool = True,
        scalar_class: type[ScalarBase] | None = None,
        dynamic_reductions: bool = False,
    ):
        self.dynamic_reductions = dynamic_reductions
        self.context = context
        self.reordered = UNCHANGED
        self._scalar_class = scalar_class or ScalarBase
        self.fusion = fusion
        self._call: FrameType | None = None
        self._operation = -1
        self.dynamic_products = dynamic_products
        self._open = True
        self._slices: dict[ir.Value, list[tuple[Range, ...]]] = {}
        self._end = ir.InsertionPoint(block)
        self._tensor_class = tensor_class
        self._element_types: dict[DType, ir.Type] = {}
        self._maps: dict[tuple[int, Access], ir.Attribute] = {}
        self._iterators = {
            kind: ir.Attribute.parse(f"#linalg.iterator_type<{kind}>", context) for kind in ("parallel", "reduction")
        }
        self._iterator_lists: dict[tuple[int, tuple[int, ...]], ir.Attribute] = {}
        self._locations: dict[tuple[CodeType, int], ir.Location] = {}

    def slices_again(self, value: ir.Value, ranges: Sequence[Range]) -> bool:
        """Whether a slice of a value overlaps an earlier one that is as large: of neighbours, as a stencil reads them.
        Whole ranges of run-time extents overlap.
        """
        earlier = self._slices.setdefault(value, [])
        found = any(_are_neighbours(each, ranges) for each in earlier)
        earlier.append(tuple(ranges))
        return found

    def emitting(self) -> AbstractContextManager[None]:
        """Context in which ops are appended to the function with the location of the user's line.

        Raises:
            TraceError: the trace has ended, so that its values are no longer valid.
        """
        if not self._open:
            raise at_user_line(TraceError("a tensor was used after the trace that made it", hint=LEAK_HINT))
        return _entered(self.context, self.location(), self._end)

    def close(self) -> None:
        """Ends the trace: later uses of traced values raise `TraceError`, as the IR may have been freed."""
        self._open = False
        self._call = None

    def location(self) -> ir.Location:
        """The location of the line of user code that is running."""
        frame = user_frame()
        if frame is None:
            return ir.Location.unknown(self.context)
        key = (frame.f_code, frame.f_lasti)
        if key not in self._locations:
            self._locations[key] = position_of(frame).location(self.context)
        return self._locations[key]

    def number(self, op: ir.Operation) -> None:
        """Sets the number of the user's call that makes an op, where fusion is off; inside `emitting`.

        The frame of a call is kept until the next one, so that the two are different objects, also in a loop.
        """
        if self.fusion:
            return
        call = outermost_call()
        if call is not self._call:
            self._call = call
            self._operation += 1
        op.attributes[OPERATION] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), self._operation)

    def number_of(self, extent: Dim) -> ScalarBase:
        """A dynamic extent as a number of run time."""
        return self._scalar_class(self, int64, partial(_extent_value, extent), repr(extent), extent.symbols)

    def wrap(self, value: ir.Value, shape: Shape, dtype: DType) -> TensorBase:
        """The tensor that user code sees for an SSA value."""
        return self._tensor_class(self, value, shape, dtype)

    def element_type(self, dtype: DType) -> ir.Type:
        """The MLIR type of one element."""
        if dtype not in self._element_types:
            with self.context:
                self._element_types[dtype] = dtype.mlir()
        return self._element_types[dtype]

    def tensor_type(self, shape: Shape, dtype: DType) -> ir.RankedTensorType:
        """The MLIR type of a tensor; inside `emitting`."""
        return ir.RankedTensorType.get([static(extent) for extent in shape], self.element_type(dtype))

    def indexing_map(self, rank: int, access: Access) -> ir.Attribute:
        """The affine map attribute of an access from `rank` loops; inside `emitting`."""
        key = (rank, access)
        if key not in self._maps:
            results = [ir.AffineExpr.get_constant(0) if d is None else ir.AffineExpr.get_dim(d) for d in access]
            self._maps[key] = ir.AffineMapAttr.get(ir.AffineMap.get(rank, 0, results))
        return self._maps[key]

    def iterator_types(self, rank: int, reduced: tuple[int, ...]) -> ir.Attribute:
        """The attribute that marks the loops in `reduced` as reductions; inside `emitting`."""
        key = (rank, reduced)
        if key not in self._iterator_lists:
            kinds = ["reduction" if d in reduced else "parallel" for d in range(rank)]
            self._iterator_lists[key] = ir.ArrayAttr.get([self._iterators[kind] for kind in kinds])
        return self._iterator_lists[key]


class TensorBase:
    """A traced tensor: one SSA value, its shape and dtype.

    Attributes:
        state: the trace that it belongs to.
        value: the SSA value.
        shape: an int per static dimension, a `Dim` per dynamic one.
        dtype: the element type.
    """

    __slots__ = ("dtype", "shape", "state", "value")

    def __init__(self, state: TraceState, value: ir.Value, shape: Shape, dtype: DType):
        self.state = state
        self.value = value
        self.shape = shape
        self.dtype = dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __repr__(self) -> str:
        return f"Tensor(shape={show(self.shape)}, dtype={self.dtype.name})"


class ScalarBase:
    """A number known at run time, which adopts the dtype of tensor operands, as a Python number does.

    Expressions of scalars are emitted lazily, inside each `linalg.generic` that uses them, so that the host function
    contains no floating-point arithmetic.

    Attributes:
        state: the trace that it belongs to.
        dtype: the type that the number is computed in: float64, int64 or bool.
        emit: builds the value at the current insertion point.
        name: the argument's name; None for an expression.
        symbols: the extents that the number is computed from: where its value is needed while tracing, these have to be
            static.
    """

    __slots__ = ("dtype", "emit", "name", "state", "symbols")

    def __init__(
        self,
        state: TraceState,
        dtype: DType,
        emit: Callable[[], ir.Value],
        name: str | None = None,
        symbols: tuple[Symbol, ...] = (),
    ):
        self.state = state
        self.symbols = symbols
        self.dtype = dtype
        self.emit = emit
        self.name = name

    def __repr__(self) -> str:
        return f"Scalar(dtype={self.dtype.name})"


def _are_neighbours(one: Sequence[Range], other: Sequence[Range]) -> bool:
    """Whether ranges (start, count, step) of two slices are as long, as far apart, overlap, and are not the same."""
    apart = False
    for (start, count, step), (other_start, other_count, other_step) in zip(one, other, strict=True):
        if isinstance(start, Dim) or isinstance(other_start, Dim) or isinstance(count, Dim):
            continue  # a whole dimension, of both
        if (count, step) != (other_count, other_step) or abs(start - other_start) >= count * abs(step):
            return False
        if (start - other_start) % step:
            return False  # every second element, and those between
        apart = apart or start != other_start
    return apart


def static(extent: Extent) -> int:
    """The extent as MLIR types spell it."""
    return extent if isinstance(extent, int) else ir.ShapedType.get_dynamic_size()


def size_values(shape: Sequence[Extent]) -> list[ir.Value | int]:
    """One index value or number per dimension; builds the products of composite extents. Inside `emitting`."""
    return [size_value(extent) if isinstance(extent, Dim) else extent for extent in shape]


def size_value(extent: Dim) -> ir.Value:
    """A dynamic extent as an index at the current insertion point."""
    values = [symbol.value for symbol in extent.symbols]
    if extent.factor != 1:
        index = ir.IndexType.get()
        values.append(arith.ConstantOp(index, ir.IntegerAttr.get(index, extent.factor)).result)
    total = values[0]
    assert total is not None
    for value in values[1:]:
        total = arith.MulIOp(total, value).result
    return total


def _extent_value(extent: Dim) -> ir.Value:
    """A dynamic extent as an i64 at the current insertion point."""
    return arith.IndexCastOp(ir.IntegerType.get_signless(64), size_value(extent)).result


@contextmanager
def _entered(context: ir.Context, location: ir.Location, point: ir.InsertionPoint) -> Iterator[None]:
    with context, location, point:
        yield
