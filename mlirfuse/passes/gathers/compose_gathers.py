"""`fuse-compose-gathers`: elementwise ops whose results are only gathered compute the gathered elements instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import body, functions, is_tile_program
from mlirfuse.analysis.memory.host_views import extents_of, is_host_view
from mlirfuse.dialect.attributes import OPERATION
from mlirfuse.dialect.gathered_view import DEFINITION, Gather, gather_of
from mlirfuse.dialect.module_target import device_of_module, target_of_module
from mlirfuse.machine.lookup import machine_of
from mlirfuse.passes.gathers.gathered_ops import (
    GatheredOps,
    stays_inside,
    stored_results,
)
from mlirfuse.passes.gathers.viewed_result import checks_by, checks_of, compose, read_nothing
from mlirfuse.passes.slices.sliced_ops import SLICE, ranges_of
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.affine_expressions import bounds
from mlirfuse.support.rewriting import defining_op, erase_unused


@dataclass(frozen=True)
class FuseComposeGathers(Pass):
    """Moves gathered views of an elementwise op's result to the op's operands.

    One kernel then computes the elements in the order in which they are read, and the result is in no memory. Requires
    functions of tensor ops with static extents. A view that leaves the result is selected from under a check, with
    zeros elsewhere, unless its readers have such a check anyway, as those of joined arrays do (`mf.concat`): what is
    computed of the zeros past the end of operands is not used. The pass declines where the result is in memory anyway,
    as it is returned, multiplied, or stored (`fuse.stored`); where a product reads the view, and it leaves the result
    or has elements more than once; where many elements are read for each; and where computing and loading elements as
    often as views have them takes longer than the bytes of the result, written and read, and a launch, at the rates of
    the machine model. Of a sum or a product that the result is computed of, the bytes are written in place of its own.
    Parts of a result that one kernel may store where they belong stay (`fuse-scatter-parts`).

    ```mlir
    %y = linalg.generic {iterator_types = ["parallel", "parallel"]} ins(%x, %w : tensor<29x8xf32>, tensor<8xf32>) ...
    %z = "fuse.gathered_view"(%y) {map = affine_map<(h, a) -> ((h + 1) floordiv 2, ...)>, ...}
    ```
    becomes
    ```mlir
    %v = "fuse.gathered_view"(%x) {map = affine_map<(h, a) -> ((h + 1) floordiv 2, ...)>, ...}
    %u = "fuse.gathered_view"(%w) ...
    %z = linalg.generic {iterator_types = ["parallel", "parallel"]} ins(%v, %u : tensor<56x2xf32>, ...) ...
    ```
    """

    name: ClassVar[str] = "fuse-compose-gathers"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for function in functions(module):
            if not body(function) or is_tile_program(function):
                continue
            machine = machine_of(target_of_module(module), device_of_module(module))
            composed, stored = through_slices(function), stored_results(function)
            kept = set(stored)
            composed += compose(function, machine, kept, lambda op, reason: remarks.declined(self, reason, op))
            if composed:
                remarks.applied(self, f"{composed} views of elementwise results", function)
            elif kept == stored:
                remarks.declined(self, "no view of an elementwise result", function)


def through_slices(function: ir.Operation) -> int:
    """Makes views of slices views of what is sliced, of which a kernel then reads one array; returns how many.

    Elements past the ends of a slice, where the view has zeros, may not be asked for, but where the array ends too.
    """
    views = [op for op in body(function) if op.name == DEFINITION.full_name and list(op.results[0].uses)]
    count = 0
    for view in views:
        slice_, gather = defining_op(view.operands[0]), gather_of(view.attributes)
        if slice_ is None or slice_.name != SLICE or gather.inside or OPERATION in slice_.attributes:
            continue
        if _is_computed(slice_.operands[0]):  # which may be computed where it is read
            continue
        checks, step = checks_of(view), GatheredOps().step(slice_.results[0])
        inside = stays_inside(gather, ir.RankedTensorType(slice_.results[0].type).shape) or _ends_with(slice_, gather)
        if gather.joins_components or step is None or not (checks or inside):
            continue
        with ir.InsertionPoint(view), view.location:
            new = GatheredOps([slice_.operands[0]]).of(slice_.results[0], gather)
        view.results[0].replace_all_uses_with(new)
        for check in checks_by(slice_.results[0]):
            read_nothing(check)
        count += 1
    if count:
        erase_unused(function)
    return count


def _ends_with(slice_: ir.Operation, gather: Gather) -> bool:
    """Whether a view of a slice leaves that only where it leaves the array too, as one that is shifted past an end."""
    ranges, extents = ranges_of(slice_), extents_of(slice_.operands[0])
    if ranges is None or None in extents or gather.joins_components or gather.inside:
        return False
    for own, extent, expr in zip(ranges, extents, gather.map.results, strict=True):
        start, count, step = (own.start, own.count, own.step) if own is not None else (0, extent or 0, 1)
        low, high = bounds(expr, gather.components)
        if (low < 0 and start >= step) or (high >= count and start + count * step < (extent or 0)):
            return False
    return True


def _is_computed(value: ir.Value) -> bool:
    """Whether elements of a value, or of what it is a slice or a reshape of, can be computed at gathered places."""
    step = GatheredOps().step(value)
    if step is None:
        return False
    is_view = is_host_view(step.op) and step.op.name.startswith("tensor.")
    return _is_computed(step.op.operands[0]) if is_view else True
