"""`fuse-recompute`: a kernel recomputes values instead of loading them from another kernel, where this is faster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import func

from mlirfuse.analysis.contractions.contraction import contraction_in, has_products
from mlirfuse.analysis.contractions.contraction_operands import unfit_producers
from mlirfuse.analysis.contractions.epilogues import misfit
from mlirfuse.analysis.grid_reduction import grid_reduction, needs_grid
from mlirfuse.analysis.kernels import argument_attributes, body, functions, symbol
from mlirfuse.analysis.loops.iteration_space import Conflict, space_of_structures
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.loops.structure import structure_of
from mlirfuse.analysis.scheduling.kernel_time import kernel_prediction
from mlirfuse.analysis.segments.operations import separated
from mlirfuse.dialect.attributes import GRID_REDUCTION, KERNEL, SCHEDULE
from mlirfuse.dialect.module_target import device_of_module, target_of_module
from mlirfuse.errors import PassError, ScheduleError
from mlirfuse.machine.lookup import machine_of
from mlirfuse.passes.fusion.recomputed_values import ends_of, expression, is_argument, let_reduce
from mlirfuse.passes.kernels.host import callee, calls, launched, launches, order_host_ops
from mlirfuse.passes.splitting.split_time import split_microseconds
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import backward_slice, clone, erase, erase_dead, replaced_if
from mlirfuse.tiling.kernel_signature import change_signature, default_attributes, renew_type


@dataclass(frozen=True)
class FuseRecompute(Pass):
    """Copies ops from the kernel that stores their results into a kernel that reads them.

    Requires kernels on tensors, called by a host function. A reader can recompute values that the producer computes
    elementwise from its inputs, or from reduction results that it can return, rounded where they are; and reductions of
    what it reads in any case, such as the maxima of its rows. The ops are copied if the kernels are then predicted to
    take less time together (`schedule/predict`). Where several kernels read the values, either all recompute them, and
    the producer stores them no longer, or only those do that take less time themselves. A value that the host returns
    or views is written in any case. A contraction recomputes an operand that other ops need too, as a sum of it does;
    what is computed for its operand alone is left to `fuse-prologues`. Where fusion is off (`fuse.operation`), only
    kernels of one operation exchange ops.

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
        for function in [f for f in functions(module) if KERNEL not in f.attributes and calls(f)]:
            for maker in [callee(call) for call in calls(function)]:
                self._run(module, function, maker, remarks)

    def _run(self, module: ir.Operation, function: ir.Operation, maker: str, remarks: Remarks) -> None:
        """Decides for the readers of one kernel's results together, and rewrites those that gain."""
        exchanges, obstacles = _exchanges(module, function, maker)
        losses = _losses(exchanges, _time_of(module, function))
        for reader, reason in (obstacles | losses).items():
            known = _launches(module, function)
            if reason is None:  # another reader's rewriting may have replaced the launch, and be one too many
                exchange, reason = _possible(*known[maker], *known[reader])
            if reason is not None:
                message = f"{reader} reads what {maker} computes element by element: {reason}"
                remarks.declined(self, message, known[reader][0])
                continue
            message = f"{reader} computes {len(exchange.values)} value(s) that it would have read from {maker}"
            remarks.applied(self, message, exchange.reader_call)
            exchange.rewrite()
            order_host_ops(function)


def _exchanges(
    module: ir.Operation, function: ir.Operation, maker: str
) -> tuple[dict[str, _Exchange], dict[str, str | None]]:
    """By reader: the exchanges of one kernel that are possible, and why others are not."""
    known = _launches(module, function)
    found: dict[str, _Exchange] = {}
    obstacles: dict[str, str | None] = {}
    names = list(known)
    for reader in names[names.index(maker) + 1 :] if maker in known else ():
        exchange, reason = _possible(*known[maker], *known[reader])
        if reason is not None:
            obstacles[reader] = reason
        elif exchange.values:
            found[reader] = exchange
    return found, obstacles


def _possible(
    call: ir.Operation, maker: ir.Operation, reader_call: ir.Operation, reader: ir.Operation
) -> tuple[_Exchange, str | None]:
    """The exchange of all values, or of those that can be recomputed together, the first ones first; with the reason
    where none can.
    """
    whole = _Exchange(call, maker, reader_call, reader)
    reason = whole.obstacle() if whole.values else None
    if reason is None or len(whole.values) == 1:
        return whole, reason
    some: list[ir.Value] = []
    for value in whole.values:
        if _Exchange(call, maker, reader_call, reader, [*some, value]).obstacle() is None:
            some.append(value)
    return (_Exchange(call, maker, reader_call, reader, some), None) if some else (whole, reason)


