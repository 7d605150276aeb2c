"""`fuse-unroll-loops`: loops that load little in a step are unrolled, so that more loads are under way at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.arithmetic.code_size import code_size
from mlirfuse.analysis.kernels import symbol
from mlirfuse.dialect.shared_memory import is_workgroup
from mlirfuse.distribution.exchange.partials import LOOP_ANNOTATION, unroll
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.model.loops import steps_at_once
from mlirfuse.support.rewriting import integer_of, ops_named

LOADS = ("memref.load", "vector.load", "vector.maskedload")
PURE = ("affine", "arith", "index", "math", "vector")
"""Dialects whose ops, but for `LOADS` and stores of vectors, touch no memory."""

SAME = ("arith.extf", "vector.broadcast", "vector.extract", "vector.shape_cast", "vector.to_elements")
"""Ops whose results are numbers of the operand, each in another form."""

STORES = ("vector.store", "vector.maskedstore", "vector.scatter", "vector.transfer_write")


@dataclass(frozen=True)
class FuseUnrollLoops(Pass):
    """Has LLVM unroll loops of a thread that only load and compute what they carry.

    Requires one thread's code (`gpu.func`). A step of such a loop, of a reduction over chunks for one, waits for its
    loads; ptxas issues the loads of an unrolled body together. LLVM by itself unrolls as little as its limit on the
    size of code allows. A loop is unrolled until `LOADS_AHEAD` loads of an array are under way, the body has
    `MOST_UNROLLED` instructions, or no steps are left; and on, up to `SHARED_STEPS`, where several operations share
    each load, as in a register tile of results (`schedule/model/loops.py`, which predictions use too).
    Loops that branch, store, or wait for other threads are left alone: ptxas moves no load across what they do.

    ```mlir
    %sums = scf.for %i = %c0 to %c3072 step %c256 iter_args(%acc = %zero) -> (vector<8xf32>) {
      %x = vector.load %array[%i] : memref<3072xf32>, vector<8xf32>
      %next = arith.addf %acc, %x : vector<8xf32>
      scf.yield %next : vector<8xf32>
    }
    ```
    gets the attribute `llvm.loop_annotation = #llvm.loop_annotation<unroll = <count = 4 : i32>>`.
    """

    name: ClassVar[str] = "fuse-unroll-loops"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in ops_named(module, "gpu.func"):
            loops = ops_named(func, "scf.for")
            if not loops:
                remarks.declined(self, f"{symbol(func)} has no loop", func)
            for loop in loops:
                count = _steps(loop)
                if isinstance(count, str):
                    remarks.declined(self, count, loop)
                    continue
                unroll(loop, count)
                remarks.applied(self, f"{count} steps are one, whose loads are under way together", loop)


def _steps(loop: ir.Operation) -> int | str:
    """Steps that should become one, or why none should."""
    if LOOP_ANNOTATION in loop.attributes:
        return "the loop says how it is to be unrolled"
    *ops, _ = [op.operation for op in loop.regions[0].blocks[0].operations]
    if other := next((op for op in ops if op.regions or not _is_pure(op)), None):
        return f"a step has a {other.name}"
    ops = _varying(loop, ops)
    loading = [op for op in ops if op.name in LOADS and not is_workgroup(op.operands[0].type)]
    if not loading:
        return "a step loads nothing from device memory"
    loads, uses = Counter(op.operands[0] for op in loading), min(_uses(op.results[0]) for op in loading)
    count = steps_at_once(max(loads.values()), sum(map(code_size, ops)), uses)
    lower, upper, step = map(integer_of, list(loop.operands)[:3])
    if lower is not None and upper is not None and step:
        count = min(count, -(-(upper - lower) // step))
    return count if count > 1 else "the loads of a step are many, or its code is long"


def _varying(loop: ir.Operation, ops: Sequence[ir.Operation]) -> list[ir.Operation]:
    """The ops of a step that depend on the step: LLVM moves the others before the loop."""
    varying, found = set(loop.regions[0].blocks[0].arguments), []
    for op in ops:
        if not varying.isdisjoint(op.operands):
            varying.update(op.results)
            found.append(op)
    return found


def _uses(value: ir.Value) -> int:
    """Operations on a value, or on a part or another form of it."""
    users = [use.owner.operation for use in value.uses]
    return sum(max(map(_uses, user.results)) if user.name in SAME else 1 for user in users)


def _is_pure(op: ir.Operation) -> bool:
    return op.name in LOADS or (op.name.split(".")[0] in PURE and op.name not in STORES) or op.name == "memref.dim"
