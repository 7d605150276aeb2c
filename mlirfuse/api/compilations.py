"""What a function was compiled to, and for which arguments: static extents, and variants for run-time ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from threading import RLock

from mlir import ir

from mlirfuse.api.argument_specs import reasons, spec_text
from mlirfuse.api.run_time_extents import Specs, numbers_of, without_hints
from mlirfuse.api.signature import Extents, Source, Static
from mlirfuse.api.variants import (
    NO_CHOICE,
    Choice,
    Pool,
    Variants,
    faster_by_numbers,
)
from mlirfuse.builder.errors import ChangesOrder, NeedsStatic
from mlirfuse.compiler.compile import Compiled, Lowered
from mlirfuse.compiler.context import make_context
from mlirfuse.errors import ShapeError, UnreadExtentError
from mlirfuse.target import Target

Lower = Callable[..., Lowered]
"""Traces the function for specs."""


@dataclass
class Compilations:
    """What one function was compiled to.

    Attributes:
        lower: traces the function.
        names: of its parameters.
        interprets: whether the interpreter runs it, on small arrays, with the kernels that large ones would get.
        varies: whether a call may have kernels of its own; otherwise schedules are given or measured.
        dynamic_products: whether rows and columns of products are known at run time from the first call on.
        compiled: by specs, target, device and copies; further variants by their number too.
        count: how often the function was compiled.
        lock: held while something is compiled.
    """

    lower: Lower
    names: Sequence[str]
    interprets: bool
    varies: bool
    dynamic_products: bool
    compiled: dict[tuple[object, ...], Compiled] = field(default_factory=dict)
    count: int = 0
    lock: RLock = field(default_factory=RLock)
    _static: dict[Specs, Static] = field(default_factory=dict)
    _variants: Variants = field(default_factory=Variants)

    def compile(
        self,
        describe: Callable[[Extents], Specs],
        target: Target,
        device: str | None = None,
        copies: tuple[int, ...] = (),
    ) -> Compiled:
        """Compiles for a signature, with those extents static that the function needs as numbers.

        Args:
            describe: the specs of the arguments, given which extents are static.
            target: the architecture.
            device: the name that CUDA reports for the device.
            copies: numbers of the results that are no views, but arrays of their own.
        """
        with self.lock:
            dynamic = describe(Extents())
            context: ir.Context | None = None
            while True:
                static = self._static.get(dynamic, Static())
                key = (specs := describe(Extents(static)), target, device, copies)
                choice = self._variants.of(dynamic, static.needed, *key) if self.varies else NO_CHOICE
                if self.interprets and choice.pool is not None and not choice.pool.of_products:
                    choice = NO_CHOICE
                if (known := self._known(key, choice, specs)) is not None:
                    return known
                if context is None:
                    context = make_context()
                try:
                    made = self._made(key, choice, static, describe, context)
                except (NeedsStatic, UnreadExtentError, ChangesOrder) as need:
                    if choice.sources and choice.pool is not None and choice.pool.pays(specs):
                        choice.pool.impossible = True
                    else:
                        self._static[dynamic] = static.after(need)
                        self._variants.need(dynamic, need)
                    continue
                if made is not None:
                    return made
                context = None  # what was made keeps it; where the function could not be traced, nothing does

    def forget(self, compiled: Compiled) -> None:
        """Forgets what something was compiled to."""
        self.compiled = {specs: known for specs, known in self.compiled.items() if known is not compiled}

    def _known(self, key: tuple[object, ...], choice: Choice, specs: Specs) -> Compiled | None:
        """What was compiled, and serves a call."""
        pool = choice.pool
        if pool is None or pool.of_products:
            known = self.compiled.get(key)
            if known is not None or pool is None:
                return known
        found = pool.fastest(specs)
        if found is not None:
            self.compiled.setdefault(key, found)
        return found

    def _made(
        self,
        key: tuple[Specs, Target, str | None, tuple[int, ...]],
        choice: Choice,
        static: Static,
        describe: Callable[[Extents], Specs],
        context: ir.Context,
    ) -> Compiled | None:
        """Compiles the function; None where what it made does not serve the call, which needs numbers in its place."""
        expected, target, device, copies = key
        pool = choice.pool
        sources = choice.sources if pool is not None and pool.pays(expected) else frozenset()
        extents = Extents(static.without(sources))
        specs = describe(extents) if sources or not self.interprets else without_hints(describe(extents))
        note = f"compiled for {', '.join(map(spec_text, specs))} on {target.chip}"
        notes = (note, *reasons(specs, extents.static, self.names))
        at_run_time = self.dynamic_products or bool(sources)
        try:
            lowered = self.lower(specs, target, notes, device, copies, static.reordered, at_run_time, context)
        except ShapeError as error:
            raise extents.with_numbers(error) from None
        varies = pool is not None and not pool.of_products
        if pool is not None and not self.interprets:
            numbers, launches = pool.worth_as_numbers(lowered, expected)
            made = self._by_numbers(pool, lowered, numbers, launches, key, static, describe, context)
            if made is not None:
                return made
        if pool is not None and varies and pool.known:
            shared, why = pool.trial(lowered, expected)
            if shared is not None:
                return shared
            lowered = replace(lowered, notes=(*notes, why))
        compiled = lowered.compile_to_interpret() if self.interprets else lowered.compile()
        self.count += 1
        if pool is not None and (varies or sources):
            pool.take(expected, compiled)
            if sources and pool.fastest(expected) is None and not pool.pays(expected):
                return None
        number = len(pool.known) if pool is not None and varies else 1
        self.compiled[(*key, number) if number > 1 else key] = compiled
        return compiled

    def _by_numbers(
        self,
        pool: Pool,
        lowered: Lowered,
        numbers: frozenset[Source],
        launches: float,
        key: tuple[Specs, Target, str | None, tuple[int, ...]],
        static: Static,
        describe: Callable[[Extents], Specs],
        context: ir.Context,
    ) -> Compiled | None:
        """Compiles the function for some numbers of a call if that is predicted to save so many launches, else None."""
        if not numbers:
            return None
        _, target, device, copies = key
        specs = describe(Extents(Static(static.needed | numbers, static.reordered)))
        try:
            other = self.lower(specs, target, (), device, copies, static.reordered, self.dynamic_products, context)
        except (NeedsStatic, UnreadExtentError, ChangesOrder):
            return None
        if not (why := faster_by_numbers(lowered, other, launches)):
            return None
        note = f"compiled for {', '.join(map(spec_text, specs))} on {target.chip}"
        compiled = replace(other, notes=(note, why)).compile()
        self.count += 1
        pool.by_numbers[numbers_of(specs)] = self.compiled[specs, target, device, copies] = compiled
        return compiled
