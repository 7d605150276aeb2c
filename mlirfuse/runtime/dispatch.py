"""From a call's arguments to its launch plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlirfuse.compiler.host_program import HostProgram
from mlirfuse.errors import ArgumentError, MlirFuseError
from mlirfuse.runtime.arrays.arrays import Argument, Key, read_argument, require_no_gradient, signature
from mlirfuse.runtime.arrays.outputs import OutputPlan
from mlirfuse.runtime.device import cuda
from mlirfuse.runtime.device.cuda import require_context, stream_pointer
from mlirfuse.runtime.device.module import LoadedKernel
from mlirfuse.runtime.fast_calls import MISSED, FastCall, fast_call, never
from mlirfuse.runtime.plan import LaunchPlan
from mlirfuse.runtime.recognition import Recogniser, pattern, recogniser, unknown

Prepare = Callable[..., tuple[HostProgram, Mapping[str, LoadedKernel]]]
"""Takes the descriptions of the arguments and, where there are any, the numbers of the results that must be copies."""

MAX_PLANS = 4096
"""Most launch plans kept; beyond this number all are dropped."""


@dataclass
class _Kind:
    """Calls of one signature.

    Attributes:
        key: their key, to be compared with that of the next call before it is hashed.
        plan: their launch plan.
        into: writes their results into arrays of the caller; None where the calls give no `out`.
        recognise: recognises a call without its key, where the last call was of this kind.
        fast: makes such a call; `never` where calls are known by their key alone, or need more than a launch.
        unrecognised: how many calls of this kind were not recognised.
    """

    key: Key
    plan: LaunchPlan
    into: OutputPlan | None = None
    recognise: Recogniser = unknown
    fast: FastCall = never
    unrecognised: int = 0


class Dispatcher:
    """Runs a function on arrays, with one launch plan a signature.

    Args:
        prepare: returns the program, compiled or cached, for the descriptions that `read_argument` gives of the
            arguments. It is called once a new signature; several signatures may share a program.
        names: the parameters' names, for messages.
    """

    def __init__(self, prepare: Prepare, names: Sequence[str]):
        self._prepare = prepare
        self._names = tuple(names)
        self._kinds: dict[tuple[object, ...], _Kind] = {}
        self._last: _Kind | None = None
        self.fast: FastCall = never
        """Makes calls like the last one, without a look-up; returns `MISSED` for others, which `slowly` makes."""

    def __call__(self, args: tuple[Any, ...], out: Any = None, stream: object = None) -> Any:
        """Launches the function's kernels and returns its results, or `out`.

        Args:
            args: positional arguments: arrays, numbers, and constants of the compilation.
            out: None, an array, or a tuple of arrays to write the results into.
            stream: None (the current stream of the arguments' framework), a stream of CuPy or PyTorch, or a pointer.

        Raises:
            ArgumentError: an argument, `out` or `stream` does not fit.
            RuntimeLaunchError: there is no GPU, or the driver refuses the launch.
        """
        result = self.fast(args, out, stream)
        return self.slowly(args, out, stream) if result is MISSED else result

    def slowly(self, args: tuple[Any, ...], out: Any, stream: object) -> Any:
        """Makes a call that `fast` does not."""
        last = self._last
        pointer = None if stream is None else stream_pointer(stream)
        values = None if last is None or last.fast is not never else last.recognise(args, out)
        if last is None or values is None:
            last, values = self._look_up(args, out)
        else:
            require_context()
        if last.into is None:
            return last.plan.run(args, values, pointer)
        last.into.run(values, pointer)
        return out

    def _look_up(self, args: tuple[Any, ...], out: Any) -> tuple[_Kind, list[Any]]:
        """The kind and the values of a call that was not recognised."""
        results = () if out is None else out if type(out) is tuple else (out,)
        try:
            key, values = signature(args + results)
        except (MlirFuseError, RuntimeError):
            self._explain(args, results)
            raise
        key += (type(out) is tuple, len(results))
        require_context()
        kind = self._last
        if kind is None or kind.key != key:
            kind = self._kinds.get(tuple(key))
        if kind is None:
            kind = self._add(key, args, None if out is None else results)
        kind.unrecognised += 1
        # Making a recogniser takes as long as 100 calls. It pays from the second call on, and again after 4, 8, 16, ...
        # calls where the arrays differ in a property that is no part of the key, such as their class.
        if kind.unrecognised > 1 and kind.unrecognised.bit_count() == 1:
            kind.recognise, kind.fast = recogniser(args, out), self._fast(kind, args, out)
        self._last, self.fast = kind, kind.fast
        return kind, values

    def _explain(self, args: tuple[Any, ...], results: tuple[Any, ...]) -> None:
        """Raises the error of the argument that cannot be read."""
        self._read(args)
        for array in results:
            if isinstance(array, list):
                raise ArgumentError("a list is no array", where="out", hint="give a tuple of arrays")
            read_argument(array, "out")
            require_no_gradient(array, "out")

    def _read(self, args: tuple[Any, ...]) -> tuple[Argument, ...]:
        names = [*self._names, *(f"argument {i}" for i in range(len(self._names), len(args)))]
        for argument, name in zip(args, names, strict=False):
            require_no_gradient(argument, name)
        return tuple(read_argument(argument, name) for argument, name in zip(args, names, strict=False))

    def _add(self, key: Key, args: tuple[Any, ...], results: tuple[Any, ...] | None) -> _Kind:
        """Adds the kind of a key; calls with `out` share the plan of calls without."""
        if results is None:
            plan, into = self._plan(self._read(args), lambda plan: plan.to_copy(None)), None
        else:
            without = [*signature(args)[0], False, 0]
            plan = (self._kinds.get(tuple(without)) or self._add(without, args, None)).plan
            arrays = [read_argument(array, "out") for array in results]
            if copies := plan.to_copy(arrays):
                plan = self._plan(self._read(args), lambda _: copies)
            into = plan.into(arrays)
        if len(self._kinds) >= MAX_PLANS:
            self._kinds.clear()
        kind = self._kinds[tuple(key)] = _Kind(key, plan, into)
        return kind

    def _plan(self, infos: tuple[Argument, ...], to_copy: Callable[[LaunchPlan], tuple[int, ...]]) -> LaunchPlan:
        """The plan of a program whose results are copies where `to_copy` says of a plan with views that they must."""
        plan = LaunchPlan(*self._prepare(infos), infos)
        copies = to_copy(plan)
        return LaunchPlan(*self._prepare(infos, copies), infos) if copies else plan

    def _fast(self, kind: _Kind, args: tuple[Any, ...], out: Any) -> FastCall:
        """The generated function for calls of a kind like this one."""
        made, steps = pattern(args, out, devices=cuda.device_count()), kind.plan.steps()
        if made is None or steps is None or not (kind.into is None or kind.into.is_direct):
            return never
        return fast_call(made, steps, kind.into)
