"""`fuse-mix-order-reduction`: merges kernels that reduce the same data over different dimensions."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.contractions.contraction import contraction_in
from mlirfuse.analysis.grid_reduction import grid_reduction, needs_grid
from mlirfuse.analysis.kernels import body, functions, symbol
from mlirfuse.analysis.loops.iteration_space import Conflict, space_of_structures
from mlirfuse.analysis.loops.spaces import check_results, kernel_space
from mlirfuse.analysis.loops.structure import structure_of
from mlirfuse.analysis.scheduling.kernel_time import kernel_prediction
from mlirfuse.analysis.scheduling.problem import problem_of
from mlirfuse.dialect.attributes import GRID_REDUCTION, KERNEL, MIX_ORDER, SCHEDULE
from mlirfuse.dialect.module_target import device_of_module, target_of_module
from mlirfuse.errors import PassError, ScheduleError
from mlirfuse.machine.lookup import machine_of
from mlirfuse.machine.model import MachineModel
from mlirfuse.passes.fusion.shared_views import shared_views
from mlirfuse.passes.kernels.host import callee, calls, launches, to_be_split
from mlirfuse.passes.kernels.kernel_pair import KernelPair, Names, later_gain
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.choice.choice import too_wide
from mlirfuse.schedule.choice.proposals import loops
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import erase
from mlirfuse.target import Target


@dataclass(frozen=True)
class FuseMixOrderReduction(Pass):
    """Merges two kernels that read the same data and reduce it over different dimensions, so that it is read once.

    Requires kernels on tensors, called by a host function. Two of them are merged if they share a value of the whole
    iteration space (both read it, or one reads what the other makes), if their reductions nest (`dx` reduces inside of
    rows, `dw` and `db` over them; `analysis/grid_reduction.py`), if nothing that a tile needs depends on a grid
    reduction, if a cluster holds a row and the accumulators on chip, and, where all extents are known, if the cost
    model predicts less time (`schedule/predict`). Values that only the two exchanged are no longer stored.
    Where the host reshapes the shared value, dimensions of both kernels are first collapsed to those that the shapes
    have in common, where each kernel allows it (`shared_views.py`). Source: PyTorch Inductor's mix-order reduction,
    pull request 165370.

    `fuse.mix_order = "split"` on the host function turns the pass off; nothing is merged into a kernel of
    `fuse.split_kernels`. With `"fused"` the cost model is not consulted,
    and a pair that shares data and cannot be merged is an error. The cost model is not consulted either where the
    caller chooses the second stage of grid reductions. Where fusion is off (`fuse.operation`), only kernels of one
    operation are merged.

    ```mlir
    %dx = call @f_0(%dy, %x) : (tensor<?x4096xf32>, tensor<?x4096xf32>) -> tensor<?x4096xf32>   // reduces rows
    %dw = call @f_1(%dy, %x) : (tensor<?x4096xf32>, tensor<?x4096xf32>) -> tensor<4096xf32>     // reduces over rows
    ```
    becomes
    ```mlir
    %0:2 = call @f_0(%dy, %x)
        : (tensor<?x4096xf32>, tensor<?x4096xf32>) -> (tensor<?x4096xf32>, tensor<4096xf32>)
    ```
    """

    name: ClassVar[str] = "fuse-mix-order-reduction"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        for function in [f for f in functions(module) if KERNEL not in f.attributes and calls(f)]:
            request = (
                ir.StringAttr(function.attributes[MIX_ORDER]).value if MIX_ORDER in function.attributes else "auto"
            )
            if request not in ("auto", "fused", "split"):
                raise PassError(f"{MIX_ORDER} is {request!r}", where=function, hint="fused, split, or leave it out")
            if request == "split":
                remarks.declined(self, "the caller asked for separate kernels (split)", function)
                continue
            known = Known({}, {})
            if apart := to_be_split(function):
                remarks.declined(self, f"{' and '.join(sorted(apart))} spilled with what was merged into it", function)
            while self._merge_one(module, function, known, remarks, required=request == "fused"):
                pass

    def _merge_one(
        self, module: ir.Operation, function: ir.Operation, known: Known, remarks: Remarks, *, required: bool
    ) -> bool:
        """Merges the first pair that can be merged; when there is none, remarks why the others cannot.

        `known` has what earlier calls found for pairs that no merge has changed since.
        """
        declined: list[tuple[ir.Operation, str, bool]] = []
        target = target_of_module(module)
        machine = machine_of(target, device_of_module(module))
        is_asked = required or GRID_REDUCTION in function.attributes  # the request concerns one kernel
        pairs, apart = _pairs(module, function, known), to_be_split(function)
        for pair in pairs:
            if not pair.shared_bytes() or symbol(pair.first) in apart:
                continue
            reason = pair.obstacle(target) or (None if is_asked else _loss(pair, pairs, target, machine))
            if reason is None:
                self._merge(pair, function, remarks)
                return True
            declined.append((pair.second_call, f"{pair}: {reason}", True))
        seen: dict[ir.Operation, bool | None] = {}
        for position, pair in enumerate(pairs):
            is_candidate = not pair.shared_bytes() and not pair.separated() and pair.reduces_over_rows(seen)
            is_candidate = is_candidate and symbol(pair.first) not in apart
            views = shared_views(pair) if is_candidate else []
            reasons: list[str] = []
            for number, view in enumerate(views):
                reason = _aligned(module.clone(ip=False), symbol(function), position, number, target, known)
                if reason is None:
                    view.align(function)
                    self._merge(_pairs(module, function, known)[position], function, remarks)
                    return True
                reasons.append(f"{pair}: {view}, and {reason}")
            declined += [(pair.second_call, reason, pair.both_reduce()) for reason in reasons[:1]]
        for call, reason, is_mixed in declined:
            if required and is_mixed:
                raise PassError(
                    f"mix-order fusion was asked for, but {reason}",
                    where=call,
                    hint="mix_order='auto' fuses what can be fused, and leaves the rest in kernels of their own",
                )
            remarks.declined(self, reason, call)
        return False

    def _merge(self, pair: _Pair, function: ir.Operation, remarks: Remarks) -> None:
        saved = f"{symbol(pair.second)} joins {symbol(pair.first)}: {pair.shared_bytes()} bytes an element saved"
        remarks.applied(self, saved, pair.second_call)
        pair.merge(function)


def _reduces_over_rows(kernel: ir.Operation) -> bool | None:
    """Whether a kernel reduces over dimensions other than the innermost; None for a contraction."""
    try:
        space, structures = kernel_space(kernel)
    except ScheduleError:  # `fuse-assign-schedule` reports kernels without a legal schedule
        return None
    if contraction_in(space, structures) is not None:
        return None
    return any(dims and space.rank - 1 not in dims for dims in space.reduced.values())


def _pairs(module: ir.Operation, function: ir.Operation, known: Known) -> list[_Pair]:
    """All pairs of launches of a host function, in order."""
    return [
        _Pair(first, second, first_kernel, second_kernel, known)
        for (first, first_kernel), (second, second_kernel) in combinations(launches(module, function).items(), 2)
    ]


def _aligned(copy: ir.Operation, host: str, position: int, number: int, target: Target, known: Known) -> str | None:
    """Why two kernels cannot be merged over the dimensions that views of shared data have in common; None if they can.

    Args:
        copy: a copy of the module, which is left changed.
        host: the name of the host function.
        position: the position of the two kernels' launches among `_pairs` of the host function.
        number: the position of the view among the pair's `shared_views`.
        target: the architecture.
        known: what is known of pairs.
    """
    function = next(f for f in functions(copy) if symbol(f) == host)
    if reason := shared_views(_pairs(copy, function, known)[position])[number].align(function):
        return reason
    pair = _pairs(copy, function, known)[position]
    return pair.obstacle(target) if pair.shared_bytes() else "no common dimensions cover the shared data"


@dataclass(frozen=True)
class Gain:
    """What one kernel saves in place of two, in microseconds.

    Attributes:
        saved: all that it saves; negative where two take less time.
        synchronisation: what its blocks take to combine partial results.
    """

    saved: float
    synchronisation: float


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of merging pairs, by the pairs' keys (`_Pair.key`): merging one pair changes few others.

    Attributes:
        obstacles: why the merged kernel is none, or None.
        gains: what merging saves.
    """

    obstacles: dict[Hashable, str | None]
    gains: dict[Hashable, Gain | None]


