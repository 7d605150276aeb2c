"""Finds functions in a module, compiles each once, and runs kernels of the tensor, tile and gpu levels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from mlir import ir

from mlirfuse.analysis.memory.workspaces import workspaces
from mlirfuse.dialect.attributes import CLUSTER
from mlirfuse.errors import InterpreterError
from mlirfuse.interpreter import rules  # noqa: F401  (registers the rules)
from mlirfuse.interpreter.kernel_arguments import (
    argument_types,
    bind_inputs,
    bind_output,
    bind_workspaces,
    require_zero_semaphores,
    unwritten,
)
from mlirfuse.interpreter.kernel_grid import cluster_size, run_grid
from mlirfuse.interpreter.program import Function, FunctionCompiler, Program
from mlirfuse.interpreter.progress import BlockProgress
from mlirfuse.interpreter.scheduler import Coroutine, Schedule, run_blocks
from mlirfuse.interpreter.site import Site
from mlirfuse.interpreter.state.machine import Cluster, Frame, ThreadBlock, host_block
from mlirfuse.interpreter.state.memory import MemRef
from mlirfuse.interpreter.state.types import DYNAMIC, element_dtype

SMS = 2
"""Default number of SMs of the interpreted device: few, so that grids need several waves."""


@dataclass(frozen=True)
class Options:
    """Options of a run.

    Attributes:
        schedule: the order of blocks.
        checks: whether uninitialised reads, races and misalignment are looked for; bounds are always checked.
        progress: whether a progress bar may be drawn when a kernel takes over two seconds.
        sms: number of SMs of the device, which bounds the grids of persistent kernels.
    """

    schedule: Schedule = field(default_factory=Schedule)
    checks: bool = True
    progress: bool = False
    sms: int = SMS


class Interpreter:
    """Runs functions of one module.

    Args:
        module: the `builtin.module`, which must outlive the interpreter.
        options: options of all runs.
    """

    def __init__(self, module: ir.Module | ir.Operation, options: Options):
        self.options = options
        self._module = module
        self._functions: dict[str, Function] = {}
        self._symbols: dict[str, ir.Operation] = {}
        self._globals: dict[str, ir.Operation] = {}
        for op in symbol_ops(module.operation):
            table = self._globals if op.name == "memref.global" else self._symbols
            name = ir.StringAttr(op.attributes["sym_name"]).value
            table.setdefault(name, op)

    def function(self, name: str) -> Function:
        """The compiled function of that name; raises `InterpreterError` if there is none or an op has no rule."""
        function = self._functions.get(name)
        if function is None:
            function = self._functions[name] = FunctionCompiler(self).function(self.symbol(name))
        return function

    def symbol(self, name: str) -> ir.Operation:
        """The op of the function of that name; raises `InterpreterError` if there is none."""
        if name not in self._symbols:
            known = ", ".join(sorted(self._symbols)) or "none"
            raise InterpreterError(f"the module has no function @{name}", hint=f"functions: {known}")
        return self._symbols[name]

    def global_alignment(self, symbol: str) -> int | None:
        """The alignment of a `memref.global` in bytes; None for the size of an element."""
        op = self._globals.get(symbol)
        if op is None:
            raise InterpreterError(f"the module has no memref.global @{symbol}")
        return ir.IntegerAttr(op.attributes["alignment"]).value if "alignment" in op.attributes else None

    def call_host(self, name: str, arguments: Sequence[Any]) -> list[Any]:
        """Calls a function on tensors with arrays (tensors) and one-element arrays (scalars).

        Raises `InterpreterError` for unbounded recursion.
        """
        function = self.function(name)
        frame = function.frame(host_block(checks=self.options.checks))
        try:
            run_to_end(function.program.call(frame, arguments))
        except RecursionError:
            raise InterpreterError(f"@{name} recurses too deeply", hint="a host function may not call itself") from None
        return function.program.outcome(frame)

    def launch(
        self,
        site: Site,
        kernel: str,
        inputs: Sequence[Any],
        types: Sequence[ir.RankedTensorType],
        extents: Sequence[int],
    ) -> list[np.ndarray]:
        """Launches a kernel, and returns new arrays of the given types; `extents` are their dynamic extents, in order.

        Raises `ArgumentError` for an argument that does not fit the kernel, and `InterpreterError` at the call for a
        result element that the kernel never writes.
        """
        function = self.function(kernel)
        sizes = iter(extents)
        if len(extents) != sum(list(type_.shape).count(DYNAMIC) for type_ in types):
            raise site.error(f"fuse.result_extents gives {len(extents)} extents, which do not fit the results' types")
        shapes = [tuple(next(sizes) if e == DYNAMIC else e for e in type_.shape) for type_ in types]
        outputs = [np.zeros(shape, element_dtype(type_)) for shape, type_ in zip(shapes, types, strict=True)]
        memrefs = self.run_kernel(function, inputs, outputs)
        for position, memref in enumerate(memrefs):
            if (index := unwritten(memref)) is not None:
                raise site.error(f"@{kernel} never wrote element {index} of its result {position}")
        return outputs

    def run_kernel(self, function: Function, inputs: Sequence[Any], outputs: Sequence[np.ndarray]) -> list[MemRef]:
        """Runs a tile function or `gpu.func`, copies the elements that it wrote to `outputs`, and returns the outputs'
        memrefs.
        """
        op, checks = function.op, self.options.checks
        sms = max(self.options.sms, cluster_size(op))  # a device that cannot hold a cluster cannot run the kernel
        count = len(inputs) + len(outputs)
        expected = len(argument_types(op)) - len(workspaces(op))
        if count != expected:
            name = ir.StringAttr(op.attributes["sym_name"]).value
            raise InterpreterError(
                f"kernel @{name} takes {expected} arguments, got {len(inputs)} inputs and {len(outputs)} outputs",
                where=op,
            )
        bound = bind_inputs(op, inputs, checks=checks)
        memrefs = [bind_output(op, len(inputs) + k, array, checks=checks) for k, array in enumerate(outputs)]
        memory = bind_workspaces(op, [*bound, *memrefs], sms, checks=checks)
        arguments = [*bound, *memrefs, *memory]
        if op.name == "gpu.func":
            run_grid(function, arguments, self.options.schedule, sms, progress=self.options.progress, checks=checks)
        else:
            run_to_end(function.program.call(function.frame(host_block(checks=checks)), arguments))
        require_zero_semaphores(op, memory)
        for array, memref in zip(outputs, memrefs, strict=True):
            _copy_back(array, memref)
        return memrefs

    def run_forall(self, site: Site, frame: Frame, body: Program, ranges: Sequence[range]) -> None:
        """Runs the iterations of an `scf.forall` as blocks of one thread each."""
        points = list(product(*ranges))
        # Everything emitted before the loop, such as another loop, has ended before the loop starts.
        for value in frame.values:
            if isinstance(value, MemRef) and value.buffer.shadow is not None:
                value.buffer.shadow.forget_accesses()
        checks = self.options.checks

        size = cluster_of_tiles(site.op)
        if len(points) % size:
            raise site.error(f"{len(points)} blocks are no multiple of a cluster of {size}")

        def start(first: int) -> Callable[[], list[tuple[str, Coroutine]]]:
            def group() -> list[tuple[str, Coroutine]]:
                cluster = Cluster(size)
                cluster.blocks = [
                    ThreadBlock(first + rank, len(points), (1, 1, 1), cluster, rank, checks=checks)
                    for rank in range(size)
                ]
                return [(f"block {block.index}", run(block)) for block in cluster.blocks]

            return group

        def run(block: ThreadBlock) -> Coroutine:
            arguments = [np.array([at], np.int64) for at in points[block.index]]
            yield from body.call(Frame(list(frame.values), block), arguments)
            block.finished = True

        with BlockProgress(site.name, len(points), enabled=self.options.progress) as progress:
            run_blocks([start(first) for first in range(0, len(points), size)], size, self.options.schedule, progress)


def cluster_of_tiles(forall: ir.Operation) -> int:
    """Number of neighbouring iterations of a tile program's loop over blocks that form a cluster."""
    function = forall.parent
    return ir.IntegerAttr(function.attributes[CLUSTER]).value if CLUSTER in function.attributes else 1


