"""Small helpers for moving and rebuilding IR through the bindings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from mlir import ir
from mlir.rewrite import PatternRewriter, RewritePatternSet, walk_and_apply_patterns

from mlirfuse.errors import PassError


def nested(op: ir.Operation) -> list[ir.Operation]:
    """`op` and every operation inside its regions, outermost first."""
    if not op.regions:
        return [op.operation]
    found: list[ir.Operation] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        found.append(inner)
        return ir.WalkResult.ADVANCE

    op.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def ops_named(root: ir.Operation, *names: str) -> list[ir.Operation]:
    """The operations with one of `names` inside of `root`; inner ones come before the ops around them.

    MLIR's pattern driver compares the names, with patterns that never match. It is much faster than `nested`, which
    makes a Python object for every operation.
    """
    found: list[ir.Operation] = []

    def decline(op: ir.Operation | ir.OpView, _: PatternRewriter) -> bool:
        found.append(op.operation)
        return True

    patterns = RewritePatternSet(root.context)
    for name in names:
        patterns.add(name, decline)
    walk_and_apply_patterns(root, patterns.freeze())
    return found


def defining_op(value: ir.Value) -> ir.Operation | None:
    """The op that makes a value; None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def integer_of(value: ir.Value) -> int | None:
    """The integer of a constant; None for any other value."""
    maker = defining_op(value)
    if maker is None or maker.name != "arith.constant":
        return None
    attribute = maker.attributes["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


def split_constant(index: ir.Value) -> tuple[ir.Value, int]:
    """An integer or index as (rest, constant): `x + c` is (x, c)."""
    owner = defining_op(index)
    if owner is None or owner.name != "arith.addi":
        return index, 0
    rest, term = owner.operands
    number = integer_of(term)
    return (index, 0) if number is None else (rest, number)


def replaced_if(values: Mapping[ir.Value, ir.Value], fits: Callable[[], bool]) -> bool:
    """Replaces values by others everywhere; not where things do not fit afterwards, and returns whether they do."""
    uses = [(use.owner.operation, use.operand_number, value) for value in values for use in value.uses]
    for user, number, value in uses:
        user.operands[number] = values[value]
    if fits():
        return True
    for user, number, value in uses:
        user.operands[number] = value
    return False


def number_of(value: ir.Value) -> float | None:
    """The floating-point number of a scalar or splat constant; None for any other value."""
    maker = defining_op(value)
    if maker is None or maker.name != "arith.constant":
        return None
    attribute = maker.attributes["value"]
    if isinstance(attribute, ir.DenseFPElementsAttr):
        return ir.FloatAttr(attribute.get_splat_value()).value if attribute.is_splat else None
    return attribute.value if isinstance(attribute, ir.FloatAttr) else None


def makers(values: Iterable[ir.Value]) -> Iterator[ir.Operation]:
    """The ops that values are computed by, through operands; not what loops carry or regions yield."""
    open_, seen = list(values), set[ir.Operation]()
    while open_:
        maker = defining_op(open_.pop())
        if maker is not None and maker not in seen:
            seen.add(maker)
            yield maker
            open_.extend(maker.operands)


def backward_slice(values: Iterable[ir.Value], ops: Sequence[ir.Operation]) -> set[ir.Operation]:
    """The ops among `ops` that the values depend on, themselves included."""
    inside, found = set(ops), set()
    open_ = [maker for value in values if (maker := defining_op(value)) is not None and maker in inside]
    while open_:
        op = open_.pop()
        if op in found:
            continue
        found.add(op)
        operands = (operand for inner in nested(op) for operand in inner.operands)
        makers = (defining_op(operand) for operand in operands)
        open_ += [maker for maker in makers if maker is not None and maker in inside]
    return found


def read_values(op: ir.Operation) -> list[ir.Value]:
    """Values that `op` or its regions use and that are defined outside it, in order of first use."""
    inside: set[ir.Value] = set()
    reads: dict[ir.Value, None] = {}
    for inner in nested(op):
        for region in inner.regions:
            for block in region.blocks:
                inside.update(block.arguments)
        inside.update(inner.results)
    for inner in nested(op):
        for operand in inner.operands:
            if operand not in inside:
                reads[operand] = None
    return list(reads)


def clone(op: ir.Operation, mapping: dict[ir.Value, ir.Value]) -> ir.Operation:
    """Clones `op` at the current insertion point with its outside operands replaced, and maps its results."""
    copy = op.clone(ir.InsertionPoint.current)
    for inner in nested(copy):
        for i, operand in enumerate(inner.operands):
            if operand in mapping:
                inner.operands[i] = mapping[operand]
    mapping.update(zip(op.results, copy.results, strict=True))
    return copy


def copy_body(old: ir.Operation, new: ir.Operation, known: Mapping[ir.Value, ir.Value] = MappingProxyType({})) -> None:
    """Gives a `linalg.generic` without a body that of another one, and its discardable attributes; `known` gives the
    values for those that the body captures.
    """
    source = old.regions[0].blocks[0]
    types = [argument.type for argument in source.arguments]
    block = new.regions[0].blocks.append(*types, arg_locs=[old.location] * len(types))
    mapping = {**known, **dict(zip(source.arguments, block.arguments, strict=True))}
    with ir.InsertionPoint(block):
        for inner in source.operations:
            clone(inner.operation, mapping)
    for name in old.attributes:
        if name.startswith("fuse."):
            new.attributes[name] = old.attributes[name]


def erase(op: ir.Operation | ir.OpView) -> None:
    """Erases `op` and all inside of it.

    Raises:
        PassError: an op outside of `op` uses one of its values; MLIR would abort the process.
    """
    inside = set(nested(op.operation)) if op.operation.regions else {op.operation}
    for inner in inside:
        for result in inner.results:
            for use in result.uses:
                if use.owner.operation not in inside:
                    user = use.owner.operation.name
                    raise PassError(
                        f"{op.operation.name} cannot be erased: {user} still uses {inner.name}", where=inner
                    )
    op.operation.erase()


def erase_dead(ops: list[ir.Operation]) -> None:
    """Erases the ops among `ops`, which are in program order, whose results are unused."""
    for op in reversed(ops):
        if all(next(iter(result.uses), None) is None for result in op.results):
            op.operation.erase()


def erase_unused(function: ir.Operation) -> None:
    """Erases the ops of a function whose results are unused, but calls and ops without results."""
    ops = [op.operation for op in function.regions[0].blocks[0].operations]
    erase_dead([op for op in ops if op.results and op.name != "func.call"])
