"""`fuse-resolve-gathers`: accesses to gathered views become accesses to their sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, memref, nvgpu, vector

from mlirfuse.analysis.kernels import gpu_kernels, symbol
from mlirfuse.analysis.memory.buffers import is_nontemporal
from mlirfuse.dialect.async_load import DEFINITION as ASYNC_LOAD
from mlirfuse.dialect.gathered_view import DEFINITION, gather_of
from mlirfuse.distribution.threads.scalars import constant
from mlirfuse.errors import PassError
from mlirfuse.passes.gpu.view_indices import (
    Terms,
    all_of,
    erase_transposes,
    places_of,
    ranges_of,
    users_of,
    with_unit_last,
)
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.model.machine import ACCESS_WIDTHS
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import erase, nested
from mlirfuse.tiling.tiles import splat, zero

LOADS = ("memref.load", "vector.load")
COPY = "nvgpu.device_async_copy"
BY_TENSOR_MAPS = (ASYNC_LOAD.full_name, "memref.dim")
"""Ops that keep the view: tensor maps describe it (`lower-async-copies`)."""


@dataclass(frozen=True)
class FuseResolveGathers(Pass):
    """Makes one thread's loads and asynchronous copies from a `fuse.gathered_view` address the view's source.

    Requires the gpu stage. The index in the view is divided into components, which the map takes to an index of the
    source. Where a component of that index can be out of bounds, a copy fills its elements with zeros, and so does a
    load of 4, 8 or 16 aligned bytes, which becomes a `vector.maskedload`. Another load has the index 0 in place of that
    component, and selects zeros. A load of a view with `inside` becomes that check. Components, checks and divisions
    that the extents make superfluous are not emitted, nor are checks of what the indices of other loads bound. Numbers
    are added last, so that loads of overlapping windows are equal ops. An access of several elements stays inside one
    contiguous run of the source, which the view's strides promise. Copies by tensor maps keep the view.

    ```mlir
    %view = "fuse.gathered_view"(%x) {map = affine_map<(n, p, r, c) -> (n, p + r - 1, c)>, ...}
        : (memref<2x8x16xf16>) -> memref<16x48xf16, strided<[16, 1]>>
    nvgpu.device_async_copy %view[%m, %k], %slot[%i, %j], 8
    ```
    becomes
    ```mlir
    %h = arith.subi (%m mod 8 + %k / 16), 1
    %inside = arith.cmpi ult, %h, 8
    %count = arith.select %inside, 8, 0
    nvgpu.device_async_copy %x[%n, %safe, %c], %slot[%i, %j], 8, %count
    ```
    """

    name: ClassVar[str] = "fuse-resolve-gathers"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for kernel in gpu_kernels(module):
            views = [op for op in nested(kernel) if op.name == DEFINITION.full_name]
            known = _known(views)
            resolved = sum(_resolve(view, known) for view in views)
            if views:
                remarks.applied(self, f"{resolved} accesses of {symbol(kernel)} to {len(views)} gathered views", kernel)
            else:
                remarks.declined(self, "no gathered view", kernel)


Known = dict[ir.Block, dict[Terms, tuple[int, int]]]
"""For each block terms of indices of views, and between which numbers they are."""


def _known(views: Sequence[ir.Operation]) -> Known:
    """What the loads of a block say together: each stays inside of its view, and so bounds the indices of others that
    lie a number beside its own, as those of a run of neighbours, and of windows of these.
    """
    found: Known = {}
    for view in views:
        gather = gather_of(view.attributes)
        for op, axes in _accesses(view.results[0]):
            if op.name in LOADS:
                indices = dict(zip(axes, list(op.operands)[1:], strict=True))
                known = found.setdefault(op.block, {})
                for terms, (low, high) in ranges_of(gather, indices).items():
                    before = known.get(terms, (low, high))
                    known[terms] = (max(low, before[0]), min(high, before[1]))
    return found


def _resolve(view: ir.Operation, known: Known) -> int:
    """Resolves the accesses to a view, and erases the view; returns their number."""
    accesses = _accesses(view.results[0])
    for op, axes in accesses:
        with ir.InsertionPoint(op), op.location:
            _Access(view, op, axes, known.get(op.block, {})).rewrite()
        erase(op)
    erase_transposes(view.results[0])
    if not list(view.results[0].uses):
        erase(view)
    return len(accesses)


def _accesses(view: ir.Value) -> list[tuple[ir.Operation, Sequence[int]]]:
    """The ops that read a view, also through transposes, with the view's axis of each of their indices."""
    found = []
    for user, axes in users_of(view):
        if user.name in LOADS or user.name == COPY:
            found.append((user, axes))
        elif user.name not in BY_TENSOR_MAPS:
            raise PassError(f"{user.name} does not take a gathered view", where=user)
    return found


