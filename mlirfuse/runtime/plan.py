"""A launch plan: everything about a call that does not change between calls of the same shapes.

A call only writes pointers and numbers where the driver reads them, and launches.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlirfuse.compiler.host_program import HostProgram
from mlirfuse.errors import ArgumentError, RuntimeLaunchError
from mlirfuse.runtime.arrays.arrays import ALIGNMENT, Argument, ArrayInfo, StaticInfo
from mlirfuse.runtime.arrays.foreign import contiguous_strides
from mlirfuse.runtime.arrays.layout import CallLayout, Result, lay_out
from mlirfuse.runtime.arrays.outputs import OutputPlan, Submit
from mlirfuse.runtime.arrays.result_checks import checks_results, with_checked_results
from mlirfuse.runtime.arrays.view_makers import Maker, view_maker
from mlirfuse.runtime.device import cuda
from mlirfuse.runtime.device.driver import dependent_launcher
from mlirfuse.runtime.device.module import LoadedKernel
from mlirfuse.runtime.fast_calls import Steps
from mlirfuse.runtime.parameters import LaunchGeometry, ParameterBlock, plan_parameters
from mlirfuse.runtime.workspace import checks_workspace, require_zero, with_workspace

Launch = Callable[[int], None]


class LaunchPlan:
    """Launches a host program's kernels for arguments of certain shapes, dtypes and strides on one device.

    Args:
        program: the host's buffers and launches.
        kernels: the loaded kernels by name.
        arguments: the arguments of every call, which differ only in pointers and numbers. Constants of the compilation
            are no arguments of the program.

    Raises:
        ArgumentError: the arguments do not fit the program, or lie on another device than the kernels.
    """

    def __init__(self, program: HostProgram, kernels: Mapping[str, LoadedKernel], arguments: Sequence[Argument]):
        self._positions = [i for i, argument in enumerate(arguments) if not isinstance(argument, StaticInfo)]
        layout = lay_out(program, [a for a in arguments if not isinstance(a, StaticInfo)])
        arrays = [argument for argument in arguments if isinstance(argument, ArrayInfo)]
        if not arrays:
            raise ArgumentError(
                "a call needs at least one array", where=program.name, hint="pass one: results are made on its device"
            )
        self._layout, self._device, self._framework = layout, arrays[0].device, arrays[0].framework
        self._pack = program.pack
        for kernel in kernels.values():
            if kernel.device != self._device:
                raise ArgumentError(
                    f"the arrays are on device {self._device}, {kernel.info.name} is loaded on {kernel.device}",
                    where=program.name,
                    hint="load the kernels on the arrays' device",
                )
        submit, self._prepare = _submitter(layout, kernels, self._device)
        self._submit = with_checked_results(submit, layout, self._device) if checks_results() else submit
        self._structure = program.structure
        self._current_stream = cuda.current_stream(self._framework, self._device)
        self._allocate = [self._allocator(position) for position in layout.outputs]
        # Where each result is a buffer of its own, new arrays are returned as they are.
        self._is_plain = layout.are_own and all(result.is_plain for result in layout.results)
        self._views = [] if self._is_plain else [self._view(result) for result in layout.results]
        self._launches = bool(program.launches)

    def run(self, arguments: Sequence[Any], values: Sequence[Any], stream: int | None = None) -> Any:
        """Launches into new arrays of the caller's framework and returns them as the Python function does.

        Args:
            arguments: the caller's arguments, of which results may be views.
            values: the pointers and numbers of those that are no constants, as `arrays.signature` gives them.
            stream: the stream's pointer; None is the framework's current one.

        Raises:
            RuntimeLaunchError: the driver refuses the launch.
        """
        made = [allocate() for allocate in self._allocate]
        if self._launches:
            words = [*values, *[pointer for _, pointer in made]]
            self._submit(words, self._current_stream() if stream is None else stream)
        arrays = [array for array, _ in made]
        if self._is_plain:
            return self._pack(arrays)
        return self._pack([view(arguments, arrays) for view in self._views])

    def steps(self) -> Steps | None:
        """What a generated function of a call does; None where calls need more than parameters and launches."""
        if self._prepare is None or checks_results():
            return None
        first = self._prepare()
        layout, made = self._layout, {}
        expressions = []
        for number, result in enumerate(layout.results):
            at_argument = result.origin == "argument"
            source = (
                f"a{self._positions[result.position]}" if at_argument else f"r{layout.outputs.index(result.position)}"
            )
            maker = self._maker(result)
            if maker is not None:
                made[f"view{number}"] = maker
            expressions.append(source if maker is None else f"view{number}({source})")
        where = layout.program.name
        return Steps(
            device=self._device,
            framework=self._framework,
            prepare=self._prepare,
            idle=[first],
            launches=len(first) - 2,
            outputs=tuple((self._shape(i), layout.program.buffers[i].dtype.name) for i in layout.outputs),
            results=tuple(expressions),
            structure=self._structure,
            current_stream=self._current_stream,
            refusal=lambda error: _refused(error, where),
            made=made,
        )

    def to_copy(self, into: Sequence[Argument] | None) -> tuple[int, ...]:
        """The numbers of the results that a kernel has to copy, as the program's views do not serve a call.

        Args:
            into: arrays of the caller that results are written into, which views are not, and neither are transposed
                results in contiguous arrays; None where there are none.
        """
        results = self._layout.results
        if into is not None:
            straight = [isinstance(a, ArrayInfo) and a.is_contiguous and not a.pointer % ALIGNMENT for a in into]
            if len(into) == len(results) and any(straight):
                kept = [r.axes is not None and (r.is_plain or not s) for r, s in zip(results, straight, strict=True)]
            else:
                kept = [r.axes is not None for r in results]
            first = {(r.origin, r.position): n for n, r in reversed(list(enumerate(results))) if kept[n]}
            return tuple(n for n, r in enumerate(results) if first.get((r.origin, r.position)) != n)
        return tuple(n for n, result in enumerate(results) if not self._can_view(result))

    def _can_view(self, result: Result) -> bool:
        """Whether the caller's framework has such a view; PyTorch has no negative strides."""
        if self._framework == "torch" and min(result.strides, default=0) < 0:
            return False
        argument = self._layout.arguments[result.position] if result.origin == "argument" else None
        return not isinstance(argument, ArrayInfo) or (argument.framework == self._framework and argument.lends)

    def into(self, out: Sequence[Argument]) -> OutputPlan:
        """Launches into the caller's arrays; raises `ArgumentError` where the results do not fit in them."""
        if not self._layout.are_own:
            raise ArgumentError(
                "a result is a view of an argument or of another result",
                where=f"{self._layout.program.name}: out",
                hint="call it without out=",
            )
        return OutputPlan(self._layout, self._submit, self._current_stream, out, self._device)

    def _allocator(self, position: int) -> Callable[[], tuple[object, int]]:
        """Allocates an output with the shape under which it is first returned, so that most results need no view."""
        dtype = self._layout.program.buffers[position].dtype
        return cuda.allocator(self._framework, self._shape(position), dtype.name, self._device)

    def _shape(self, position: int) -> tuple[int, ...]:
        """The shape in which an output is allocated."""
        _, result = self._layout.whole(position)
        return self._layout.buffers[position] if result is None else result.base

    def _maker(self, result: Result) -> Maker | None:
        """Makes a result of its argument or output; None where it is one."""
        if result.origin == "argument":
            argument = self._layout.arguments[result.position]
            assert isinstance(argument, ArrayInfo)
            return view_maker(self._framework, result.dtype, argument.shape, argument.strides, result)
        shape = self._shape(result.position)
        return view_maker(self._framework, result.dtype, shape, contiguous_strides(shape, 1), result)

    def _view(self, result: Result) -> Callable[[Sequence[Any], Sequence[Any]], Any]:
        """A function of a call's arguments and new arrays that makes a result."""
        if result.origin == "argument":
            return _first(self._positions[result.position], self._maker(result))
        of_made = _first(self._layout.outputs.index(result.position), self._maker(result))
        return lambda _, made: of_made(made, ())


