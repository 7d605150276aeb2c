"""From a call's arguments to its launch plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlirfuse.errors import MlirFuseError
from mlirfuse.runtime.arrays import Argument, read_argument, signature
from mlirfuse.runtime.cuda import stream_pointer
from mlirfuse.runtime.host_program import HostProgram
from mlirfuse.runtime.module import LoadedKernel
from mlirfuse.runtime.plan import LaunchPlan

Prepare = Callable[[tuple[Argument, ...]], tuple[HostProgram, Mapping[str, LoadedKernel]]]

MAX_PLANS = 4096
"""Launch plans kept; beyond it all are dropped, since a program with that many shapes has no warm calls anyway."""


class Dispatcher:
    """Runs a function on arrays, with one launch plan a signature.

    Args:
        prepare: compiles, or finds compiled, the program for what `read_argument` says of each argument. It is called
            once a new signature, and may return what it returned for another.
        names: the parameters' names, for messages.
    """

    def __init__(self, prepare: Prepare, names: Sequence[str]):
        self._prepare = prepare
        self._names = tuple(names)
        self._plans: dict[object, LaunchPlan] = {}
        self._into: dict[object, LaunchPlan] = {}

    def __call__(self, args: tuple[Any, ...], out: Any = None, stream: object = None) -> Any:
        """Launches the function's kernels and returns what it returns, or `out`.

        Args:
            args: positional arguments: arrays, numbers, and constants of the compilation.
            out: None, an array, or a tuple of arrays to write the results into.
            stream: None (the current stream of the arguments' framework), a stream of CuPy or PyTorch, or a pointer.

        Raises:
            ArgumentError: an argument, `out` or `stream` does not fit.
            RuntimeLaunchError: there is no GPU, or the driver refuses the launch.
        """
        pointer = None if stream is None else stream_pointer(stream)
        if out is None:
            key, values = self._signature(args)
            plan = self._plans.get(key) or self._new_plan(key, args)
            return plan.run(args, values, pointer)
        results = out if type(out) is tuple else (out,)
        key, values = self._signature(args, results)
        plan = self._into.get((len(results), key)) or self._new_plan_into(key, args, results)
        plan.run_into(values, pointer)
        return out

    def _signature(self, args: tuple[Any, ...], out: tuple[Any, ...] = ()) -> tuple[object, list[Any]]:
        try:
            return signature(args + out)
        except (MlirFuseError, RuntimeError):
            self._read(args)
            for array in out:
                read_argument(array, "out")
            raise

    def _read(self, args: tuple[Any, ...]) -> tuple[Argument, ...]:
        names = [*self._names, *(f"argument {i}" for i in range(len(self._names), len(args)))]
        return tuple(read_argument(argument, name) for argument, name in zip(args, names, strict=False))

    def _new_plan(self, key: object, args: tuple[Any, ...]) -> LaunchPlan:
        infos = self._read(args)
        program, kernels = self._prepare(infos)
        return _keep(self._plans, key, LaunchPlan(program, kernels, infos))

    def _new_plan_into(self, key: object, args: tuple[Any, ...], results: tuple[Any, ...]) -> LaunchPlan:
        own_key, _ = signature(args)
        plan = self._plans.get(own_key) or self._new_plan(own_key, args)
        plan.check_out([read_argument(array, "out") for array in results])
        return _keep(self._into, (len(results), key), plan)


def _keep(plans: dict[object, LaunchPlan], key: object, plan: LaunchPlan) -> LaunchPlan:
    if len(plans) >= MAX_PLANS:
        plans.clear()
    plans[key] = plan
    return plan
