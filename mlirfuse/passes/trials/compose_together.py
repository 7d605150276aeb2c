"""`fuse-compose-together`: gathered views of results are computed, where the kernels of all then take less time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import body, host_functions
from mlirfuse.dialect.module_target import device_of_module, target_of_module
from mlirfuse.dialect.separation import VIEWED
from mlirfuse.machine.lookup import machine_of
from mlirfuse.machine.model import MachineModel
from mlirfuse.passes.gathers.compose_gathers import through_slices
from mlirfuse.passes.gathers.gathered_ops import stored_results
from mlirfuse.passes.gathers.viewed_result import compose, viewed_results
from mlirfuse.passes.joins.joined_results import JoinedResults
from mlirfuse.passes.slices.sliced_ops import is_elementwise
from mlirfuse.passes.trials.trial import MOST_OPS, Comparison, compare, needing, surrounded
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.connected import connected
from mlirfuse.support.rewriting import backward_slice


@dataclass(frozen=True)
class FuseComposeTogether(Pass):
    """Computes the elements of gathered views of elementwise results where the kernels of all then take less time.

    Requires functions of tensor ops, of which `fuse-compose-gathers` has left views of elementwise results in memory,
    as each by itself would take longer to compute again than to store. Views that have much in common, as differences
    of neighbours and the fluxes of several quantities have, share what computes them, and what that reads. Results that
    some op needs together, or that some op is needed for, are scheduled on trial both ways. The pass declines where
    there are more ops than can be tried.

    ```mlir
    %f = linalg.generic ... ins(%p, %q : ...) ... -> tensor<64x512xf32>
    %g = linalg.generic ... ins(%p, %q : ...) ... -> tensor<64x512xf32>
    %0 = "fuse.gathered_view"(%f) {map = affine_map<(i, j) -> (i, j + 1)>, ...} : ... -> tensor<64x511xf32>
    %1 = "fuse.gathered_view"(%g) {map = affine_map<(i, j) -> (i, j + 1)>, ...} : ... -> tensor<64x511xf32>
    ```
    becomes
    ```mlir
    %2 = "fuse.gathered_view"(%p) {map = affine_map<(i, j) -> (i, j + 1)>, ...} : ... -> tensor<64x511xf32>
    %3 = "fuse.gathered_view"(%q) ...
    %0 = linalg.generic ... ins(%2, %3 : ...) ... -> tensor<64x511xf32>
    %1 = linalg.generic ... ins(%2, %3 : ...) ... -> tensor<64x511xf32>
    ```

    Attributes:
        always: whether views are computed whatever is predicted.
    """

    name: ClassVar[str] = "fuse-compose-together"
    always: bool = False

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        machine = machine_of(target_of_module(module), device_of_module(module))
        for function in host_functions(module):
            left, gaining = _left(function, machine), list[ir.Value]()
            for group in connected(left, partial(_around, function)):
                op, what = group[0].owner.operation, f"views of {len(group)} result(s)"
                found = Comparison(inf, 0.0) if self.always else _compared(module, function, group, machine)
                if found is None:
                    remarks.declined(self, f"{what} would be tried with over {MOST_OPS} ops", op)
                elif not found.gains:
                    text = f"predicted to take {found.after:.1f} us computed, {found.before:.1f} us stored"
                    remarks.declined(self, f"{what} are {text}", op)
                else:
                    remarks.applied(self, f"{what}: {found.before:.1f} us -> {found.after:.1f} us, as predicted", op)
                    gaining += group
            if gaining:
                kept = stored_results(function) | (set(left) - set(gaining))
                compose(function, machine, kept, whatever_it_takes=True)
                through_slices(function)
            if not left:
                remarks.declined(self, "no view of an elementwise result is in memory for its costs alone", function)
            for op in body(function):
                if VIEWED in op.attributes:
                    del op.attributes[VIEWED]


def _around(function: ir.Operation, base: ir.Value) -> set[ir.Operation]:
    """The ops that need a result, and the elementwise ones that it needs."""
    op = base.owner.operation
    return {op, *needing([op]), *filter(is_elementwise, backward_slice([base], body(function)))}


def _left(function: ir.Operation, machine: MachineModel) -> list[ir.Value]:
    """Elementwise results, in program order, that are in memory for views which could be computed."""
    joins = JoinedResults()
    found = viewed_results(function, stored_results(function))
    return [result.base for result in found if result.obstacle(joins) is None and result.loss(machine) >= 0]


def _compared(
    module: ir.Operation, function: ir.Operation, group: Sequence[ir.Value], machine: MachineModel
) -> Comparison | None:
    """The times of what needs some results, with these stored and with views of them computed; None for many ops."""
    ops = surrounded([base.owner.operation for base in group])
    if len(ops) > MOST_OPS:
        return None
    return compare(module, function, ops, partial(compose_copies, machine))


def compose_copies(machine: MachineModel, copies: dict[ir.Operation, ir.Operation]) -> None:
    """Computes the gathered views in the function that some copies are in."""
    function = next(iter(copies.values())).parent.operation
    compose(function, machine, stored_results(function), whatever_it_takes=True)
