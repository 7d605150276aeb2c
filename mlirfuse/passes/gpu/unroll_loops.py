"""`fuse-unroll-loops`: loops that load little in a step make several steps at once, with more loads under way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, scf

from mlirfuse.analysis.arithmetic.code_size import code_size
from mlirfuse.analysis.kernels import symbol
from mlirfuse.dialect.shared_memory import is_workgroup
from mlirfuse.distribution.exchange.partials import LOOP_ANNOTATION, forbid_unrolling, unroll
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.model.loops import FEWEST_USES, steps_at_once
from mlirfuse.support.rewriting import backward_slice, clone, integer_of, nested, ops_named
from mlirfuse.tiling.tiles import index

LOADS = ("memref.load", "vector.load", "vector.maskedload")
PURE = ("affine", "arith", "index", "math", "vector")
"""Dialects whose ops, but for `LOADS` and stores of vectors, touch no memory."""

SAME = ("arith.extf", "vector.broadcast", "vector.extract", "vector.shape_cast", "vector.to_elements")
"""Ops whose results are numbers of the operand, each in another form."""

STORES = ("vector.store", "vector.maskedstore", "vector.scatter", "vector.transfer_write")


@dataclass(frozen=True)
class FuseUnrollLoops(Pass):
    """Unrolls loops of a thread that load, compute and store, and puts the loads of all steps first.

    Requires one thread's code (`gpu.func`). A step of such a loop, of a reduction over chunks for one, waits for its
    loads. Where those of several steps come first, ptxas leaves them there; where each stands before its use, as in
    loops that LLVM unrolls, it saves registers and waits for every load by itself. A loop is unrolled until
    `LOADS_AHEAD` loads of an array are under way, the body has `MOST_UNROLLED` instructions, or no steps are left
    (`schedule/model/loops.py`, which predictions use too). What is carried is computed in the order of steps. Steps
    that are left over are made by halves: of up to seven, four if there are so many, then two, then one.
    Where several operations share each load, as in a register tile of results, they hide the next ones and need the
    registers: LLVM unrolls these loops, up to `SHARED_STEPS`.
    What steps store follows in their order, where it is a kernel's argument that the loop does not load from: nothing
    that a kernel reads overlaps its results. Loops that branch for more than that, or wait for other threads, are left
    alone: ptxas moves no load across what they do.

    ```mlir
    %sums = scf.for %i = %c0 to %c3072 step %c256 iter_args(%acc = %zero) -> (vector<8xf32>) {
      %x = vector.load %array[%i] : memref<3072xf32>, vector<8xf32>
      %next = arith.addf %acc, %x : vector<8xf32>
      scf.yield %next : vector<8xf32>
    }
    ```
    becomes
    ```mlir
    %sums = scf.for %i = %c0 to %c3072 step %c1024 iter_args(%acc = %zero) -> (vector<8xf32>) {
      %x0 = vector.load %array[%i] : memref<3072xf32>, vector<8xf32>
      %i1 = arith.addi %i, %c256 : index
      %x1 = vector.load %array[%i1] : memref<3072xf32>, vector<8xf32>
      ...
      %s0 = arith.addf %acc, %x0 : vector<8xf32>
      %s1 = arith.addf %s0, %x1 : vector<8xf32>
      ...
      scf.yield %s3 : vector<8xf32>
    }
    ```
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
                remarks.applied(self, f"{count} steps are one, whose loads are under way together", loop)
                _load_before(loop)
                if _uses_of_loads(loop) >= FEWEST_USES:
                    unroll(loop, count)
                    continue
                with ir.InsertionPoint(loop), loop.location:
                    _unroll(_Steps(loop), count)


