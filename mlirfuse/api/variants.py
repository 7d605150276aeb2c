"""Which of the kernels that a function was compiled to serves a call, and when a call is worth kernels of its own.

Kernels with run-time extents are right for all of them, but were chosen for those of the call that compiled them
(`fuse.extent_hints`). A call whose extents are of another magnitude shares them unless others are predicted to be much
faster; how many variants there are is bounded. What is reduced over run-time extents, and needed along these again,
takes two passes over memory; a kernel for the numbers of a call may take one. Short rows become longer ones of whole
accesses where the extents in front of them are numbers, as of images with channels first. And a short extent that
becomes the last one of a result is accessed in vectors where it is a number. So a few calls get such kernels. Rows and
columns of products are numbers in the first call. Where a later call differs from it in one number, that one is known
at run time from then on.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from mlir import ir

from mlirfuse.analysis.kernels import body, host_function
from mlirfuse.analysis.second_pass import needs_second_pass
from mlirfuse.api.run_time_extents import (
    Magnitudes,
    Numbers,
    Specs,
    behind_first,
    fits,
    magnitudes,
    most_elements,
    run_time_extents,
    shapes_of,
    short,
)
from mlirfuse.api.signature import Source
from mlirfuse.builder.errors import NeedsStatic
from mlirfuse.builder.spec import ArgumentSpec, TensorSpec
from mlirfuse.compiler.compile import Compiled, Lowered
from mlirfuse.compiler.kernel_times import KernelTimes
from mlirfuse.compiler.predicted import Shapes
from mlirfuse.machine import machine_of
from mlirfuse.schedule.choice.choice import RESOLUTION
from mlirfuse.target import SECTOR, Target

EQUAL = 1.1
"""Ratio of two predictions up to which one kernel of a product serves as well as another."""

OWN = 1.25
"""The same from which on extents are worth kernels of their own: what predictions are known to be worth."""

LAUNCHES, LAUNCHES_OF_IMAGES = 2.0, 0.5
"""Launches that other kernels have to save, at least: those for other magnitudes, or numbers, of extents, and those for
numbers of extents that hardly change."""

MOST_VARIANTS = 4
"""Variants of one function for arguments that differ in run-time extents alone; products have as many as they need."""

Copies = tuple[int, ...]


@dataclass
class Pool:
    """What one function was compiled to for arguments that differ in run-time extents alone.

    Attributes:
        of_products: whether these extents are rows or columns of products, whose kernels depend on each number.
        known: what was compiled.
        impossible: whether the function needs the extents as numbers for another purpose.
        decided: what serves extents of which magnitudes.
        by_numbers: what was compiled for some extents as numbers, by the shapes of the arguments, in which other
            extents are None.
    """

    of_products: bool = False
    known: list[Compiled] = field(default_factory=list)
    impossible: bool = False
    decided: dict[Magnitudes, Compiled] = field(default_factory=dict)
    by_numbers: dict[tuple[Numbers, ...], Compiled] = field(default_factory=dict)
    _times: KernelTimes | None = None

    def fastest(self, specs: Specs) -> Compiled | None:
        """What is predicted to be the fastest for the extents that specs expect, if one more would not be much faster.

        Of kernels without products, that is decided once for all extents of a magnitude, and may need a `trial`.
        """
        shapes = shapes_of(specs)
        for numbers, compiled in self.by_numbers.items():
            if all(map(fits, numbers, shapes)):
                return compiled
        if not self.known:
            return None
        if not self.of_products:
            return self._decided(magnitudes(specs)) or self._undoubted(specs)
        one_more = self._kernel_times().best(shapes, alone=not self.pays(specs))
        compiled = self._nearest(shapes)
        return compiled if compiled.predicted(shapes).microseconds <= EQUAL * one_more else None

    def pays(self, specs: Specs) -> bool:
        """Whether a kernel for any extents is predicted to be about as fast as one for these alone."""
        if not self.known or not self.of_products:
            return True
        times, shapes = self._kernel_times(), shapes_of(specs)
        return times.best(shapes) <= OWN * times.best(shapes, alone=True)

    def trial(self, lowered: Lowered, specs: Specs) -> tuple[Compiled | None, str]:
        """What serves the specs as well as what the function would be compiled to, or None; and why.

        Args:
            lowered: the function with the hints of the specs.
            specs: with these hints.
        """
        shapes = shapes_of(specs)
        nearest, own = self._nearest(shapes), KernelTimes(lowered).compiled_now()
        shared = nearest.predicted(shapes).microseconds
        if shared > OWN * own and shared - own > _least_saved(lowered):
            return None, f"kernels for other extents are predicted to take {shared / own:.1f} times as long"
        return self._decide(specs, nearest), ""

    def worth_as_numbers(self, lowered: Lowered, specs: Specs) -> tuple[frozenset[Source], float]:
        """The run-time extents of which kernels for numbers may be faster, and launches that these have to save, at
        least; no extents where there are many such kernels already.

        Extents between the first ones and short rows, as of images, hardly change from call to call.
        """
        if self.of_products or len(self.by_numbers) >= MOST_VARIANTS:
            return frozenset(), LAUNCHES
        if self._may_save_a_pass(lowered, specs):
            return frozenset(extent.source for extent in run_time_extents(specs)), LAUNCHES
        if _makes_innermost(lowered):
            return behind_first(specs) | short(specs), LAUNCHES
        return behind_first(specs), LAUNCHES_OF_IMAGES

    def _may_save_a_pass(self, lowered: Lowered, specs: Specs) -> bool:
        """Whether kernels for extents as numbers may read memory once less.

        The largest cluster then holds all of a sector's columns along the extents that are known at run time.
        """
        target = lowered.target
        held = most_elements(specs) * SECTOR <= target.max_cluster * target.shared_per_sm
        return held and needs_second_pass(host_function(lowered.module.operation)) and KernelTimes(lowered).count > 1

    def take(self, specs: Specs, compiled: Compiled) -> None:
        """Keeps what was compiled for the extents that specs expect."""
        self.known.append(compiled)
        if not self.of_products:
            self._decide(specs, compiled)

    def _decided(self, extents: Magnitudes) -> Compiled | None:
        """What was decided for extents, or for smaller and for larger ones alike."""
        if extents in self.decided:
            return self.decided[extents]
        known = [(list(zip(others, extents, strict=True)), compiled) for others, compiled in self.decided.items()]
        less = [compiled for pairs, compiled in known if all(a <= b for a, b in pairs)]
        more = {id(compiled) for pairs, compiled in known if all(a >= b for a, b in pairs)}
        return next((compiled for compiled in less if id(compiled) in more), None)

    def _undoubted(self, specs: Specs) -> Compiled | None:
        """What serves the specs so well that no trial can show anything much faster; None if there is a doubt."""
        shapes = shapes_of(specs)
        nearest = self._nearest(shapes)
        if len(self.known) >= MOST_VARIANTS:
            return self._decide(specs, nearest)
        found = nearest.predicted(shapes)
        least = found.roofline_us + _least_saved(nearest.lowered)
        return self._decide(specs, nearest) if found.microseconds <= OWN * least else None

    def _decide(self, specs: Specs, compiled: Compiled) -> Compiled:
        return self.decided.setdefault(magnitudes(specs), compiled)

    def _nearest(self, shapes: Shapes) -> Compiled:
        """The variant that is predicted to be the fastest."""
        if len(self.known) == 1:
            return self.known[0]
        return min(self.known, key=lambda compiled: compiled.predicted(shapes).microseconds)

    def _kernel_times(self) -> KernelTimes:
        """Of the first variant's kernels."""
        if self._times is None:
            self._times = KernelTimes(self.known[0].lowered)
        return self._times


