"""`fuse-bubble-slices`: slices of computed values become ops on slices, so that they need no array in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.arithmetic.instruction_counts import instructions_of
from mlirfuse.analysis.arithmetic.ranges import Ranges as NumberRanges
from mlirfuse.analysis.contractions.contraction import product_of
from mlirfuse.analysis.kernels import body, host_functions
from mlirfuse.analysis.loops.structure import is_constant
from mlirfuse.analysis.memory.host_views import is_host_view, yields_its_input
from mlirfuse.dialect.gathered_view import DEFINITION
from mlirfuse.dialect.module_target import device_of_module, target_of_module
from mlirfuse.machine.lookup import machine_of
from mlirfuse.machine.model import MachineModel
from mlirfuse.passes.slices.sliced_ops import (
    SLICE,
    Ranges,
    SlicedOps,
    Value,
    elements_of,
    is_elementwise,
    is_rearranged,
    readers,
    slice_of,
)
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.predict.counts.instructions import ACCESS_INSTRUCTIONS
from mlirfuse.support.dtypes import element_bytes
from mlirfuse.support.rewriting import defining_op, erase_dead

ASSUMED_EXTENT = 1024
"""An extent that is known at run time; it counts alike for a value and for its slices."""


@dataclass(frozen=True)
class FuseBubbleSlices(Pass):
    """Computes slices of an elementwise result from slices of what it is computed of, where that is faster.

    Requires functions of tensor ops. A kernel writes whole arrays: a slice of a computed value takes the value to
    memory, and its readers start another kernel. The two halves of a gated linear unit, the pairs of a rotary
    embedding, neighbours in an image, and what is flipped are slices of this kind. Ops, reshapes and transposes are
    followed up to arguments, sums and products, of which slices are views. Slices that overlap compute elements twice.
    The slices of a value are replaced if the bytes that then need not move take longer than what is computed and loaded
    again, at the rates of the machine model; and not where the value is in memory anyway, as it is returned or
    multiplied. `fuse-views` folds the transposes that are left. Upstream bubbles slices up to tile ops
    (`linalg::populateBubbleUpExtractSliceOpPatterns`); this pass does so to fuse.

    ```mlir
    %h = linalg.generic ... ins(%x, %b : tensor<64x512xf32>, tensor<512xf32>) ... -> tensor<64x512xf32>
    %gate = tensor.extract_slice %h[0, 0] [64, 256] [1, 1] : tensor<64x512xf32> to tensor<64x256xf32>
    ```
    becomes
    ```mlir
    %0 = tensor.extract_slice %x[0, 0] [64, 256] [1, 1] : tensor<64x512xf32> to tensor<64x256xf32>
    %1 = tensor.extract_slice %b[0] [256] [1] : tensor<512xf32> to tensor<256xf32>
    %gate = linalg.generic ... ins(%0, %1 : tensor<64x256xf32>, tensor<256xf32>) ... -> tensor<64x256xf32>
    ```
    """

    name: ClassVar[str] = "fuse-bubble-slices"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        machine = machine_of(target_of_module(module), device_of_module(module))
        for function in host_functions(module):
            if next(_sliced(function), None) is None:
                remarks.declined(self, "no result of an elementwise op is sliced", function)
            declined: set[ir.Operation] = set()  # these stay as they are: what is rewritten later stands before them
            while (op := next((op for op in _sliced(function) if op not in declined), None)) is not None:
                reason = _rewrite(op, machine)
                if reason is None:
                    remarks.applied(self, "slices are computed from slices", function)
                    erase_dead([each for each in body(function) if each.results])
                else:
                    declined.add(op)
                    remarks.declined(self, reason, op)


def _sliced(function: ir.Operation) -> Iterator[ir.Operation]:
    """The elementwise ops whose results are sliced, or reshapes or transposes of them, the last one first."""
    return (
        op
        for op in reversed(body(function))
        if is_elementwise(op) and any(reader.name == SLICE for reader in readers(op, is_rearranged))
    )


def _rewrite(op: ir.Operation, machine: MachineModel) -> str | None:
    """Computes the slices of an op's result from slices of what it reads; returns why not, or None."""
    found = _Slices.of(op)
    if found is None:
        return "the value is in memory anyway, or its slices are"
    if (longer := found.loss(machine)) >= 0:
        return f"computing slices would take {1e6 * longer:.1f} us longer"
    found.replace()
    return None


