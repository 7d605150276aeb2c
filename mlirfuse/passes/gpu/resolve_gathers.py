"""`fuse-resolve-gathers`: accesses to gathered views become accesses to their sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, memref, nvgpu, vector

from mlirfuse.analysis.kernels import gpu_kernels, symbol
from mlirfuse.dialect.async_load import DEFINITION as ASYNC_LOAD
from mlirfuse.dialect.gathered_view import DEFINITION, Gather, gather_of
from mlirfuse.distribution.threads.scalars import add, constant, multiply
from mlirfuse.errors import PassError
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.affine_expressions import bounds, operands
from mlirfuse.support.rewriting import erase, nested
from mlirfuse.tiling.memory import permuted, strides
from mlirfuse.tiling.tiles import zero

LOADS = ("memref.load", "vector.load")
COPY = "nvgpu.device_async_copy"
BY_TENSOR_MAPS = (ASYNC_LOAD.full_name, "memref.dim")
"""Ops that keep the view: tensor maps describe it (`lower-async-copies`)."""


@dataclass(frozen=True)
class FuseResolveGathers(Pass):
    """Makes one thread's loads and asynchronous copies from a `fuse.gathered_view` address the view's source.

    Requires the gpu stage. The index in the view is divided into components, which the map takes to an index of the
    source. Where a component of that index can be out of bounds, a copy fills its elements with zeros, and a load reads
    the source's first elements in place of them and selects zeros. Components, checks and divisions that the extents
    make superfluous are not emitted. An access of several elements stays inside one contiguous run of the source, which
    the view's strides promise. Copies by tensor maps keep the view.

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
            resolved = sum(_resolve(view) for view in views)
            if views:
                remarks.applied(self, f"{resolved} accesses of {symbol(kernel)} to {len(views)} gathered views", kernel)
            else:
                remarks.declined(self, "no gathered view", kernel)


def _resolve(view: ir.Operation) -> int:
    """Resolves the accesses to a view, and erases the view; returns their number."""
    rank = ir.MemRefType(view.results[0].type).rank
    accesses = _accesses(view.results[0], list(range(rank)))
    for op, axes in accesses:
        with ir.InsertionPoint(op), op.location:
            _Access(view, op, axes).rewrite()
        erase(op)
    for op in reversed(_transposes(view.results[0])):
        erase(op)
    if not list(view.results[0].uses):
        erase(view)
    return len(accesses)


def _transposes(value: ir.Value) -> list[ir.Operation]:
    found = []
    for use in value.uses:
        user = use.owner.operation
        if user.name == "memref.transpose":
            found += [user, *_transposes(user.results[0])]
    return found