def _time_of(module: ir.Operation, function: ir.Operation) -> Callable[[ir.Operation], float]:
    """Predicts what a kernel takes, in microseconds; its statistics may get kernels of their own if it may be split."""
    target = target_of_module(module)
    machine = machine_of(target, device_of_module(module))
    if GRID_REDUCTION in function.attributes:
        return lambda kernel: kernel_prediction(kernel, target, machine).microseconds
    return lambda kernel: split_microseconds(module, kernel)


def _losses(exchanges: Mapping[str, _Exchange], microseconds: Callable[[ir.Operation], float]) -> dict[str, str | None]:
    """By reader: why it should not recompute, or None."""
    found: dict[str, str | None] = {}
    gains: dict[str, float] = {}
    for reader, exchange in exchanges.items():
        try:
            gains[reader] = exchange.gain(microseconds)
        except (PassError, ScheduleError) as error:
            found[reader] = error.message
    if gains:
        try:
            stored = _stored([exchanges[reader] for reader in gains], microseconds)
        except (PassError, ScheduleError) as error:
            return found | dict.fromkeys(gains, error.message)
        chosen = which_recompute(list(gains.values()), stored)
        for (reader, gain), is_chosen in zip(gains.items(), chosen, strict=True):
            longer = -(gain + stored / len(gains))
            found[reader] = None if is_chosen else f"recomputing is predicted to take {longer:.2f} us longer"
    return found


def which_recompute(gains: Sequence[float], stored: float) -> list[bool]:
    """Which of a kernel's readers should recompute what it stores for them.

    Args:
        gains: microseconds that each reader takes less if it recomputes the values; negative where it takes longer.
        stored: microseconds that the kernel takes less if it stores none of them, which takes all readers.
    """
    alone = [gain > 0 for gain in gains]
    if sum(gains) + stored > sum(gain for gain in gains if gain > 0):
        return [True] * len(gains)
    return alone


def _stored(exchanges: Sequence[_Exchange], microseconds: Callable[[ir.Operation], float]) -> float:
    """Microseconds that the first kernel takes less once the readers of all exchanges recompute what it stores."""
    first, calls_ = exchanges[0], {exchange.reader_call for exchange in exchanges}
    unread = {
        on_host for e in exchanges for on_host in e.values if all(use.owner.operation in calls_ for use in on_host.uses)
    }
    leaves = list(dict.fromkeys(leaf for exchange in exchanges for leaf in exchange.leaves))
    rest = first.rest(unread, leaves)
    if rest is None:
        return microseconds(first.maker)
    renew_type(rest)
    with launched(rest, list(first.call.operands), first.call):
        return microseconds(first.maker) - microseconds(rest)


def _launches(module: ir.Operation, function: ir.Operation) -> dict[str, tuple[ir.Operation, ir.Operation]]:
    """The call and the kernel of each name that a host function launches, where the kernel is one on tensors."""
    return {callee(call): (call, kernel) for call, kernel in launches(module, function).items()}


