"""`fuse-recompute`: a kernel recomputes values instead of loading them from another kernel, where this is faster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

from mlir import ir
from mlir.dialects import func

from mlirfuse.analysis.contractions.contraction import contraction_in
from mlirfuse.analysis.contractions.epilogues import misfit
from mlirfuse.analysis.grid_reduction import grid_reduction, needs_grid
from mlirfuse.analysis.kernels import argument_attributes, body, functions, symbol
from mlirfuse.analysis.loops.iteration_space import Conflict, space_of_structures
from mlirfuse.analysis.loops.structure import structure_of
from mlirfuse.analysis.scheduling.kernel_time import kernel_prediction
from mlirfuse.analysis.segments.operations import separated
from mlirfuse.dialect.attributes import KERNEL, SCHEDULE
from mlirfuse.dialect.module_target import device_of_module, target_of_module
from mlirfuse.errors import ScheduleError
from mlirfuse.machine.lookup import machine_of
from mlirfuse.machine.model import MachineModel
from mlirfuse.passes.kernels.host import callee, calls, launches, order_host_ops
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import clone, erase, erase_dead, read_values
from mlirfuse.target import Target
from mlirfuse.tiling.kernel_signature import change_signature, default_attributes


@dataclass(frozen=True)
class FuseRecompute(Pass):
    """Copies elementwise ops from the kernel that stores their results into a kernel that reads them.

    Requires kernels on tensors, called by a host function. A reader can recompute values that the producer computes
    elementwise from its inputs, or from reduction results that it can return. The ops are copied if both kernels are
    then predicted to take less time together (`schedule/predict`). Where several kernels read the values, each counts
    its part of what the producer saves once all recompute them. A value that the host returns or views is written in
    any case. `fuse-prologues` handles contractions, whose
    operands would be computed many times. Where fusion is off (`fuse.operation`), only kernels of one operation
    exchange ops.

    ```mlir
    %0:2 = call @f_0(%dy, %x, %rstd)      // dx, and n = x * rstd
        : (tensor<?x384xbf16>, tensor<?x384xbf16>, tensor<?x1xf32>) -> (tensor<?x384xbf16>, tensor<?x384xf32>)
    %dw = call @f_1(%dy, %0#1) : (tensor<?x384xbf16>, tensor<?x384xf32>) -> tensor<384xf32>
    ```
    becomes
    ```mlir
    %dx = call @f_0(%dy, %x, %rstd) : (tensor<?x384xbf16>, tensor<?x384xbf16>, tensor<?x1xf32>) -> tensor<?x384xbf16>
    %dw = call @f_1(%dy, %x, %rstd) : (tensor<?x384xbf16>, tensor<?x384xbf16>, tensor<?x1xf32>) -> tensor<384xf32>
    ```
    """

    name: ClassVar[str] = "fuse-recompute"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        target = target_of_module(module)
        machine = machine_of(target, device_of_module(module))
        for function in [f for f in functions(module) if KERNEL not in f.attributes and calls(f)]:
            names = [callee(call) for call in calls(function)]
            known = _launches(module, function)
            for maker, reader in combinations(names, 2):
                if not {maker, reader} <= known.keys():
                    continue
                exchange = _Exchange(*known[maker], *known[reader])
                if not exchange.values:
                    continue
                if reason := exchange.obstacle(target, machine):
                    message = f"{reader} reads what {maker} computes element by element: {reason}"
                    remarks.declined(self, message, exchange.reader_call)
                    continue
                message = f"{reader} computes {len(exchange.values)} value(s) that it would have read from {maker}"
                remarks.applied(self, message, exchange.reader_call)
                exchange.rewrite()
                order_host_ops(function)
                known = _launches(module, function)


def _launches(module: ir.Operation, function: ir.Operation) -> dict[str, tuple[ir.Operation, ir.Operation]]:
    """The call and the kernel of each name that a host function launches, where the kernel is one on tensors."""
    return {callee(call): (call, kernel) for call, kernel in launches(module, function).items()}


class _Exchange:
    """Two launches, the second of which reads elementwise results of the first.

    Attributes:
        values: the host's values that could be recomputed, each with its value in the first kernel.
        ops: the first kernel's ops that compute it, in program order.
        leaves: the inputs of these ops: arguments and reduction results of the first kernel.
    """

    def __init__(self, call: ir.Operation, maker: ir.Operation, reader_call: ir.Operation, reader: ir.Operation):
        self.call, self.maker, self.reader_call, self.reader = call, maker, reader_call, reader
        self.returned = dict(zip(call.results, body(maker)[-1].operands, strict=True))
        read = [v for v in dict.fromkeys(reader_call.operands) if v in self.returned]
        self.values = {v: self.returned[v] for v in read if not _is_leaf(self.returned[v])}
        self.ops, self.leaves = _slice(self.values.values())

    def obstacle(self, target: Target, machine: MachineModel) -> str | None:
        """Why the values should not be recomputed, or None."""
        if reason := separated(body(self.maker), body(self.reader)):
            return reason
        if SCHEDULE in self.maker.attributes or SCHEDULE in self.reader.attributes:
            return "a schedule is given"
        trial = self._trial()
        try:
            *ops, end = body(trial)
            reason = _misfit(ops, end.operands, contracts=False) or self._left_over()
            return reason or self._loss(trial, target, machine)
        finally:
            erase(trial)

    def _loss(self, trial: ir.Operation, target: Target, machine: MachineModel) -> str | None:
        """Why recomputing is predicted to take longer, or None."""

        def microseconds(kernel: ir.Operation) -> float:
            return kernel_prediction(kernel, target, machine).microseconds

        rest = self._rest()
        try:
            stored = microseconds(self.maker) - (microseconds(rest) if rest is not None else 0.0)
            readers = max(len({use.owner.operation for use in value.uses}) for value in self.values)
            saved = microseconds(self.reader) - microseconds(trial) + stored / readers
        except ScheduleError as error:
            return error.message
        finally:
            if rest is not None:
                erase(rest)
        return f"recomputing is predicted to take {-saved:.2f} us longer" if saved <= 0 else None

    def _left_over(self) -> str | None:
        """Why the remaining ops of the first kernel cannot form a kernel, or None."""
        readers = {on_host: {use.owner.operation for use in on_host.uses} for on_host in self.returned}
        unread = {on_host for on_host in self.values if readers[on_host] == {self.reader_call}}
        kept = [v for on_host, v in self.returned.items() if on_host not in unread]
        kept += [v for v in self.leaves if not _is_argument(v)]
        reason = _misfit(_needed(kept), kept, contracts=True) if kept else None
        return reason and f"the remaining ops of {symbol(self.maker)} cannot share a kernel: {reason}"

    def _rest(self) -> ir.Operation | None:
        """A copy of the first kernel that returns what is left to it once all kernels recompute the values, if any."""
        kept = [v for on_host, v in self.returned.items() if on_host not in self.values or _is_for_host(on_host)]
        kept += [v for v in self.leaves if not _is_argument(v) and v not in kept]
        if not kept:
            return None
        with ir.InsertionPoint(self.maker):
            rest = self.maker.clone()
        rest.attributes["sym_name"] = ir.StringAttr.get(f"{symbol(self.maker)}_rest")
        *ops, end = body(rest)
        copies = dict(zip(body(self.maker)[:-1], ops, strict=True))
        results = [copies[v.owner.operation].results[ir.OpResult(v).result_number] for v in kept]
        with ir.InsertionPoint(end), end.location:
            func.ReturnOp(results)
        erase(end)
        erase_dead(ops)
        return rest

    def _trial(self) -> ir.Operation:
        """A copy of the reader that recomputes the values; arguments for the leaves follow its own."""
        with ir.InsertionPoint(self.reader):
            trial = self.reader.clone()
        trial.attributes["sym_name"] = ir.StringAttr.get(f"{symbol(self.reader)}_recomputing")
        block = trial.regions[0].blocks[0]
        replaced = [
            (argument, self.values[operand])
            for argument, operand in zip(block.arguments, self.reader_call.operands, strict=True)
            if operand in self.values
        ]
        mapping = {leaf: block.add_argument(leaf.type, trial.location) for leaf in self.leaves}
        attributes = [*argument_attributes(self.reader), *self._leaf_attributes()]
        trial.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(known) for known in attributes])
        with ir.InsertionPoint.at_block_begin(block):
            for op in self.ops:
                clone(op, mapping)
        for argument, value in replaced:
            argument.replace_all_uses_with(mapping[value])
        return trial

    def _leaf_attributes(self) -> list[dict[str, ir.Attribute]]:
        """The attributes of the leaves as arguments of the reader."""
        arguments = self.maker.regions[0].blocks[0].arguments
        known = dict(zip(arguments, argument_attributes(self.maker), strict=True))
        return [known.get(leaf, default_attributes()) for leaf in self.leaves]

    def rewrite(self) -> None:
        """Makes the reader compute the values; the first kernel no longer returns unused results."""
        trial = self._trial()
        reader_attributes, name = argument_attributes(trial), self.reader.attributes["sym_name"]
        erase(self.reader)
        trial.attributes["sym_name"] = name
        returned = list(dict.fromkeys([*self.returned.values(), *(v for v in self.leaves if not _is_argument(v))]))
        call = change_signature(
            self.call, self.maker, list(self.call.operands), argument_attributes(self.maker), returned
        )
        arguments = list(self.maker.regions[0].blocks[0].arguments)
        results = dict(zip(returned, call.results, strict=True))
        on_host = results | dict(zip(arguments, call.operands, strict=True))
        change_signature(
            self.reader_call,
            trial,
            [*self.reader_call.operands, *(on_host[leaf] for leaf in self.leaves)],
            reader_attributes,
            list(body(trial)[-1].operands),
        )
        read = [value for value, result in results.items() if list(result.uses)]
        if read:
            change_signature(call, self.maker, list(call.operands), argument_attributes(self.maker), read)
        else:
            erase(call)
            erase(self.maker)


def _is_for_host(value: ir.Value) -> bool:
    """Whether a host function returns or views a value, which is then stored whatever kernels recompute."""
    return any(use.owner.operation.name != "func.call" for use in value.uses)


def _is_argument(value: ir.Value) -> bool:
    return isinstance(value.owner, ir.Block)


def _is_leaf(value: ir.Value) -> bool:
    """Whether a value ends the recomputed expression: an argument, or a reduction's result."""
    if _is_argument(value):
        return True
    structure = structure_of(value.owner.operation)
    return structure is not None and bool(structure.reduction_loops)


