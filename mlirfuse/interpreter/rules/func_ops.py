"""`func.call`: calls a function with a body, or launches the kernel that a declaration names."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir

from mlirfuse.dialect.attributes import LAUNCH, RESULT_EXTENTS
from mlirfuse.interpreter.registry import suspending
from mlirfuse.interpreter.rules.fuse_gathered_view import source_of
from mlirfuse.interpreter.scheduler import Coroutine
from mlirfuse.interpreter.site import Site, gather, int_array
from mlirfuse.interpreter.state.machine import Frame


@suspending("func.call")
def _call(site: Site) -> Callable[[Frame], Coroutine]:
    callee = ir.FlatSymbolRefAttr(site.op.attributes["callee"]).value
    interpreter = site.compiler.interpreter
    declaration = interpreter.symbol(callee)
    if LAUNCH in declaration.attributes:
        return _launch(site, declaration)

    def step(frame: Frame) -> Coroutine:
        function = interpreter.function(callee)
        inner = function.frame(frame.block)
        inner.mask = frame.mask
        yield from function.program.call(inner, gather(frame.values, site.operands))
        for slot, value in zip(site.results, function.program.outcome(inner), strict=True):
            frame.values[slot] = value

    return step


def _launch(site: Site, declaration: ir.Operation) -> Callable[[Frame], Coroutine]:
    """Launches the kernel that `fuse.launch` names; `fuse.result_extents` gives the results' dynamic extents."""
    kernel = ir.FlatSymbolRefAttr(declaration.attributes[LAUNCH]).value
    pairs = int_array(declaration.attributes[RESULT_EXTENTS]) if RESULT_EXTENTS in declaration.attributes else []
    types = [ir.RankedTensorType(result.type) for result in site.op.results]

    def step(frame: Frame) -> Coroutine:
        inputs = [source_of(value) for value in gather(frame.values, site.operands)]
        extents = [inputs[argument].shape[dim] for argument, dim in zip(pairs[::2], pairs[1::2], strict=True)]
        results = site.compiler.interpreter.launch(site, kernel, inputs, types, extents)
        for slot, value in zip(site.results, results, strict=True):
            frame.values[slot] = value
        yield None

    return step
