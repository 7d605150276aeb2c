"""One program of the survey on the GPU: compiled by all contestants, compared with double precision, and timed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from survey_programs.draw import torch_arrays_of, traced
from survey_programs.program import Program
from timing import Contest, Contestant, input_sets, release_memory, run_contest

import mlirfuse as mf
from mlirfuse.runtime.device.module import driver_resources

MLIRFUSE, UNFUSED, EAGER, COMPILED = "mlirfuse", "fusion off", "eager", "torch.compile"
ROUNDS = 5
PATIENCE = 60.0
"""Seconds to wait for another process's comparison."""

LEAST_BYTES = 4e6
"""What a call is taken to move at least, so that graphs of tiny programs do not have thousands of calls."""

TOLERANCE = {"float8_e4m3fn": 4e-2, "float8_e5m2": 8e-2, "int8": 4e-2, "bfloat16": 1e-2, "float16": 2e-3}
SINGLE = 1e-4
"""Relative errors in the 2-norm, by the narrowest dtype of arguments and results; of float32 the last."""

TIMES_TORCH = 4.0
"""A result may also be that many times as far off as PyTorch's own, where sums cancel."""


_NUMBERS = count()


@dataclass
class Prepared:
    """A program whose contestants have compiled.

    Attributes:
        program: it.
        calls: by contestant, a function of the arrays.
        row: what is known so far, as it goes to the results.
    """

    program: Program
    calls: dict[str, Callable[..., Any]]
    row: dict[str, Any] = field(default_factory=dict)


def start() -> None:
    """Imports what first calls would import, so that these are timed without."""
    import torch

    torch._dynamo.config.recompile_limit = 64
    mf.fuse(lambda x: x + 1)(torch.ones(8, 8, device="cuda"))
    torch.cuda.synchronize()


def prepare(program: Program, unfused: bool, alone: Any) -> Prepared:
    """Compiles a program for all contestants and checks the results of mlirfuse.

    Args:
        program: it.
        unfused: whether `fusion="off"` is a contestant.
        alone: a lock that is held while results are compared in double precision, which takes much memory.
    """
    import torch

    arrays = torch_arrays_of(program.arguments())
    calls: dict[str, Callable[..., Any]] = {MLIRFUSE: mf.fuse(traced(program, mf))}
    eager = _torch_function(program)
    calls[EAGER] = eager
    if unfused:
        calls[UNFUSED] = mf.fuse(traced(program, mf), fusion="off")
    if program.compiled:
        calls[COMPILED] = torch.compile(eager, dynamic=False)
    row: dict[str, Any] = {"name": program.name, "domain": program.domain, "failures": {}, "first_call_seconds": {}}
    found: dict[str, Any] = {}
    with torch.no_grad():
        for name, call in calls.items():
            begin = time.perf_counter()
            try:
                found[name] = _tuple(call(*arrays))
                torch.cuda.synchronize()
                row["first_call_seconds"][name] = time.perf_counter() - begin
            except Exception as error:  # noqa: BLE001  # a contestant that refuses is a result; it is reported
                row["failures"][name] = f"{type(error).__name__}: {str(error).strip()[:300]}"
            if name not in (MLIRFUSE, EAGER):
                found.pop(name, None)
        row["bytes"] = sum(x.nbytes for x in (*arrays, *found.get(MLIRFUSE, found.get(EAGER, ()))))
        row["flops"], row["product_dtype"] = program.product_flops(), program.product_dtype()
        if MLIRFUSE in found:
            row |= _about(calls[MLIRFUSE], arrays) | _checked(program, arrays, found, alone)
    del arrays, found
    release_memory()
    return Prepared(program, {n: c for n, c in calls.items() if n not in row["failures"]}, row)


def measure(prepared: Prepared) -> dict[str, Any]:
    """The row with the microseconds of all contestants, which take turns over arrays that do not fit the L2."""
    contest, row = _contest(prepared), prepared.row
    row["microseconds"] = {name: timing.microseconds for name, timing in contest.timings.items()}
    row["failures"] |= contest.failures
    row["speed"] = {
        name: speed for name in prepared.calls if name != MLIRFUSE and (speed := contest.speed(MLIRFUSE, name))
    }
    release_memory()
    return row


