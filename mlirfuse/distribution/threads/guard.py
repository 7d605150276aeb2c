"""Code that only some threads run."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, scf


def both(a: ir.Value | None, b: ir.Value | None) -> ir.Value | None:
    """The conjunction of two conditions, either of which may be missing."""
    return arith.AndIOp(a, b).result if a is not None and b is not None else b if a is None else a


class Guard:
    """A context that emits into an `scf.if`, or at the current point if there is no condition."""

    def __init__(self, condition: ir.Value | None):
        self.branch = None if condition is None else scf.IfOp(condition)
        self.point = None if self.branch is None else ir.InsertionPoint(self.branch.then_block)

    def __enter__(self) -> None:
        if self.point is not None:
            self.point.__enter__()

    def __exit__(self, *exc: object) -> None:
        if self.point is not None:
            scf.YieldOp([])
            self.point.__exit__(*exc)
