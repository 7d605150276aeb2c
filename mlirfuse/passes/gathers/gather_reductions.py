"""`fuse-gather-reductions`: rows whose reductions are gathered with them are reduced where they are gathered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.contractions.contraction import products_of
from mlirfuse.analysis.kernels import body, functions, is_tile_program
from mlirfuse.analysis.memory.host_views import is_host_view
from mlirfuse.dialect.gathered_view import DEFINITION, Gather, gather_of
from mlirfuse.passes.gathers.gathered_ops import (
    GatheredOps,
    is_whole_selection,
    reduction_of,
    stored_results,
)
from mlirfuse.passes.gathers.readings import loop_extent
from mlirfuse.passes.gathers.viewed_result import merge_views
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import defining_op, erase_unused


@dataclass(frozen=True)
class FuseGatherReductions(Pass):
    """Moves gathered views of a reduction's result to its operands, where what reads the views gathers these too.

    Requires functions of tensor ops with static extents. `fuse-compose-gathers` leaves a row's statistics in memory, by
    a kernel that reads the rows as they are; another one reads the statistics, and the rows, in another order. Once the
    statistics are of the gathered rows, one kernel reads these once: a normalisation whose result is shifted and
    divided into windows. The pass declines where the result is read in its own order too, where a view has an element
    more than once or leaves the result, where its readers do not gather what is reduced, and where only run time knows
    how many elements that is.

    ```mlir
    %s = linalg.generic {iterator_types = ["parallel", "reduction"]} ins(%x : tensor<56x192xf32>) ...
    %t = "fuse.gathered_view"(%s) {map = affine_map<(i) -> ((i + 3) mod 56)>, ...} : ... -> tensor<56xf32>
    %y = "fuse.gathered_view"(%x) {map = affine_map<(i, j) -> ((i + 3) mod 56, j)>, ...} : ... -> tensor<56x192xf32>
    %z = linalg.generic ... ins(%y, %t : tensor<56x192xf32>, tensor<56xf32>) ...
    ```
    becomes
    ```mlir
    %y = "fuse.gathered_view"(%x) {map = affine_map<(i, j) -> ((i + 3) mod 56, j)>, ...} : ... -> tensor<56x192xf32>
    %t = linalg.generic {iterator_types = ["parallel", "reduction"]} ins(%y : tensor<56x192xf32>) ...
    %z = linalg.generic ... ins(%y, %t : tensor<56x192xf32>, tensor<56xf32>) ...
    ```
    """

    name: ClassVar[str] = "fuse-gather-reductions"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for function in functions(module):
            if not body(function) or is_tile_program(function):
                continue
            kept, moved, seen = stored_results(function), 0, set[ir.Value]()
            while (found := next(_viewed_reductions(function, seen), None)) is not None:
                op, views = found
                seen.add(op.results[0])
                gathered = GatheredOps(kept, [op.results[0]])
                if reason := _obstacle(op, views, gathered):
                    remarks.declined(self, reason, op)
                    continue
                for view in views:
                    with ir.InsertionPoint(view), view.location:
                        new = gathered.of(view.operands[0], gather_of(view.attributes))
                    view.results[0].replace_all_uses_with(new)
                moved += len(views)
                erase_unused(function)
            if moved:
                merge_views(function)
                remarks.applied(self, f"{moved} views of reductions", function)
            elif not seen:
                remarks.declined(self, "no view of a reduction's result", function)


def _viewed_reductions(
    function: ir.Operation, seen: set[ir.Value]
) -> Iterator[tuple[ir.Operation, list[ir.Operation]]]:
    """Reductions, and the gathered views of their results, from the last one on, whose operands may be of others."""
    for op in reversed(body(function)):
        if reduction_of(op) is not None and op.results[0] not in seen and (views := _views_of(op)):
            yield op, views


def _views_of(op: ir.Operation) -> list[ir.Operation]:
    """The gathered views of an op's result, and of views of it on the host."""
    found = list[ir.Operation]()
    for user in {use.owner.operation for use in op.results[0].uses}:
        if user.name == DEFINITION.full_name:
            found += [user] if list(user.results[0].uses) else []
        elif is_host_view(user):
            found += _views_of(user)
    return found


def _obstacle(op: ir.Operation, views: list[ir.Operation], gathered: GatheredOps) -> str | None:
    """Why gathered views of a reduction's result are left alone, or None."""
    structure = reduction_of(op)
    assert structure is not None  # `_viewed_reductions` yields such ops alone
    if products_of(op):
        return "it sums up products"
    if any(loop_extent(structure, loop) is None for loop in structure.reduction_loops):
        return "how many elements it reduces is known at run time only"
    if not _is_only_viewed(op.results[0], gathered):
        return "the result is read in its own order too"
    for view in views:
        gather, source = gather_of(view.attributes), ir.RankedTensorType(view.operands[0].type)
        if not is_whole_selection(gather, source.shape):
            return "a view leaves the result, or has an element of it more than once"
        read = gathered.viewed(view.operands[0], gather)
        whole = [each for each in read if len(each[1].shape) > len(gather.shape)]  # not what is shared by all of a row
        beside = {each for use in view.results[0].uses for each in _gathers_beside(use.owner.operation)}
        if not whole or not beside.issuperset(whole):
            return "the readers of a view do not gather what is reduced"
    return None


def _is_only_viewed(value: ir.Value, gathered: GatheredOps) -> bool:
    """Whether gathered views alone read a value, through views on the host that are followed to it."""
    for user in (use.owner.operation for use in value.uses):
        if user.name == DEFINITION.full_name:
            continue
        if not is_host_view(user) or gathered.step(user.results[0]) is None:
            return False
        if not _is_only_viewed(user.results[0], gathered):
            return False
    return True


def _gathers_beside(op: ir.Operation) -> set[tuple[ir.Value, Gather]]:
    """The gathered views that an op, and those that its results go to, compute with."""
    found = set[tuple[ir.Value, Gather]]()
    left = list(_closure([op], lambda each: [use.owner.operation for result in each.results for use in result.uses]))
    for each in _closure(left, lambda each: [maker for value in each.operands if (maker := defining_op(value))]):
        if each.name == DEFINITION.full_name:
            found.add((each.operands[0], gather_of(each.attributes)))
    return found


def _closure(
    ops: Iterable[ir.Operation], following: Callable[[ir.Operation], Iterable[ir.Operation]]
) -> set[ir.Operation]:
    """Ops, and what follows them, through those that compute and views on the host."""
    seen, left = set[ir.Operation](), list(ops)
    while left:
        op = left.pop()
        if op not in seen:
            seen.add(op)
            left += following(op) if op.name == "linalg.generic" or is_host_view(op) else []
    return seen
