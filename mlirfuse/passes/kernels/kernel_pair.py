"""Merges two kernels that a host function launches into one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from mlir import ir
from mlir.dialects import func

from mlirfuse.analysis.kernels import argument_attributes, body, content, functions, result_sources, symbol
from mlirfuse.analysis.segments.operations import separated
from mlirfuse.dialect.attributes import KERNEL, RESULT_EXTENTS, SCHEDULE
from mlirfuse.passes.kernels.host import calls, depends_on, order_host_ops
from mlirfuse.support.rewriting import clone, erase


@dataclass(frozen=True)
class KernelPair:
    """Two launches, in program order, and their kernels on tensors."""

    first_call: ir.Operation
    second_call: ir.Operation
    first: ir.Operation
    second: ir.Operation

    @property
    def names(self) -> Names:
        """The symbols of the two kernels."""
        return symbol(self.first), symbol(self.second)

    @cached_property
    def key(self) -> Hashable:
        """What the merged kernel follows from: the kernels, which of their arguments and results are the same values,
        and which results other ops use.
        """
        numbers: dict[ir.Value, int] = {}
        values = (*self.first_call.operands, *self.first_call.results, *self.second_call.operands)
        same = tuple(numbers.setdefault(value, len(numbers)) for value in values)
        return content(self.first), content(self.second), same, tuple(numbers[value] for value in self._kept())

    def host_intervenes(self) -> bool:
        """Whether the host computes on values that pass from the first launch to the second."""
        made = set(self.first_call.results)
        return any(v not in made and depends_on(v, self.first_call) for v in self.second_call.operands)

    def separated(self) -> str | None:
        """Why the two are kernels of their own whatever they compute, or None: fusion is off."""
        return separated(body(self.first), body(self.second))

    def merge(self, function: ir.Operation) -> None:
        """Replaces both kernels by the merged one, and both calls by one call of it."""
        merged = self.build()
        inputs, kept = self.inputs(), self._kept()
        outputs = [*kept, *self.second_call.results]
        with ir.InsertionPoint(self.second_call), self.second_call.location:
            call = func.CallOp([v.type for v in outputs], symbol(self.first), inputs)
        for old, new in zip(outputs, call.results, strict=True):
            old.replace_all_uses_with(new)
        erase(self.second_call)
        erase(self.first_call)
        merged.attributes["sym_name"] = self.first.attributes["sym_name"]
        erase(self.first)
        erase(self.second)
        order_host_ops(function)

    def inputs(self) -> list[ir.Value]:
        """The inputs of the merged kernel: the operands of both calls, without values that pass between the kernels."""
        made = set(self.first_call.results)
        operands = [*self.first_call.operands, *(v for v in self.second_call.operands if v not in made)]
        return list(dict.fromkeys(operands))

    def _kept(self) -> list[ir.Value]:
        """Results of the first kernel that other ops than the second call use."""
        return [r for r in self.first_call.results if any(use.owner.operation != self.second_call for use in r.uses)]

    def build(self) -> ir.Operation:
        """The merged kernel, next to the first in the module, with the schedule of the first kernel or the second."""
        inputs, kept = self.inputs(), self._kept()
        outputs = [*kept, *self.second_call.results]
        attributes: dict[ir.Value, dict[str, ir.Attribute]] = {}
        for call, kernel in ((self.first_call, self.first), (self.second_call, self.second)):
            for value, known in zip(call.operands, argument_attributes(kernel), strict=True):
                attributes.setdefault(value, known)
        with ir.InsertionPoint(self.first), self.first.location:
            kernel = func.FuncOp(
                f"{symbol(self.first)}_{symbol(self.second)}",
                ir.FunctionType.get([v.type for v in inputs], [v.type for v in outputs]),
                visibility="private",
            )
        kernel.attributes[KERNEL] = ir.UnitAttr.get()
        kernel.attributes[RESULT_EXTENTS] = ir.DenseI64ArrayAttr.get(self._result_extents(inputs, kept))
        kernel.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(attributes[v]) for v in inputs])
        for source in (self.second, self.first):
            if SCHEDULE in source.attributes:
                kernel.attributes[SCHEDULE] = source.attributes[SCHEDULE]
        block = kernel.add_entry_block()
        values = dict(zip(inputs, block.arguments, strict=True))
        with ir.InsertionPoint(block), self.first.location:
            for call, source in ((self.first_call, self.first), (self.second_call, self.second)):
                mapping = {
                    argument: values[operand]
                    for argument, operand in zip(source.regions[0].blocks[0].arguments, call.operands, strict=True)
                }
                *ops, terminator = body(source)
                for op in ops:
                    clone(op, mapping)
                values.update(zip(call.results, (mapping[v] for v in terminator.operands), strict=True))
            func.ReturnOp([values[v] for v in outputs])
        return kernel.operation

    def _result_extents(self, inputs: Sequence[ir.Value], kept: Sequence[ir.Value]) -> list[int]:
        """The sources of the dynamic extents of the merged kernel's results."""
        sources = extent_sources(self.first_call, self.first)
        second = extent_sources(self.second_call, self.second)
        pairs: list[int] = []
        for result in [*kept, *self.second_call.results]:
            for value, axis in (sources if result in sources else second)[result]:
                while value in sources:  # a result of the first kernel is no input
                    value, axis = sources[value][_dynamic_axes(value).index(axis)]
                pairs += [inputs.index(value), axis]
        return pairs


