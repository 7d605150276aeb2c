"""Splits a kernel into one that reduces and one that uses the results; part of `fuse-split-reductions`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from mlir import ir
from mlir.dialects import func

from mlirfuse.analysis.kernels import argument_attributes, body, symbol
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.order import reduction_depths
from mlirfuse.analysis.loops.structure import OpStructure, structure_of
from mlirfuse.tiling.kernel_signature import change_signature, default_attributes


def first_reductions(space: IterationSpace, structures: Sequence[OpStructure]) -> list[int]:
    """The positions of the reductions that wait for no other, where something along what they reduce waits for them.

    Empty where nothing does: what only rounds a result, or divides it, is no reason for a second kernel.
    """
    depths = reduction_depths(structures)
    first = [number for number, s in enumerate(structures) if s.reduction_loops and not depths[s.op]]
    reduced = {dim for number in first for dim in space.reduced.get(structures[number].op, ())}
    waits = any(depths[s.op] and reduced & set(space.loops[s.op]) for s in structures)
    return first if waits else []


@dataclass(frozen=True)
class KernelSplit:
    """A kernel on tensors, its only launch, and the reductions that are to have a kernel of their own.

    Attributes:
        call: the launch.
        kernel: the kernel.
        reductions: positions of the reductions among the kernel's ops with loops; they depend on no other reduction.
    """

    call: ir.Operation
    kernel: ir.Operation
    reductions: Sequence[int]

    def split(self) -> tuple[ir.Operation, ir.Operation]:
        """Replaces the kernel and its launch by two of each; the second kernel is the same function, with its name.

        Returns the first kernel, and the launch of the second.

        Elementwise ops in front of the reductions are computed in both, where the second needs them.
        """
        operands = list(self.call.operands)
        attributes = argument_attributes(self.kernel)
        with ir.InsertionPoint(self.kernel):
            first = self.kernel.clone().operation
        first.attributes["sym_name"] = ir.StringAttr.get(self._name())
        with ir.InsertionPoint(self.call), self.call.location:
            types = [v.type for v in body(first)[-1].operands]
            first_call = func.CallOp(types, symbol(first), operands).operation
        returned = self._results(first)
        first_call = change_signature(first_call, first, operands, attributes, returned)
        reduced = dict(zip(self._results(self.kernel), first_call.results, strict=True))
        kept = []
        for value, result in zip(body(self.kernel)[-1].operands, self.call.results, strict=True):
            if value in reduced:
                result.replace_all_uses_with(reduced[value])
            else:
                kept.append(value)
        block = self.kernel.regions[0].blocks[0]
        for value in reduced:
            value.replace_all_uses_with(block.add_argument(value.type, self.kernel.location))
        second_call = change_signature(
            self.call,
            self.kernel,
            [*operands, *first_call.results],
            [*attributes, *(default_attributes() for _ in first_call.results)],
            kept,
        )
        return first, second_call

    def _name(self) -> str:
        """A symbol that the module does not have."""
        module = self.kernel.parent.regions[0].blocks[0].operations
        known = {symbol(op.operation) for op in module if "sym_name" in op.operation.attributes}
        names = (f"{symbol(self.kernel)}_reductions{number or ''}" for number in count())
        return next(name for name in names if name not in known)

    def _results(self, kernel: ir.Operation) -> list[ir.Value]:
        """The reductions' results in the kernel, or a copy of it."""
        ops = [op for op in body(kernel) if structure_of(op) is not None]
        return [result for number in self.reductions for result in ops[number].results]
