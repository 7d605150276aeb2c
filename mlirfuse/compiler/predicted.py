"""What a compiled function is predicted to take, kernel by kernel, before or without running it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from mlirfuse.compiler.expressions import Expression
from mlirfuse.compiler.feedback import kernel_of
from mlirfuse.compiler.host_program import HostProgram, Launch, Value
from mlirfuse.compiler.kernel_info import KernelInfo
from mlirfuse.errors import ArgumentError
from mlirfuse.machine import MachineModel
from mlirfuse.schedule.choice.predicted import (
    Candidate,
    predicted_candidates,
    prediction_of,
    roofline,
    with_elements,
)
from mlirfuse.schedule.choice.records import AnyProblem
from mlirfuse.schedule.predict import Prediction
from mlirfuse.schedule.predict.counts.space import ASSUMED_ELEMENTS
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target

Shapes = Sequence[tuple[int, ...] | None]
"""The shape of each argument of a call, in order; None for a number."""


@dataclass(frozen=True)
class PredictedKernel:
    """A kernel with what it is predicted to take.

    Attributes:
        name: before it is tiled.
        schedule: its schedule.
        prediction: of one launch, with its second stage where that is a kernel too.
        launches: times that a call launches it.
        roofline_us: microseconds in which each array of one launch moves once, or its products are computed.
        roofline_bound: `device memory` or `products`, whichever takes longer.
        problem: its scheduling problem, as it is compiled.
        sized: its scheduling problem with the extents of the call.
        target: the architecture.
        machine: the speeds of the device.
    """

    name: str
    schedule: Schedule
    prediction: Prediction
    launches: int
    roofline_us: float
    roofline_bound: str
    problem: AnyProblem
    sized: AnyProblem
    target: Target
    machine: MachineModel

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """All candidates of the problem, the fastest by prediction first."""
        return tuple(predicted_candidates(self.problem, self.sized, self.target, self.machine))


@dataclass(frozen=True)
class Predicted:
    """What a call is predicted to take on a device.

    Attributes:
        kernels: in the order of their first launches.
        device: the name of the machine model.
        assumed: the extents that are known at run time and were assumed, as text; none for a call's own.
        workspace_bytes: of intermediates, partial results and semaphores, which calls of a stream take turns to use.
    """

    kernels: tuple[PredictedKernel, ...]
    device: str
    assumed: tuple[str, ...]
    workspace_bytes: int = 0

    @property
    def microseconds(self) -> float:
        """Predicted for all launches of a call."""
        return sum(kernel.launches * kernel.prediction.microseconds for kernel in self.kernels)

    @property
    def roofline_us(self) -> float:
        """The least microseconds of all launches, each by itself."""
        return sum(kernel.launches * kernel.roofline_us for kernel in self.kernels)


def predicted(
    call: Call,
    schedules: Mapping[str, Schedule],
    problems: Mapping[str, AnyProblem],
    target: Target,
    machine: MachineModel,
    infos: Mapping[str, KernelInfo],
) -> Predicted:
    """What a call of a compiled function is predicted to take.

    Args:
        call: the host's buffers and launches, with the sizes of the arguments.
        schedules: of each kernel, by its name before it is tiled.
        problems: the same of scheduling problems, with the extents of the call as hints.
        target: the architecture.
        machine: the speeds of the device.
        infos: how to launch each kernel; kernels without are taken to have no workspace.
    """
    groups: dict[str, list[Launch]] = {}
    for launch in call.program.launches:
        groups.setdefault(kernel_of(launch.kernel), []).append(launch)
    kernels = []
    for name, launches in groups.items():
        if name not in schedules or name not in problems:
            continue
        times = sum(launch.kernel == launches[0].kernel for launch in launches)
        elements, nbytes = call.size(launches[: len(launches) // times])
        problem, schedule = problems[name], schedules[name]
        sized = with_elements(problem, elements)
        time, least = prediction_of(schedule, sized, machine), roofline(sized, nbytes, machine)
        kernels.append(PredictedKernel(name, schedule, time, times, *least, problem, sized, target, machine))
    return Predicted(tuple(kernels), machine.name, call.assumed, call.workspace_bytes(infos, machine.sms))


class Call:
    """The sizes of a call's arrays.

    Args:
        program: the host's buffers and launches.
        shapes: of the arguments; None for what is expected of them.
        expected: the shapes that are expected, None for a number; an extent of which nothing is expected is None.

    Attributes:
        program: the host's buffers and launches.
        shapes: of the arguments; None for a number.
        assumed: the run-time extents that were assumed, as text.

    Raises:
        ArgumentError: there are fewer shapes than arguments, or an array has none or of another rank.
    """

    def __init__(self, program: HostProgram, shapes: Shapes | None, expected: Sequence[tuple[int | None, ...] | None]):
        self.program = program
        arrays = [(n, argument) for n, argument in enumerate(program.arguments) if argument.shape is not None]
        self.assumed: tuple[str, ...] = ()
        self._shapes: dict[int, tuple[int, ...]] = {}
        for n, argument in arrays:
            assert argument.shape is not None
            if shapes is None:
                found = self._shapes[n] = _assumed(expected[n] or ())
                unknown = (d for d, extent in enumerate(argument.shape) if extent is None)
                self.assumed += tuple(f"{argument.name}.shape[{d}] = {found[d]}" for d in unknown)
                continue
            given = shapes[n] if n < len(shapes) else None
            if given is None or len(given) != len(argument.shape):
                what = f"the shape {given} is not that of an array of {len(argument.shape)} dimensions"
                raise ArgumentError(what, where=argument.name, hint="give the shape of each argument, in order")
            self._shapes[n] = tuple(given)
        self.shapes: list[tuple[int, ...] | None] = [self._shapes.get(n) for n in range(len(program.arguments))]
        self._symbols = [self._shapes[argument][dim] for argument, dim in program.extents]

    def size(self, launches: Sequence[Launch]) -> tuple[int, float]:
        """Of the kernels of one problem: elements of the largest array, and bytes of all that others make or use."""
        written = {position for launch in launches for position in launch.outputs}
        inside = {v.position for launch in launches for v in launch.inputs if v.origin == "buffer"} & written
        read: dict[tuple[str, int], set[Value]] = {}
        for value in (value for launch in launches for value in launch.inputs):
            if value.origin != "buffer" or value.position not in inside:
                read.setdefault((value.origin, value.position), set()).add(value)
        arrays = [(max(map(self._elements, views)), self._bytes(views)) for views in read.values()]
        for position in written - inside:
            buffer = self.program.buffers[position]
            count = prod(self._evaluated(buffer.shape))
            arrays.append((count, count * buffer.dtype.bytes))
        return max((count for count, _ in arrays), default=1), sum(nbytes for _, nbytes in arrays)

    def workspace_bytes(self, infos: Mapping[str, KernelInfo], sms: int) -> int:
        """Bytes of intermediates, and of what the launch that needs the most has for partial results and semaphores.

        Args:
            infos: how to launch each kernel.
            sms: of the device, which grids of resident blocks depend on.
        """
        returned = {v.position for v in self.program.results if v.origin == "buffer"}
        kept = [buffer for position, buffer in enumerate(self.program.buffers) if position not in returned]
        intermediates = sum(prod(self._evaluated(buffer.shape)) * buffer.dtype.bytes for buffer in kept)
        most = 0
        for launch in self.program.launches:
            info = infos.get(launch.kernel)
            values = [*launch.inputs, *(Value("buffer", position) for position in launch.outputs)]
            if info is not None and info.workspaces:
                shapes = info.workspace_shapes([self._shape(v) for v in values], lambda per_sm: per_sm * sms)
                sizes = (prod(s) * w.element_bytes for s, w in zip(shapes, info.workspaces, strict=True))
                most = max(most, sum(sizes))
        return intermediates + most

    def _shape(self, value: Value) -> tuple[int, ...]:
        if value.shape is not None:
            return tuple(self._evaluated(value.shape))
        if value.origin == "buffer":
            return tuple(self._evaluated(self.program.buffers[value.position].shape))
        return self._shapes.get(value.position, ())

    def _elements(self, value: Value) -> int:
        return self._origin(value) if value.shape is None else prod(self._evaluated(value.shape))

    def _origin(self, value: Value) -> int:
        """Elements of the argument or the buffer that a value is, or a view of."""
        if value.origin == "buffer":
            return prod(self._evaluated(self.program.buffers[value.position].shape))
        return prod(self._shapes.get(value.position, ()))

    def _bytes(self, views: Collection[Value]) -> float:
        """Bytes that views of one array have together: at most the array's, as they may repeat elements, or overlap."""
        value = next(iter(views))
        arrays = self.program.buffers if value.origin == "buffer" else self.program.arguments
        return min(sum(map(self._elements, views)), self._origin(value)) * arrays[value.position].dtype.bytes

    def _evaluated(self, shape: Sequence[Expression]) -> list[int]:
        return [extent.evaluate(self._symbols) for extent in shape]


def _assumed(shape: Sequence[int | None]) -> tuple[int, ...]:
    """A shape with as many elements as predictions assume; equal extents where several are unknown."""
    known, unknown = prod(extent for extent in shape if extent is not None), list(shape).count(None)
    each = max(1, round((ASSUMED_ELEMENTS / max(1, known)) ** (1 / unknown))) if unknown else 1
    return tuple(each if extent is None else extent for extent in shape)
