"""Mutation testing: plants one bug in a gpu-level module, and tests whether the interpreter finds it.

```python
report = hunt(module, lambda mutant: run(mutant, "layer_norm", inputs), lambda results: close(results, expected))
assert not report.survivors
```

A mutant is caught if a check stops it or its results are wrong. A mutant that survives is either equivalent for these
inputs, or shows a gap in the checks. With random inputs many mutants are equivalent: a mean hardly changes if one
element is missing, and a softmax does not change with the maximum of fewer elements. In the inputs of `spiked_rows`
every element matters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from mlir import ir
from mlir.dialects import arith

from mlirfuse.dialect.semaphore_arrive import RELAXED
from mlirfuse.errors import InterpreterError
from mlirfuse.source_locations import source_location

STORES = (
    "memref.store",
    "vector.store",
    "vector.maskedstore",
    "vector.transfer_write",
    "fuse.cluster_store",
    "fuse.cluster_send",
    "fuse.flagged_store",
    "fuse.accumulate",
)


@dataclass(frozen=True)
class Mutant:
    """One bug to plant.

    Attributes:
        kind: the mutator's name, such as `drop-barrier`.
        position: number of the op in the module, in walk order.
        where: the op's name and the user's line of code.
    """

    kind: str
    position: int
    where: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}"


@dataclass(frozen=True)
class Report:
    """The outcome of each mutant.

    Attributes:
        caught: the mutants that were found, each with the check's message or `wrong numbers`.
        survivors: the other mutants.
    """

    caught: dict[Mutant, str]
    survivors: list[Mutant]


def _constant_of(value: ir.Value) -> int | None:
    """The value of an integer constant; None for any other value."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return None
    attribute = owner.operation.attributes["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


def _replace_constant(op: ir.Operation, position: int, number: int) -> None:
    """Replaces one operand by a new constant of the same type."""
    type_ = op.operands[position].type
    with ir.InsertionPoint(op), op.location:
        op.operands[position] = arith.ConstantOp(type_, ir.IntegerAttr.get(type_, number)).result


def _bound_position(op: ir.Operation) -> int | None:
    """Position of the operand of a comparison that is a constant bound; None if there is none."""
    if isinstance(op.operands[0].type, ir.VectorType):
        return None
    users = [use.owner.operation for use in op.results[0].uses]
    if users and all(map(_decides_launches, users)):
        return None  # the results do not depend on when the next kernel starts
    return next((k for k in (1, 0) if _constant_of(op.operands[k]) is not None), None)


def _decides_launches(op: ir.Operation) -> bool:
    """Whether an op only triggers the dependent launch, or is the condition of the trigger."""
    if op.name == "arith.andi":
        return all(_decides_launches(use.owner.operation) for use in op.results[0].uses)
    inside = [inner.operation for region in op.regions for block in region.blocks for inner in block.operations]
    return [inner.name for inner in inside] == ["nvvm.griddepcontrol", "scf.yield"]


def _shrink(op: ir.Operation, position: int, by: int) -> None:
    """Subtracts a constant from a bound, which may be a constant or a run-time value."""
    bound = op.operands[position]
    with ir.InsertionPoint(op), op.location:
        amount = arith.ConstantOp(bound.type, ir.IntegerAttr.get(bound.type, by)).result
        op.operands[position] = arith.SubIOp(bound, amount).result


def _raise_limit(op: ir.Operation) -> None:
    """Raises a counter's limit by one, so that the counter is not zero when the kernel ends."""
    _shrink(op, 2, -1)


def _relax(op: ir.Operation) -> None:
    op.attributes[RELAXED] = ir.UnitAttr.get()


def _shrink_compare(op: ir.Operation) -> None:
    """Reduces a bound by a sixteenth, so that bounds on the first of a thread's columns change the result too."""
    position = _bound_position(op)
    assert position is not None
    _shrink(op, position, max(1, abs(_constant_of(op.operands[position]) or 0) // 16))


def _change_shuffle(op: ir.Operation) -> None:
    offset = _constant_of(op.operands[1])
    assert offset is not None
    _replace_constant(op, 1, offset * 2 if offset < 8 else offset // 2)


PENDING = {"fuse.warpgroup_wait": "pending", "fuse.async_store_wait": "pending", "nvvm.cp.async.wait.group": "n"}
"""Wait ops after which some operations may be in flight, and the attribute with the number of these operations."""


def _wait_for_one_less(op: ir.Operation) -> None:
    pending = ir.IntegerAttr(op.attributes[PENDING[op.name]])
    op.attributes[PENDING[op.name]] = ir.IntegerAttr.get(pending.type, pending.value + 1)


@dataclass(frozen=True)
class _Mutator:
    """The ops that a mutation applies to, and the change of one op."""

    applies: Callable[[ir.Operation], bool]
    apply: Callable[[ir.Operation], Any]


def _orders(op: ir.Operation) -> bool:
    return op.name == "fuse.semaphore_arrive" and RELAXED not in op.attributes


def _dropped(name: str) -> _Mutator:
    return _Mutator(lambda op: op.name == name, lambda op: op.erase())


MUTATORS: dict[str, _Mutator] = {
    "drop-barrier": _dropped("gpu.barrier"),
    "drop-numbered-barrier": _dropped("nvvm.barrier"),
    "drop-cluster-barrier": _dropped("fuse.cluster_barrier"),
    "drop-group-barrier": _dropped("fuse.group_barrier"),
    "drop-mbarrier-wait": _dropped("fuse.mbarrier_wait"),
    "drop-mbarrier-arrive": _dropped("fuse.mbarrier_arrive"),
    "wait-for-less": _Mutator(lambda op: op.name in PENDING, _wait_for_one_less),
    "drop-store": _Mutator(lambda op: op.name in STORES, lambda op: op.erase()),
    "relax-arrive": _Mutator(_orders, _relax),
    "raise-limit": _Mutator(lambda op: op.name == "fuse.semaphore_arrive", _raise_limit),
    "drop-wait": _dropped("fuse.semaphore_wait"),
    "early-wait": _Mutator(lambda op: op.name == "fuse.semaphore_wait", lambda op: _shrink(op, 2, 1)),
    "late-wait": _Mutator(lambda op: op.name == "fuse.semaphore_wait", lambda op: _shrink(op, 2, -1)),
    "change-shuffle": _Mutator(
        lambda op: op.name == "gpu.shuffle" and _constant_of(op.operands[1]) is not None, _change_shuffle
    ),
    "shrink-compare": _Mutator(
        lambda op: op.name == "arith.cmpi" and _bound_position(op) is not None, _shrink_compare
    ),
    "shrink-mask": _Mutator(
        lambda op: op.name == "vector.create_mask", lambda op: _shrink(op, len(op.operands) - 1, 1)
    ),
    "shorten-loop": _Mutator(lambda op: op.name == "scf.for", lambda op: _shrink(op, 1, 1)),
    "drop-neutral": _Mutator(
        lambda op: op.name == "arith.select",
        lambda op: op.results[0].replace_all_uses_with(op.operands[1]),
    ),
}  # fmt: skip


def spiked_rows(rows: int, columns: int, dtype: np.dtype | type, seed: int = 0) -> np.ndarray:
    """An array of (rows, columns) of unit noise, with a spike of 1000 in another column of each row.

    The second half of the rows is shifted by 1000. A reduction that misses or repeats a row's spike has a large error
    (a softmax overflows), and so has a variance about another mean than the row's. Spikes include the first and the
    last column.
    """
    values = np.random.default_rng(seed).normal(0, 1, (rows, columns))
    values[np.arange(rows), np.linspace(0, columns - 1, rows).astype(int)] = 1000
    values[rows // 2 :] += 1000
    return values.astype(dtype)


def mutants(module: ir.Module | ir.Operation) -> Iterator[Mutant]:
    """All bugs that can be planted in the kernels of a module, in walk order."""
    for position, op in enumerate(_kernel_ops(module.operation)):
        for kind, mutator in MUTATORS.items():
            if mutator.applies(op):
                yield Mutant(kind, position, f"{op.name} at {source_location(op.location) or 'unknown location'}")


def site(module: ir.Module | ir.Operation, mutant: Mutant) -> ir.Operation:
    """The op of the module that a mutant changes."""
    return list(_kernel_ops(module.operation))[mutant.position]


def plant(module: ir.Module | ir.Operation, mutant: Mutant) -> ir.Operation:
    """A copy of the module with the mutant's bug."""
    with module.context:
        copy = module.operation.clone().operation
        MUTATORS[mutant.kind].apply(list(_kernel_ops(copy))[mutant.position])
    return copy


def hunt(
    module: ir.Module | ir.Operation,
    run: Callable[[ir.Operation], Any],
    right: Callable[[Any], bool],
    kinds: Collection[str] = MUTATORS,
) -> Report:
    """Runs every mutant of the given kinds: `run` executes a module, and `right` checks the results of `run`."""
    caught: dict[Mutant, str] = {}
    survivors = []
    for mutant in mutants(module):
        if mutant.kind not in kinds:
            continue
        try:
            if right(run(plant(module, mutant))):
                survivors.append(mutant)
            else:
                caught[mutant] = "wrong numbers"
        except InterpreterError as error:
            caught[mutant] = str(error)
    return Report(caught, survivors)


def _kernel_ops(op: ir.Operation) -> Iterator[ir.Operation]:
    """The ops in the `gpu.func`s of a module, in walk order."""
    for region in op.regions:
        for block in region.blocks:
            for view in block.operations:
                inner = view.operation
                if _in_kernel(inner):
                    yield inner
                yield from _kernel_ops(inner)


def _in_kernel(op: ir.Operation) -> bool:
    parent = op.parent
    while parent is not None:
        if parent.operation.name == "gpu.func":
            return True
        parent = parent.operation.parent
    return False