@dataclass(frozen=True)
class _Pair(KernelPair):
    """Two launches that may read the same data.

    Attributes:
        known: what is known of merging pairs.
    """

    known: Known

    def __str__(self) -> str:
        return f"{callee(self.second_call)} stays apart from {callee(self.first_call)}"

    def shared_bytes(self) -> int:
        """Bytes an element of the iteration space that a merged kernel saves; 0 without shared data."""
        whole = max(_rank(v) for v in [*self.first_call.operands, *self.first_call.results])
        stored = {*_read(self.first_call, self.first), *self.first_call.results}
        return sum(_bytes(v) for v in _read(self.second_call, self.second) if v in stored and _rank(v) == whole > 1)

    def reduces_over_rows(self, seen: dict[ir.Operation, bool | None]) -> bool:
        """Whether one of the kernels reduces over dimensions other than the innermost, and neither is a contraction.

        Other pairs that read reshapes of an array, such as a product of batches, are not reductions in two orders.
        `seen` is what was found of kernels.
        """
        for kernel in (self.first, self.second):
            if kernel not in seen:
                seen[kernel] = _reduces_over_rows(kernel)
        found = seen[self.first], seen[self.second]
        return None not in found and any(found)

    def both_reduce(self) -> bool:
        """Whether both kernels have reductions."""
        return all(kernel_space(kernel)[0].reduced_dims for kernel in (self.first, self.second))

    def obstacle(self, target: Target) -> str | None:
        """Why the two kernels cannot be merged, or None."""
        if reason := self.separated():
            return reason
        if SCHEDULE in self.second.attributes:
            return f"a schedule is given for {symbol(self.second)}"
        given = schedule_of(self.first) if SCHEDULE in self.first.attributes else None
        if given is not None and given.persistent_loop is None:
            return f"the schedule of {symbol(self.first)} has no persistent loop"
        if self.host_intervenes():
            return "the host computes on values that pass from one kernel to the other"
        if self.key not in self.known.obstacles:
            self.known.obstacles[self.key] = self._misfit(target, has_loop=given is not None)
        return self.known.obstacles[self.key]

    def _misfit(self, target: Target, *, has_loop: bool) -> str | None:
        """Why the merged kernel is none, or None; `has_loop` says whether the caller gave it a persistent loop."""
        trial = self.build()
        try:
            structures = [s for op in body(trial) if (s := structure_of(op)) is not None]
            space = space_of_structures(structures)
            if isinstance(space, Conflict):
                return space.reason
            if not needs_grid(space):
                return "no reduction runs over the grid"
            if not space.spanned():
                return "no op's loops span both iteration spaces"
            check_results(trial, space)
            plan = grid_reduction(space, structures, body(trial)[-1].operands)
            if isinstance(plan, Conflict):
                return plan.reason
            if 0 in space.extents:
                return "the shared data have no elements"
            problem = problem_of(trial, space, structures)
            if not has_loop and next(loops(problem, target), None) is None:
                return too_wide(problem, target)
            return None
        except ScheduleError as error:
            return str(error)
        finally:
            erase(trial)

    def gain(self, target: Target, machine: MachineModel) -> Gain | None:
        """The predicted time that merging saves; None where the caller gave a schedule, or a kernel has none."""
        if SCHEDULE in self.first.attributes:
            return None
        if self.key not in self.known.gains:
            self.known.gains[self.key] = self._gain(target, machine)
        return self.known.gains[self.key]

    def _gain(self, target: Target, machine: MachineModel) -> Gain | None:
        """The predicted time that merging saves; None where a kernel has no schedule."""
        trial = self.build()
        try:
            apart = [kernel_prediction(kernel, target, machine) for kernel in (self.first, self.second)]
            together = kernel_prediction(trial, target, machine)
        except ScheduleError:  # one of the two has no schedule of its own
            return None
        finally:
            erase(trial)
        return Gain(sum(p.microseconds for p in apart) - together.microseconds, together.synchronisation)


