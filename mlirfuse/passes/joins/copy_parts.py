"""`fuse-copy-parts`: one kernel computes all parts of a joined result, those that are only read among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import body, host_functions
from mlirfuse.analysis.loops.structure import is_constant, structure_of
from mlirfuse.analysis.memory.host_views import viewed
from mlirfuse.dialect.attributes import OPERATION, STORED
from mlirfuse.dialect.gathered_view import DEFINITION, gather_of, gathered_view
from mlirfuse.passes.joins.joined_results import have_in_common, interleave, is_computed, is_result, parts_of_result
from mlirfuse.passes.views.copies import copied_together
from mlirfuse.passes.views.views import fold_views
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.reshapes import reassociation
from mlirfuse.support.rewriting import defining_op, erase_dead


@dataclass(frozen=True)
class FuseCopyParts(Pass):
    """Copies the parts of a joined result in one op.

    Requires functions of tensor ops. Points that are turned about an axis keep a coordinate, and homogeneous
    coordinates have a constant beside those that are read. The kernel of the op computes all parts, reads each element
    once, and stores the parts where they belong (`fuse-scatter-parts`). Where other ops read the result too, and would
    read what parts are computed of several times, they read it from memory (`fuse.stored`). Declines where all parts
    are computed, of something that they have in common, as these are one kernel's anyway; where parts are computed
    otherwise than element by element of arguments; and where parts that follow one another in longer runs have nothing
    in common.

    ```mlir
    %x = ...                                 // a slice of %points
    %y = ...                                 // computed of slices of %points
    %z = ...                                 // %x and %y, interleaved by place
    return %z
    ```
    becomes
    ```mlir
    %c:2 = linalg.generic ... ins(%x, %y : tensor<4096xf32>, tensor<4096xf32>) ... {fuse.copied = -1 : i64}
    %z = ...                                 // %c#0 and %c#1
    return %z
    ```
    """

    name: ClassVar[str] = "fuse-copy-parts"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for function in host_functions(module):
            joins = 0
            for op in body(function):
                parts = parts_of_result(op) if op.name == "linalg.generic" and OPERATION not in op.attributes else []
                if not parts:
                    continue
                joins += 1
                if not all(map(is_result, op.results)):
                    op.attributes[STORED] = ir.UnitAttr.get()
                    remarks.applied(self, "a result is stored by a kernel without the ops that read it", op)
                if reason := _obstacle(parts):
                    remarks.declined(self, reason, op)
                else:
                    _copy(op, parts)
                    remarks.applied(self, f"copies the {len(parts)} parts of a result together", op)
            if joins:
                erase_dead([op for op in body(function) if op.results])
            else:
                remarks.declined(self, "no result is joined of parts of one shape", function)


def _obstacle(parts: Sequence[ir.Value]) -> str | None:
    """Why the parts of a result should not be copied together, or None."""
    common = have_in_common(parts)
    if common and all(map(is_computed, parts)):
        return "all parts are computed of something that they have in common"
    if not common and not interleave(parts):
        return "its parts are runs that have nothing in common"
    if not all(map(_is_elementwise, parts)):
        return "a part is computed otherwise than element by element of arguments"
    return None


def _is_elementwise(part: ir.Value) -> bool:
    """Whether nothing but elementwise ops makes a value of views of arguments, and of constants."""
    open_, seen = [part], set[ir.Value]()
    while open_:
        value = open_.pop()
        if value in seen or is_constant(value) or not isinstance(value.type, ir.RankedTensorType):
            continue
        seen.add(value)
        maker = defining_op(value)
        if maker is None or defining_op(viewed(value)) is None:
            continue
        structure = structure_of(maker)
        if maker.name == "tensor.expand_shape":
            open_.append(maker.operands[0])
        elif maker.name != "linalg.generic" or structure is None or structure.reduction_loops:
            return False
        else:
            open_ += list(maker.operands)[:-1]
    return True


def _copy(join: ir.Operation, parts: Sequence[ir.Value]) -> None:
    """Joins copies of the parts, which one op makes; dimensions of one element that all are given are no part of it."""
    makers = [defining_op(part) for part in parts]
    reshapes = [maker for maker in makers if maker is not None and maker.name == "tensor.expand_shape"]
    groups = {str(reassociation(reshape)) for reshape in reshapes}
    if len(reshapes) < len(parts) or len(groups) > 1:
        copies = new = copied_together(join, parts)
    else:
        new = copied_together(join, [reshape.operands[0] for reshape in reshapes])
        copies = []
        for reshape, value in zip(reshapes, new, strict=True):
            with ir.InsertionPoint(join):
                expanded = reshape.clone()
            expanded.operands[0] = value
            copies.append(expanded.results[0])
    fold_views(new[0].owner.operation)
    of = dict(zip(parts, copies, strict=True))
    for number, operand in enumerate(join.operands):
        view = defining_op(operand)
        if view is not None and view.name == DEFINITION.full_name:
            with ir.InsertionPoint(join), view.location:
                join.operands[number] = gathered_view(of[view.operands[0]], gather_of(view.attributes))
