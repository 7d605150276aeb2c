"""What `explain` says of transpositions: which kernels make one, and that the others are views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from mlir import ir

from mlirfuse.analysis.kernels import body
from mlirfuse.compiler.feedback import kernel_of
from mlirfuse.compiler.host_program import HostProgram, Launch
from mlirfuse.schedule.choice.records import AnyProblem
from mlirfuse.schedule.problem import Problem


def layout_changes(traced: ir.Operation, program: HostProgram, problems: Mapping[str, AnyProblem]) -> list[str]:
    """The line about transpositions; none where the traced function has none.

    A kernel transposes where it reduces nothing, and reads an array in another order of memory than it writes one.

    Args:
        traced: the host function at the `linalg` stage, whose layouts of convolutions are transpositions too.
        program: what it became.
        problems: the scheduling problem of each kernel, by its name before it is tiled.
    """
    count = sum(op.name == "linalg.transpose" for op in body(traced))
    if not count:
        return []
    found: dict[str, str] = {}
    for launch in program.launches:
        name = kernel_of(launch.kernel)
        problem = problems.get(name)
        if isinstance(problem, Problem) and name not in found and _transposes(problem):
            found[name] = f"{name} transposes {_sources(program, launch)}"
    parts = list(found.values())
    if len(parts) < count:
        parts.append("the others cost nothing" if parts else "all are views, or the order in which kernels read")
    return [f"transpositions: {', '.join(parts)}"]


def _transposes(problem: Problem) -> bool:
    """Whether a kernel that reduces nothing reads an array in another order of memory than it writes one."""
    if problem.reduced:
        return False
    read, written = ([a.dims for a in problem.arrays if a.written == kind] for kind in (False, True))
    return any(_reordered(source, result) for source in read for result in written)


def _reordered(first: Sequence[int], second: Sequence[int]) -> bool:
    """Whether two dimensions that both arrays have lie in another order in one of them."""
    common = [dim for dim in first if dim in second]
    return any(second.index(outer) > second.index(inner) for outer, inner in combinations(common, 2))


def _sources(program: HostProgram, launch: Launch) -> str:
    """What a launch reads, by the names of arguments and of the kernels that made it."""
    makers = {position: kernel_of(each.kernel) for each in program.launches for position in each.outputs}
    names = [
        program.arguments[value.position].name
        if value.origin == "argument"
        else f"the result of {makers[value.position]}"
        for value in launch.inputs
    ]
    found = list(dict.fromkeys(names))
    return found[0] if len(found) == 1 else f"what it computes from {', '.join(found[:-1])} and {found[-1]}"