def _first(place: int, make: Maker | None) -> Callable[[Sequence[Any], Sequence[Any]], Any]:
    """A function of two sequences: a view of the array at a place in the first."""
    if make is None:
        return lambda arrays, _: arrays[place]
    return lambda arrays, _: make(arrays[place])


def _submitter(
    layout: CallLayout, kernels: Mapping[str, LoadedKernel], device: int
) -> tuple[Submit, Callable[[], tuple[Any, ...]] | None]:
    """A function that writes the varying words of a call and launches its kernels on a stream.

    Also the `prepare` of `fast_calls.Steps`; None where a call has to do more than that.
    """
    parameters = plan_parameters(
        layout,
        {name: kernel.info for name, kernel in kernels.items()},
        lambda name, per_sm: kernels[name].resident_blocks(per_sm),
    )
    driver, where, checks = cuda.cupy().cuda.driver, layout.program.name, checks_workspace()

    def prepared() -> tuple[ParameterBlock, list[Launch]]:
        block, launches = ParameterBlock(parameters), []
        for geometry, table in zip(parameters.launches, block.addresses, strict=True):
            if geometry.blocks:
                launch = _launcher(driver, kernels[geometry.kernel.name], geometry.blocks, table)
                launches.append(_checked(launch, geometry, block) if checks and geometry.semaphores else launch)
        return block, launches

    # The driver copies the parameters before it returns, so consecutive calls share one block. A call takes the block
    # out of a list, which is faster than a lock; concurrent calls have a block each.
    idle = [prepared()]

    def submit(words: Sequence[Any], stream: int) -> None:
        try:
            taken = idle.pop()
        except IndexError:
            taken = prepared()
        block, launches = taken
        try:
            block.write(words)
            for launch in launches:
                launch(stream)
        except struct.error:
            raise _too_large(layout, words) from None
        except driver.CUDADriverError as error:
            raise _refused(error, where) from error
        finally:
            idle.append(taken)

    def directly() -> tuple[Any, ...]:
        block, launches = prepared()
        return (block.pack, *launches, block)

    complete = with_workspace(submit, parameters.memory, device) if parameters.memory.places else submit
    return cuda.guarded(complete, device), None if checks or not parameters.is_flat else directly


