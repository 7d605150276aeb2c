"""`fuse-unswitch-checks`: threads all of whose elements are of one part of joined arrays load from that part alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, scf

from mlirfuse.analysis.kernels import gpu_kernels, symbol
from mlirfuse.analysis.rolling import is_pure
from mlirfuse.dialect.gathered_view import DEFINITION, Gather, gather_of
from mlirfuse.distribution.threads.scalars import add, constant, less
from mlirfuse.passes.gpu.view_indices import Sums, Terms, all_of, clamp_of, users_of
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.affine_expressions import single_dim
from mlirfuse.support.rewriting import backward_slice, clone, defining_op, nested, ops_named

LOADS = ("memref.load", "vector.load")
MOST_PARTS = 4
"""Parts of equal size of which each has code of its own."""

MOVABLE = frozenset(
    {*LOADS, "memref.store", "vector.store", "memref.transpose", "memref.subview", "scf.if", "scf.yield"}
)
"""Ops besides pure ones that threads may execute at different times."""


@dataclass(frozen=True)
class FuseUnswitchChecks(Pass):
    """Branches on whether all elements of a thread are inside of one part, and loads from that part without checks.

    Requires one thread's code (`gpu.func`), before `fuse-resolve-gathers`. Of joined and padded arrays, each element is
    selected among views of all parts, by checks (`fuse.gathered_view` with `inside`). Most threads have elements of a
    single part: in a copy of the code from the first load to the last selection, the checks of that part hold, those of
    parts beside it do not, and loads that nothing selects are dropped. `fuse-resolve-gathers` knows in the copy what
    the branch has asked. The other threads, at the edges, execute the code as it was. The part is the one that has more
    than half of the elements; of up to four equal parts each has a copy. Loop unswitching does the same for conditions
    that a loop does not change. Declines where a check divides indices, and where threads would wait for each other
    inside of the branch.

    ```mlir
    %a = memref.load %x[%i, %j] : ...                                 // view of a part of 4095 columns, one further on
    %inside = memref.load %check[%i, %j] : memref<64x4096xi1, ...>    // {inside = array<i64: 64, 4095>, (i, j - 1)}
    %y = arith.select %inside, %a, %zero : f32
    ```
    becomes
    ```mlir
    %whole = arith.cmpi ult, (%j - 1), 4095
    %y = scf.if %whole -> (f32) {
      %a = memref.load %x[%i, %j] : ...
      scf.yield %a : f32
    } else {
      ...
    }
    ```
    """

    name: ClassVar[str] = "fuse-unswitch-checks"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for kernel in gpu_kernels(module):
            sums = Sums()
            checks = [
                check
                for view in ops_named(kernel, DEFINITION.full_name)
                if gather_of(view.attributes).inside
                for check in _checks(view, sums)
            ]
            if not checks:
                remarks.declined(self, "no element is selected among parts of arrays", kernel)
            while checks:
                block = checks[0].op.block
                own = [check for check in checks if check.op.block == block]
                cases = list(_cases(own))
                region = _region(block, own) if cases else "no part has most of the elements"
                if isinstance(region, str):
                    remarks.declined(self, region, kernel)
                    checks = [check for check in checks if check not in own]
                    continue
                inside = {inner for op in region.ops for inner in nested(op)}  # checks of loops and branches too
                checks = [check for check in checks if check.op not in inside]
                region.split(cases)
                remarks.applied(self, f"{symbol(kernel)} has {len(cases)} branch(es) for single parts", kernel)


@dataclass(frozen=True)
class _Span:
    """Where along one dimension a load's elements are, and which indices of this dimension are inside of a part.

    Attributes:
        terms: indices that are added up.
        first: the number that is added to them for the first element.
        last: that for the last one.
        low: the first index of the part.
        high: the first index behind it.
    """

    terms: Terms
    first: int
    last: int
    low: int
    high: int

    def excludes(self, other: _Span) -> bool:
        """Whether all elements of another span are outside of its part, where those of this one are inside."""
        if self.terms != other.terms or not self.first <= other.first <= other.last <= self.last:
            return False
        return self.high <= other.low or other.high <= self.low


@dataclass(frozen=True)
class _Check:
    """A load of checks.

    Attributes:
        op: it.
        key: what checks of one part have in common.
        spans: along the dimensions in which elements may be outside; None where these are not known.
        share: of the elements of the whole that are inside.
    """

    op: ir.Operation
    key: tuple[object, ...]
    spans: tuple[_Span, ...] | None
    share: float


Case = dict[ir.Operation, bool]
"""What loads of checks find."""


@dataclass(frozen=True)
class _Case:
    """Code for threads of which some is known.

    Attributes:
        spans: where their elements are inside of parts.
        known: what checks find then.
    """

    spans: tuple[_Span, ...]
    known: Case


def _checks(view: ir.Operation, sums: Sums) -> Iterator[_Check]:
    """The loads of a view of checks."""
    gather = gather_of(view.attributes)
    moved = _moved(gather)
    key = (gather.map, gather.basis, gather.inside)
    sizes = {d: (max(0, min(n, high) - max(0, low)), n) for d, low, high, n in moved or ()}
    share = prod(inside / n for inside, n in sizes.values())
    for user, axes in users_of(view.results[0]):
        if user.name not in LOADS:
            continue
        index = dict(zip(axes, list(user.operands)[1:], strict=True))
        wide = _width(user.results[0].type)
        spans = list[_Span]()
        for d, low, high, _ in moved or ():
            clamp = clamp_of(index[d], sums)
            terms, number = clamp[:2] if clamp is not None else sums[index[d]]
            spans.append(_Span(terms, number, number + (wide - 1 if d == axes[-1] else 0), low, high))
        yield _Check(user, key, None if moved is None else tuple(spans), share)


def _width(type_: ir.Type) -> int:
    """Elements of a load's result along its last dimension."""
    return int(type_.shape[-1]) if isinstance(type_, ir.VectorType) else 1


