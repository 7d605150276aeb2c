"""`memref`: allocation and element access."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir

from mlirfuse.interpreter.access import Access
from mlirfuse.interpreter.registry import rule
from mlirfuse.interpreter.site import Site, gather
from mlirfuse.interpreter.state.lanes import uniform
from mlirfuse.interpreter.state.machine import Frame
from mlirfuse.interpreter.state.memory import MemRef, allocate
from mlirfuse.interpreter.state.types import DYNAMIC, element_dtype, is_workgroup

Step = Callable[[Frame], None]


@rule("memref.load")
def _load(site: Site) -> Step:
    source, indices, out = site.operands[0], site.operands[1:], site.results[0]
    alignment = site.integer("alignment")

    def step(frame: Frame) -> None:
        access = Access(site, frame, frame.values[source], gather(frame.values, indices))
        access.require_aligned(alignment)
        frame.values[out] = access.load()

    return step


@rule("memref.store")
def _store(site: Site) -> Step:
    value, target, indices = site.operands[0], site.operands[1], site.operands[2:]
    alignment = site.integer("alignment")

    def step(frame: Frame) -> None:
        access = Access(site, frame, frame.values[target], gather(frame.values, indices))
        access.require_aligned(alignment)
        access.store(frame.values[value])

    return step


@rule("memref.alloc", "memref.alloca")
def _alloc(site: Site) -> Step:
    """Allocates workgroup memory once for each block and op, and other memory for each thread."""
    type_ = ir.MemRefType(site.op.results[0].type)
    dtype, shared = element_dtype(type_), is_workgroup(type_)
    static, alignment, out, sizes = tuple(type_.shape), site.integer("alignment"), site.results[0], site.operands
    name = f"{site.name} at {site.location}"

    def step(frame: Frame) -> None:
        block = frame.block
        dynamic = iter(uniform(frame.values[slot], frame) for slot in sizes)
        shape = tuple(next(dynamic) if extent == DYNAMIC else extent for extent in static)
        if None in shape:
            raise site.error("the threads allocate different sizes, which the interpreter does not support", frame)
        shape = tuple(int(extent) for extent in shape)
        space = "shared" if shared else "private"

        def make() -> MemRef:
            copies = 1 if shared else block.threads
            return allocate(name, space, shape, dtype, alignment, checks=block.checks, copies=copies)

        frame.values[out] = block.shared(out, make) if shared else make()

    return step


@rule("memref.dealloc")
def _dealloc(_site: Site) -> None:
    """Has no effect: memory lives as long as its block."""


@rule("memref.get_global")
def _get_global(site: Site) -> Step:
    type_ = ir.MemRefType(site.op.results[0].type)
    if not is_workgroup(type_):
        raise site.error(f"global of type {type_}: only workgroup memory is supported")
    symbol = ir.FlatSymbolRefAttr(site.op.attributes["name"]).value
    alignment = site.compiler.interpreter.global_alignment(symbol)
    dtype, shape, out = element_dtype(type_), tuple(type_.shape), site.results[0]

    def step(frame: Frame) -> None:
        block = frame.block
        frame.values[out] = block.shared(
            symbol, lambda: allocate(f"@{symbol}", "shared", shape, dtype, alignment, checks=block.checks)
        )

    return step