def run_to_end(coroutine: Coroutine) -> None:
    """Runs a coroutine that is the only one; raises `InterpreterError` if it waits for something that cannot happen."""
    for wait in coroutine:
        if wait is not None and not wait.ready():
            raise InterpreterError(f"deadlock: waits for {wait.what()}, and no other block runs")


def symbol_ops(op: ir.Operation) -> list[ir.Operation]:
    """Functions and globals, of the module first and then of the `gpu.module`s in it."""
    found, nested = [], []
    for view in op.regions[0].blocks[0].operations:
        inner = view.operation
        if inner.name in ("func.func", "gpu.func", "memref.global"):
            found.append(inner)
        elif inner.name in ("gpu.module", "builtin.module"):
            nested += symbol_ops(inner)
    return found + nested


def _copy_back(array: np.ndarray, memref: MemRef) -> None:
    """Copies the elements that the kernel wrote to the caller's array; other elements of the array are unchanged."""
    if not array.size:
        return
    flat = memref.buffer.elements(memref.dtype)[: array.size].reshape(array.shape)
    shadow = memref.buffer.shadow
    if shadow is None:
        array[...] = flat
    else:
        written = shadow.written_elements(array.size, memref.dtype.itemsize).reshape(array.shape)
        array[written] = flat[written]
