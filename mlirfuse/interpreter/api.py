"""The two entry points: run a host function, or one kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from mlir import ir

from mlirfuse.errors import ArgumentError, InterpreterError
from mlirfuse.interpreter.interpreter import SMS, Interpreter, Options
from mlirfuse.interpreter.kernel_arguments import argument_name, argument_types, bind_value
from mlirfuse.interpreter.scheduler import Schedule


def run(
    module: ir.Module | ir.Operation,
    function_name: str,
    inputs: Sequence[Any],
    *,
    order: str = "launch",
    seed: int = 0,
    resident: int | None = None,
    checks: bool = True,
    progress: bool = False,
    sms: int = SMS,
) -> list[np.ndarray]:
    """Runs a host function (tensors in, tensors out) and every kernel that it launches.

    Args:
        module: IR at the linalg, segmented, tile or gpu stage.
        function_name: the host function's symbol.
        inputs: a NumPy array for each tensor argument, a number for each scalar one.
        order: `launch`, `reversed` or `random` order of blocks.
        seed: seed of the random order.
        resident: number of blocks that may be on the device at once; None for all.
        checks: whether races, reads of unwritten memory and misaligned accesses are looked for. Bounds are always
            checked.
        progress: whether a progress bar is drawn when a kernel takes over two seconds.
        sms: number of SMs of the device, which bounds the grids of persistent kernels.

    Returns:
        An array for each result, C-contiguous unless the result is a view of an input; 0-d for scalars.

    Raises:
        ArgumentError: wrong number, dtype, rank or extents of inputs.
        InterpreterError: an op without a rule, or a check that failed.
    """
    options = Options(Schedule(order, seed, resident), checks=checks, progress=progress, sms=sms)
    with module.context, np.errstate(all="ignore"), _naming(options.schedule):
        interpreter = Interpreter(module, options)
        op = interpreter.function(function_name).op
        types = argument_types(op)
        if len(inputs) != len(types):
            raise ArgumentError(f"@{function_name} takes {len(types)} inputs, got {len(inputs)}")
        names = [argument_name(op, position) for position in range(len(types))]
        if any(isinstance(type_, ir.MemRefType) for type_ in types):
            raise ArgumentError(
                f"@{function_name} is a kernel on memrefs", hint="use run_kernel, and pass the kernel's outputs"
            )
        arguments = [bind_value(name, type_, value) for name, type_, value in zip(names, types, inputs, strict=True)]
        results = interpreter.call_host(function_name, arguments)
        result_types = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value).results
        return [
            result if isinstance(type_, ir.ShapedType) else result.reshape(())
            for result, type_ in zip(results, result_types, strict=True)
        ]


def run_kernel(
    module: ir.Module | ir.Operation,
    kernel_name: str,
    inputs: Sequence[Any],
    outputs: Sequence[np.ndarray],
    *,
    order: str = "launch",
    seed: int = 0,
    resident: int | None = None,
    checks: bool = True,
    progress: bool = False,
    sms: int = SMS,
) -> None:
    """Runs one kernel on memrefs: a tile function, or a `gpu.func` inside a `gpu.module`.

    The options and the errors are those of `run`, but output elements may stay unwritten. `outputs` are the arrays for
    the kernel's last memref arguments: elements that the kernel writes are overwritten, and their earlier contents are
    uninitialised for the kernel.
    """
    options = Options(Schedule(order, seed, resident), checks=checks, progress=progress, sms=sms)
    with module.context, np.errstate(all="ignore"), _naming(options.schedule):
        interpreter = Interpreter(module, options)
        interpreter.run_kernel(interpreter.function(kernel_name), inputs, outputs)


@contextmanager
def _naming(schedule: Schedule) -> Iterator[None]:
    """Adds the schedule of blocks to an error without a hint, so that the error can be reproduced."""
    try:
        yield
    except InterpreterError as error:
        if error.hint is not None or schedule == Schedule():
            raise
        options = f"order={schedule.order!r}, seed={schedule.seed}, resident={schedule.resident}"
        raise InterpreterError(error.message, where=error.where, hint=f"run with {options} to reproduce it") from error
