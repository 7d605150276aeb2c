"""Kernel parameters of a launch plan: one block of 64-bit words, and for each launch a table of pointers into it.

The words are, in order: one an argument, one an output, one an intermediate, then the sizes and strides. Only the first
three groups change between calls. Tensor maps lie behind them, and are made again for a pointer that has changed.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from mlirfuse.errors import IRError
from mlirfuse.runtime.arrays import ArrayInfo
from mlirfuse.runtime.host_program import Launch, Value
from mlirfuse.runtime.kernel_info import POINTER_CODE, AbiParameter, KernelInfo
from mlirfuse.runtime.layout import CallLayout
from mlirfuse.runtime.tensor_maps import TENSOR_MAP_BYTES, TensorMapParameter, TensorMapShape, aligned_buffer

WORD = 8
"""Bytes of a parameter's slot; no parameter is larger."""

_SCALAR_CODES = {"float": "d", "int": "q", "bool": "q"}


@dataclass(frozen=True)
class LaunchGeometry:
    """One launch of a plan.

    Attributes:
        kernel: the kernel's launch information.
        blocks: size of the grid; 0 means that there is nothing to do.
        words: for each kernel parameter, the position of its word; for a tensor map, that of its pointer.
        tensor_maps: tensor maps by the number of their parameter.
    """

    kernel: KernelInfo
    blocks: int
    words: tuple[int, ...]
    tensor_maps: Mapping[int, TensorMapShape]


@dataclass(frozen=True)
class ParameterPlan:
    """Where every kernel parameter of a call comes from.

    Attributes:
        varying: `struct` format of the words that change between calls.
        fixed: the sizes and strides, which follow them.
        launches: the launches, in order.
    """

    varying: str
    fixed: tuple[int, ...]
    launches: tuple[LaunchGeometry, ...]


def plan_parameters(layout: CallLayout, kernels: Mapping[str, KernelInfo]) -> ParameterPlan:
    """Places the parameters of every launch.

    Raises:
        IRError: a launch names a kernel that is not there, or a kernel's parameters do not fit the launch.
        ArgumentError: an argument that the program reshapes is not contiguous.
    """
    codes = [POINTER_CODE if isinstance(a, ArrayInfo) else _SCALAR_CODES[a.kind] for a in layout.arguments]
    codes += [POINTER_CODE] * len(layout.buffers)
    fixed: list[int] = []
    launches = [_place(layout, launch, kernels, codes, fixed) for launch in layout.program.launches]
    return ParameterPlan("=" + "".join(codes), tuple(fixed), tuple(launches))


def _place(
    layout: CallLayout, launch: Launch, kernels: Mapping[str, KernelInfo], codes: Sequence[str], fixed: list[int]
) -> LaunchGeometry:
    if launch.kernel not in kernels:
        raise IRError(f"there is no kernel {launch.kernel}", where=layout.program.name)
    info = kernels[launch.kernel]
    operands = [*launch.inputs, *(Value("buffer", output) for output in launch.outputs)]
    views = [layout.shape_and_strides(operand) for operand in operands]
    blocks = info.blocks([shape for shape, _ in views])
    words: list[int] = []
    tensor_maps: dict[int, TensorMapShape] = {}
    for number, parameter in enumerate(info.parameters):
        if parameter.arg >= len(operands):
            raise IRError(
                f"{info.name} takes more arguments than the {len(operands)} of its launch", where=layout.program.name
            )
        if parameter.kind in ("size", "stride"):
            shape, strides = views[parameter.arg]
            words.append(len(codes) + len(fixed))
            fixed.append((shape if parameter.kind == "size" else strides)[parameter.dim])
            continue
        words.append(_word(layout, operands[parameter.arg], parameter, info, codes))
        if parameter.kind == "tensor_map" and blocks:
            dtype, (shape, strides) = layout.dtype(operands[parameter.arg]), views[parameter.arg]
            tensor_maps[number] = TensorMapShape.of_view(dtype, shape, strides, parameter.dims, parameter.box)
    return LaunchGeometry(info, blocks, tuple(words), tensor_maps)


def _word(layout: CallLayout, operand: Value, parameter: AbiParameter, info: KernelInfo, codes: Sequence[str]) -> int:
    """The word of a pointer or a scalar."""
    if operand.origin == "argument":
        word = operand.position
    else:
        order = [*layout.outputs, *layout.intermediates]
        word = len(layout.arguments) + order.index(operand.position)
    if codes[word] != parameter.code:
        raise IRError(
            f"argument {parameter.arg} of {info.name} is passed as {parameter.code!r}, the call gives {codes[word]!r}",
            where=layout.program.name,
        )
    return word


class ParameterBlock:
    """The words of a plan in memory, and the table of each launch.

    Attributes:
        addresses: of the table of each launch, which `cuLaunchKernel` takes as `kernelParams`.
        write: writes the varying words; takes as many values as the plan's format has codes.
    """

    def __init__(self, plan: ParameterPlan):
        varying = len(plan.varying) - 1
        self._words = (ctypes.c_int64 * (varying + len(plan.fixed)))(*[0] * varying, *plan.fixed)
        base = ctypes.addressof(self._words)
        self._tables = [
            (ctypes.c_uint64 * len(launch.words))(*[base + WORD * word for word in launch.words])
            for launch in plan.launches
        ]
        self._tensor_maps = self._place_tensor_maps(plan)
        self.addresses = tuple(ctypes.addressof(table) for table in self._tables)
        self._pack = partial(struct.Struct(plan.varying).pack_into, self._words, 0)
        self.write = self._write_with_tensor_maps if self._tensor_maps else self._pack

    def _place_tensor_maps(self, plan: ParameterPlan) -> list[TensorMapParameter]:
        """Gives each tensor map of each launch a place, which its parameter points to."""
        count = sum(len(launch.tensor_maps) for launch in plan.launches)
        self._maps = aligned_buffer(TENSOR_MAP_BYTES * count)
        address, placed = self._maps.address, []
        for launch, table in zip(plan.launches, self._tables, strict=True):
            for number, shape in launch.tensor_maps.items():
                placed.append(TensorMapParameter(shape, launch.words[number], address))
                table[number] = address
                address += TENSOR_MAP_BYTES
        return placed

    def _write_with_tensor_maps(self, *words: int) -> None:
        self._pack(*words)
        for tensor_map in self._tensor_maps:
            tensor_map.update(words)