def _slice(values: Iterable[ir.Value]) -> tuple[list[ir.Operation], list[ir.Value]]:
    """The elementwise ops that compute values, producers first, and the leaves of these expressions."""
    ops: dict[ir.Operation, None] = {}
    leaves: dict[ir.Value, None] = {}

    def visit(value: ir.Value) -> None:
        if _is_leaf(value):
            leaves[value] = None
            return
        op = value.owner.operation
        if op not in ops:
            for operand in read_values(op):
                visit(operand)
            ops[op] = None

    for value in values:
        visit(value)
    return list(ops), list(leaves)


def _needed(values: Iterable[ir.Value]) -> list[ir.Operation]:
    """The ops of a kernel that values depend on, in program order."""
    wanted: set[ir.Operation] = set()

    def visit(value: ir.Value) -> None:
        if not _is_argument(value) and value.owner.operation not in wanted:
            wanted.add(value.owner.operation)
            for operand in read_values(value.owner.operation):
                visit(operand)

    for value in values:
        visit(value)
    return [op for op in body(next(iter(wanted)).parent.operation) if op in wanted] if wanted else []


def _misfit(ops: Sequence[ir.Operation], returned: Iterable[ir.Value], *, contracts: bool) -> str | None:
    """Why ops cannot share a kernel, or None; `contracts` says whether a contraction may be one of them."""
    structures = [s for op in ops if (s := structure_of(op)) is not None]
    space = space_of_structures(structures)
    if isinstance(space, Conflict):
        return space.reason
    if not space.spanned():
        return "no op's loops span both iteration spaces"
    if space.unread_dims:
        return "it would read nothing with one of its dynamic extents"
    if contraction_in(space, structures) is not None:
        return misfit(space, structures) if contracts else "a contraction would recompute it for each of its tiles"
    if needs_grid(space) and isinstance(plan := grid_reduction(space, structures, returned), Conflict):
        return plan.reason
    return None
