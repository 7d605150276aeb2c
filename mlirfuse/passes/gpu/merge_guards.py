"""`fuse-merge-guards`: stores under one condition are in one branch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import gpu_kernels, symbol
from mlirfuse.analysis.rolling import is_pure
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import erase, nested

STORES = ("memref.store", "vector.store")


@dataclass(frozen=True)
class FuseMergeGuards(Pass):
    """Moves stores that have a branch each, under one condition, into the last of these branches.

    Requires one thread's code (`gpu.func`), before `fuse-merge-stores`, which then sees what is stored side by side
    where rows may end inside of a tile. Between the branches are only ops that compute, and stores: a thread stores an
    element of a result once. Declines where no two such branches have one condition.

    ```mlir
    scf.if %inside { memref.store %a, %y[%i] : memref<130xf32> }
    %b = arith.addf %c, %d : f32
    scf.if %inside { memref.store %b, %y[%j] : memref<130xf32> }
    ```
    becomes
    ```mlir
    %b = arith.addf %c, %d : f32
    scf.if %inside {
      memref.store %a, %y[%i] : memref<130xf32>
      memref.store %b, %y[%j] : memref<130xf32>
    }
    ```
    """

    name: ClassVar[str] = "fuse-merge-guards"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for kernel in gpu_kernels(module):
            count = sum(_merge(group) for group in _groups(kernel))
            if count:
                remarks.applied(self, f"{count} branches of {symbol(kernel)} are parts of others", kernel)
            else:
                remarks.declined(self, "no two branches that only store have one condition", kernel)


def guards_stores(op: ir.Operation) -> bool:
    """Whether an op is a branch in which a thread stores, and computes what it stores where."""
    if op.name != "scf.if" or op.results or op.regions[1].blocks:
        return False
    *inner, _ = op.regions[0].blocks[0].operations
    return all(each.operation.name in STORES or is_pure(each.operation) for each in inner)


def _groups(kernel: ir.Operation) -> list[list[ir.Operation]]:
    """Branches of one condition, in program order, with nothing between them that may read what they store."""
    found: list[list[ir.Operation]] = []
    for block in dict.fromkeys(op.block for op in nested(kernel) if guards_stores(op)):
        open_: dict[ir.Value, list[ir.Operation]] = {}
        for op in (each.operation for each in block.operations):
            if guards_stores(op):
                if (group := open_.get(op.operands[0])) is None:
                    found.append(group := open_.setdefault(op.operands[0], []))
                group.append(op)
            elif op.name not in STORES and not is_pure(op):
                open_.clear()
    return found


def _merge(group: list[ir.Operation]) -> int:
    """Moves what the branches of a group have into the last one; returns how many are left out."""
    *others, last = group
    first = last.regions[0].blocks[0].operations[0]
    for branch in others:
        *inner, _ = branch.regions[0].blocks[0].operations
        for op in inner:
            op.operation.move_before(first)
        erase(branch)
    return len(others)
