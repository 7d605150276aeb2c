"""`lower-rare-branches`: what a loop does every so many steps stays a branch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, llvm

from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import defining_op, integer_of, ops_named

LEAST_PERIOD = 8
"""Steps from which on a branch is cheaper than computing in every step what is used in one of them."""


@dataclass(frozen=True)
class LowerRareBranches(Pass):
    """Tells LLVM that the condition of an `scf.if` with results, of one in n steps (`i mod n == 0`), seldom holds.

    LLVM replaces branches around cheap arithmetic by that arithmetic in every step, and by selections of its results,
    unless a branch is known to be predictable. A compensated sum has four additions and three selections for each
    element of a thread, where the loop has one addition.

    ```mlir
    %rest = arith.remui %i, %c32 : index
    %due = arith.cmpi eq, %rest, %c0 : index
    scf.if %due { ... }
    // lower-rare-branches
    %false = arith.constant false
    %seldom = llvm.intr.expect %due, %false : i1
    scf.if %seldom { ... }
    ```
    """

    name: ClassVar[str] = "lower-rare-branches"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            branches = [op for op in ops_named(func.operation, "scf.if") if op.results]
            rare = [op for op in branches if _is_rare(op.operands[0])]
            for op in rare:
                with ir.InsertionPoint(op), op.location:
                    never = arith.constant(op.operands[0].type, ir.BoolAttr.get(False))
                    op.operands[0] = llvm.intr_expect(op.operands[0], never)
            if rare:
                remarks.applied(self, f"{len(rare)} branches are taken seldom", func)
            elif branches:
                remarks.declined(self, "no branch is taken every so many steps", func)


def _is_rare(condition: ir.Value) -> bool:
    """Whether a condition says that the remainder of a division by a constant, not a small one, is 0."""
    compared = defining_op(condition)
    if compared is None or compared.name != "arith.cmpi" or integer_of(compared.operands[1]) != 0:
        return False
    if ir.IntegerAttr(compared.attributes["predicate"]).value != arith.CmpIPredicate.eq:
        return False
    rest = defining_op(compared.operands[0])
    if rest is None or rest.name != "arith.remui":
        return False
    period = integer_of(rest.operands[1])
    return period is not None and period >= LEAST_PERIOD
