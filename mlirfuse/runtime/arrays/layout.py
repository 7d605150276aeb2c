"""The concrete shapes of one call: a host program with a number for every extent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from mlirfuse.compiler.host_program import HostArgument, HostProgram, Shape, Value
from mlirfuse.errors import ArgumentError
from mlirfuse.runtime.arrays.arrays import ArrayInfo, ScalarInfo
from mlirfuse.runtime.arrays.foreign import contiguous_strides
from mlirfuse.support.dtypes import DType
from mlirfuse.support.strides import view

RunTimeArgument = ArrayInfo | ScalarInfo
Extents = tuple[int, ...]


@dataclass(frozen=True)
class Result:
    """One result of a call.

    Attributes:
        origin: `argument` or `buffer`.
        position: which argument or which buffer.
        dtype: element type.
        shape: its extents, before they are transposed.
        axes: for each dimension of the transposed result, that of `shape`; None where it is not transposed.
    """

    origin: str
    position: int
    dtype: DType
    shape: Extents
    axes: tuple[int, ...] | None

    @property
    def shape_and_strides(self) -> tuple[Extents, Extents]:
        """Extents, and strides in elements, of the result in a buffer of its own."""
        strides = contiguous_strides(self.shape, 1)
        if self.axes is None:
            return self.shape, strides
        return tuple(self.shape[a] for a in self.axes), tuple(strides[a] for a in self.axes)


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

    def shape_and_strides(self, value: Value) -> tuple[Extents, Extents]:
        """Extents and strides (in elements) of a value; both empty for a scalar."""
        if value.diagonal is not None:
            return _diagonal(value.diagonal, *self.shape_and_strides(replace(value, diagonal=None)))
        if value.origin == "buffer":
            shape = self.buffers[value.position] if value.shape is None else self.extents(value.shape)
            return shape, contiguous_strides(shape, 1)
        argument = self.arguments[value.position]
        if not isinstance(argument, ArrayInfo):
            return (), ()
        if value.shape is None:
            return argument.shape, argument.strides
        shape, declared = self.extents(value.shape), self.program.arguments[value.position]
        strides = view(argument.shape, argument.strides, shape)
        if strides is None or not (argument.is_contiguous or declared.strided):
            raise ArgumentError(
                f"the program reshapes an array with strides {argument.strides}, which is not C-contiguous",
                where=declared.name,
                hint="copy the array first",
            )
        return shape, strides

    def dtype(self, value: Value) -> DType:
        """The element type of an array."""
        if value.origin == "buffer":
            return self.program.buffers[value.position].dtype
        argument = self.arguments[value.position]
        assert isinstance(argument, ArrayInfo)  # a scalar has no elements
        return argument.dtype

    def extents(self, shape: Shape) -> Extents:
        """The numbers that a shape's expressions stand for."""
        return _evaluate(self.program, self.arguments, shape)


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
    if value.origin == "buffer":
        dtype, own = program.buffers[value.position].dtype, buffers[value.position]
    else:
        argument = arguments[value.position]
        assert isinstance(argument, ArrayInfo)  # results are tensors
        dtype, own = argument.dtype, argument.shape
    shape = own if value.shape is None else _evaluate(program, arguments, value.shape)
    if prod(shape) != prod(own):
        raise ArgumentError(f"cannot view shape {own} as {shape}", where=program.name)
    return Result(value.origin, value.position, dtype, shape, value.axes)


def _diagonal(dims: Sequence[int | None], shape: Extents, strides: Extents) -> tuple[Extents, Extents]:
    """Extents and strides of a diagonal whose dimension `dims[axis]` runs along each axis of an array."""
    rank = len({dim for dim in dims if dim is not None})
    axes = [[axis for axis, dim in enumerate(dims) if dim == d] for d in range(rank)]
    return tuple(shape[along[0]] for along in axes), tuple(sum(strides[axis] for axis in along) for along in axes)
