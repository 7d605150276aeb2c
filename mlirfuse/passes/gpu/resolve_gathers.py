"""`fuse-resolve-gathers`: accesses to gathered views become accesses to their sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, memref, nvgpu, vector

from mlirfuse.analysis.kernels import gpu_kernels, symbol
from mlirfuse.analysis.memory.buffers import is_nontemporal
from mlirfuse.analysis.rolling import is_pure
from mlirfuse.dialect.async_load import DEFINITION as ASYNC_LOAD
from mlirfuse.dialect.clamped_attribute import CLAMPED
from mlirfuse.dialect.gathered_view import DEFINITION, Gather, gather_of
from mlirfuse.distribution.threads.scalars import constant
from mlirfuse.errors import PassError
from mlirfuse.passes.gpu.view_indices import (
    Place,
    Places,
    Sums,
    Terms,
    all_of,
    as_row,
    clamp_of,
    erase_transposes,
    ranges_of,
    users_of,
    with_unit_last,
)
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.model.machine import ACCESS_WIDTHS
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import defining_op, erase, nested, ops_named
from mlirfuse.tiling.memory import strides
from mlirfuse.tiling.tiles import splat, zero

LOADS = ("memref.load", "vector.load")
COPY = "nvgpu.device_async_copy"
BY_TENSOR_MAPS = (ASYNC_LOAD.full_name, "memref.dim")
"""Ops that keep the view: tensor maps describe it (`lower-async-copies`)."""

LEAVES_MEMORY = frozenset({*LOADS, DEFINITION.full_name, "memref.transpose"})
"""Ops besides pure ones that write no memory."""


@dataclass(frozen=True)
class FuseResolveGathers(Pass):
    """Makes one thread's loads and asynchronous copies from a `fuse.gathered_view` address the view's source.

    Requires the gpu stage. The index in the view is divided into components, which the map takes to an index of the
    source. Where a component of that index can be out of bounds, a copy fills its elements with zeros, and so does a
    load of 4, 8 or 16 aligned bytes, which becomes a `vector.maskedload`. Another load has the index 0 in place of that
    component, and selects zeros. A copy of a linear map addresses the source as a single row, at a place to which each
    dimension of the view adds its part: threads have those of rows, and of columns, in common. A load of a view with
    `inside` becomes that check. Components, checks and divisions that the extents make superfluous are not emitted, nor
    are checks of what the indices of other loads, or the branches around a load, bound. Numbers are added last, so that
    overlapping windows of a block have indices, and up to the next op that may write memory loads, in common: each is
    emitted once. An access of several elements stays inside one contiguous run of the source, which the view's strides
    promise. Copies by tensor
    maps keep the view.

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
    %place = arith.select %inside, ((%m / 8) * 128 + (%m mod 8) * 16) + (%k - 16), 0
    nvgpu.device_async_copy %row[%place], %slot[%i, %j], 8, %count       // of %x as a single row
    ```
    """

    name: ClassVar[str] = "fuse-resolve-gathers"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for kernel in gpu_kernels(module):
            views = ops_named(kernel, DEFINITION.full_name)
            if not views:
                remarks.declined(self, "no gathered view", kernel)
                continue
            accesses = {access.op: access for view in views for access in _accesses(view)}
            sums = Sums()
            known, runs = _known(accesses.values(), sums), _runs(accesses.values(), sums)
            blocks = {
                block: _Block(Places(known.get(block, {}), sums, runs)) for block in {op.block for op in accesses}
            }
            for op in nested(kernel):
                if op in accesses:
                    with ir.InsertionPoint(op), op.location:
                        accesses[op].rewrite(blocks[op.block])
                if op.name not in LEAVES_MEMORY and not is_pure(op):
                    for block in blocks.values():
                        block.loads.clear()
            for op in accesses:
                erase(op)
            for view in views:
                erase_transposes(view.results[0])
                if not list(view.results[0].uses):
                    erase(view)
            remarks.applied(
                self, f"{len(accesses)} accesses of {symbol(kernel)} to {len(views)} gathered views", kernel
            )


Known = dict[ir.Block, dict[Terms, tuple[int, int]]]
"""For each block terms of indices of views, and between which numbers they are."""


def _known(accesses: Iterable[_Access], sums: Sums) -> Known:
    """What the loads of a block say together: each stays inside of its view, and so bounds the indices of others that
    lie a number beside its own, as those of a run of neighbours, and of windows of these.
    """
    found: Known = {}
    for access in accesses:
        if access.op.name in LOADS:
            indices = list(access.op.operands)[1:]
            known = found.setdefault(access.op.block, {})
            along = dict(zip(access.axes, indices, strict=True))
            ranges = ranges_of(access.gather, [sums[along[axis]] for axis in range(len(along))])
            _narrow(known, ranges)
    for block, known in found.items():
        for condition in _holding(block):
            _narrow(known, _bounds_of(condition, sums))
    return found


def _narrow(known: dict[Terms, tuple[int, int]], ranges: Mapping[Terms, tuple[int, int]]) -> None:
    """Adds what is known of terms of indices to what was known of them."""
    for terms, (low, high) in ranges.items():
        before = known.get(terms, (low, high))
        known[terms] = (max(low, before[0]), min(high, before[1]))


def _holding(block: ir.Block) -> Iterator[ir.Value]:
    """The conditions that hold in a block, as those of the branches that it is in."""
    owner = block.owner.operation
    while owner.name != "gpu.func":
        if owner.name == "scf.if" and block == owner.regions[0].blocks[0]:
            open_ = [owner.operands[0]]
            while open_:
                condition = open_.pop()
                maker = defining_op(condition)
                if maker is not None and maker.name == "arith.andi":
                    open_ += list(maker.operands)
                else:
                    yield condition
        block, owner = owner.block, owner.block.owner.operation


def _bounds_of(condition: ir.Value, sums: Sums) -> dict[Terms, tuple[int, int]]:
    """Between which numbers the terms of an index are that is below a number, taken as unsigned."""
    maker = defining_op(condition)
    is_bound = maker is not None and maker.name == "arith.cmpi" and isinstance(maker.operands[0].type, ir.IndexType)
    if maker is None or not is_bound or ir.IntegerAttr(maker.attributes["predicate"]).value != arith.CmpIPredicate.ult:
        return {}
    (terms, number), (others, bound) = (sums[operand] for operand in maker.operands)
    return {} if others or not terms else {terms: (-number, bound - 1 - number)}


def _runs(accesses: Iterable[_Access], sums: Sums) -> set[Terms]:
    """Terms of indices that loads clamp with several numbers: those of neighbours, whose windows may overlap."""
    found: dict[Terms, set[int]] = {}
    for index in {index for access in accesses if access.op.name in LOADS for index in list(access.op.operands)[1:]}:
        if (clamp := clamp_of(index, sums)) is not None:
            terms, number, _ = clamp
            found.setdefault(terms, set()).add(number)
    return {terms for terms, numbers in found.items() if len(numbers) > 1}


@dataclass
class _Block:
    """What accesses of one block have in common, which is emitted in front of the first of them.

    Attributes:
        places: where the accesses lie in their sources.
        conditions: whether several conditions hold.
        checked: indices that are 0 where a condition does not hold.
        loads: what loads found, by all that tells loads apart, since the last op that may write memory.
    """

    places: Places
    conditions: dict[tuple[ir.Value | None, ...], ir.Value | None] = field(default_factory=dict)
    checked: dict[Place, ir.Value] = field(default_factory=dict)
    loads: dict[tuple[object, ...], ir.Value] = field(default_factory=dict)

    def all_of(self, conditions: tuple[ir.Value | None, ...]) -> ir.Value | None:
        """Whether all conditions hold; None if that is known."""
        if conditions not in self.conditions:
            self.conditions[conditions] = all_of(conditions)
        return self.conditions[conditions]

    def inside(self, place: Place) -> ir.Value:
        """An index that is 0 where it is none of the source."""
        index, condition = place
        if condition is None:
            return index
        if place not in self.checked:
            self.checked[place] = arith.SelectOp(condition, index, constant(0)).result
        return self.checked[place]


def _accesses(view: ir.Operation) -> Iterator[_Access]:
    """The ops that read a view, also through transposes."""
    gather = gather_of(view.attributes)
    for user, axes in users_of(view.results[0]):
        if user.name in LOADS or user.name == COPY:
            yield _Access(view.operands[0], gather, user, axes)
        elif user.name not in BY_TENSOR_MAPS:
            raise PassError(f"{user.name} does not take a gathered view", where=user)


@dataclass
class _Access:
    """One access to a view.

    Attributes:
        source: of the view.
        gather: how the view's elements lie in the source.
        op: the load or copy.
        axes: the view's axis of each index.
    """

    source: ir.Value
    gather: Gather
    op: ir.Operation
    axes: Sequence[int]

    def rewrite(self, block: _Block) -> None:
        """Emits the access to the source in place of the op, whose uses it replaces."""
        shape = self.gather.inside or ir.MemRefType(self.source.type).shape
        if self.op.name == COPY:
            self._copy(block, shape)
            return
        index = dict(zip(self.axes, list(self.op.operands)[1:], strict=True))
        type_ = self.op.results[0].type
        width = ir.VectorType(type_).shape[0] if isinstance(type_, ir.VectorType) else 1
        places = block.places.of(self.gather, index, shape, width)
        condition = block.all_of(tuple([inside for _, inside in places]))
        if self.gather.inside:
            key: tuple[object, ...] = (condition, self.op.results[0].type)
            make = partial(self._check, condition)
        elif condition is not None and self._can_be_predicated():
            at = [i for i, _ in places]
            key = (self.source, *at, condition, *self._kind())
            make = partial(self._predicated, at, condition)
        else:
            # Each axis by itself: neighbouring windows then share what their rows, and their columns, add to the
            # address.
            at = [block.inside(place) for place in places]
            key = (self.source, *at, condition, *self._kind())
            make = partial(self._load, at, condition)
        if key not in block.loads:
            block.loads[key] = make()
            maker = defining_op(block.loads[key])
            if any(index in block.places.clamped for index, _ in places) and maker is not None and maker.name in LOADS:
                maker.attributes[CLAMPED] = ir.UnitAttr.get()
        self.op.results[0].replace_all_uses_with(block.loads[key])

    def _copy(self, block: _Block, shape: Sequence[int]) -> None:
        """Emits a copy from the source, which fills elements outside of it with zeros."""
        operands = list(self.op.operands)
        sizes = list(ir.DenseI32ArrayAttr(self.op.attributes["operandSegmentSizes"]))
        begin = 2 + sizes[1]
        target, place, index = operands[0], operands[1 : begin - 1], operands[begin : begin + sizes[3]]
        count = operands[begin + sizes[3]] if sizes[4] else None
        along = dict(zip(self.axes, index, strict=True))
        places = block.places.of(self.gather, along, shape)
        condition = block.all_of(tuple([inside for _, inside in places]))
        width = ir.IntegerAttr(self.op.attributes["dstElements"]).value
        steps = [step for step in strides(ir.MemRefType(self.source.type)) if step is not None]
        offset = block.places.offset(self.gather, along, steps) if len(steps) == len(shape) else None
        at = [i for i, _ in places] if offset is None else [offset]
        if condition is not None:
            zeros = [arith.ConstantOp(i.type, ir.IntegerAttr.get(i.type, 0)).result for i in at]
            at = [arith.SelectOp(condition, i, nothing).result for i, nothing in zip(at, zeros, strict=True)]
            some = constant(width) if count is None else count
            count = arith.SelectOp(condition, some, constant(0)).result
        past_l1 = True if "bypassL1" in self.op.attributes else None
        if offset is None:
            base, at = with_unit_last(self.source, at, width)
        else:
            base, at = as_row(self.source, steps), [arith.IndexCastOp(ir.IndexType.get(), at[0]).result]
        new = nvgpu.DeviceAsyncCopyOp(target, place, base, at, width, srcElements=count, bypassL1=past_l1)
        for old, result in zip(self.op.results, new.operation.results, strict=True):
            old.replace_all_uses_with(result)

    def _kind(self) -> tuple[object, ...]:
        """What loads of one address may differ in."""
        attributes = self.op.attributes
        known = [attributes.get(name, None) for name in ("nontemporal", "alignment")]
        return (self.op.name, self.op.results[0].type, *known)

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

    def _predicated(self, at: list[ir.Value], condition: ir.Value) -> ir.Value:
        """A load that finds zeros where its index is none of the source."""
        type_ = ir.VectorType(self.op.results[0].type)
        buffer, at = with_unit_last(self.source, at, type_.shape[0])
        mask = vector.BroadcastOp(ir.VectorType.get(type_.shape, condition.type), condition).result
        element = type_.element_type
        nothing = splat(arith.ConstantOp(element, zero(element)).result, type_.shape)
        align = ir.IntegerAttr(self.op.attributes["alignment"]).value
        return vector.MaskedLoadOp(type_, buffer, at, mask, nothing, alignment=align).result

    def _load(self, at: list[ir.Value], condition: ir.Value | None) -> ir.Value:
        source = self.source
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
