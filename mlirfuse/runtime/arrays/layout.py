"""The concrete shapes of one call: a host program with a number for every extent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mlirfuse.compiler.host_program import HostArgument, HostProgram, Rearrange, Shape, Slice, Value, View
from mlirfuse.errors import ArgumentError
from mlirfuse.runtime.arrays.arrays import ArrayInfo, ScalarInfo
from mlirfuse.runtime.arrays.foreign import contiguous_strides
from mlirfuse.support.dtypes import DType
from mlirfuse.support.strides import view

RunTimeArgument = ArrayInfo | ScalarInfo
Extents = tuple[int, ...]


@dataclass(frozen=True)
class Strided:
    """Where elements lie in an argument or a buffer.

    Attributes:
        shape: extents.
        strides: in elements.
        offset: elements from the start of the argument or buffer to the first element.
    """

    shape: Extents
    strides: Extents
    offset: int = 0


@dataclass(frozen=True)
class Result:
    """One result of a call.

    Attributes:
        origin: `argument` or `buffer`.
        position: which argument or which buffer.
        dtype: element type.
        shape: its extents.
        strides: its strides in elements.
        offset: elements from the start of the argument or buffer to its first element.
        axes: for each dimension, that of the whole buffer in a shape that `base` gives; None where the result is an
            argument, or a part of a buffer, or has elements repeated.
    """

    origin: str
    position: int
    dtype: DType
    shape: Extents
    strides: Extents
    offset: int
    axes: tuple[int, ...] | None

    @property
    def base(self) -> Extents:
        """The shape of the buffer whose dimensions are transposed to the result's."""
        assert self.axes is not None
        return tuple(self.shape[self.axes.index(axis)] for axis in range(len(self.axes)))

    @property
    def is_plain(self) -> bool:
        """Whether the result is a whole buffer in its own order."""
        return self.axes == tuple(range(len(self.shape)))


@dataclass(frozen=True)
class CallLayout:
    """A host program for arguments of certain shapes.

    Attributes:
        program: the program.
        arguments: the description of each argument.
        buffers: shape of each of the program's buffers.
        results: the description of each result.
        outputs: the buffers that are results, each once, in order of the results.
        intermediates: the other buffers.
    """

    program: HostProgram
    arguments: tuple[RunTimeArgument, ...]
    buffers: tuple[Extents, ...]
    results: tuple[Result, ...]
    outputs: tuple[int, ...]
    intermediates: tuple[int, ...]

    def whole(self, buffer: int) -> tuple[int, Result | None]:
        """The first result that is the whole of a buffer, and its number; else the first that shows a part of it."""
        seen = [(n, r) for n, r in enumerate(self.results) if (r.origin, r.position) == ("buffer", buffer)]
        return next((found for found in seen if found[1].axes is not None), (seen[0][0], None))

    @property
    def are_own(self) -> bool:
        """Whether each result is a whole buffer that no other result shows."""
        return len(self.outputs) == len(self.results) and all(result.axes is not None for result in self.results)

    def strided(self, value: Value) -> Strided:
        """Where the elements of a value lie; no extents for a scalar.

        Raises `ArgumentError` for a reshape that is no view of an argument.
        """
        return _strided(self.program, self.arguments, self.buffers, value)

    def dtype(self, value: Value) -> DType:
        """The element type of an array."""
        if value.origin == "buffer":
            return self.program.buffers[value.position].dtype
        argument = self.arguments[value.position]
        assert isinstance(argument, ArrayInfo)  # a scalar has no elements
        return argument.dtype


def lay_out(program: HostProgram, arguments: Sequence[RunTimeArgument]) -> CallLayout:
    """The program for these arguments.

    Raises:
        ArgumentError: their number, a rank, a dtype, a static extent or a device does not fit.
    """
    if len(arguments) != len(program.arguments):
        raise ArgumentError(f"takes {len(program.arguments)} arguments, got {len(arguments)}", where=program.name)
    for declared, given in zip(program.arguments, arguments, strict=True):
        _check(declared, given)
    devices = {argument.device for argument in arguments if isinstance(argument, ArrayInfo)}
    if len(devices) > 1:
        raise ArgumentError(
            f"the arrays are on devices {sorted(devices)}", where=program.name, hint="move them to one device"
        )
    buffers = tuple(_evaluate(program, arguments, buffer.shape) for buffer in program.buffers)
    results = tuple(_result(program, arguments, buffers, value) for value in program.results)
    outputs = tuple(dict.fromkeys(result.position for result in results if result.origin == "buffer"))
    intermediates = tuple(i for i in range(len(buffers)) if i not in outputs)
    return CallLayout(program, tuple(arguments), buffers, results, outputs, intermediates)


