"""A microbenchmark, and what a GPU offers it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mlirfuse.target import Target
from mlirfuse.tools.calibration.fitting import LEAST_SECONDS, per_iteration
from mlirfuse.tools.calibration.kernel import Kernel


@dataclass(frozen=True)
class Launch:
    """Grid and arguments of a kernel.

    Attributes:
        blocks: of the grid.
        iterations: of the kernel's loop.
        buffer: address that the kernel finds in `%rd0`.
        other: address in `%rd1`; 0 for some memory of `Gpu.SCRATCH` bytes.
        argument: number in `%r1`.
        count: launches of the kernel in a row.
        is_dependent: whether each launch may start before its predecessor has ended.
    """

    blocks: int
    iterations: int = 1
    buffer: int = 0
    other: int = 0
    argument: int = 0
    count: int = 1
    is_dependent: bool = False


class Gpu(ABC):
    """A device that microbenchmarks run on.

    Attributes:
        target: its architecture, with its SMs.
        l2_bytes: size of its L2.
        memory_bytes: of its free memory.
    """

    SCRATCH = 1 << 16

    target: Target
    l2_bytes: int
    memory_bytes: int

    @property
    def sms(self) -> int:
        """Its SMs."""
        return self.target.sms

    @abstractmethod
    def buffer(self, nbytes: int, start: np.ndarray | None = None) -> int:
        """The address of so many bytes of device memory, which start with an array, or are random numbers.

        A later call frees them: a benchmark asks for all that it needs at once, or copies addresses of one buffer.
        """

    @abstractmethod
    def seconds(self, kernel: Kernel, launch: Launch) -> float:
        """Median time of a launch, in a replayed graph."""

    @abstractmethod
    def stream_seconds(self, kernel: Kernel, launch: Launch) -> float:
        """The same in a stream, without a graph."""

    @abstractmethod
    def read(self, kernel: Kernel, launch: Launch, words: int) -> list[int]:
        """What a launch writes at the start of the second buffer: so many unsigned numbers of 64 bits."""

    @abstractmethod
    def clusters(self, kernel: Kernel) -> int:
        """Clusters of a kernel that the device holds at once."""

    @abstractmethod
    def tensor_map(self, buffer: int, rows: int, row_bytes: int, pitch: int, box_rows: int) -> int:
        """The address of a tensor map in device memory, of rows of bfloat16.

        Args:
            buffer: address of the first row.
            rows: their number.
            row_bytes: bytes of a row, and of a box's row.
            pitch: bytes from one row to the next.
            box_rows: rows of a box.
        """

    @abstractmethod
    def fused_seconds(
        self, function: Callable[..., Any], shapes: Sequence[tuple[int, ...]], dtype: str, target: Target | None = None
    ) -> float:
        """Time of a call of a function that mlirfuse compiles, on arrays that are not in the L2.

        Args:
            function: a function of arrays, as `mf.fuse` takes it.
            shapes: of the arguments.
            dtype: of the arguments, by NumPy's name.
            target: what to compile for; by default the device's own target.
        """


def iteration_seconds(
    gpu: Gpu, kernel: Kernel, launch: Launch, *, least: int = 16, least_seconds: float = LEAST_SECONDS
) -> float:
    """Seconds of an iteration of a kernel's loop.

    Args:
        gpu: the device.
        kernel: the kernel.
        launch: how it is launched, whose iterations do not matter.
        least: iterations of the shortest launch, at least.
        least_seconds: of the shortest launch, at least.
    """
    return per_iteration(
        lambda n: gpu.seconds(kernel, replace(launch, iterations=n)), least=least, least_seconds=least_seconds
    )


def everywhere(_: Target) -> bool:
    """For what every architecture has."""
    return True


def has_clusters(target: Target) -> bool:
    """For what is of clusters."""
    return target.has_clusters


@dataclass(frozen=True)
class Microbenchmark:
    """How one quantity or a few of a `MachineModel` are measured.

    Attributes:
        measures: names of the quantities, in order.
        how: one line for the reader.
        spread: how far results of repeated runs are expected to lie apart, to their median.
        run: measures them once, in their units.
        exists_on: whether an architecture has what is measured.
        repeats: how often it is run; the median counts.
    """

    measures: tuple[str, ...]
    how: str
    spread: float
    run: Callable[[Gpu], Mapping[str, float]]
    exists_on: Callable[[Target], bool] = everywhere
    repeats: int = 3

    @property
    def name(self) -> str:
        """What it is called on the command line: the first quantity."""
        return self.measures[0]