def _steps(loop: ir.Operation) -> int | str:
    """Steps that should become one, or why none should."""
    if LOOP_ANNOTATION in loop.attributes:
        return "the loop says how it is to be unrolled"
    *ops, _ = [op.operation for op in loop.regions[0].blocks[0].operations]
    loading = _loading(loop)
    loaded = {op.operands[0] for op in loading}
    if other := next((op for op in ops if not _is_pure(op) and not _stores_apart(op, loaded)), None):
        return f"a step has a {other.name}"
    if not loading:
        return "a step loads nothing from device memory"
    loads = Counter(op.operands[0] for op in loading)
    count = steps_at_once(max(loads.values()), sum(map(code_size, _varying(loop))), _uses_of_loads(loop))
    lower, upper, step = map(integer_of, list(loop.operands)[:3])
    if lower is not None and upper is not None and step:
        count = min(count, -(-(upper - lower) // step))
    return count if count > 1 else "the loads of a step are many, or its code is long"


def _load_before(loop: ir.Operation) -> None:
    """Moves what no step changes in front of a loop that stores, which LLVM does for others, where there is a step."""
    ops = [op.operation for op in loop.regions[0].blocks[0].operations][:-1]
    lower, upper, _ = map(integer_of, list(loop.operands)[:3])
    if all(map(_is_pure, ops)) or lower is None or upper is None or lower >= upper:
        return
    varying = set(_varying(loop))
    for op in ops:
        if op not in varying and _is_pure(op):
            op.move_before(loop)


def _loading(loop: ir.Operation) -> list[ir.Operation]:
    """The loads of a step from device memory."""
    return [op for op in _varying(loop) if op.name in LOADS and not is_workgroup(op.operands[0].type)]


def _uses_of_loads(loop: ir.Operation) -> int:
    """Operations on what a step loads; the least of all loads."""
    return min(_uses(op.results[0]) for op in _loading(loop))


def _varying(loop: ir.Operation) -> list[ir.Operation]:
    """The ops of a step that depend on the step: LLVM moves the others before the loop."""
    block = loop.regions[0].blocks[0]
    varying, found = set(block.arguments), []
    for op in [op.operation for op in block.operations][:-1]:
        if not varying.isdisjoint(op.operands):
            varying.update(op.results)
            found.append(op)
    return found


def _uses(value: ir.Value) -> int:
    """Operations on a value, or on a part or another form of it."""
    users = [use.owner.operation for use in value.uses]
    return sum(max(map(_uses, user.results)) if user.name in SAME else 1 for user in users)


def _is_pure(op: ir.Operation) -> bool:
    if op.regions:
        return False
    return op.name in LOADS or (op.name.split(".")[0] in PURE and op.name not in STORES) or op.name == "memref.dim"


def _stores_apart(op: ir.Operation, loaded: Collection[ir.Value]) -> bool:
    """Whether an op, or all that a branch does, stores to arguments of the kernel that a loop does not load from."""
    if op.name == "scf.if":
        ops = [inner for inner in nested(op) if inner != op and inner.name != "scf.yield"]
        return not op.results and all(_stores_apart(inner, loaded) or _computes(inner) for inner in ops)
    if op.name not in ("memref.store", "vector.store", "vector.maskedstore"):
        return False
    (array,) = (value for value in op.operands if isinstance(value.type, ir.MemRefType))
    is_argument = isinstance(array.owner, ir.Block) and array.owner.owner.operation.name == "gpu.func"
    return is_argument and array not in loaded and not is_workgroup(array.type)


def _computes(op: ir.Operation) -> bool:
    """Whether an op touches no memory."""
    return _is_pure(op) and op.name not in LOADS


class _Steps:
    """The steps of a loop, which are emitted anywhere.

    Attributes:
        loop: the `scf.for`.
        bounds: its lower and upper bound and its step.
        early: ops of a step that make its loads, which nothing depends on that steps hand over.
        late: the others.
    """

    def __init__(self, loop: ir.Operation):
        self.loop, self.bounds = loop, list(loop.operands)[:3]
        block = loop.regions[0].blocks[0]
        *ops, self._last = [op.operation for op in block.operations]
        handed = set(list(block.arguments)[1:])
        for op in ops:
            if not handed.isdisjoint(op.operands):
                handed.update(op.results)
        loads = [op.results[0] for op in ops if op.name in LOADS and handed.isdisjoint(op.operands)]
        found = backward_slice(loads, ops)
        self.early = [op for op in ops if op in found]
        self.late = [op for op in ops if op not in found]

    def emit(self, first: ir.Value, count: int, carried: Sequence[ir.Value]) -> list[ir.Value]:
        """Emits that many steps, the first of them for a value of the loop's variable; returns what they carry on."""
        variable, *arguments = self.loop.regions[0].blocks[0].arguments
        mappings = [{variable: self._later(first, number)} for number in range(count)]
        for mapping in mappings:
            for op in self.early:
                clone(op, mapping)
        values = list(carried)
        for mapping in mappings:
            mapping.update(zip(arguments, values, strict=True))
            for op in self.late:
                clone(op, mapping)
            values = [mapping.get(value, value) for value in self._last.operands]
        return values

    def _later(self, first: ir.Value, number: int) -> ir.Value:
        step = self.bounds[2]
        return arith.AddIOp(first, times(step, number)).result if number else first


def times(value: ir.Value, number: int) -> ir.Value:
    """Emits a multiple of an index, which is a constant if the index is one."""
    known = integer_of(value)
    return arith.MulIOp(value, index(number)).result if known is None else index(known * number)


def _unroll(steps: _Steps, count: int) -> None:
    """Replaces a loop, in front of which ops are emitted, by one that makes `count` steps at once, and what is left."""
    lower, upper, step = steps.bounds
    start = list(steps.loop.operands)[3:]
    known = [integer_of(value) for value in steps.bounds]
    if None not in known:
        first, end, length = (value or 0 for value in known)
        total = -(-(end - first) // length)
        many, left = total // count, total % count
        values, position = start, index(first + many * count * length)
        values = _at_once(steps, lower, position, count, start) if many > 1 else steps.emit(lower, count, start)
        values = steps.emit(position, left, values) if left else values
    else:
        span = arith.MaxSIOp(arith.SubIOp(upper, lower).result, index(0)).result
        total = arith.CeilDivUIOp(span, step).result
        values = _at_once(steps, lower, _after(steps, total, count), count, start)
        part = count // 2
        while part:
            odd = arith.RemUIOp(arith.DivUIOp(total, index(part)).result, index(2)).result
            is_left = arith.CmpIOp(arith.CmpIPredicate.ne, odd, index(0)).result
            branch = scf.IfOp(is_left, [value.type for value in values], has_else=True)
            with ir.InsertionPoint(branch.then_block):
                scf.YieldOp(steps.emit(_after(steps, total, 2 * part), part, values))
            with ir.InsertionPoint(branch.else_block):
                scf.YieldOp(values)
            values, part = list(branch.results), part // 2
    for old, new in zip(steps.loop.results, values, strict=True):
        old.replace_all_uses_with(new)
    steps.loop.erase()


def _after(steps: _Steps, total: ir.Value, count: int) -> ir.Value:
    """Emits the loop's variable behind as many of `total` steps as make multiples of `count`."""
    lower, _, step = steps.bounds
    done = arith.SubIOp(total, arith.RemUIOp(total, index(count)).result).result
    return arith.AddIOp(lower, arith.MulIOp(done, step).result).result


def _at_once(steps: _Steps, lower: ir.Value, upper: ir.Value, count: int, start: Sequence[ir.Value]) -> list[ir.Value]:
    """Emits the loop that makes `count` steps at once; returns what it carries."""
    loop = scf.ForOp(lower, upper, times(steps.bounds[2], count), start)
    with ir.InsertionPoint(loop.body):
        scf.YieldOp(steps.emit(loop.induction_variable, count, list(loop.inner_iter_args)))
    forbid_unrolling(loop)
    return list(loop.results)