def extent_sources(call: ir.Operation, kernel: ir.Operation) -> dict[ir.Value, list[tuple[ir.Value, int]]]:
    """For each result of a call, the source of each of its dynamic extents: an operand of the call and its axis."""
    pairs = iter([(call.operands[argument], axis) for argument, axis in result_sources(kernel)])
    return {result: [next(pairs) for _ in _dynamic_axes(result)] for result in call.results}


def _dynamic_axes(value: ir.Value) -> list[int]:
    tensor = ir.RankedTensorType(value.type)
    return [axis for axis in range(tensor.rank) if tensor.is_dynamic_dim(axis)]


Pair = TypeVar("Pair", bound=KernelPair)


Names = tuple[str, str]
"""The symbols of two kernels."""

Pairs = Callable[[ir.Operation, ir.Operation, Collection[Names]], Iterator[Pair]]
"""What there is to merge in a module's host function, without pairs of the given names."""


def merge_pairs(
    module: ir.Operation,
    pairs: Pairs[Pair],
    obstacle: Callable[[Pair], str | None],
    report: Callable[[Pair, str | None], None],
) -> None:
    """Merges pairs of each host function's launches, one after the other, until every pair that is left is declined.

    Args:
        module: the `builtin.module`.
        pairs: what there is to merge, without what was declined.
        obstacle: why a pair should not be merged, or None.
        report: says what becomes of a pair, with the reason where it stays apart.
    """
    for function in [f for f in functions(module) if KERNEL not in f.attributes and calls(f)]:
        declined: set[Names] = set()
        while (pair := _accepted(pairs(module, function, declined), declined, obstacle, report)) is not None:
            name = symbol(pair.first)
            pair.merge(function)
            # What was declined for the first kernel's sake may fit the merged one, which has its name.
            declined = {names for names in declined if name not in names}


def _accepted(
    pairs: Iterator[Pair],
    declined: set[Names],
    obstacle: Callable[[Pair], str | None],
    report: Callable[[Pair, str | None], None],
) -> Pair | None:
    """The first pair without an obstacle; the names of those in front of it are added to the declined ones."""
    for pair in pairs:
        reason = obstacle(pair)
        report(pair, reason)
        if reason is None:
            return pair
        declined.add(pair.names)
    return None


def later_gain(pair: Pair, pairs: Pairs[Pair], gain: Callable[[Pair], float | None]) -> float:
    """What merging further kernels into a merged pair saves: those that save something, one after the other.

    Kernels that would cost time as a pair may save time as three or more, which share what makes the pair slow.

    Args:
        pair: the pair, which is merged in a copy of its module.
        pairs: what there is to merge, without what was declined.
        gain: microseconds that merging a pair saves; None where the two are no kernel.
    """
    host = pair.first_call.parent
    module = host.parent.clone(ip=False)
    try:
        function = next(f for f in functions(module) if symbol(f) == symbol(host))
        name, saved = symbol(pair.first), 0.0
        next(same for same in pairs(module, function, ()) if same.names == pair.names).merge(function)
        while True:
            others = (other for other in pairs(module, function, ()) if name in other.names)
            gains = ((other, gain(other)) for other in others)
            other, more = next(((other, more) for other, more in gains if more is not None and more > 0), (None, 0.0))
            if other is None:
                return saved
            saved += more
            name = symbol(other.first)
            other.merge(function)
    finally:
        erase(module)
