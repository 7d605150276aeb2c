"""`fuse-cse`: computes once what kernels and hosts compute twice, where a kernel's iteration space allows it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.contractions.contraction import contraction_in
from mlirfuse.analysis.contractions.contraction_operands import unfit_producers
from mlirfuse.analysis.grid_reduction import grid_reduction, needs_grid
from mlirfuse.analysis.kernels import argument_attributes, body, functions, is_tile_program
from mlirfuse.analysis.loops.iteration_space import Conflict, space_of_structures
from mlirfuse.analysis.loops.structure import structure_of
from mlirfuse.dialect.attributes import KERNEL, SCHEDULE
from mlirfuse.passes.kernels.host import launches
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.equivalence import operation_key
from mlirfuse.support.rewriting import erase_dead, replaced_if
from mlirfuse.tiling.kernel_signature import change_signature

PURE_DIALECTS = frozenset({"affine", "arith", "linalg", "math", "tensor"})
"""Dialects whose operations on tensors and scalars have no side effects."""

Fitness = tuple[tuple[int | None, ...] | None, str | None]
"""The extents of a kernel's iteration space, and why its ops cannot be one kernel; no extents where they share none."""


@dataclass(frozen=True)
class FuseCse(Pass):
    """Replaces an op by an earlier one that computes the same, in hosts and in kernels on tensors.

    In a kernel, two equal ops may run along different dimensions: a cast of one array scales the rows of a
    contraction's first operand in one place, and those of the second in another. One op can run along one dimension
    only, so such ops stay apart, as do ops of which one computes an operand of a contraction and the other is needed
    on the tile of the result. Upstream's `cse`, which knows no iteration space, merges them all. Ops without uses go.
    Arguments that a kernel's only call passes the same value for become one in the same way. Tile programs are left
    alone.

    ```mlir
    %0 = linalg.generic {indexing_maps = [#id, #id], ...} ins(%s : tensor<64xi8>) ... -> tensor<64xf32>
    %1 = linalg.generic {indexing_maps = [#id, #id], ...} ins(%s : tensor<64xi8>) ... -> tensor<64xf32>
    %2 = linalg.generic ... ins(%x, %0, %1 : tensor<8x64xf32>, tensor<64xf32>, tensor<64xf32>) ...
    ```
    becomes
    ```mlir
    %0 = linalg.generic {indexing_maps = [#id, #id], ...} ins(%s : tensor<64xi8>) ... -> tensor<64xf32>
    %2 = linalg.generic ... ins(%x, %0, %0 : tensor<8x64xf32>, tensor<64xf32>, tensor<64xf32>) ...
    ```
    """

    name: ClassVar[str] = "fuse-cse"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for host in [f for f in functions(module) if KERNEL not in f.attributes]:
            for call, kernel in launches(module, host).items():
                if merged := _merge_arguments(call, kernel):
                    remarks.applied(self, f"{merged} argument(s) are the same array as an earlier one", kernel)
        for function in functions(module):
            if not body(function) or (KERNEL in function.attributes and is_tile_program(function)):
                continue
            merged, apart = merge_equal_ops(function)
            for op in apart:
                remarks.declined(self, "an equal op computes it along other dimensions, or for another operand", op)
            if merged:
                remarks.applied(self, f"{merged} op(s) computed what an earlier one does", function)
            elif not apart:
                remarks.declined(self, "no two ops compute the same", function)


def _merge_arguments(call: ir.Operation, kernel: ir.Operation) -> int:
    """Reads each argument through the first one of the same value, where that leaves the space as it is; how many."""
    arguments, attributes = list(kernel.regions[0].blocks[0].arguments), argument_attributes(kernel)
    if len(set(call.operands)) == len(arguments) or SCHEDULE in kernel.attributes:
        return 0
    first: dict[tuple[ir.Value, ir.Attribute], ir.Value] = {}
    merged = 0
    fitness = _KeptFitness(kernel)
    for argument, operand, known in zip(arguments, call.operands, attributes, strict=True):
        earlier = first.setdefault((operand, ir.DictAttr.get(known)), argument)
        if earlier != argument and list(argument.uses):
            merged += fitness.allows({argument: earlier})
    if merged:
        change_signature(call, kernel, list(call.operands), attributes, list(body(kernel)[-1].operands))
    return merged


