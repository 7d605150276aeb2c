"""Runs a program on a backend: the interpreter at several levels, ptxas, both of them, or the GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tests.fuzzing.program import Program
from tests.fuzzing.running.check import RIGHT, Outcome, WrongResult, check, signature
from tests.fuzzing.types import numpy_dtype

TARGETS = ("sm_90a", "sm_90a", "sm_90a", "sm_80", "sm_90", "sm_100a", "sm_120")
"""One a program, in turns: most kernels are for Hopper."""


def calls_of(program: Program) -> list[Program]:
    """The program with each of the numbers of rows that it is called with."""
    first = next((x.shape[0] for x in program.inputs if len(x.shape) > 1 and x.shape[0] > 1), None)
    later = [program.with_rows(first, new) for new in program.rows] if first is not None else []
    return [program, *later]


def expected_of(program: Program) -> list[Any]:
    with np.errstate(all="ignore"):
        return program.results()


def is_documented(error: Exception) -> bool:
    """Whether `out=` is refused for a reason that its documentation gives."""
    return "is a view of" in str(error) or "overlaps" in str(error)


def declined_of(error: Exception) -> str:
    """A refusal of `out=` without what differs from program to program."""
    return f"out=: {signature(getattr(error, 'message', str(error)))}"


def as_list(results: Any) -> list[Any]:
    return list(results) if isinstance(results, tuple | list) else [results]


def interpret(program: Program) -> Outcome:
    """Calls: NumPy arrays, run-time leading extents, kernels with all checks; or lowered for static extents."""
    if not program.dynamic and not program.rows and program.out == "none":
        return _interpret_static(program)
    fused = program.fused("interpret")
    declined = []
    for number, call in enumerate(calls_of(program)):
        expected = expected_of(call)
        arguments = call.arguments()
        before = [a.copy() for a in arguments if isinstance(a, np.ndarray)]
        results = fused(*arguments)
        if type(results).__name__ != {"single": "ndarray"}.get(program.structure, program.structure):
            raise WrongResult(f"a {type(results).__name__} for a {program.structure}")
        check(as_list(results), expected, f"call {number}" if number else "interpreter")
        for old, new in zip(before, (a for a in arguments if isinstance(a, np.ndarray)), strict=True):
            if old.tobytes() != new.tobytes():
                raise WrongResult("an argument was changed")
        if number == 0 and program.out != "none":
            declined = _interpret_into(fused, program, arguments, expected)
    return Outcome(RIGHT, declined=declined)


def _interpret_into(
    fused: Callable[..., Any], program: Program, arguments: list[Any], expected: list[Any]
) -> list[str]:
    """Calls with `out=`; returns what was refused for a reason that is documented."""
    import mlirfuse as mf

    out = [np.full(e.shape, 0, numpy_dtype(e.dtype)) for e in expected]
    overlaps = program.out == "overlap" and _overlapping(out, arguments)
    try:
        fused(*arguments, out=out[0] if program.structure == "single" else tuple(out))
    except mf.MlirFuseError as error:
        if not is_documented(error):
            raise
        return [declined_of(error)]
    if overlaps:
        raise WrongResult("an output that overlaps an argument is taken")
    check(out, expected, "out=")
    return []


def _overlapping(out: list[Any], arguments: Sequence[Any]) -> bool:
    """Puts an argument in the place of an output that is like it; whether there is one with elements."""
    for number, mine in enumerate(out):
        for given in arguments:
            if not isinstance(given, np.ndarray) or (given.shape, given.dtype) != (mine.shape, mine.dtype):
                continue
            if given.size and given.flags.writeable and given.flags.c_contiguous:  # the interpreter copies others
                out[number] = given
                return True
    return False


def specs_of(program: Program, arguments: Sequence[Any]) -> list[Any]:
    """Static specs, with the strides and alignments that the arrays have."""
    import mlirfuse as mf

    specs: list[Any] = []
    for argument in arguments:
        if not isinstance(argument, np.ndarray):
            specs.append(argument)
            continue
        strides = [s // argument.itemsize for s in argument.strides]
        plain = argument.flags.c_contiguous
        align = 16
        for value in (argument.ctypes.data, *([] if plain else argument.strides)):
            while value % align:
                align //= 2
        layout = None if plain else tuple(s if s in (0, 1) else None for s in strides)
        specs.append(mf.TensorSpec(argument.shape, argument.dtype.name, align=align, strides=layout))
    return specs


def _forward(argument: Any) -> Any:
    """An array without negative strides, which specs cannot express."""
    is_reversed = isinstance(argument, np.ndarray) and any(s < 0 for s in argument.strides)
    return argument.copy() if is_reversed else argument


def _interpret_static(program: Program) -> Outcome:
    from mlirfuse import interpreter

    arguments = [_forward(a) for a in program.arguments()]
    compiled = program.fused("sm_90a").lower(*specs_of(program, arguments)).compile()
    order = {"order": "random", "seed": program.seed} if program.seed % 3 == 0 else {}
    results = interpreter.run(compiled.module_at("gpu"), compiled.program.name, arguments, **order)
    check(results, expected_of(program), "interpreter, static")
    return Outcome(RIGHT)


def tensor(program: Program) -> Outcome:
    """The trace alone, before any pass."""
    from mlirfuse import interpreter

    arguments = [_contiguous(a) for a in program.arguments()]
    lowered = program.fused("sm_90a").lower(*specs_of(program, arguments))
    results = interpreter.run(lowered.module, "program", arguments)
    check(results, expected_of(program), "tensor level")
    return Outcome(RIGHT)


def _contiguous(argument: Any) -> Any:
    return np.ascontiguousarray(argument).reshape(argument.shape) if isinstance(argument, np.ndarray) else argument


def levels(program: Program) -> Outcome:
    """Tensors, tiles and threads, verified after each pass: each right, and equal where nothing is reduced."""
    from mlirfuse import interpreter

    arguments, expected = [_forward(a) for a in program.arguments()], expected_of(program)
    lowered = program.fused("sm_90a").lower(*specs_of(program, arguments))
    compiled = lowered.compile()
    order = {"order": "random", "seed": program.seed} if program.seed % 3 == 0 else {}
    found = {"linalg": interpreter.run(lowered.module, "program", arguments)}
    for stage in ("tile", "gpu"):
        found[stage] = interpreter.run(compiled.module_at(stage), "program", arguments, **order)
    for stage, results in found.items():
        check(results, expected, f"{stage} level")
    if any(s.op in ORDERED for s in program.statements):
        return Outcome(RIGHT)
    for stage in ("tile", "gpu"):
        for number, (a, b) in enumerate(zip(found["linalg"], found[stage], strict=True)):
            if not np.array_equal(_bits(a), _bits(b)):
                raise WrongResult(f"linalg and {stage} level differ\nresult {number}")
    return Outcome(RIGHT)


ORDERED = ("sum", "prod", "mean", "var", "std", "matmul", "einsum", "tensordot", "vecdot", "trace")
ORDERED += tuple(f"conv{n}d{way}" for n in (1, 2) for way in ("", "_wgrad", "_dgrad"))
"""Operations whose results depend on the order in which they are computed."""


def _bits(array: np.ndarray) -> np.ndarray:
    """The bytes; NaN are all alike, and zeros."""
    plain = array.astype(np.float64) if array.dtype.kind in "fV" else array
    return (
        np.where(plain == 0, 0, np.where(np.isnan(plain), np.nan, plain)).reshape(-1).view(np.uint8)
        if plain.dtype.kind == "f"
        else plain
    )


def ptx(program: Program) -> Outcome:
    """Compiles for a target and assembles each kernel; run-time extents as a call has them, or static ones."""
    from mlirfuse.api.argument_specs import numpy_specs
    from mlirfuse.target import target_of

    # sm_80 has no conversions of float8, as its error says.
    target = "sm_90a" if "float8" in program.text else TARGETS[program.seed % len(TARGETS)]
    arguments = [_forward(a) for a in program.arguments()]
    fused = program.fused(target)
    if program.dynamic:
        compiled = fused._compile(
            lambda extents: numpy_specs(arguments, extents, program.parameters), target_of(target)
        )
    else:
        compiled = fused.lower(*specs_of(program, arguments)).compile()
    resources = compiled.resources
    return Outcome(RIGHT, kernels=len(resources), spills=spills_of([(target, r) for r in resources]))


def spills_of(kernels: Sequence[tuple[str, Any]]) -> list[tuple[str, int]]:
    """(kernel and target, bytes) of those that spill, of (target, what ptxas says of a kernel)."""
    sizes = [(f"{r.name} {target}", max(r.spill_store_bytes or 0, r.spill_load_bytes or 0)) for target, r in kernels]
    return [(name, nbytes) for name, nbytes in sizes if nbytes]


def gpu(program: Program) -> Outcome:
    from tests.fuzzing.running.gpu import run

    return run(program)


def assembled(program: Program) -> Outcome:
    """What a GPU would run, interpreted."""
    from tests.fuzzing.running.assembled import assembled

    return assembled(program)


def crowded(program: Program) -> Outcome:
    """What a GPU would run if kernels spilled, interpreted."""
    from tests.fuzzing.running.assembled import crowded

    return crowded(program)


BACKENDS: Mapping[str, Callable[[Program], Outcome]] = {
    "interpret": interpret,
    "tensor": tensor,
    "levels": levels,
    "ptx": ptx,
    "assembled": assembled,
    "crowded": crowded,
    "gpu": gpu,
}
PROFILE = {
    "interpret": "middle",
    "tensor": "middle",
    "levels": "small",
    "ptx": "large",
    "assembled": "large",
    "crowded": "middle",
    "gpu": "large",
}
"""How large programs are on each backend, where nothing is said."""
