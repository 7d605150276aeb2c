"""`fuse-fold-joins`: zeros beside other parts of a joined array are what views of these have there anyway."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.joined_views import are_apart
from mlirfuse.dialect.gathered_view import gather_of, gathered_view
from mlirfuse.passes.joins.joins import copied, joined, rewrite_joins
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import defining_op, integer_of, number_of


@dataclass(frozen=True)
class FuseFoldJoins(Pass):
    """Leaves zeros out of joined arrays; what is left of a single part is a view of it, with zeros around.

    Requires functions of tensor ops. Padding with zeros is written as a join of zeros, an array, and zeros
    (`mf.concat`); a gathered view of the array has these zeros without a check for each part. Declines where no part is
    filled with zeros, and where parts overlap, of which the last one would be selected.

    ```mlir
    %a = "fuse.gathered_view"(%zeros) {map = affine_map<(i) -> (i)>, ...} : (tensor<1xf32>) -> tensor<9xf32>
    %b = "fuse.gathered_view"(%x) {map = affine_map<(i) -> (i - 1)>, ...} : (tensor<8xf32>) -> tensor<9xf32>
    %y = linalg.generic ... ins(%a, %b, %in_a, %in_b : ...) { ... arith.select ... }
    ```
    becomes
    ```mlir
    %b = "fuse.gathered_view"(%x) {map = affine_map<(i) -> (i - 1)>, ...} : (tensor<8xf32>) -> tensor<9xf32>
    %y = linalg.generic ... ins(%b : tensor<9xf32>) ...                                                  // a copy
    ```
    """

    name: ClassVar[str] = "fuse-fold-joins"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        rewrite_joins(self, module, remarks, _folded, "zeros are left out of joined arrays")


def _folded(join: ir.Operation, views: Sequence[ir.Operation]) -> ir.Value | str:
    """What a join is without its parts of zeros; or why these stay."""
    kept = [view for view in views if not _is_zero(view.operands[0])]
    if len(kept) == len(views) or not kept:
        return "no part is filled with zeros, or all are"
    if not are_apart(views):
        return "parts overlap"
    if not _is_zero_constant(_default(join)):
        return "what is between the parts is not zero"
    if len(kept) == 1:
        return copied(kept[0].results[0])
    parts = [view.operands[0] for view in kept]
    gathers = [gather_of(view.attributes) for view in kept]
    shapes = [tuple(ir.RankedTensorType(part.type).shape) for part in parts]
    checks = [
        gathered_view(part, replace(gather, inside=shape))
        for part, gather, shape in zip(parts, gathers, shapes, strict=True)
    ]
    return joined([view.results[0] for view in kept], checks, ir.RankedTensorType(join.results[0].type))


def _is_zero(value: ir.Value) -> bool:
    """Whether a tensor is filled with zeros."""
    op = defining_op(value)
    if op is None:
        return False
    if op.name == "linalg.fill":
        return _is_zero_constant(op.operands[0])
    if op.name != "linalg.generic" or len(op.operands) != 1:
        return False
    return _is_zero_constant(list(op.regions[0].blocks[0].operations)[-1].operands[0])


def _default(join: ir.Operation) -> ir.Value:
    """What a join has where no part is."""
    value = list(join.regions[0].blocks[0].operations)[-1].operands[0]
    while (select := defining_op(value)) is not None and select.name == "arith.select":
        value = select.operands[2]
    return value


def _is_zero_constant(value: ir.Value) -> bool:
    """Whether a number is 0 and nothing else, which -0.0 is not."""
    if (number := number_of(value)) is not None:
        return str(number) == "0.0"
    return integer_of(value) == 0