class _Exchange:
    """Two launches, the second of which reads results of the first that it can compute: all of them, or `only` some.

    Attributes:
        values: the host's values that could be recomputed, each with its value in the first kernel.
        ops: the first kernel's ops that compute it, in program order.
        leaves: the inputs of these ops: arguments and reduction results of the first kernel, or what these are rounded
            to.
    """

    def __init__(
        self,
        call: ir.Operation,
        maker: ir.Operation,
        reader_call: ir.Operation,
        reader: ir.Operation,
        only: Collection[ir.Value] | None = None,
    ):
        self.call, self.maker, self.reader_call, self.reader = call, maker, reader_call, reader
        self.returned = dict(zip(call.results, body(maker)[-1].operands, strict=True))
        read = [v for v in dict.fromkeys(reader_call.operands) if v in self.returned and (only is None or v in only)]
        ends: dict[ir.Value, frozenset[ir.Value]] = {}
        let_reduce([self.returned[v] for v in read], ends)
        self.values = {v: self.returned[v] for v in read if self.returned[v] not in ends_of(self.returned[v], ends)}
        self.ops, self.leaves = expression(self.values.values(), ends)

    def obstacle(self) -> str | None:
        """Why the values cannot be recomputed, or None."""
        if reason := separated(body(self.maker), body(self.reader)):
            return reason
        if SCHEDULE in self.maker.attributes or SCHEDULE in self.reader.attributes:
            return "a schedule is given"
        if has_products(self.reader):
            if has_products(self.maker):
                return "it is the epilogue of another contraction"
            if self._is_prologue():
                return "it is all that the kernel computes, and may be the contraction's prologue"
        trial = self._trial()
        try:
            *ops, end = body(trial)
            return _misfit(ops, end.operands, contracts=False) or self._left_over()
        finally:
            erase(trial)

    def _is_prologue(self) -> bool:
        """Whether the first kernel is elementwise, and nothing but the reader reads its results."""
        space, _ = kernel_space(self.maker)
        users = {use.owner.operation for result in self.call.results for use in result.uses}
        return not space.reduced_dims and users == {self.reader_call}

    def gain(self, microseconds: Callable[[ir.Operation], float]) -> float:
        """Microseconds that the reader takes less if it recomputes the values.

        Raises:
            PassError: a contraction cannot compute what it would recompute.
            ScheduleError: no schedule fits.
        """
        known = self._on_host()
        operands = [*self.reader_call.operands, *(known.get(leaf) for leaf in self.leaves)]
        with launched(self._trial(), operands, self.reader_call) as trial:
            return microseconds(self.reader) - microseconds(trial)

    def _on_host(self) -> dict[ir.Value, ir.Value]:
        """For arguments and results of the first kernel what the host passes and gets."""
        arguments = self.maker.regions[0].blocks[0].arguments
        known = dict(zip(arguments, self.call.operands, strict=True))
        return known | {value: result for result, value in self.returned.items()}

    def _left_over(self) -> str | None:
        """Why the remaining ops of the first kernel cannot form a kernel, or None."""
        readers = {on_host: {use.owner.operation for use in on_host.uses} for on_host in self.returned}
        unread = {on_host for on_host in self.values if readers[on_host] == {self.reader_call}}
        kept = [v for on_host, v in self.returned.items() if on_host not in unread]
        kept += [v for v in self.leaves if not is_argument(v)]
        reason = _misfit(_needed(kept), kept, contracts=True) if kept else None
        return reason and f"the remaining ops of {symbol(self.maker)} cannot share a kernel: {reason}"

    def rest(self, unread: Collection[ir.Value], leaves: Sequence[ir.Value]) -> ir.Operation | None:
        """A copy of the first kernel without the results that are read no longer, if any is left.

        Args:
            unread: these results, as values of the host.
            leaves: what the readers need instead, of which the kernel returns its own reductions' results.
        """
        kept = [v for on_host, v in self.returned.items() if on_host not in unread]
        kept += [v for v in leaves if not is_argument(v) and v not in kept]
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
        """A copy of the reader that recomputes the values; arguments for the leaves follow its own.

        A leaf that the reader has as an argument is read there, unless it runs along other dimensions.
        """
        with ir.InsertionPoint(self.reader):
            trial = self.reader.clone()
        trial.attributes["sym_name"] = ir.StringAttr.get(f"{symbol(self.reader)}_recomputing")
        block = trial.regions[0].blocks[0]
        replaced = [
            (argument, self.values[operand])
            for argument, operand in zip(block.arguments, self.reader_call.operands, strict=True)
            if operand in self.values
        ]
        own = dict(zip(self.reader_call.operands, block.arguments, strict=True))
        mapping = {leaf: block.add_argument(leaf.type, trial.location) for leaf in self.leaves}
        added = dict(mapping)
        attributes = [*argument_attributes(self.reader), *self._leaf_attributes()]
        trial.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(known) for known in attributes])
        with ir.InsertionPoint.at_block_begin(block):
            for op in self.ops:
                clone(op, mapping)
        for argument, value in replaced:
            argument.replace_all_uses_with(mapping[value])
        on_host = self._on_host()
        for leaf, argument in added.items():
            if on_host.get(leaf) in own:
                _read_through(trial, argument, own[on_host[leaf]])
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
        returned = list(dict.fromkeys([*self.returned.values(), *(v for v in self.leaves if not is_argument(v))]))
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


def _read_through(kernel: ir.Operation, argument: ir.Value, other: ir.Value) -> None:
    """Reads an argument through another one that is the same array, if the kernel's ops still share a space."""
    *ops, end = body(kernel)
    replaced_if({argument: other}, lambda: _misfit(ops, end.operands, contracts=False) is None)


def _needed(values: Iterable[ir.Value]) -> list[ir.Operation]:
    """The ops of a kernel that values depend on, in program order."""
    values = [value for value in values if not is_argument(value)]
    ops = body(values[0].owner.operation.parent.operation) if values else []
    wanted = backward_slice(values, ops)
    return [op for op in ops if op in wanted]


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
        return misfit(space, structures) if contracts else unfit_producers(space, structures)
    if needs_grid(space) and isinstance(plan := grid_reduction(space, structures, returned), Conflict):
        return plan.reason
    return None