@dataclass(frozen=True)
class Choice:
    """What a call is compiled as.

    Attributes:
        sources: the dimensions of products that are dynamic though the function needs their extents as numbers.
        pool: of what is compiled for the same arguments with other extents; None where there is no other.
    """

    sources: frozenset[Source] = frozenset()
    pool: Pool | None = None


NO_CHOICE = Choice()


class Variants:
    """The pools of a function."""

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
    ) -> Choice:
        """What a call is compiled as: a product's rows are dynamic where they are all that differs from the first call.

        Args:
            dynamic: the specs of the call with all leading extents dynamic.
            static: the dimensions whose extents the function needs as numbers.
            specs: the specs with these as numbers.
            target: the architecture.
            device: the name that CUDA reports for the device.
            copies: the results that are copied.
        """
        if any(isinstance(n, str) for s in specs if isinstance(s, TensorSpec) for n in s.shape):
            return Choice(pool=self._pools.setdefault((specs, frozenset(), target, device, copies), Pool()))
        if not static:
            return NO_CHOICE
        first = self._first.setdefault((dynamic, target, device, copies), specs)
        sources = frozenset(source for source in static if _extent(first, source) != _extent(specs, source))
        numbers = {(_extent(first, source), _extent(specs, source)) for source in sources}
        if len(numbers) != 1 or not sources & self._tiled.get(dynamic, set()):
            return NO_CHOICE
        others = tuple(_without(spec, sources, position) for position, spec in enumerate(specs))
        pool = self._pools.setdefault((others, sources, target, device, copies), Pool(of_products=True))
        return NO_CHOICE if pool.impossible else Choice(sources, pool)


def faster_by_numbers(lowered: Lowered, by_numbers: Lowered, launches: float) -> str:
    """How much longer the kernels take that a function with run-time extents becomes than those for these numbers;
    empty where these do not save so many launches.
    """
    own, other = KernelTimes(lowered).compiled_now(), KernelTimes(by_numbers).compiled_now()
    if own <= RESOLUTION * other or own - other <= _least_saved(lowered, launches):
        return ""
    return f"kernels for run-time extents are predicted to take {own / other:.1f} times as long"


def _makes_innermost(lowered: Lowered) -> bool:
    """Whether a run-time extent is the last one of a result of several dimensions."""
    types = [ir.RankedTensorType(value.type) for value in body(host_function(lowered.module.operation))[-1].operands]
    return any(type_.rank > 1 and type_.is_dynamic_dim(type_.rank - 1) for type_ in types)


def _least_saved(lowered: Lowered, launches: float = LAUNCHES) -> float:
    """Microseconds that other kernels have to save, at least: so many launches."""
    return 1e6 * launches * machine_of(lowered.target, lowered.device).next_launch


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
