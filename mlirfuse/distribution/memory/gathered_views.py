"""The rules of views: the op is kept; a gathered or scattered view is aligned as the source's runs."""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.attributes import ALIGN
from mlirfuse.dialect.gathered_view import gather_of, promised_alignment
from mlirfuse.distribution.distributor import Distributor, rule
from mlirfuse.support.rewriting import clone
from mlirfuse.tiling.kernel_signature import default_attributes
from mlirfuse.tiling.memory import strides


@rule("fuse.gathered_view", "fuse.scattered")
def mapped_view(d: Distributor, op: ir.Operation) -> None:
    """Copies the op; `fuse-resolve-gathers` and `fuse-resolve-scatters` remove it."""
    new = clone(op, d.scalars)
    view, source = new.results[0], new.operands[0]
    d.scalars[op.results[0]] = view
    type_, gather = ir.MemRefType(source.type), gather_of(op.attributes)
    declared = (default_attributes() | d.argument_attributes.get(source, {}))[ALIGN]
    d.argument_attributes[view] = {ALIGN: promised_alignment(gather, type_, strides(type_), declared)}


@rule("memref.subview")
def subview(d: Distributor, op: ir.Operation) -> None:
    """Copies the op, of interleaved elements, which are accessed one by one."""
    d.scalars[op.results[0]] = clone(op, d.scalars).results[0]