def _moved(gather: Gather) -> list[tuple[int, int, int, int]] | None:
    """The dimensions of a view along which checks may fail: each with the first index that is inside, the first one
    behind it, and the dimension's extent; None where that is not so simple.
    """
    assert gather.inside is not None
    found = []
    for axis, (expr, extent) in enumerate(zip(gather.map.results, gather.inside, strict=True)):
        if gather.is_inside(axis, extent):
            continue
        place = None if gather.joins_components else single_dim(expr, len(gather.components))
        if place is None or place[1] != 1:
            return None
        dim, _, first = place
        found.append((dim, -first, extent - first, gather.components[dim]))
    return found


def _cases(checks: Sequence[_Check]) -> Iterator[_Case]:
    """The parts that have code of their own."""
    parts: dict[tuple[object, ...], list[_Check]] = {}
    for check in checks:
        parts.setdefault(check.key, []).append(check)
    large = [key for key, own in parts.items() if own[0].share > 0.5 and _is_known(own)]
    equal = [key for key, own in parts.items() if len(own[0].spans or ()) == 1 and _is_known(own)]
    if large:
        groups = [large]
    elif len(equal) == len(parts) <= MOST_PARTS:
        groups = [[key] for key in equal]
    else:
        return
    for keys in groups:
        true = [check for key in keys for check in parts[key]]
        spans = _together([span for check in true for span in check.spans or ()])
        if any(span.high - span.low <= span.last - span.first for span in spans):
            continue
        known = {check.op: True for check in true}
        for check in checks:
            if check.op not in known and any(a.excludes(b) for b in check.spans or () for a in spans):
                known[check.op] = False
        yield _Case(spans, known)


def _is_known(checks: Sequence[_Check]) -> bool:
    """Whether it is known where loads of checks of one part lie, none of them at a fixed place."""
    return all(check.spans and all(span.terms for span in check.spans) for check in checks)


def _together(spans: Sequence[_Span]) -> tuple[_Span, ...]:
    """The spans of all elements that are added to the same indices, inside of all their parts."""
    found: dict[Terms, _Span] = {}
    for span in spans:
        own = found.get(span.terms, span)
        found[span.terms] = _Span(
            span.terms,
            min(own.first, span.first),
            max(own.last, span.last),
            max(own.low, span.low),
            min(own.high, span.high),
        )
    return tuple(found.values())


@dataclass
class _Region:
    """Neighbouring ops of a block, from the first load of a view to the last selection.

    Attributes:
        ops: they, without indices.
        indices: ops among them that only compute indices, which stay in front.
    """

    ops: list[ir.Operation]
    indices: list[ir.Operation]

    def split(self, cases: Sequence[_Case]) -> None:
        """Puts branches in the place of the ops."""
        for op in self.indices:
            op.move_before(self.ops[0])
        inside = set(self.ops)
        yielded = [result for op in self.ops for result in op.results if _is_used_behind(result, inside)]
        branch = self._branch(cases, yielded, ir.InsertionPoint(self.ops[0]))
        for old, new in zip(yielded, branch, strict=True):
            old.replace_all_uses_with(new)
        for op in reversed(self.ops):
            op.erase()

    def _branch(
        self, cases: Sequence[_Case], yielded: Sequence[ir.Value], place: ir.InsertionPoint
    ) -> Sequence[ir.Value]:
        case, *others = cases
        with place, self.ops[0].location:
            condition = all_of([_holds(span) for span in case.spans])
            assert condition is not None  # a case has spans
            branch = scf.IfOp(condition, [value.type for value in yielded], has_else=True)
        with ir.InsertionPoint(branch.then_block), self.ops[0].location:
            mapping = self._copies(case.known)
            scf.YieldOp([mapping.get(value, value) for value in yielded])
        _fold(branch.then_block)
        with ir.InsertionPoint(branch.else_block), self.ops[0].location:
            if others:
                scf.YieldOp(self._branch(others, yielded, ir.InsertionPoint(branch.else_block)))
            else:
                mapping = self._copies({})
                scf.YieldOp([mapping.get(value, value) for value in yielded])
        return list(branch.results)

    def _copies(self, known: Case) -> dict[ir.Value, ir.Value]:
        mapping: dict[ir.Value, ir.Value] = {}
        for op in self.ops:
            if op in known:
                type_, found = op.results[0].type, ir.BoolAttr.get(known[op])
                value = ir.DenseElementsAttr.get_splat(type_, found) if isinstance(type_, ir.VectorType) else found
                mapping[op.results[0]] = arith.ConstantOp(type_, value).result
            else:
                clone(op, mapping)
        return mapping


