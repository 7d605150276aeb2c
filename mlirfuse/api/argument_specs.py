"""The specs of a function's arguments: GPU arrays, NumPy arrays, numbers and constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirfuse.api.signature import Extents, Static
from mlirfuse.builder.spec import ArgumentSpec, ScalarSpec, StaticSpec, TensorSpec
from mlirfuse.errors import ArgumentError, DTypeError
from mlirfuse.runtime.arrays.arrays import Argument, ArrayInfo, ScalarInfo, read_argument
from mlirfuse.support.dtypes import DType, dtype_of


def gpu_specs(arguments: Sequence[Argument], extents: Extents) -> tuple[ArgumentSpec, ...]:
    """Specs of a call's GPU arrays, numbers and constants."""
    extents.observe(argument.shape for argument in arguments if isinstance(argument, ArrayInfo))
    specs: list[ArgumentSpec] = []
    for i, argument in enumerate(arguments):
        if isinstance(argument, ArrayInfo):
            specs.append(extents.spec(i, argument.shape, argument.strides, argument.dtype, argument.alignment))
        elif isinstance(argument, ScalarInfo):
            specs.append(ScalarSpec(argument.kind))  # type: ignore[arg-type]  # ScalarSpec checks it
        else:
            specs.append(StaticSpec(argument.value))
    return tuple(specs)


def numpy_specs(arguments: Sequence[Any], extents: Extents, names: Sequence[str]) -> tuple[ArgumentSpec, ...]:
    """Specs of NumPy arrays that `readable` has seen, of numbers and constants, for the interpreter.

    Raises `ArgumentError` for an array of another library, and for objects that are no arguments.
    """
    extents.observe(argument.shape for argument in arguments if isinstance(argument, np.ndarray))
    specs: list[ArgumentSpec] = []
    for i, argument in enumerate(arguments):
        name = name_of(names, i)
        if isinstance(argument, np.ndarray):
            strides = tuple(s // argument.itemsize for s in argument.strides)
            dtype = _dtype(argument, name)
            info = ArrayInfo(argument.ctypes.data, argument.shape, strides, dtype, 0, "numpy")
            specs.append(extents.spec(i, info.shape, info.strides, dtype, info.alignment))
        elif hasattr(argument, "__dlpack__") or hasattr(argument, "__cuda_array_interface__"):
            what = f"target='interpret' takes NumPy arrays, got {type(argument).__module__}.{type(argument).__name__}"
            raise ArgumentError(what, where=name, hint="convert it, for example with x.numpy()")
        else:
            specs.append(spec_of(argument, name, extents))
    return tuple(specs)


def lowered_specs(arguments: Sequence[Any], names: Sequence[str]) -> tuple[ArgumentSpec, ...]:
    """The specs of the arguments of `lower`, which are specs, arrays, numbers or constants."""
    extents = Extents()
    return tuple(spec_of(argument, name_of(names, i), extents) for i, argument in enumerate(arguments))


def spec_of(argument: Any, name: str, extents: Extents) -> ArgumentSpec:
    """The spec of one argument, which may be a spec already."""
    if isinstance(argument, TensorSpec | ScalarSpec | StaticSpec):
        return argument
    if isinstance(argument, np.ndarray):
        return numpy_specs([readable(argument, name)], extents, [name])[0]
    return gpu_specs([read_argument(argument, name)], extents)[0]


def readable(argument: Any, name: str) -> Any:
    """The argument, or a copy of a NumPy array that kernels cannot read; raises `ArgumentError` for a masked array.

    Kernels cannot read unaligned elements, or strides that are no multiple of the element size.
    """
    if isinstance(argument, np.ma.MaskedArray):
        raise ArgumentError("the array has a mask", where=name, hint="fill it: x.filled(0)")
    if not isinstance(argument, np.ndarray):
        return argument
    size = argument.itemsize
    whole = not any(distance % size for distance in (argument.ctypes.data, *argument.strides)) if size else True
    return np.asarray(argument) if whole else np.array(argument, order="C", subok=False)


def spec_text(spec: ArgumentSpec) -> str:
    """A spec as `explain` shows it, with what run-time extents are expected to be."""
    if isinstance(spec, TensorSpec):
        strides = "" if spec.strides is None else f" strides {spec.strides}"
        hints = spec.hints or (None,) * len(spec.shape)
        pairs = zip(spec.shape, hints, strict=True)
        extents = [str(n) if isinstance(n, int) or hint is None else f"{n or '?'}={hint}" for n, hint in pairs]
        return f"{spec.dtype.name}[{', '.join(extents)}]{strides}"
    return spec.kind if isinstance(spec, ScalarSpec) else repr(spec.value)


def name_of(names: Sequence[str], position: int) -> str:
    """The parameter that takes the argument at a position, as messages name it."""
    return names[position] if position < len(names) else f"argument {position}"


def _dtype(array: np.ndarray, name: str) -> DType:
    try:
        return dtype_of(array.dtype)
    except DTypeError as error:
        raise DTypeError(error.message, where=name, hint=error.hint) from None


def reasons(specs: Sequence[ArgumentSpec], static: Static, names: Sequence[str]) -> tuple[str, ...]:
    """Why dimensions of arguments with these specs and names are static that might be dynamic."""
    sources = static.needed | static.reordered.innermost | static.reordered.inner
    notes = []
    for position, dim in sorted(sources):
        spec = specs[position]
        if isinstance(spec, TensorSpec) and isinstance(spec.shape[dim], int):
            name = name_of(names, position)
            notes.append(f"dimension {dim} of {name} is static: {static.why((position, dim))}")
    return tuple(notes)