def _accesses(value: ir.Value, axes: Sequence[int]) -> list[tuple[ir.Operation, Sequence[int]]]:
    """The ops that read a view, also through transposes, with the view's axis of each of their indices."""
    found: list[tuple[ir.Operation, Sequence[int]]] = []
    for use in list(value.uses):
        user = use.owner.operation
        if user.name == "memref.transpose":
            order = [e.position for e in ir.AffineMapAttr(user.attributes["permutation"]).value.results]
            found += _accesses(user.results[0], [axes[n] for n in order])
        elif user.name in LOADS or user.name == COPY:
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
        inside: conditions under which the index is one of the source.
    """

    view: ir.Operation
    op: ir.Operation
    axes: Sequence[int]
    inside: list[ir.Value] = field(default_factory=list)

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
        at = self._source_index(gather, index, ir.MemRefType(source.type))
        condition = reduce(lambda a, b: arith.AndIOp(a, b).result, self.inside) if self.inside else None
        if condition is not None:
            at = [arith.SelectOp(condition, i, constant(0)).result for i in at]
        if self.op.name == COPY:
            width = ir.IntegerAttr(self.op.attributes["dstElements"]).value
            if condition is not None:
                some = constant(width) if count is None else count
                count = arith.SelectOp(condition, some, constant(0)).result
            past_l1 = True if "bypassL1" in self.op.attributes else None
            base, at = _with_unit_last(source, at, width)
            new = nvgpu.DeviceAsyncCopyOp(target, place, base, at, width, srcElements=count, bypassL1=past_l1)
            for old, result in zip(self.op.results, new.operation.results, strict=True):
                old.replace_all_uses_with(result)
            return
        self.op.results[0].replace_all_uses_with(self._load(source, at, condition))

    def _load(self, source: ir.Value, at: list[ir.Value], condition: ir.Value | None) -> ir.Value:
        nontemporal = True if "nontemporal" in self.op.attributes else None
        element = ir.MemRefType(source.type).element_type
        if self.op.name == "memref.load":
            value = memref.LoadOp(source, at, nontemporal=nontemporal).result
        else:
            align = ir.IntegerAttr(self.op.attributes["alignment"]).value
            (width,) = ir.VectorType(self.op.results[0].type).shape
            buffer, at = _with_unit_last(source, at, width)
            value = vector.LoadOp(self.op.results[0].type, buffer, at, nontemporal=nontemporal, alignment=align).result
        if condition is None:
            return value
        nothing = arith.ConstantOp(element, zero(element)).result
        if isinstance(value.type, ir.VectorType):
            nothing = vector.BroadcastOp(value.type, nothing).result
        return arith.SelectOp(condition, value, nothing).result

    def _source_index(self, gather: Gather, index: list[ir.Value], source: ir.MemRefType) -> list[ir.Value]:
        """The index in the source; adds to `inside` what must hold for it."""
        by_axis: dict[int, ir.Value] = dict(zip(self.axes, index, strict=True))
        type_ = ir.IntegerType.get_signless(gather.index_bits)
        components: list[ir.Value] = []
        for axis, group in enumerate(gather.basis):
            components += _components(by_axis[axis], group, type_)
        extents = gather.components
        result = []
        for expr, extent in zip(gather.map.results, source.shape, strict=True):
            low, high = bounds(expr, extents)
            value = _emit(expr, components, extents, type_)
            if low < 0 or high >= extent:
                self.inside.append(arith.CmpIOp(arith.CmpIPredicate.ult, value, _number(extent, type_)).result)
            result.append(arith.IndexCastOp(ir.IndexType.get(), value).result)
        return result


def _with_unit_last(source: ir.Value, at: list[ir.Value], width: int) -> tuple[ir.Value, list[ir.Value]]:
    """A view of the source whose contiguous axis, as `Gather.unit` takes it, is the last one; and the index in it.

    An access that goes on in the next row is one of the source as a single row.
    """
    type_ = ir.MemRefType(source.type)
    steps = strides(type_)
    if 1 not in steps:
        return source, at
    if type_.shape[steps.index(1)] % width:
        return _as_row(source, [step or 0 for step in steps], at)
    axis = steps.index(1)
    order = [*(n for n in range(len(steps)) if n != axis), axis]
    return permuted(source, order), [at[n] for n in order]


def _as_row(source: ir.Value, steps: Sequence[int], at: list[ir.Value]) -> tuple[ir.Value, list[ir.Value]]:
    """The source as one row, whose strides are known, and the index in it."""
    type_ = ir.MemRefType(source.type)
    size = 1 + sum((extent - 1) * step for extent, step in zip(type_.shape, steps, strict=True))
    row = ir.MemRefType.get([size], type_.element_type, ir.StridedLayoutAttr.get(0, [1]), type_.memory_space)
    cast = memref.ReinterpretCastOp(row, source, [], [], [], [0], [size], [1]).result
    place = reduce(add, [multiply(index, step) for index, step in zip(at, steps, strict=True)])
    return cast, [place]


def _number(value: int, type_: ir.Type) -> ir.Value:
    return arith.ConstantOp(type_, ir.IntegerAttr.get(type_, value)).result


def _components(index: ir.Value, group: Sequence[int], type_: ir.Type) -> list[ir.Value]:
    """The components of an index of the view, the last one fastest, as integers of a type."""
    rest = arith.IndexCastOp(type_, index).result
    found: list[ir.Value] = []
    for position in reversed(range(len(group))):
        extent = group[position]
        if extent == 1:
            found.insert(0, _number(0, type_))
            continue
        if not any(n > 1 for n in group[:position]):
            found.insert(0, rest)
            rest = _number(0, type_)
            continue
        found.insert(0, arith.RemUIOp(rest, _number(extent, type_)).result)
        rest = arith.DivUIOp(rest, _number(extent, type_)).result
    return found


def _emit(expr: ir.AffineExpr, components: Sequence[ir.Value], extents: Sequence[int], type_: ir.Type) -> ir.Value:
    """An expression's value as an integer of a type; divisions round down also where the dividend is negative."""
    if isinstance(expr, ir.AffineConstantExpr):
        return _number(ir.AffineConstantExpr(expr).value, type_)
    if isinstance(expr, ir.AffineDimExpr):
        return components[ir.AffineDimExpr(expr).position]
    left, right = operands(expr)
    a = _emit(left, components, extents, type_)
    if isinstance(expr, ir.AffineAddExpr | ir.AffineMulExpr):
        b = _emit(right, components, extents, type_)
        build = arith.AddIOp if isinstance(expr, ir.AffineAddExpr) else arith.MulIOp
        value: ir.Value = build(a, b).result
        return value
    by = ir.AffineConstantExpr(right).value
    low, _ = bounds(left, extents)
    steps = -(low // by) if low < 0 else 0  # makes the dividend positive
    shifted = arith.AddIOp(a, _number(steps * by, type_)).result if steps else a
    if isinstance(expr, ir.AffineModExpr):
        found: ir.Value = arith.RemUIOp(shifted, _number(by, type_)).result
        return found
    quotient: ir.Value = arith.DivUIOp(shifted, _number(by, type_)).result
    return arith.SubIOp(quotient, _number(steps, type_)).result if steps else quotient
