"""Kernel parameters of a launch plan: one block of 64-bit words, and for each launch a table of pointers into it.

The words are, in order: one an argument, one an output, one an intermediate, one a workspace argument of each launch,
then the sizes and strides. All but the last group change between calls. Tensor maps follow, and are encoded again when
their pointer changes.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

from mlirfuse.analysis.memory.workspaces import SEMAPHORES
from mlirfuse.compiler.host_program import Launch, Value
from mlirfuse.compiler.kernel_info import POINTER_CODE, AbiParameter, KernelInfo
from mlirfuse.errors import IRError
from mlirfuse.runtime.arrays.arrays import ArrayInfo
from mlirfuse.runtime.arrays.foreign import contiguous_strides
from mlirfuse.runtime.arrays.layout import CallLayout
from mlirfuse.runtime.device.tensor_maps import TENSOR_MAP_BYTES, TensorMapParameter, TensorMapShape, aligned_buffer
from mlirfuse.runtime.memory_plan import MemoryPlan, MemoryPlanner

WORD = 8
"""Bytes of a parameter's slot; no parameter is larger."""

_SCALAR_CODES = {"float": "d", "int": "q", "bool": "q"}


def _no_device(kernel: str, per_sm: int) -> int:
    raise IRError(f"the grid of {kernel} depends on the device", where=kernel)


@dataclass(frozen=True)
class LaunchGeometry:
    """One launch of a plan.

    Attributes:
        kernel: the kernel's launch information.
        blocks: size of the grid; 0 means that there is nothing to do.
        words: for each kernel parameter, the position of its word; for a tensor map, that of its pointer.
        tensor_maps: tensor maps by the number of their parameter.
        semaphores: (argument, word, bytes) of each workspace argument that holds semaphores.
    """

    kernel: KernelInfo
    blocks: int
    words: tuple[int, ...]
    tensor_maps: Mapping[int, TensorMapPlace]
    semaphores: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class ParameterPlan:
    """The source of every kernel parameter of a call.

    Attributes:
        varying: `struct` format of the words that change between calls.
        fixed: the sizes and strides, which follow them.
        launches: the launches, in order.
        memory: where intermediates and workspace arguments lie; they are the last of the varying words.
        distant: (word, other word, bytes) of each pointer that is at a distance from another.
    """

    varying: str
    fixed: tuple[int, ...]
    launches: tuple[LaunchGeometry, ...]
    memory: MemoryPlan
    distant: tuple[tuple[int, int, int], ...] = ()

    @property
    def is_flat(self) -> bool:
        """Whether the words of a call are those of its arguments and outputs, and no parameter follows from them."""
        maps = any(launch.tensor_maps for launch in self.launches)
        return not (self.memory.places or self.distant or maps)


@dataclass(frozen=True)
class TensorMapPlace:
    """A tensor map, the word of the pointer that it starts from, and its first byte's distance from there."""

    shape: TensorMapShape
    word: int
    distance: int


def plan_parameters(
    layout: CallLayout, kernels: Mapping[str, KernelInfo], resident: Callable[[str, int], int] = _no_device
) -> ParameterPlan:
    """Places the parameters of every launch.

    Args:
        layout: the call.
        kernels: the kernels' launch information by name.
        resident: how many blocks of a kernel the device holds at once, for so many on each SM at most.

    Raises:
        IRError: a launch names a kernel that is not there, a kernel's parameters do not fit the launch, or a launch of
            no blocks has results with elements.
        ArgumentError: an argument that the program reshapes is not contiguous.
    """
    return _Planner(layout, kernels, resident).plan()


@dataclass(frozen=True)
class _Operand:
    """An argument of a kernel.

    Attributes:
        word: position of its pointer.
        shape: extents.
        strides: in elements.
        base: position of the pointer that its own is at a distance from.
        distance: bytes between the two pointers.
    """

    word: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    base: int
    distance: int = 0


