"""Register spills of the kernels of a program, where the assembler reports them."""

from __future__ import annotations

from collections.abc import Sequence

from mlirfuse.lowering.ptx.assembler import DRIVER, assemble_kernels, chosen_assembler
from mlirfuse.lowering.ptx.resources import KernelResources
from mlirfuse.lowering.ptx.to_ptx import KernelBinary
from mlirfuse.target import Target


def are_known(target: Target) -> bool:
    """Whether kernels for a target are assembled on this machine, by an assembler that reports spills."""
    return chosen_assembler(target).kind != DRIVER


def resources_of(binaries: Sequence[KernelBinary]) -> list[KernelResources]:
    """The resources of each kernel; empty where spills are not known. Results are cached.

    Raises:
        CompileError: the assembler refuses a kernel.
    """
    known = [binary for binary in binaries if are_known(binary.target)]
    return [kernel.resources for kernel in assemble_kernels(known)]