def _contest(prepared: Prepared) -> Contest:
    import torch

    nbytes = int(max(prepared.row["bytes"], LEAST_BYTES))
    sets = input_sets(nbytes)
    data = [torch_arrays_of(prepared.program.arguments(), seed) for seed in range(sets)]
    contestants = [Contestant(n, lambda i, call=call: call(*data[i])) for n, call in prepared.calls.items()]
    with torch.no_grad():
        return run_contest(contestants, sets, nbytes, ROUNDS)


def _torch_function(program: Program) -> Callable[..., Any]:
    from survey_programs import torch_arrays

    own = program.torch
    inner = traced(program, torch_arrays) if own is None else own

    def call(*arrays: Any) -> Any:
        return torch_arrays.contiguous(inner(*arrays))

    name = f"torch_{program.fn.__name__}_{next(_NUMBERS)}"
    call.__code__ = call.__code__.replace(co_name=name)  # Dynamo keeps what it compiles, and its limits, by code
    return call


def _about(fused: Any, arrays: Sequence[Any]) -> dict[str, Any]:
    """What the compiler says of the kernels that it just compiled: how many, their local memory, the prediction."""
    compiled = next(reversed(fused._compiled.values()))
    loaded = [kernel for kernels in fused._loaded.values() for kernel in kernels.values()]
    try:
        predicted = {"predicted_us": compiled.predicted([tuple(x.shape) for x in arrays]).microseconds}
    except Exception as error:  # noqa: BLE001  # what cannot be predicted is reported, and the program still timed
        predicted = {"predicted_us": None, "unpredicted": f"{type(error).__name__}: {str(error)[:200]}"}
    stack = max((driver_resources(kernel).stack_bytes or 0 for kernel in loaded), default=0)
    return {"kernels": len(compiled.binaries), "stack_bytes": stack, **predicted}


def _checked(program: Program, arrays: Sequence[Any], found: dict[str, Any], alone: Any) -> dict[str, Any]:
    """The largest errors of mlirfuse and of PyTorch, and whether the first is too large."""
    import torch

    if not alone.acquire(timeout=PATIENCE):
        return {"error": None, "unchecked": "another process did not end its comparison"}
    try:
        own, theirs = _errors(program, arrays, [found.get(name) for name in (MLIRFUSE, EAGER)])
    except torch.cuda.OutOfMemoryError:
        return {"error": None, "unchecked": "double precision did not fit the memory"}
    except Exception as error:  # noqa: BLE001  # a check that fails is reported, and the program still timed
        return {"error": None, "unchecked": f"{type(error).__name__}: {str(error)[:200]}"}
    finally:
        release_memory()
        alone.release()
    dtypes = [str(x.dtype).removeprefix("torch.") for x in (*arrays, *found[MLIRFUSE])]
    bound = max(max(TOLERANCE.get(dtype, SINGLE) for dtype in dtypes), TIMES_TORCH * (theirs or 0.0))
    return {"error": own, "torch_error": theirs, "wrong": not own <= bound}


def _errors(program: Program, arrays: Sequence[Any], found: Sequence[Any]) -> list[float | None]:
    """The largest error of each contestant's results; None without results."""
    from survey_programs import torch_arrays

    exact = _tuple(program.fn(torch_arrays.exact, *(x.double() if x.is_floating_point() else x for x in arrays)))
    return [None if results is None else _largest(map(_error, results, exact)) for results in found]


def _largest(errors: Iterable[float]) -> float:
    """The maximum, which is NaN where one is."""
    return max(errors, key=lambda error: math.inf if math.isnan(error) else error)


def _error(result: Any, exact: Any) -> float:
    """The 2-norm of the difference over the exact result's; how many differ, of bools. NaN for another shape."""
    import torch

    if tuple(result.shape) != tuple(exact.shape):
        return float("nan")
    if result.dtype == torch.bool:
        return float((result != exact).float().mean())
    if result.dtype.itemsize == 1 and result.is_floating_point():
        result = result.float()
    difference = torch.linalg.vector_norm(exact.double() - result)
    return float(difference / torch.linalg.vector_norm(exact.double()).clamp_min(1e-30))


def _tuple(results: Any) -> tuple[Any, ...]:
    return tuple(results) if isinstance(results, tuple | list) else (results,)
