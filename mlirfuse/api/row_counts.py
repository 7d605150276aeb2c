"""Kernels of products for changing numbers of rows: one that there is, one more for any number, or one for one number.

The first call of a function has a product's rows and columns as numbers. Where a later call differs from it in one
number, that one is dynamic from then on, and a kernel is chosen by prediction: one that was compiled for another number
of rows, if no candidate for this number is predicted to be much faster.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from mlirfuse.api.signature import Source
from mlirfuse.builder.errors import NeedsStatic
from mlirfuse.builder.spec import ArgumentSpec, TensorSpec
from mlirfuse.compiler.compile import Compiled
from mlirfuse.compiler.problems import problems_of
from mlirfuse.machine import MachineModel, machine_of
from mlirfuse.schedule.choice.contraction_choice import fastest_first
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.predict.kernels.contractions import predict_contraction
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target

EQUAL = 1.1
"""Ratio of two predictions up to which one kernel serves as well as another."""

OWN = 1.25
"""The same from which on a number of rows is worth a kernel of its own: what predictions are known to be worth."""

Specs = tuple[ArgumentSpec, ...]
Copies = tuple[int, ...]


@dataclass
class Pool:
    """Kernels of one function for any number of rows, all other extents being numbers.

    Attributes:
        target: the architecture.
        machine: the speeds of the device.
        known: what was compiled, each with its products and their schedules.
        impossible: whether the function needs its numbers of rows for another purpose.
    """

    target: Target
    machine: MachineModel
    known: list[tuple[Compiled, list[tuple[ContractionProblem, Schedule]]]] = field(default_factory=list)
    impossible: bool = False

    def add(self, compiled: Compiled) -> None:
        """Takes what was compiled for any number of rows."""
        problems = problems_of(compiled.lowered).items()
        products = [(p, compiled.schedules[k]) for k, p in problems if isinstance(p, ContractionProblem)]
        self.known.append((compiled, products))

    def fastest(self, extent: int) -> Compiled | None:
        """What is predicted to be the fastest for a number of rows, if one more kernel would not be much faster."""
        if not self.known:
            return None
        compiled, products = min(self.known, key=lambda entry: self._microseconds(entry[1], extent))
        one_more = self._any_number(products, extent) if self.pays(extent) else self._alone(products, extent)
        return compiled if self._microseconds(products, extent) <= EQUAL * one_more else None

    def pays(self, extent: int) -> bool:
        """Whether a kernel for any number of rows is predicted to be about as fast as one for the number alone."""
        if not self.known:
            return True
        _, products = self.known[0]
        return self._any_number(products, extent) <= OWN * self._alone(products, extent)

    def _any_number(self, products: list[tuple[ContractionProblem, Schedule]], extent: int) -> float:
        return self._best([replace(problem, assumed=extent) for problem, _ in products])

    def _microseconds(self, products: list[tuple[ContractionProblem, Schedule]], extent: int) -> float:
        found = (predict_contraction(s, replace(p, assumed=extent), self.machine) for p, s in products)
        return sum(prediction.microseconds for prediction in found)

    def _alone(self, products: list[tuple[ContractionProblem, Schedule]], extent: int) -> float:
        return self._best([_with_number(problem, extent) for problem, _ in products])

    def _best(self, problems: list[ContractionProblem]) -> float:
        return sum(fastest_first(problem, self.target, self.machine)[0][1] for problem in problems)


@dataclass(frozen=True)
class Rows:
    """What a call's number of rows is compiled as.

    Attributes:
        sources: the dimensions that have the number and are to be dynamic; none for a kernel for the number alone.
        extent: the number.
        pool: of kernels for any number.
        known: what was compiled before, and serves the number.
    """

    sources: frozenset[Source] = frozenset()
    extent: int = 0
    pool: Pool | None = None
    known: Compiled | None = None


NO_ROWS = Rows()


class RowCounts:
    """The numbers of rows that a function was called with, and what was compiled for them."""

    def __init__(self) -> None:
        self._tiled: dict[Specs, set[Source]] = {}
        self._first: dict[tuple[Specs, Target, str | None, Copies], Specs] = {}
        self._pools: dict[tuple[Specs, frozenset[Source], Target, str | None, Copies], Pool] = {}

    def need(self, dynamic: Specs, need: Exception) -> None:
        """Takes what needs a number of a call whose specs with all leading extents dynamic are given."""
        if isinstance(need, NeedsStatic) and need.tiled:
            self._tiled.setdefault(dynamic, set()).update(need.sources)

    def of(
        self,
        dynamic: Specs,
        static: frozenset[Source],
        specs: Specs,
        target: Target,
        device: str | None,
        copies: Copies,
    ) -> Rows:
        """What a call's number of rows is compiled as: dynamic where it is all that differs from the first call.

        Args:
            dynamic: the specs of the call with all leading extents dynamic.
            static: the dimensions whose extents the function needs as numbers.
            specs: the specs with these as numbers.
            target: the architecture.
            device: the name that CUDA reports for the device.
            copies: the results that are copied.
        """
        if not static or any(isinstance(n, str) for s in specs if isinstance(s, TensorSpec) for n in s.shape):
            return NO_ROWS
        first = self._first.setdefault((dynamic, target, device, copies), specs)
        sources = frozenset(source for source in static if _extent(first, source) != _extent(specs, source))
        numbers = {(_extent(first, source), _extent(specs, source)) for source in sources}
        if len(numbers) != 1 or not sources & self._tiled.get(dynamic, set()):
            return NO_ROWS
        ((_, extent),) = numbers
        others = tuple(_without(spec, sources, position) for position, spec in enumerate(specs))
        key = (others, sources, target, device, copies)
        pool = self._pools.setdefault(key, Pool(target, machine_of(target, device)))
        if pool.impossible:
            return NO_ROWS
        known = pool.fastest(extent)
        return Rows(sources if pool.pays(extent) else frozenset(), extent, pool, known)

    def cannot_be_dynamic(self, rows: Rows) -> bool:
        """Remembers that a function needs a number of rows as a number; returns whether it was compiled without."""
        if not rows.sources or rows.pool is None:
            return False
        rows.pool.impossible = True
        return True

    def take(self, rows: Rows, compiled: Compiled) -> bool:
        """Keeps what was compiled; returns whether that serves the number of rows that it was compiled for."""
        if not rows.sources or rows.pool is None:
            return True
        rows.pool.add(compiled)
        return rows.pool.fastest(rows.extent) is not None or rows.pool.pays(rows.extent)


def _extent(specs: Specs, source: Source) -> int:
    position, dim = source
    spec = specs[position]
    assert isinstance(spec, TensorSpec)
    extent = spec.shape[dim]
    assert isinstance(extent, int)
    return extent


def _without(spec: ArgumentSpec, sources: frozenset[Source], position: int) -> ArgumentSpec:
    """The spec with nothing said of some of its extents."""
    if not isinstance(spec, TensorSpec):
        return spec
    shape = [None if (position, dim) in sources else extent for dim, extent in enumerate(spec.shape)]
    return replace(spec, shape=tuple(shape))


def _with_number(problem: ContractionProblem, extent: int) -> ContractionProblem:
    """The problem with a number for its dynamic extents."""
    batch = tuple(n or extent for n in problem.batch)
    return replace(problem, batch=batch, m=problem.m or extent, n=problem.n or extent, assumed=None)