@dataclass
class _Slices:
    """The slices of a value, and what they would be computed of.

    Attributes:
        op: the op that computes the value.
        slices: the ops that slice it, or a reshape of it, and what they slice.
        kept: slices that no op of another kernel than a product reads, which stay arrays in memory.
        ops: by elementwise op, the slices of its result that would be computed.
        leaves: by value, the slices of it that would be read.
    """

    op: ir.Operation
    slices: dict[ir.Operation, Value]
    kept: list[ir.Operation]
    ops: dict[ir.Operation, set[Ranges]] = field(default_factory=dict)
    leaves: dict[ir.Value, set[Ranges]] = field(default_factory=dict)

    @classmethod
    def of(cls, op: ir.Operation) -> _Slices | None:
        """The slices of an op's result; None where it is in memory anyway, or no kernel could compute a slice."""
        sliced = SlicedOps()
        reading = list(readers(op, is_rearranged))
        slices = {each: own for each in reading if (own := slice_of(each, op, sliced, backwards=True))}
        kept = [each for each in slices if not any(map(_computes, readers(each, is_host_view)))]
        if len(kept) == len(slices) or not all(each in slices or _computes(each) for each in reading):
            return None
        found = cls(op, slices, kept)
        open_ = list(slices.values())
        while open_:
            source, ranges = open_.pop()
            if not any(ranges) or is_constant(source):
                continue
            maker, sources = defining_op(source), sliced.sources(source, ranges)
            if maker is None or sources is None:
                found.leaves.setdefault(source, set()).add(ranges)
                continue
            if maker.name == "linalg.generic":
                if ranges in found.ops.setdefault(maker, set()):
                    continue
                found.ops[maker].add(ranges)
            open_ += sources
        return found

    def loss(self, machine: MachineModel) -> float:
        """Seconds by which slices that are computed take longer than slices of the value in memory."""
        value, slices = self.op.results[0], [each.results[0] for each in self.slices]
        before = _bytes(value) + min(_bytes(value), sum(map(_bytes, slices)))
        after = 2 * sum(_bytes(each.results[0]) for each in self.kept)
        loads = -sum(map(_elements, slices))
        also_whole = any(self._is_read_elsewhere(op) for op in self.ops)
        for leaf, read in self.leaves.items():
            whole = _bytes(leaf)
            elements = [_elements(leaf, ranges) for ranges in read]
            after += min(whole, sum(elements) * element_bytes(leaf.type))
            loads += sum(elements)
            if not (_is_argument(leaf) or all(map(yields_its_input, self.ops))):
                after += whole  # its own kernel would hand it on in registers
            elif not also_whole:
                before += whole
                loads -= _elements(leaf)
        plain, special = float(ACCESS_INSTRUCTIONS * loads), 0.0
        range_of = NumberRanges().of
        for op, computed in self.ops.items():
            count = sum(_elements(op.results[0], ranges) for ranges in computed)
            count -= 0 if self._is_read_elsewhere(op) else _elements(op.results[0])
            each = instructions_of(op, range_of)
            plain, special = plain + count * each.plain, special + count * each.special
        again = plain / machine.issue_per_sm + special / machine.special_per_sm
        return (after - before) / machine.dram_bandwidth + max(0.0, again) / machine.sms

    def replace(self) -> None:
        """Computes the slices in place of slicing the value."""
        SlicedOps().replace(self.slices)

    def _is_read_elsewhere(self, op: ir.Operation) -> bool:
        """Whether ops other than those that are computed on slices read the result of one."""
        return any(each not in self.ops and each.name != SLICE for each in readers(op, is_rearranged))


def _elements(value: ir.Value, ranges: Ranges | None = None) -> int:
    """Elements of a value, or of a slice of it."""
    return elements_of(value, ranges or (None,) * ir.RankedTensorType(value.type).rank, ASSUMED_EXTENT)


def _bytes(value: ir.Value) -> int:
    return _elements(value) * element_bytes(value.type)


def _computes(op: ir.Operation) -> bool:
    """Whether an op may be in the kernel that computes what it reads: no return, view or product."""
    return op.name == "linalg.generic" and not is_host_view(op) and product_of(op) is None


def _is_argument(value: ir.Value) -> bool:
    """Whether a value is an argument, or a view of one: its elements are in memory anyway."""
    op = defining_op(value)
    return op is None or (_is_view(op) and _is_argument(op.operands[0]))


def _is_view(op: ir.Operation) -> bool:
    return is_host_view(op) or op.name == DEFINITION.full_name