def _refused(error: Exception, where: str) -> RuntimeLaunchError:
    return RuntimeLaunchError(f"the driver refuses the launch: {error}", where=where)


def _too_large(layout: CallLayout, words: Sequence[Any]) -> ArgumentError:
    """The error for a number of a call that does not fit into its parameter."""
    number, argument = next(
        (word, argument.name)
        for word, argument in zip(words, layout.program.arguments, strict=False)
        if isinstance(word, int) and not -(1 << 63) <= word < 1 << 63
    )
    return ArgumentError(f"{number} does not fit i64", where=argument, hint="give a float")


def _launcher(driver: Any, kernel: LoadedKernel, blocks: int, table: int) -> Launch:
    """Launches a kernel on a stream with the parameters of a table."""
    function, threads, shared = kernel.function, kernel.info.block, kernel.info.dynamic_shared_bytes
    if kernel.info.dependent:
        return dependent_launcher(
            function,
            blocks,
            threads,
            shared,
            table,
            cooperative=kernel.info.cooperative,
            failure=driver.CUDADriverError,
        )
    if kernel.info.cooperative:
        launch_whole = driver.launchCooperativeKernel
        return lambda stream: launch_whole(function, blocks, 1, 1, threads, 1, 1, shared, stream, table)
    launch_kernel = driver.launchKernel

    def launch(stream: int) -> None:
        launch_kernel(function, blocks, 1, 1, threads, 1, 1, shared, stream, table, 0)

    return launch


def _checked(launch: Launch, geometry: LaunchGeometry, block: ParameterBlock) -> Launch:
    """Launches, waits, and checks that the kernel left its semaphores zero."""

    def launch_and_check(stream: int) -> None:
        launch(stream)
        for argument, word, nbytes in geometry.semaphores:
            require_zero(geometry.kernel.name, argument, block.pointer(word), nbytes, stream)

    return launch_and_check
