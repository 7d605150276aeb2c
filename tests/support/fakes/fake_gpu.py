"""A device for microbenchmarks that is not there: ptxas assembles what is launched, and times are made up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirfuse.lowering.ptx.assembler import AssembledKernel, assemble_kernel
from mlirfuse.target import LINE, Target, target_of
from mlirfuse.tools.calibration.benchmark import Gpu, Launch
from mlirfuse.tools.calibration.kernel import Kernel

LAUNCH, ITERATION, BLOCK = 5e-6, 1e-6, 1e-9
STREAM_LAUNCH, DEPENDENT_LAUNCH = 7e-6, 2e-6
CLUSTER_LAUNCH = 6e-6


class FakeGpu(Gpu):
    """A device on which every iteration, launch and block takes a fixed time.

    Attributes:
        assembled: the kernels that were launched.
        fused: functions that mlirfuse was to compile.
    """

    def __init__(self, chip: str):
        self.target = target_of(chip)
        self.l2_bytes, self.memory_bytes = self.target.l2_bytes, 64 << 30
        self.assembled: dict[Kernel, AssembledKernel] = {}
        self.fused: list[tuple[Callable[..., Any], Sequence[tuple[int, ...]], str, Target]] = []

    def buffer(self, nbytes: int, start: np.ndarray | None = None) -> int:
        assert start is None or start.nbytes <= nbytes
        return 1 << 20

    def seconds(self, kernel: Kernel, launch: Launch) -> float:
        self._assemble(kernel)
        assert launch.blocks % kernel.cluster == 0
        assert launch.iterations >= 1
        each = LAUNCH if kernel.cluster == 1 else CLUSTER_LAUNCH
        each = DEPENDENT_LAUNCH if launch.is_dependent else each
        return launch.count * (each + ITERATION * launch.iterations + BLOCK * launch.blocks)

    def stream_seconds(self, kernel: Kernel, launch: Launch) -> float:
        return self.seconds(kernel, launch) + (STREAM_LAUNCH - LAUNCH) * launch.count

    def read(self, kernel: Kernel, launch: Launch, words: int) -> list[int]:
        self._assemble(kernel)
        return [1980 * (i == 0) or 1000 for i in range(words)]

    def clusters(self, kernel: Kernel) -> int:
        self._assemble(kernel)
        return max(1, self.sms // kernel.cluster - 1)

    def tensor_map(self, buffer: int, rows: int, row_bytes: int, pitch: int, box_rows: int) -> int:
        assert (row_bytes, rows % box_rows, pitch % 16) == (LINE, 0, 0)
        return 1 << 20

    def fused_seconds(
        self, function: Callable[..., Any], shapes: Sequence[tuple[int, ...]], dtype: str, target: Target | None = None
    ) -> float:
        self.fused.append((function, shapes, dtype, target or self.target))
        return 1e-3

    def _assemble(self, kernel: Kernel) -> None:
        if kernel not in self.assembled:
            self.assembled[kernel] = assemble_kernel(kernel.binary(self.target))
