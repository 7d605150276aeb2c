"""The specs of what a function is called with, or lowered for: GPU arrays, NumPy arrays, numbers and constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirfuse.builder.spec import ArgumentSpec, ScalarSpec, StaticSpec, TensorSpec
from mlirfuse.dtypes import dtype_of
from mlirfuse.runtime.arrays import Argument, ArrayInfo, ScalarInfo, read_argument
from mlirfuse.signature import Extents


def gpu_specs(arguments: Sequence[Argument], extents: Extents, names: Sequence[str]) -> tuple[ArgumentSpec, ...]:
    """Specs of GPU arguments."""
    extents.observe(argument.shape for argument in arguments if isinstance(argument, ArrayInfo))
    specs: list[ArgumentSpec] = []
    for i, argument in enumerate(arguments):
        if isinstance(argument, ArrayInfo):
            name = names[i] if i < len(names) else f"argument {i}"
            specs.append(extents.spec(i, argument.shape, argument.strides, argument.dtype, argument.alignment, name))
        elif isinstance(argument, ScalarInfo):
            specs.append(ScalarSpec(argument.kind))  # type: ignore[arg-type]  # ScalarSpec checks it
        else:
            specs.append(StaticSpec(argument.value))
    return tuple(specs)


def numpy_specs(arguments: Sequence[Any], extents: Extents, names: Sequence[str]) -> tuple[ArgumentSpec, ...]:
    """Specs of C-contiguous NumPy arrays and numbers, for the interpreter."""
    extents.observe(argument.shape for argument in arguments if isinstance(argument, np.ndarray))
    specs: list[ArgumentSpec] = []
    for i, argument in enumerate(arguments):
        if isinstance(argument, np.ndarray):
            strides = [s // argument.itemsize for s in argument.strides]
            name = names[i] if i < len(names) else f"argument {i}"
            specs.append(extents.spec(i, argument.shape, strides, dtype_of(argument.dtype), 16, name))
        else:
            specs.append(spec_of(argument, i, extents))
    return tuple(specs)


def spec_of(argument: Any, position: int, extents: Extents) -> ArgumentSpec:
    """The spec of what `lower` was given."""
    if isinstance(argument, TensorSpec | ScalarSpec | StaticSpec):
        return argument
    if isinstance(argument, np.ndarray):
        return numpy_specs([np.ascontiguousarray(argument)], extents, ())[0]
    if isinstance(argument, bool | int | float):
        return ScalarSpec(type(argument).__name__)  # type: ignore[arg-type]  # one of the three
    info = read_argument(argument, f"argument {position}")
    return gpu_specs([info], extents, ())[0]


def spec_text(spec: ArgumentSpec) -> str:
    """A spec as `explain` shows it."""
    if isinstance(spec, TensorSpec):
        strides = "" if spec.strides is None else f" strides {spec.strides}"
        return f"{spec.dtype.name}[{', '.join(map(str, spec.shape))}]{strides}"
    return spec.kind if isinstance(spec, ScalarSpec) else repr(spec.value)
