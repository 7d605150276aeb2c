"""`fuse-views`: folds views into the indexing maps of the ops that read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import body, functions, is_tile_program
from mlirfuse.analysis.loops.structure import is_unit_reshape
from mlirfuse.analysis.memory.host_views import is_diagonal, rearranged_axes
from mlirfuse.passes.views.producer_composition import compose_producer
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import defining_op, erase_dead


@dataclass(frozen=True)
class FuseViews(Pass):
    """Makes each `linalg.generic` that reads a transposed, broadcast or unit-reshaped value read the view's source.

    Requires functions of tensor ops. The view is composed into the reader's indexing map, so that views neither split
    kernels nor cost copies: a contraction of transposed operands reads them in their memory layout. A transposition of
    another one becomes a single one, or none where it undoes that one. Unused views are erased. Remaining views are
    returned or reshaped further; `fuse-segment` leaves them to the host, which launches nothing for them. Slices and
    diagonals stay too: kernels read them as strided arrays. An operand is left alone where only its shape gives the
    extent of one of the reader's loops.

    ```mlir
    %t = linalg.transpose ins(%w : tensor<384x512xf16>) outs(%e : tensor<512x384xf16>) permutation = [1, 0]
    %y = linalg.generic {indexing_maps = [..., affine_map<(m, n, k) -> (k, n)>, ...]} ins(%x, %t) ...
    ```
    becomes
    ```mlir
    %y = linalg.generic {indexing_maps = [..., affine_map<(m, n, k) -> (n, k)>, ...]} ins(%x, %w) ...
    ```
    """

    name: ClassVar[str] = "fuse-views"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for function in functions(module):
            ops = body(function)
            if not ops or is_tile_program(function):
                continue
            folded = sum(compose_transposes(op) for op in ops if op.name == "linalg.transpose")
            folded += sum(fold_views(op) for op in ops if op.name == "linalg.generic")
            erase_dead([op for op in ops if _is_view(op)])
            if folded:
                remarks.applied(self, f"{folded} reads of views", function)
            else:
                remarks.declined(self, "no op reads a view", function)


def fold_views(generic: ir.Operation) -> int:
    """Folds the views that a `linalg.generic` reads; returns how many."""
    folded = 0
    for number in range(len(generic.operands) - len(generic.results)):
        while (maker := defining_op(generic.operands[number])) is not None and _is_view(maker):
            if not compose_producer(generic, number, maker):
                break
            folded += 1
    return folded


def compose_transposes(op: ir.Operation) -> bool:
    """Makes a `linalg.transpose` of another one read that one's source, and leaves it without uses where it undoes that
    one; returns whether it transposes another one.
    """
    first = defining_op(op.operands[0])
    if first is None or first.name != "linalg.transpose":
        return False
    inner, outer = (list(ir.DenseI64ArrayAttr(each.attributes["permutation"])) for each in (first, op))
    order = [inner[axis] for axis in outer]
    op.operands[0] = first.operands[0]
    op.attributes["permutation"] = ir.DenseI64ArrayAttr.get(order)
    if order == sorted(order):
        op.results[0].replace_all_uses_with(first.operands[0])
    return True


def _is_view(op: ir.Operation) -> bool:
    """Whether an op only gives the elements of its first operand other coordinates, one of them a loop."""
    return is_unit_reshape(op) or (rearranged_axes(op) is not None and not is_diagonal(op))
