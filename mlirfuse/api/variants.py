"""Which of the kernels that a function was compiled to serves a call, and when a call is worth kernels of its own.

Kernels with run-time extents are right for all of them, but were chosen for those of the call that compiled them
(`fuse.extent_hints`). A call whose extents are of another magnitude shares them unless others are predicted to be much
faster; how many variants there are is bounded. What is reduced over run-time extents, and needed along these again,
takes two passes over memory; a kernel for the numbers of a call may take one, and so a few calls get such kernels. Rows
and columns of products are numbers in the first call. Where a later call differs from it in one number, that one is
known at run time from then on.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

from mlirfuse.analysis.kernels import host_function
from mlirfuse.analysis.second_pass import needs_second_pass
from mlirfuse.api.signature import Source
from mlirfuse.builder.errors import NeedsStatic
from mlirfuse.builder.spec import ArgumentSpec, StaticSpec, TensorSpec
from mlirfuse.compiler.compile import Compiled, Lowered
from mlirfuse.compiler.kernel_times import KernelTimes
from mlirfuse.compiler.predicted import Shapes
from mlirfuse.machine import machine_of
from mlirfuse.target import SECTOR, Target

EQUAL = 1.1
"""Ratio of two predictions up to which one kernel of a product serves as well as another."""

OWN = 1.25
"""The same from which on extents are worth kernels of their own: what predictions are known to be worth."""

MOST_VARIANTS = 4
"""Variants of one function for arguments that differ in run-time extents alone; products have as many as they need."""

Specs = tuple[ArgumentSpec, ...]
Copies = tuple[int, ...]
Shape = tuple[int, ...] | None
"""Of an argument; None for a number."""

Magnitudes = tuple[int, ...]
"""The number of bits of each run-time extent."""


@dataclass
class Pool:
    """What one function was compiled to for arguments that differ in run-time extents alone.

    Attributes:
        of_products: whether these extents are rows or columns of products, whose kernels depend on each number.
        known: what was compiled.
        impossible: whether the function needs the extents as numbers for another purpose.
        decided: what serves extents of which magnitudes.
        by_numbers: what was compiled for extents as numbers, by the shapes of the arguments.
    """

    of_products: bool = False
    known: list[Compiled] = field(default_factory=list)
    impossible: bool = False
    decided: dict[Magnitudes, Compiled] = field(default_factory=dict)
    by_numbers: dict[tuple[Shape, ...], Compiled] = field(default_factory=dict)
    _times: KernelTimes | None = None

    def fastest(self, specs: Specs) -> Compiled | None:
        """What is predicted to be the fastest for the extents that specs expect, if one more would not be much faster.

        Of kernels without products, that is decided once for all extents of a magnitude, and may need a `trial`.
        """
        if (found := self.by_numbers.get(tuple(shapes_of(specs)))) is not None:
            return found
        if not self.known:
            return None
        if not self.of_products:
            return self._decided(_magnitudes(specs)) or self._undoubted(specs)
        shapes = shapes_of(specs)
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
        if shared > OWN * own and shared - own > _launch(lowered):
            return None, f"kernels for other extents are predicted to take {shared / own:.1f} times as long"
        return self._decide(specs, nearest), ""

    def may_save_a_pass(self, lowered: Lowered, specs: Specs) -> bool:
        """Whether kernels for extents as numbers may read memory once less, and there are few of them so far.

        The largest cluster then holds all of a sector's columns along the extents that are known at run time.
        """
        target = lowered.target
        held = max(map(_at_run_time, specs)) * SECTOR <= target.max_cluster * target.shared_per_sm
        few = not self.of_products and len(self.by_numbers) < MOST_VARIANTS
        return few and held and needs_second_pass(host_function(lowered.module.operation))

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
        least = found.roofline_us + _launch(nearest.lowered)
        return self._decide(specs, nearest) if found.microseconds <= OWN * least else None

    def _decide(self, specs: Specs, compiled: Compiled) -> Compiled:
        return self.decided.setdefault(_magnitudes(specs), compiled)

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


def faster_by_numbers(lowered: Lowered, by_numbers: Lowered) -> str:
    """How much longer several kernels take that a function with run-time extents becomes than those for these numbers;
    empty where that is little.
    """
    times = KernelTimes(lowered)
    if times.count < 2:
        return ""
    own, other = times.compiled_now(), KernelTimes(by_numbers).compiled_now()
    if own <= OWN * other or own - other <= _launch(lowered):
        return ""
    return f"kernels for run-time extents are predicted to take {own / other:.1f} times as long"


def run_time_sources(specs: Specs) -> frozenset[Source]:
    """The dimensions whose extents are known at run time."""
    return frozenset(
        (position, dim)
        for position, spec in enumerate(specs)
        if isinstance(spec, TensorSpec)
        for dim, extent in enumerate(spec.shape)
        if not isinstance(extent, int)
    )


def shapes_of(specs: Specs) -> list[Shape]:
    """The shape of each argument of a traced function, with the extents that are expected; None for a number."""
    found = list[Shape]()
    for spec in specs:
        if isinstance(spec, TensorSpec):
            pairs = zip(spec.shape, spec.hints or (None,) * len(spec.shape), strict=True)
            found.append(tuple(n if isinstance(n, int) else hint or 1 for n, hint in pairs))
        elif not isinstance(spec, StaticSpec):
            found.append(None)
    return found


def without_hints(specs: Specs) -> Specs:
    """Specs of which nothing is expected."""
    return tuple(replace(spec, hints=None) if isinstance(spec, TensorSpec) else spec for spec in specs)


def _magnitudes(specs: Specs) -> Magnitudes:
    return tuple(
        (hint or 0).bit_length()
        for spec in specs
        if isinstance(spec, TensorSpec) and spec.hints is not None
        for n, hint in zip(spec.shape, spec.hints, strict=True)
        if not isinstance(n, int)
    )


def _at_run_time(spec: ArgumentSpec) -> int:
    """Elements of an argument along the extents that are known at run time, as they are expected."""
    if not isinstance(spec, TensorSpec) or spec.hints is None:
        return 1
    return prod(hint or 1 for n, hint in zip(spec.shape, spec.hints, strict=True) if not isinstance(n, int))


def _launch(lowered: Lowered) -> float:
    """Microseconds of a launch: what no kernel can save."""
    return 1e6 * machine_of(lowered.target, lowered.device).graph_launch


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