class _Planner:
    """Places the parameters of one launch after the other."""

    def __init__(self, layout: CallLayout, kernels: Mapping[str, KernelInfo], resident: Callable[[str, int], int]):
        self.layout, self.kernels, self.resident = layout, kernels, resident
        buffers, sizes = layout.program.buffers, layout.buffers
        self.memory = MemoryPlanner([prod(sizes[i]) * buffers[i].dtype.bytes for i in layout.intermediates])
        self.fixed: list[int] = []
        self.distant: dict[tuple[int, int], int] = {}
        self.codes = [POINTER_CODE if isinstance(a, ArrayInfo) else _SCALAR_CODES[a.kind] for a in layout.arguments]
        self.codes += [POINTER_CODE] * len(layout.buffers)
        self.workspace_word = len(self.codes)
        self.codes += [POINTER_CODE] * sum(len(self._info(launch).workspaces) for launch in layout.program.launches)

    def plan(self) -> ParameterPlan:
        launches = tuple(self._place(launch) for launch in self.layout.program.launches)
        memory = MemoryPlan(tuple(self.memory.places))
        distant = tuple((word, base, distance) for (base, distance), word in self.distant.items())
        return ParameterPlan("=" + "".join(self.codes), tuple(self.fixed), launches, memory, distant)

    def _info(self, launch: Launch) -> KernelInfo:
        if launch.kernel not in self.kernels:
            raise IRError(f"there is no kernel {launch.kernel}", where=self.layout.program.name)
        return self.kernels[launch.kernel]

    def _place(self, launch: Launch) -> LaunchGeometry:
        info = self._info(launch)
        values = [*launch.inputs, *(Value("buffer", output) for output in launch.outputs)]
        operands = [self._operand(value) for value in values]
        shapes = [operand.shape for operand in operands]
        blocks = info.blocks(shapes, partial(self.resident, info.name))
        if not blocks and any(prod(operand.shape) for operand in operands[len(launch.inputs) :]):
            raise IRError(
                f"{info.name} has no blocks for these extents, but its results have elements, which stay unwritten",
                where=self.layout.program.name,
                hint="compile for the extents that are 0: calls of fused functions do",
            )
        workspaces = self._place_workspaces(info, shapes)
        operands += workspaces
        words: list[int] = []
        tensor_maps: dict[int, TensorMapPlace] = {}
        for number, parameter in enumerate(info.parameters):
            if parameter.arg >= len(operands):
                raise IRError(
                    f"{info.name} takes more arguments than the {len(operands)} of its launch",
                    where=self.layout.program.name,
                )
            operand = operands[parameter.arg]
            if parameter.kind in ("size", "stride"):
                words.append(len(self.codes) + len(self.fixed))
                self.fixed.append((operand.shape if parameter.kind == "size" else operand.strides)[parameter.dim])
                continue
            words.append(self._checked(operand.word, parameter, info))
            if parameter.kind == "tensor_map" and blocks:
                dtype = self.layout.dtype(values[parameter.arg])
                shape = TensorMapShape.of_view(
                    dtype,
                    operand.shape,
                    operand.strides,
                    parameter.dims,
                    parameter.box,
                    tf32=parameter.tf32,
                    im2col=parameter.im2col,
                )
                tensor_maps[number] = TensorMapPlace(shape, operand.base, operand.distance)
        semaphores = tuple(
            (workspace.arg, operand.word, prod(operand.shape) * workspace.element_bytes)
            for workspace, operand in zip(info.workspaces, workspaces, strict=True)
            if workspace.kind == SEMAPHORES
        )
        return LaunchGeometry(info, blocks, tuple(words), tensor_maps, semaphores)

    def _place_workspaces(self, info: KernelInfo, shapes: Sequence[Sequence[int]]) -> list[_Operand]:
        """Places a kernel's workspace arguments, which follow the arguments of the launch."""
        positions = [workspace.arg for workspace in info.workspaces]
        if positions != list(range(len(shapes), len(shapes) + len(positions))):
            raise IRError(
                f"the workspaces of {info.name} are arguments {positions}, its launch has {len(shapes)} arguments",
                where=self.layout.program.name,
            )
        own = info.workspace_shapes(shapes, partial(self.resident, info.name))
        self.memory.add_launch(info.workspaces, own)
        first, self.workspace_word = self.workspace_word, self.workspace_word + len(own)
        words = range(first, first + len(own))
        return [_Operand(w, shape, contiguous_strides(shape, 1), w) for w, shape in zip(words, own, strict=True)]

    def _operand(self, value: Value) -> _Operand:
        """The operand of a value; the pointer of a view that starts behind its source's gets a word of its own."""
        base, seen = self._word(value), self.layout.strided(value)
        if not seen.offset:
            return _Operand(base, seen.shape, seen.strides, base)
        distance = seen.offset * self.layout.dtype(value).bytes
        word = self.distant.setdefault((base, distance), len(self.codes) + len(self.fixed))
        if word == len(self.codes) + len(self.fixed):
            self.fixed.append(0)
        return _Operand(word, seen.shape, seen.strides, base, distance)

    def _word(self, value: Value) -> int:
        """The word of a pointer or a scalar of the host program."""
        if value.origin == "argument":
            return value.position
        order = [*self.layout.outputs, *self.layout.intermediates]
        return len(self.layout.arguments) + order.index(value.position)

    def _checked(self, word: int, parameter: AbiParameter, info: KernelInfo) -> int:
        """The word, which must be of the parameter's kind."""
        code = self.codes[word] if word < len(self.codes) else POINTER_CODE
        if code != parameter.code:
            raise IRError(
                f"argument {parameter.arg} of {info.name} is passed as {parameter.code!r}, the call gives {code!r}",
                where=self.layout.program.name,
            )
        return word


class ParameterBlock:
    """The words of a plan in memory, and the table of each launch.

    Attributes:
        addresses: of the table of each launch, which `cuLaunchKernel` takes as `kernelParams`.
        pack: writes the varying words, each an argument, where nothing else depends on them (`ParameterPlan.is_flat`).
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
        self.pack = partial(struct.Struct(plan.varying).pack_into, self._words, 0)
        self._has_floats = _SCALAR_CODES["float"] in plan.varying
        self._distant = plan.distant
        self._written: Sequence[Any] | None = None

    def _place_tensor_maps(self, plan: ParameterPlan) -> list[TensorMapParameter]:
        """Gives each tensor map of each launch a place, which its parameter points to."""
        count = sum(len(launch.tensor_maps) for launch in plan.launches)
        self._maps = aligned_buffer(TENSOR_MAP_BYTES * count)
        address, placed = self._maps.address, []
        for launch, table in zip(plan.launches, self._tables, strict=True):
            for number, place in launch.tensor_maps.items():
                placed.append(TensorMapParameter(place.shape, place.word, address, place.distance))
                table[number] = address
                address += TENSOR_MAP_BYTES
        return placed

    def pointer(self, word: int) -> int:
        """The pointer that the last call wrote into a word."""
        return self._words[word]

    def write(self, words: Sequence[Any]) -> None:
        """Writes the varying words, as many as the plan's format has codes, unless equal to those of the previous call.

        The sequence is kept, and must not be changed by the caller. Floats are always written, as 0.0 equals -0.0.
        """
        if words == self._written:
            return
        self._written = None  # encoding a tensor map may fail, and leave only some maps up to date
        self.pack(*words)
        for word, base, distance in self._distant:
            self._words[word] = words[base] + distance
        for tensor_map in self._tensor_maps:
            tensor_map.update(words)
        if not self._has_floats:
            self._written = words
