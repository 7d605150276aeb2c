"""What spilled of the kernels of a program, where an assembler is at hand that says so."""

from __future__ import annotations

from collections.abc import Sequence

from mlirfuse.lowering.ptx.assembler import DRIVER, assemble_kernels, chosen_assembler
from mlirfuse.lowering.ptx.resources import KernelResources
from mlirfuse.lowering.ptx.to_ptx import KernelBinary
from mlirfuse.target import Target


def are_known(target: Target) -> bool:
    """Whether kernels for a target are assembled here, by an assembler that says what spills."""
    return chosen_assembler(target).kind != DRIVER


def resources_of(binaries: Sequence[KernelBinary]) -> list[KernelResources]:
    """What each kernel takes of the machine; none of them where that is not known. Asking twice costs nothing.

    Raises:
        CompileError: the assembler refuses a kernel.
    """
    known = [binary for binary in binaries if are_known(binary.target)]
    return [kernel.resources for kernel in assemble_kernels(known)]