def _loss(pair: _Pair, pairs: Sequence[_Pair], target: Target, machine: MachineModel) -> str | None:
    """Why merging a pair is predicted to cost time; None where it saves time.

    What other kernels save that are then merged with the first is counted, as they share its grid synchronisation.
    They are tried where they might make up for the pair, if they all shared that, and nothing else.
    """
    gain = pair.gain(target, machine)
    if gain is None or gain.saved >= 0:
        return None
    others = [p for p in pairs if p is not pair and p.first_call == pair.first_call and p.shared_bytes()]
    gains = [p.gain(target, machine) for p in others if p.obstacle(target) is None]
    most = sum(max(0.0, each.saved + each.synchronisation) for each in gains if each is not None)

    def saved(other: _Pair) -> float | None:
        found = None if other.obstacle(target) else other.gain(target, machine)
        return None if found is None else found.saved

    if most > -gain.saved and later_gain(pair, partial(_sharing, known=pair.known), saved) > -gain.saved:
        return None
    return f"one kernel is predicted to take {-gain.saved:.1f} us longer than two"


def _sharing(
    module: ir.Operation, function: ir.Operation, declined: Collection[Names], known: Known
) -> Iterator[_Pair]:
    """The pairs of launches that share data, without declined ones."""
    return (p for p in _pairs(module, function, known) if p.names not in declined and p.shared_bytes())


def _read(call: ir.Operation, kernel: ir.Operation) -> list[ir.Value]:
    """The operands of a launch whose elements the kernel reads, without those of which it uses extents only."""
    arguments = kernel.regions[0].blocks[0].arguments
    pairs = zip(call.operands, arguments, strict=True)
    return list(dict.fromkeys(v for v, a in pairs if any(use.owner.name != "tensor.dim" for use in a.uses)))


def _rank(value: ir.Value) -> int:
    """Dimensions of a tensor that vary; 0 for a scalar."""
    if not isinstance(value.type, ir.RankedTensorType):
        return 0
    return sum(extent != 1 for extent in value.type.shape)


def _bytes(value: ir.Value) -> int:
    return from_mlir(ir.RankedTensorType(value.type).element_type).bytes