def merge_equal_ops(function: ir.Operation) -> tuple[int, list[ir.Operation]]:
    """Replaces each op by the first equal one that may have its uses; returns how many, and those that have to stay."""
    if KERNEL not in function.attributes:
        found = _merge(function, lambda op, earlier: replaced_if(_results(op, earlier), lambda: True))
    else:
        found = _merge_all(function) or _merge_one_by_one(function)
    erase_dead([op for op in body(function)[:-1] if op.name.split(".")[0] in PURE_DIALECTS])
    return found


def _merge(
    function: ir.Operation, merges: Callable[[ir.Operation, ir.Operation], bool]
) -> tuple[int, list[ir.Operation]]:
    """`merge_equal_ops` of which `merges` gives an earlier op the uses of an equal one, or declines."""
    known: dict[Hashable, list[ir.Operation]] = {}
    apart: list[ir.Operation] = []
    merged = 0
    for op in body(function)[:-1]:
        if op.name.split(".")[0] not in PURE_DIALECTS:
            continue
        equal = known.setdefault(operation_key(op), [])
        if any(merges(op, earlier) for earlier in equal):
            merged += 1
            continue
        if equal:
            apart.append(op)
        equal.append(op)
    return merged, apart


def _merge_all(kernel: ir.Operation) -> tuple[int, list[ir.Operation]] | None:
    """Merges all equal ops of a kernel, which stays as it is where that changes its fitness: then None."""
    fitness = _KeptFitness(kernel)
    uses: list[tuple[ir.Operation, int, ir.Value]] = []

    def merges(op: ir.Operation, earlier: ir.Operation) -> bool:
        if structure_of(op) is not None:
            fitness.note()
        for value, other in _results(op, earlier).items():
            for user, number in [(use.owner.operation, use.operand_number) for use in value.uses]:
                uses.append((user, number, value))
                user.operands[number] = other
        return True

    found = _merge(kernel, merges)
    if fitness.holds():
        return found
    for user, number, value in uses:
        user.operands[number] = value
    return None


def _merge_one_by_one(kernel: ir.Operation) -> tuple[int, list[ir.Operation]]:
    """Merges those of a kernel's equal ops that leave its fitness as it is, one after the other."""
    fitness = _KeptFitness(kernel)

    def merges(op: ir.Operation, earlier: ir.Operation) -> bool:
        values = _results(op, earlier)
        return replaced_if(values, lambda: True) if structure_of(op) is None else fitness.allows(values)

    return _merge(kernel, merges)


def _results(op: ir.Operation, earlier: ir.Operation) -> dict[ir.Value, ir.Value]:
    """Each result of an op with the one of an equal op."""
    return dict(zip(op.results, earlier.results, strict=True))


class _KeptFitness:
    """A kernel's fitness, which no replacement may change; it is computed once there is one to try."""

    def __init__(self, kernel: ir.Operation):
        self._kernel = kernel
        self._fitness: Fitness | None = None

    def note(self) -> None:
        """Computes the fitness, unless it is known: what the kernel's may be compared with later."""
        if self._fitness is None:
            self._fitness = _fitness(self._kernel)

    def holds(self) -> bool:
        """Whether the fitness is what was noted, if anything was."""
        return self._fitness is None or _fitness(self._kernel) == self._fitness

    def allows(self, values: Mapping[ir.Value, ir.Value]) -> bool:
        """Replaces values by others everywhere, where that leaves the fitness as it is; returns whether it does."""
        self.note()
        return replaced_if(values, self.holds)


def _fitness(kernel: ir.Operation) -> Fitness:
    """The extents of a kernel's iteration space, and why its ops cannot share one kernel (None where they can)."""
    structures = [s for op in body(kernel) if (s := structure_of(op)) is not None]
    space = space_of_structures(structures)
    if isinstance(space, Conflict):
        return None, space.reason
    if contraction_in(space, structures) is not None:
        return space.extents, unfit_producers(space, structures)
    if needs_grid(space) and isinstance(plan := grid_reduction(space, structures, body(kernel)[-1].operands), Conflict):
        return space.extents, plan.reason
    return space.extents, None