def _evaluate(program: HostProgram, arguments: Sequence[RunTimeArgument], shape: Shape) -> Extents:
    symbols = []
    for position, dim in program.extents:
        argument = arguments[position]
        assert isinstance(argument, ArrayInfo)  # extents come from tensor.dim of an argument
        symbols.append(argument.shape[dim])
    return tuple(extent.evaluate(symbols) for extent in shape)


def _check(declared: HostArgument, given: RunTimeArgument) -> None:
    if declared.shape is None or not isinstance(given, ArrayInfo):
        if declared.shape is not None or isinstance(given, ArrayInfo):
            expected = "a number" if declared.shape is None else "an array"
            raise ArgumentError(f"expected {expected}", where=declared.name)
        return
    if given.dtype != declared.dtype:
        raise ArgumentError(f"expected dtype {declared.dtype.name}, got {given.dtype.name}", where=declared.name)
    fits = len(given.shape) == len(declared.shape) and all(
        want in (None, have) for want, have in zip(declared.shape, given.shape, strict=True)
    )
    if not fits:
        wanted = ", ".join("?" if extent is None else str(extent) for extent in declared.shape)
        raise ArgumentError(f"expected shape ({wanted}), got {given.shape}", where=declared.name)


def _result(
    program: HostProgram, arguments: Sequence[RunTimeArgument], buffers: Sequence[Extents], value: Value
) -> Result:
    seen = _strided(program, arguments, buffers, value)
    if value.origin == "buffer":
        dtype = program.buffers[value.position].dtype
        axes = _axes(seen, prod(buffers[value.position]))
    else:
        argument = arguments[value.position]
        assert isinstance(argument, ArrayInfo)  # results are tensors
        dtype, axes = argument.dtype, None
    return Result(value.origin, value.position, dtype, seen.shape, seen.strides, seen.offset, axes)


def _axes(seen: Strided, count: int) -> tuple[int, ...] | None:
    """The dimensions of a whole buffer of so many elements that those of a view are; None for any other view."""
    if prod(seen.shape) != count or seen.offset:
        return None
    order = sorted(range(len(seen.shape)), key=lambda d: (-seen.strides[d], seen.shape[d] > 1, d))
    in_order = zip(seen.shape, seen.strides, contiguous_strides(seen.shape, 1), strict=True)
    if not count or all(n == 1 or stride == expected for n, stride, expected in in_order):
        order = list(range(len(seen.shape)))
    base = tuple(seen.shape[d] for d in order)
    expected = contiguous_strides(base, 1)
    if count and any(seen.shape[d] != 1 and seen.strides[d] != s for d, s in zip(order, expected, strict=True)):
        return None
    return tuple(order.index(d) for d in range(len(order)))


def _strided(
    program: HostProgram, arguments: Sequence[RunTimeArgument], buffers: Sequence[Extents], value: Value
) -> Strided:
    if value.origin == "buffer":
        shape = buffers[value.position]
        seen = Strided(shape, contiguous_strides(shape, 1))
    else:
        argument = arguments[value.position]
        if not isinstance(argument, ArrayInfo):
            return Strided((), ())
        seen = Strided(argument.shape, argument.strides)
        strided = program.arguments[value.position].strided
        if value.views and argument.is_contiguous and not strided:
            seen = Strided(argument.shape, contiguous_strides(argument.shape, 1))  # those of extents of 1 may be any
    for step in value.views:
        seen = _viewed(program, arguments, value, seen, step)
    return seen


def _viewed(
    program: HostProgram, arguments: Sequence[RunTimeArgument], value: Value, seen: Strided, step: View
) -> Strided:
    shape = _evaluate(program, arguments, step.shape)
    if isinstance(step, Rearrange):
        return Strided(shape, tuple(sum(seen.strides[d] for d in dims) for dims in step.axes), seen.offset)
    if isinstance(step, Slice):
        offsets = _evaluate(program, arguments, step.offsets)
        start = sum(o * s for o, s in zip(offsets, seen.strides, strict=True)) if 0 not in shape else 0
        strides = tuple(n * s for n, s in zip(step.steps, seen.strides, strict=True))
        return Strided(shape, strides, seen.offset + start)
    if prod(shape) != prod(seen.shape):
        raise ArgumentError(f"cannot view shape {seen.shape} as {shape}", where=program.name)
    reshaped = view(seen.shape, seen.strides, shape)
    if reshaped is None:
        is_argument = value.origin == "argument"
        raise ArgumentError(
            f"the program reshapes an array with strides {seen.strides}, which is not C-contiguous",
            where=program.arguments[value.position].name if is_argument else program.name,
            hint="copy the array first",
        )
    return Strided(shape, reshaped, seen.offset)
