"""Tables that more than one command prints."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.table import Table

from mlirfuse.compiler.compile import Compiled
from mlirfuse.lowering.ptx.assembler import DRIVER, chosen_assembler
from mlirfuse.lowering.ptx.resources import KernelResources


def print_resources(console: Console, compiled: Compiled) -> None:
    """Prints the table of a function's kernels, or what to install where there is no ptxas."""
    if chosen_assembler().kind == DRIVER:
        console.print(
            "No ptxas: pip install nvidia-cuda-nvcc to see registers, memory and spills, and to have another schedule "
            "chosen where a kernel spills."
        )
        return
    console.print(resource_table(compiled.resources))


def resource_table(kernels: Iterable[KernelResources]) -> Table:
    """ptxas's report of each kernel; spills and performance warnings, which no schedule should have, are marked."""
    table = Table(title="Kernels", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False)
    table.add_column("kernel", no_wrap=True)
    for column in ("threads", "cluster", "registers", "shared bytes", "stack bytes", "spill bytes"):
        table.add_column(column, justify="right", no_wrap=" " not in column)
    for kernel in kernels:
        spills = _spills(kernel)
        table.add_row(
            kernel.name,
            str(kernel.block),
            str(kernel.cluster),
            str(kernel.registers),
            str(kernel.shared_bytes),
            str(kernel.stack_bytes),
            spills,
        )
        for loss in kernel.losses:
            table.add_row(f"[bold red]{loss}[/]")
    return table


def _spills(kernel: KernelResources) -> str:
    """Bytes stored and loaded for want of registers; unknown where the driver assembled the kernel."""
    if kernel.spill_store_bytes is None or kernel.spill_load_bytes is None:
        return "unknown"
    spills = kernel.spill_store_bytes + kernel.spill_load_bytes
    return f"[bold red]{spills}[/]" if spills else "0"
