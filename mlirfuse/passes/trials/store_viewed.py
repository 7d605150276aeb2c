"""`fuse-store-viewed`: results whose gathered views would be computed are stored, where that takes less time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import host_functions
from mlirfuse.dialect.gathered_view import DEFINITION as VIEW
from mlirfuse.dialect.module_target import device_of_module, target_of_module
from mlirfuse.dialect.separation import VIEWED
from mlirfuse.machine.lookup import machine_of
from mlirfuse.machine.model import MachineModel
from mlirfuse.passes.gathers.gathered_ops import stored_results
from mlirfuse.passes.gathers.viewed_result import ViewedResult, viewed_results
from mlirfuse.passes.joins.joined_results import JoinedResults
from mlirfuse.passes.slices.sliced_ops import is_elementwise
from mlirfuse.passes.trials.compose_together import compose_copies
from mlirfuse.passes.trials.trial import MOST_OPS, Comparison, Trial, compare, surrounded
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.connected import connected
from mlirfuse.support.rewriting import defining_op

FEWEST_LOADS = 8
"""Elements of arrays that the elements of connected views are computed of, from which on these are weighed."""

CLEAR_GAIN = 2.0
"""Ratio of predicted times from which on results are stored: views that divide indices are taken to read all sectors
that lie between their elements, so that kernels that compute of these are predicted to take up to twice as long as they
do."""


@dataclass(frozen=True)
class FuseStoreViewed(Pass):
    """Leaves elementwise results in memory whose gathered views would be computed, where kernels then take less time.

    Requires functions of tensor ops, in front of `fuse-compose-gathers`, which counts the instructions of each view by
    itself, and bytes as if all were read once. Views of views multiply: each place of an array that is joined of parts
    of parts has the loads of all, at whatever strides, under conditions. Results that are connected are scheduled on
    trial: as they are, with all views computed, and with none. Those that had clearly better be read from memory get
    `fuse.viewed`, with the elementwise ops around them. The pass declines where elements of views are computed of few
    elements of arrays, and where there are more ops than can be tried.

    ```mlir
    %a = linalg.generic ... ins(%x0, %x1, %x2, %x3 : ...) ... -> tensor<64x512xf32>
    %b = linalg.generic ... ins(%x0, %x1, %x2, %x3 : ...) ... -> tensor<64x512xf32>
    %0 = "fuse.gathered_view"(%a) {map = affine_map<(i, j) -> (i, j)>, ...} : ... -> tensor<64x1024xf32>
    %1 = "fuse.gathered_view"(%b) {map = affine_map<(i, j) -> (i, j - 512)>, ...} : ... -> tensor<64x1024xf32>
    ```
    becomes
    ```mlir
    %a = linalg.generic {fuse.viewed} ... ins(%x0, %x1, %x2, %x3 : ...) ... -> tensor<64x512xf32>
    %b = linalg.generic {fuse.viewed} ... ins(%x0, %x1, %x2, %x3 : ...) ... -> tensor<64x512xf32>
    ```
    """

    name: ClassVar[str] = "fuse-store-viewed"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Marks ops of the `builtin.module` in place."""
        machine = machine_of(target_of_module(module), device_of_module(module))
        for function in host_functions(module):
            found = {result.base: result.loads for result in _composed(function, machine)}
            around = {base: _around(function, base) for base in found}
            groups = connected(found, around.__getitem__)  # what a trial leaves out would be stored
            weighed = [group for group in groups if sum(map(found.__getitem__, group)) >= FEWEST_LOADS]
            if not weighed:
                remarks.declined(self, "no gathered views are computed of many elements of arrays", function)
            for group in weighed:
                op, what = group[0].owner.operation, f"views of {len(group)} result(s)"
                ops = set[ir.Operation]().union(*map(around.__getitem__, group))
                if len(ops) > MOST_OPS:
                    remarks.declined(self, f"{what} would be tried with over {MOST_OPS} ops", op)
                    continue
                times = _times(module, function, ops, machine)
                text = f"{what} are predicted to take {times.after:.1f} us stored, {times.before:.1f} us computed"
                if times.after * CLEAR_GAIN < times.before:
                    remarks.applied(self, text, op)
                    _mark(ops)
                else:
                    remarks.declined(self, text, op)


def _times(module: ir.Operation, function: ir.Operation, ops: set[ir.Operation], machine: MachineModel) -> Comparison:
    """The times of some ops with views computed, those that the next pass would compute or all, and with none."""
    found = compare(module, function, ops, partial(_mark_copies, ops))
    if found.after * CLEAR_GAIN >= found.before:
        return found
    all_ = Trial(module, function, ops).microseconds(partial(compose_copies, machine))
    return found._replace(before=min(found.before, all_))


def _around(function: ir.Operation, base: ir.Value) -> set[ir.Operation]:
    """The ops that a trial of a result has, and the gathered views that these read."""
    found = surrounded([base.owner.operation])
    open_ = list(found)
    while open_:
        for maker in map(defining_op, open_.pop().operands):
            if maker is not None and maker.name == VIEW.full_name and maker not in found:
                found.add(maker)
                open_.append(maker)
    return found


def _composed(function: ir.Operation, machine: MachineModel) -> list[ViewedResult]:
    """Elementwise results, in program order, of which `fuse-compose-gathers` would compute views."""
    joins, found = JoinedResults(), viewed_results(function, stored_results(function))
    return [result for result in found if result.obstacle(joins) is None and result.loss(machine) < 0]


def _mark(ops: Iterable[ir.Operation]) -> None:
    for op in filter(is_elementwise, ops):
        op.attributes[VIEWED] = ir.UnitAttr.get(op.context)


def _mark_copies(ops: Iterable[ir.Operation], copies: dict[ir.Operation, ir.Operation]) -> None:
    _mark(copies[op] for op in ops)
