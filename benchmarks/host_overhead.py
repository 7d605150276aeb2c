"""Host time of one warm launch: the runtime against the bare ways to launch the same kernel.

    python benchmarks/host_overhead.py [--arguments 6] [--json FILE]

The kernel does nothing to speak of, so the host is what takes the time. The variants are called in turns, in batches
that fit the driver's queue; the median of the batches' time per call is what counts. Goal: `plan, out=` at most 8 us.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from timing import host_us

from mlirfuse.compiler.context import make_context
from mlirfuse.compiler.host_program import HostProgram
from mlirfuse.compiler.kernel_info import kernel_infos
from mlirfuse.compiler.pipeline import LOWER, stage
from mlirfuse.compiler.read_host import host_program
from mlirfuse.dialect.module_target import set_target
from mlirfuse.lowering.ptx import to_ptx
from mlirfuse.passmanager.manager import Pipeline
from mlirfuse.runtime.arrays.arrays import signature
from mlirfuse.runtime.device import cuda
from mlirfuse.runtime.device.module import LoadedKernel, load
from mlirfuse.runtime.dispatch import Dispatcher
from mlirfuse.support.diagnostics import parse_module
from mlirfuse.target import target_of

ROWS, COLUMNS = 8, 128
Variant = tuple[str, Callable[[], object]]


def kernel_text(arguments: int) -> str:
    """A gpu-stage kernel of that many inputs that copies the first, and its host function."""
    tensor, memref = f"tensor<?x{COLUMNS}xf32>", f"memref<?x{COLUMNS}xf32>"
    tensors = ", ".join([tensor] * arguments)
    return f"""
    gpu.module @copy {{
      gpu.func @copy({", ".join(f"%x{i}: {memref}" for i in range(arguments))}, %y: {memref})
          kernel attributes {{known_block_size = array<i32: {COLUMNS}, 1, 1>, fuse.grid = affine_map<()[s0] -> (s0)>,
                             fuse.grid_operands = array<i64: 0, 0>}} {{
        %t = gpu.thread_id x
        %row = gpu.block_id x
        %v = memref.load %x0[%row, %t] : {memref}
        memref.store %v, %y[%row, %t] : {memref}
        gpu.return
      }}
    }}
    func.func @f({", ".join(f"%x{i}: {tensor}" for i in range(arguments))}) -> {tensor} {{
      %0 = call @f_0({", ".join(f"%x{i}" for i in range(arguments))}) : ({tensors}) -> {tensor}
      return %0 : {tensor}
    }}
    func.func private @f_0({tensors}) -> {tensor}
        attributes {{fuse.launch = @copy, fuse.result_extents = array<i64: 0, 0>}}
    """


def build(arguments: int) -> tuple[HostProgram, dict[str, LoadedKernel]]:
    """The host program and its loaded kernel."""
    chip = cuda.chip(0)
    module = parse_module(kernel_text(arguments), make_context())
    set_target(module.operation, target_of(chip))
    Pipeline.parse(stage(LOWER)).run(module)
    infos = kernel_infos(module.operation)
    to_ptx.to_nvvm(module.operation)
    binaries = to_ptx.ptx(module.operation, target_of(chip))
    return host_program(module.operation), {name: load(binaries[name], infos[name], 0) for name in binaries}


def bare_variants(kernel: LoadedKernel, inputs: list[Any], output: Any) -> Iterator[Variant]:
    """The kernel launched by CuPy and by cuda-bindings, its parameters as they would write them."""
    cupy = cuda.cupy()
    values: list[Any] = []
    for array in (*inputs, output):
        values += [array, np.int64(ROWS)]
    function = kernel.owner.get_function(kernel.info.name)  # type: ignore[attr-defined]
    yield "bare CuPy launch", lambda: function((ROWS,), (COLUMNS,), tuple(values))

    words = [word for array in (*inputs, output) for word in (array.data.ptr, ROWS)]
    block = np.array(words, dtype=np.uint64)
    table = np.array([block.ctypes.data + 8 * i for i in range(len(words))], dtype=np.uint64)
    launch, stream, address = cupy.cuda.driver.launchKernel, cupy.cuda.get_current_stream().ptr, table.ctypes.data
    yield (
        "CuPy's driver.launchKernel, parameters packed",
        lambda: launch(kernel.function, ROWS, 1, 1, COLUMNS, 1, 1, 0, stream, address, 0),
    )
    try:
        from cuda.bindings import driver
    except ImportError:
        return
    handle, queue = driver.CUfunction(kernel.function), driver.CUstream(stream)
    yield (
        "cuda.bindings cuLaunchKernel, parameters packed",
        lambda: driver.cuLaunchKernel(handle, ROWS, 1, 1, COLUMNS, 1, 1, 0, queue, address, 0),
    )


def plan_variants(run: Dispatcher, inputs: list[Any], output: Any, name: str) -> Iterator[Variant]:
    """A whole call through the runtime, and its first step alone, on one framework's arrays."""
    args = tuple(inputs)
    yield f"signature, {name}", lambda: signature(args)
    yield f"plan, out=, {name}", lambda: run(args, out=output)
    yield f"plan, new output, {name}", lambda: run(args)


def variants(arguments: int) -> Iterator[Variant]:
    """(name, call) of everything measured."""
    cupy = cuda.cupy()
    program, kernels = build(arguments)
    run = Dispatcher(lambda infos: (program, kernels), [argument.name for argument in program.arguments])
    inputs = [cupy.ones((ROWS, COLUMNS), np.float32) * i for i in range(arguments)]
    output = cupy.empty_like(inputs[0])
    yield from bare_variants(kernels["copy"], inputs, output)
    yield from plan_variants(run, inputs, output, "CuPy")
    yield "cupy.empty", lambda: cupy.empty((ROWS, COLUMNS), np.float32)
    try:
        import torch
    except ImportError:
        return
    tensors = [torch.as_tensor(array, device="cuda") for array in inputs]
    yield from plan_variants(run, tensors, torch.empty_like(tensors[0]), "torch")
    yield "torch add, out=", lambda: torch.add(tensors[0], tensors[1], out=tensors[-1])


def main() -> int:
    """Prints the table; writes JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arguments", type=int, default=6, help="input arrays of the kernel")
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    options = parser.parse_args()
    measured = host_us(dict(variants(options.arguments)), cuda.cupy().cuda.runtime.deviceSynchronize)
    table = Table("host time of a call", "us", title=f"{options.arguments} inputs, 1 output, 1 launch")
    for name, value in measured.items():
        table.add_row(name, f"{value:.2f}")
    Console().print(table)
    if options.json:
        options.json.write_text(json.dumps({"arguments": options.arguments, "microseconds": measured}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