def _region(block: ir.Block, checks: Sequence[_Check]) -> _Region | str:
    """What of a block is selected by checks; or why threads may not take branches there."""
    ops = [op.operation for op in block.operations]
    number = {op: n for n, op in enumerate(ops)}
    first = min(n for n, op in enumerate(ops) if _reads_view(op))
    last = max(number[_of_block(op, block)] for op in _selections(checks))
    region = ops[first : last + 1]
    if not all(is_pure(inner) or inner.name in MOVABLE for op in region for inner in nested(op)):
        return "threads wait for each other, or loop, between the loads and the selections"
    wanted = [value for op in region if op.name in LOADS for value in list(op.operands)[1:]]
    indices = backward_slice(wanted, region)
    if any(not is_pure(op) for op in indices):
        return "an index is loaded"
    return _Region([op for op in region if op not in indices], [op for op in region if op in indices])


def _reads_view(op: ir.Operation) -> bool:
    if op.name not in LOADS:
        return False
    maker = defining_op(op.operands[0])
    while maker is not None and maker.name == "memref.transpose":
        maker = defining_op(maker.operands[0])
    return maker is not None and maker.name == DEFINITION.full_name


def _selections(checks: Sequence[_Check]) -> Iterator[ir.Operation]:
    """The loads of checks, and the ops that need what they find, up to those that make something else of it."""
    open_, seen = [check.op for check in checks], set[ir.Operation]()
    while open_:
        op = open_.pop()
        if op in seen:
            continue
        seen.add(op)
        yield op
        if any(_is_bool(result.type) for result in op.results):
            open_ += [use.owner.operation for result in op.results for use in result.uses]


def _is_bool(type_: ir.Type) -> bool:
    element = type_.element_type if isinstance(type_, ir.VectorType) else type_
    return element == ir.IntegerType.get_signless(1)


def _of_block(op: ir.Operation, block: ir.Block) -> ir.Operation:
    """The op of a block that an op is, or is in."""
    while op.block != block:
        op = op.block.owner.operation
    return op


def _is_used_behind(value: ir.Value, inside: set[ir.Operation]) -> bool:
    """Whether ops other than some, and those in their regions, use a value."""
    for use in value.uses:
        op: ir.Operation | None = use.owner.operation
        while op is not None and op not in inside:
            op = op.parent.operation if op.parent is not None else None
        if op is None:
            return True
    return False


def _holds(span: _Span) -> ir.Value:
    """Whether all elements of a span are inside of its part."""
    start = reduce(add, span.terms)
    moved = span.first - span.low
    if moved < 0:
        start = arith.SubIOp(start, constant(-moved)).result
    elif moved:
        start = add(start, constant(moved))
    return less(start, constant(span.high - span.low - (span.last - span.first)))


def _fold(block: ir.Block) -> None:
    """Replaces selections whose condition is known, and erases what nobody needs."""
    for op in [op.operation for op in block.operations]:
        if op.name == "arith.select" and (found := _known(op.operands[0])) is not None:
            op.results[0].replace_all_uses_with(op.operands[1 if found else 2])
    for op in reversed([op.operation for op in block.operations]):
        is_needless = is_pure(op) or op.name in (*LOADS, "arith.constant")
        if is_needless and not any(list(result.uses) for result in op.results):
            op.erase()


def _known(condition: ir.Value) -> bool | None:
    """What a condition is for all elements; None where that is not known."""
    maker = defining_op(condition)
    if maker is None:
        return None
    if maker.name == "vector.broadcast":
        return _known(maker.operands[0])
    if maker.name == "vector.from_elements":
        found = {_known(operand) for operand in maker.operands}
        return found.pop() if len(found) == 1 else None
    if maker.name != "arith.constant":
        return None
    value = maker.attributes["value"]
    if isinstance(value, ir.DenseElementsAttr):
        return bool(ir.BoolAttr(value.get_splat_value()).value) if value.is_splat else None
    return bool(ir.BoolAttr(value).value) if isinstance(value, ir.BoolAttr) else None
