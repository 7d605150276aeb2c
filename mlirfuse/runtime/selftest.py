"""Runs the known miscompilations of assemblers on a device, under the chosen assembler and the driver's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mlirfuse.lowering.ptx.assembler import DRIVER, Assembler, assemble_kernel, chosen_assembler, driver_release
from mlirfuse.lowering.ptx.miscompilation_probes import ENTRY, THREADS, Probe, probes
from mlirfuse.lowering.ptx.to_ptx import KernelBinary
from mlirfuse.runtime.device.cuda import cupy, device_target, on_device


@dataclass(frozen=True)
class Outcome:
    """The result of one assembler on one pattern.

    Attributes:
        probe: the pattern.
        assembler: the assembler.
        wrong: how many of `THREADS` results were wrong without the workaround.
        wrong_with_workaround: how many with it, as mlirfuse emits the pattern.
    """

    probe: Probe
    assembler: Assembler
    wrong: int
    wrong_with_workaround: int


def outcomes(device: int = 0) -> Iterator[Outcome]:
    """Runs every pattern on a device.

    Raises:
        RuntimeLaunchError: there is no GPU.
        CompileError: the chosen assembler refuses a pattern.
    """
    target = device_target(device)
    assemblers = dict.fromkeys((chosen_assembler(target), Assembler(DRIVER, driver_release())))
    for assembler in assemblers:
        for probe in probes():
            wrong = (_wrong(probe, probe.binary(target, workaround=w), assembler, device) for w in (False, True))
            yield Outcome(probe, assembler, *wrong)


def _wrong(probe: Probe, binary: KernelBinary, assembler: Assembler, device: int) -> int:
    code = binary.ptx.encode() if assembler.kind == DRIVER else assemble_kernel(binary, assembler).cubin
    with on_device(device):
        module = cupy().cuda.function.Module()
        module.load(code)
        values = probe.values()
        given, found = cupy().asarray(values), cupy().zeros(THREADS, probe.dtype)
        module.get_function(ENTRY)((1,), (THREADS,), (given, found))
        return int(np.count_nonzero(found.get() != probe.expected(values)))
