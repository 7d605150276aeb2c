"""Runs pipelines that mix upstream and mlirfuse passes.

Upstream's textual pipelines cannot name a pass written in Python. So the pipeline is split at its top level: upstream
parts go to one upstream `PassManager` as text, mlirfuse passes as callables, and IR printing, timing and verify-each
cover both alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from mlir import ir
from mlir.passmanager import ExternalPass, PassManager

from mlirfuse.dialect.verification import verify_fuse_ops
from mlirfuse.errors import PassError, PipelineError
from mlirfuse.passmanager import registry
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.passmanager.spec import parse_options, print_pass
from mlirfuse.passmanager.syntax import ANCHOR, Element, at, parse_pipeline, truncate
from mlirfuse.support.diagnostics import describe

Step: TypeAlias = Element | Pass


@dataclass(frozen=True)
class Instrumentation:
    """Instrumentation of a run; reports go to standard error, as upstream's do.

    Attributes:
        verify_each: verify the module, fuse ops included, after every pass.
        print_after_all: print the IR after every pass.
        print_after_change: print the IR after every pass that changed it.
        timing: print the time spent in each pass at the end.
    """

    verify_each: bool = True
    print_after_all: bool = False
    print_after_change: bool = False
    timing: bool = False


@dataclass(frozen=True)
class Pipeline:
    """A sequence of upstream elements and mlirfuse passes, run on a `builtin.module`."""

    steps: tuple[Step, ...]

    @staticmethod
    def parse(text: str, *, stop_after: str | None = None) -> Pipeline:
        """The pipeline of a text such as `builtin.module(canonicalize,fuse-verify,gpu.module(cse))`.

        Args:
            text: the pipeline; upstream names are only checked when the pipeline runs.
            stop_after: leave out what follows the pass of that name, or with `name,n` its n-th occurrence.

        Raises:
            PipelineError: a syntax error, an unknown mlirfuse pass or option, or no such pass to stop after.
        """
        elements = parse_pipeline(text)
        if stop_after is not None:
            elements = _stop_after(elements, stop_after)
        return Pipeline(tuple(_step(element) for element in elements))

    def __str__(self) -> str:
        parts = (print_pass(step) if isinstance(step, Pass) else str(step) for step in self.steps)
        return f"{ANCHOR}({','.join(parts)})"

    def run(
        self, module: ir.Module, instrumentation: Instrumentation | None = None, remarks: Remarks | None = None
    ) -> Remarks:
        """Runs the pipeline on a module, in place.

        Args:
            module: the module to change.
            instrumentation: verification, printing and timing.
            remarks: where to collect remarks, including those made before a failure.

        Returns:
            The remarks of the passes.

        Raises:
            PipelineError: an upstream pass or option that does not exist.
            PassError: an upstream pass failed, or the IR it left does not verify.
            MlirFuseError: the error of an mlirfuse pass, unchanged.
        """
        watch = instrumentation or Instrumentation()
        remarks, raised = Remarks() if remarks is None else remarks, list[BaseException]()
        context = module.context
        with context:
            manager = PassManager(ANCHOR)
            for step in self.steps:
                if isinstance(step, Pass):
                    body = _callable(step, remarks, raised, watch.verify_each)
                    manager.add(
                        body, name=type(step).__name__, argument=step.name, description=registry.summary(type(step))
                    )
                else:
                    _add_upstream(manager, step)
            manager.enable_verifier(watch.verify_each)
            printing = watch.print_after_all or watch.print_after_change
            if printing:
                # Upstream refuses to print from a context that runs passes on several threads.
                context.enable_multithreading(False)
                # On-change is a filter on after-all, and does nothing without it.
                manager.enable_ir_printing(print_after_all=True, print_after_change=not watch.print_after_all)
            if watch.timing:
                manager.enable_timing()
            try:
                manager.run(module.operation)
            except ir.MLIRError as error:
                if raised:
                    raise raised[0] from None
                message, place = describe(error)
                raise PassError(message, where=place) from error
            finally:
                if printing:
                    context.enable_multithreading(True)
        return remarks


def run_pipeline(
    module: ir.Module,
    pipeline: str,
    *,
    stop_after: str | None = None,
    instrumentation: Instrumentation | None = None,
) -> Remarks:
    """Parses a textual pipeline and runs it on a module; see `Pipeline.parse` and `Pipeline.run`."""
    return _parsed(pipeline, stop_after).run(module, instrumentation)


@cache
def _parsed(text: str, stop_after: str | None) -> Pipeline:
    """The pipeline of a text, cached, as every compilation of a process runs the same few."""
    return Pipeline.parse(text, stop_after=stop_after)


def _step(element: Element) -> Step:
    """The pass an element names, or the element where it is upstream's."""
    if element.nested is not None:
        _reject_nested(element)
        return element
    cls = registry.find(element.name)
    if cls is None:
        return element
    return parse_options(cls, element.options, element.options_position or element.position)


def _reject_nested(parent: Element) -> None:
    """Raises `PipelineError` for an mlirfuse pass below the top level, as mlirfuse's passes run on the whole module."""
    for element in parent.nested or ():
        if registry.find(element.name):
            raise PipelineError(
                f"{element.name} runs on {ANCHOR}, not on {parent.name}",
                where=at(element.position),
                hint=f"move it out of {parent.name}(...)",
            )
        _reject_nested(element)


def _stop_after(elements: tuple[Element, ...], request: str) -> tuple[Element, ...]:
    name, comma, count = request.partition(",")
    if comma and not (count.isdecimal() and int(count) > 0):
        raise PipelineError(f"cannot stop after {request!r}", hint="write PASS, or PASS,N for its N-th occurrence")
    kept, missing = truncate(elements, name, int(count) if comma else 1)
    if missing and (times := int(count or 1) - missing):
        what = f"cannot stop after {request!r}: {name} occurs {times} time{'s' if times > 1 else ''}"
        raise PipelineError(what, hint=f"write {name},N with N up to {times}")
    if missing:
        raise PipelineError(
            f"cannot stop after {request!r}: the pipeline has no such pass", hint=registry.suggest(name)
        )
    return kept


def _callable(
    pass_: Pass, remarks: Remarks, raised: list[BaseException], verify: bool
) -> Callable[[ir.Operation, ExternalPass], None]:
    """The pass as a callable for upstream. Its exception is kept in `raised`: unwinding through C++ corrupts the
    context.
    """

    def run(op: ir.Operation, external: ExternalPass) -> None:
        try:
            with op.location:  # ops that a pass builds without a location get the module's
                pass_.run(op, remarks)
            if verify:
                verify_fuse_ops(op)
        except BaseException as error:  # noqa: BLE001
            error.add_note(f"in pass {print_pass(pass_)}")
            raised.append(error)
            external.signal_pass_failure()

    return run


def _add_upstream(manager: PassManager, element: Element) -> None:
    try:
        manager.add(str(element))
    except ValueError as error:
        # Upstream's message has a position within this element alone, a caret line, and sometimes further messages.
        reason = " ".join(line.strip() for line in str(error).splitlines() if line.strip(" ^"))
        if "does not refer to a registered pass" in reason:
            problem, hint = f"no pass or pipeline is named {element.name!r}", registry.suggest(element.name)
            raise PipelineError(problem, where=at(element.position), hint=hint) from None
        raise PipelineError(f"upstream refuses {str(element)!r}: {reason}", where=at(element.position)) from None
