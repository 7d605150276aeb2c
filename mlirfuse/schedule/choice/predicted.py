"""Every candidate of a kernel's problem with its prediction, and the least time that a kernel's work can take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from mlirfuse.machine import MachineModel
from mlirfuse.schedule.choice.proposals import proposals
from mlirfuse.schedule.choice.records import AnyProblem
from mlirfuse.schedule.contractions.candidates import candidates
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.predict import Prediction, predict, predict_contraction
from mlirfuse.schedule.predict.counts.space import with_extents
from mlirfuse.schedule.predict.work import US
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target


@dataclass(frozen=True)
class Candidate:
    """A schedule of some family, and what it is predicted to take."""

    family: str
    schedule: Schedule
    prediction: Prediction

    @property
    def microseconds(self) -> float:
        return self.prediction.microseconds


def prediction_of(schedule: Schedule, problem: AnyProblem, machine: MachineModel) -> Prediction:
    """The prediction of a schedule for a problem with or without a contraction."""
    if isinstance(problem, Problem):
        return predict(schedule, problem, machine)
    return predict_contraction(schedule, problem, machine)


def predicted_candidates(
    problem: AnyProblem, sized: AnyProblem, target: Target, machine: MachineModel, grid_reduction: str = "auto"
) -> list[Candidate]:
    """The distinct candidates of all families, the fastest by prediction first.

    Schedules are legal for the problem as the kernel is compiled; `sized`, which is timed, has the extents of a call.
    """
    if isinstance(problem, Problem):
        found = [(proposal.family, proposal.schedule) for proposal in proposals(problem, target, grid_reduction)]
    else:
        found = [(s.contraction_part.instruction, s) for s in dict.fromkeys(candidates(problem, target))]
    made = [Candidate(family, schedule, prediction_of(schedule, sized, machine)) for family, schedule in found]
    return sorted(made, key=lambda candidate: candidate.microseconds)


def with_elements(problem: AnyProblem, elements: int) -> AnyProblem:
    """The problem with numbers for extents that are known at run time: those expected, or as many elements as asked.

    Of a contraction it is the space of the result.
    """
    if isinstance(problem, Problem):
        return with_extents(problem, elements)
    extents = problem.expected
    known = prod(extent for extent in extents if extent is not None)
    unknown = extents.count(None)
    each = max(1, round((elements / known) ** (1 / unknown))) if unknown else 1
    *batch, m, n = (each if extent is None else extent for extent in extents)
    return replace(problem, batch=tuple(batch), m=m, n=n, hints=())


def roofline(problem: AnyProblem, nbytes: float, machine: MachineModel) -> tuple[float, str]:
    """The least microseconds of a kernel's work, and what bounds it: its arguments and results, of so many bytes, move
    once, or its products.
    """
    moving = US * nbytes / machine.dram_bandwidth
    multiplying = US * _operations(problem) / (machine.sms * _rate(problem, machine))
    return (multiplying, "products") if multiplying > moving else (moving, "device memory")


def _operations(problem: AnyProblem) -> float:
    """Multiplications and additions of a contraction; 0 without one."""
    if isinstance(problem, Problem):
        return 0.0
    products = prod(extent or 1 for extent in (*problem.batch, problem.products))
    return 2.0 * products * (problem.m or 1) * (problem.n or 1) * problem.summed * problem.k_ends[1]


def _rate(problem: AnyProblem, machine: MachineModel) -> float:
    """Operations a second of an SM, by the fastest instruction for the operands' type."""
    plain = 2.0 * machine.f32_fma_per_sm
    if not isinstance(problem, ContractionProblem):
        return plain
    element, rates = problem.element, list[float]()
    if element.is_float8:
        rates = [machine.wgmma_f8_per_sm, machine.mma_f8_per_sm, machine.mma_16bit_per_sm]
    elif element.kind == "float" and element.bits == 16:
        rates = [machine.wgmma_16bit_per_sm, machine.mma_16bit_per_sm]
    elif element.kind == "float" and element.bits == 64:
        rates = [machine.mma_f64_per_sm, 2.0 * machine.f64_fma_per_sm]
    elif element.bits == 32 and problem.precision != "ieee":
        rates = [machine.wgmma_tf32_per_sm, machine.mma_tf32_per_sm]
    elif element.kind == "int" and element.bits == 8:
        rates = [machine.wgmma_int8_per_sm, machine.mma_int8_per_sm]
    return max([rate for rate in rates if rate], default=plain)


def ranked(
    problem: AnyProblem, target: Target, machine: MachineModel, elements: int, grid_reduction: str
) -> list[Candidate]:
    """The candidates that combine partials as is asked, the fastest by prediction first: the order of tuning.

    The iteration space of a kernel without contractions has so many elements, where its extents are known at run time.
    `auto` is all ways to combine partials but atomic additions.
    """
    sized = with_extents(problem, elements) if isinstance(problem, Problem) else problem
    found = predicted_candidates(problem, sized, target, machine, grid_reduction)
    loops = ((candidate, candidate.schedule.persistent_loop) for candidate in found)
    return [candidate for candidate, loop in loops if loop is None or grid_reduction in ("auto", loop.grid_reduction)]