@dataclass
class _Access:
    """One access to a view.

    Attributes:
        view: the view.
        op: the load or copy.
        axes: the view's axis of each index.
        known: terms of indices, and between which numbers they are.
    """

    view: ir.Operation
    op: ir.Operation
    axes: Sequence[int]
    known: dict[Terms, tuple[int, int]]

    def rewrite(self) -> None:
        """Emits the access to the source in place of the op."""
        source = self.view.operands[0]
        gather = gather_of(self.view.attributes)
        if self.op.name == COPY:
            sizes = list(ir.DenseI32ArrayAttr(self.op.attributes["operandSegmentSizes"]))
            target, place = self.op.operands[0], list(self.op.operands)[1 : 1 + sizes[1]]
            begin = 2 + sizes[1]
            index = list(self.op.operands)[begin : begin + sizes[3]]
            count = list(self.op.operands)[begin + sizes[3]] if sizes[4] else None
        else:
            index = list(self.op.operands)[1:]
        shape = ir.MemRefType(source.type).shape
        places = places_of(gather, dict(zip(self.axes, index, strict=True)), shape, self.known)
        at, condition = [place for place, _ in places], all_of([inside for _, inside in places])
        if gather.inside:
            self.op.results[0].replace_all_uses_with(self._check(condition))
            return
        if self.op.name == COPY:
            if condition is not None:
                at = [arith.SelectOp(condition, i, constant(0)).result for i in at]
            width = ir.IntegerAttr(self.op.attributes["dstElements"]).value
            if condition is not None:
                some = constant(width) if count is None else count
                count = arith.SelectOp(condition, some, constant(0)).result
            past_l1 = True if "bypassL1" in self.op.attributes else None
            base, at = with_unit_last(source, at, width)
            new = nvgpu.DeviceAsyncCopyOp(target, place, base, at, width, srcElements=count, bypassL1=past_l1)
            for old, result in zip(self.op.results, new.operation.results, strict=True):
                old.replace_all_uses_with(result)
            return
        if condition is not None and self._can_be_predicated():
            self.op.results[0].replace_all_uses_with(self._predicated(source, [i for i, _ in places], condition))
            return
        # Each axis by itself: neighbouring windows then share what their rows, and their columns, add to the address.
        at = [i if inside is None else arith.SelectOp(inside, i, constant(0)).result for i, inside in places]
        self.op.results[0].replace_all_uses_with(self._load(source, at, condition))

    def _check(self, condition: ir.Value | None) -> ir.Value:
        """Whether all elements of a load are inside of the source: a contiguous run is as a whole."""
        i1 = ir.IntegerType.get_signless(1)
        inside = arith.ConstantOp(i1, ir.BoolAttr.get(True)).result if condition is None else condition
        type_ = self.op.results[0].type
        return vector.BroadcastOp(type_, inside).result if isinstance(type_, ir.VectorType) else inside

    def _can_be_predicated(self) -> bool:
        """Whether the access is a load of whole registers, which threads outside of the source can skip."""
        if self.op.name != "vector.load" or is_nontemporal(self.op):
            return False
        type_ = ir.VectorType(self.op.results[0].type)
        dtype, align = from_mlir(type_.element_type), ir.IntegerAttr(self.op.attributes["alignment"]).value
        width = type_.shape[0] * dtype.bytes
        return dtype.kind != "bool" and width in ACCESS_WIDTHS and align >= width

    def _predicated(self, source: ir.Value, at: list[ir.Value], condition: ir.Value) -> ir.Value:
        """A load that finds zeros where its index is none of the source."""
        type_ = ir.VectorType(self.op.results[0].type)
        buffer, at = with_unit_last(source, at, type_.shape[0])
        mask = vector.BroadcastOp(ir.VectorType.get(type_.shape, condition.type), condition).result
        element = type_.element_type
        nothing = splat(arith.ConstantOp(element, zero(element)).result, type_.shape)
        align = ir.IntegerAttr(self.op.attributes["alignment"]).value
        return vector.MaskedLoadOp(type_, buffer, at, mask, nothing, alignment=align).result

    def _load(self, source: ir.Value, at: list[ir.Value], condition: ir.Value | None) -> ir.Value:
        nontemporal = True if "nontemporal" in self.op.attributes else None
        element = ir.MemRefType(source.type).element_type
        if self.op.name == "memref.load":
            value = memref.LoadOp(source, at, nontemporal=nontemporal).result
        else:
            align = ir.IntegerAttr(self.op.attributes["alignment"]).value
            (width,) = ir.VectorType(self.op.results[0].type).shape
            buffer, at = with_unit_last(source, at, width)
            value = vector.LoadOp(self.op.results[0].type, buffer, at, nontemporal=nontemporal, alignment=align).result
        if condition is None:
            return value
        nothing = arith.ConstantOp(element, zero(element)).result
        if isinstance(value.type, ir.VectorType):
            nothing = vector.BroadcastOp(value.type, nothing).result
        return arith.SelectOp(condition, value, nothing).result
