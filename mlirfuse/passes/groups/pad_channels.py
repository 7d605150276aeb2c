"""`fuse-pad-channels`: convolutions of few channels read whole lines, with zeros behind the channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import body, functions, is_tile_program
from mlirfuse.analysis.loops.structure import reduces
from mlirfuse.passes.groups.grouped_sum import RESULT, arrays, is_view, product_loops, view_of
from mlirfuse.passes.groups.lines import line_of
from mlirfuse.passes.groups.padded_sum import PaddedSum
from mlirfuse.passes.groups.sum_trials import least_microseconds, microseconds_of
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.choice.choice import RESOLUTION


@dataclass(frozen=True)
class FusePadChannels(Pass):
    """Pads the channels of gathered views to whole 128-byte lines, where the product is then clearly faster.

    Requires functions of tensor ops with static extents. A candidate is a sum of products without a batch, one operand
    of which is a gathered view that has all of its source's last axis, as a convolution's windows have all channels of
    an image, but does not fill lines with them. Tensor maps copy whole lines only. Past the end of that axis the view
    is zero, so it can be read as if there were more channels, without a copy:
    - the other operand, the filters, is copied with channels of zeros, if it has the channels;
    - otherwise they are columns of the result, as of a weight gradient, of which the first ones are copied.

    Both forms are scheduled on trial, alone. The pass declines where lines are full, where channels are a batch, and
    where the padded product is not clearly faster, as where the product is small, or has no asynchronous instruction.

    ```mlir
    %windows = "fuse.gathered_view"(%x) {basis = array<i64: 8, 56, 3, 48>, map = affine_map<(n, p, r, c) ->
        (n, p + r - 1, c)>, ...} : (tensor<8x56x48xf16>) -> tensor<8x56x3x48xf16>
    %y = linalg.generic {...} ins(%windows, %filters : tensor<8x56x3x48xf16>, tensor<96x3x48xf16>) ...
    ```
    becomes
    ```mlir
    %windows = "fuse.gathered_view"(%x) {basis = array<i64: 8, 56, 3, 64>, ...} : ... -> tensor<8x56x3x64xf16>
    %wide = "fuse.gathered_view"(%filters) {basis = array<i64: 96, 3, 64>, ...} : ... -> tensor<96x3x64xf16>
    %copy = linalg.generic {...} ins(%wide) ...
    %y = linalg.generic {...} ins(%windows, %copy : tensor<8x56x3x64xf16>, tensor<96x3x64xf16>) ...
    ```
    """

    name: ClassVar[str] = "fuse-pad-channels"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for function in functions(module):
            ops = body(function)
            if not ops or is_tile_program(function):
                continue
            reducing = [op for op in ops if op.name == "linalg.generic" and reduces(op)]
            found = [padded for op in reducing if (padded := padded_sum(op)) is not None]
            if not found:
                remarks.declined(self, "no product of a gathered view whose channels end inside of a line", function)
            for padded in found:
                self._pad(module, function, padded, remarks)

    def _pad(self, module: ir.Operation, function: ir.Operation, found: PaddedSum, remarks: Remarks) -> None:
        channels = f"{found.channels} channels"
        before, after = times(module, function, found)
        if after is None:
            remarks.declined(self, f"{channels} stay as they are: {before:.1f} us", found.op)
            return
        compared = f"{before:.1f} us as they are, {after:.1f} us padded"
        if not after * RESOLUTION < before:
            remarks.declined(self, f"{channels} stay as they are: {compared}", found.op)
            return
        found.apply()
        remarks.applied(self, f"{channels} became {found.wide}: {compared}", function)


def padded_sum(op: ir.Operation) -> PaddedSum | None:
    """How the channels of a sum of products may be padded; None where they may not."""
    loops = product_loops(op)
    if loops is None:
        return None
    axes, extents = loops
    for number in (0, 1):
        loop = _channels(arrays(op)[number], axes[number])
        if loop is None:
            continue
        line = line_of(arrays(op)[number])
        if extents[loop] % line == 0:
            continue
        others = [n for n in range(3) if n != number and loop in axes[n]]
        if len(others) != 1:
            continue
        found = PaddedSum(op, axes, extents, loop, number, others[0], -(-extents[loop] // line) * line)
        if others[0] == RESULT or found.can_widen(others[0]):
            return found
    return None


def _channels(value: ir.Value, axes: tuple[int | None, ...]) -> int | None:
    """The loop along all of the last axis of a gathered view's source, and along no other one; None without any."""
    if not is_view(value):
        return None
    source, gather = view_of(value)
    shape = ir.RankedTensorType(source.type).shape
    last = gather.map.results[-1]
    for dim, loop in enumerate(axes):
        if last == ir.AffineExpr.get_dim(dim) and gather.basis[dim] == (shape[-1],) and not gather.joins_components:
            return loop if len(gather.read_along[-1]) == 1 and _reads_alone(gather.read_along, dim) else None
    return None


def _reads_alone(read_along: tuple[tuple[int, ...], ...], dim: int) -> bool:
    return sum(dim in dims for dims in read_along) == 1


def times(module: ir.Operation, function: ir.Operation, found: PaddedSum) -> tuple[float, float | None]:
    """The predicted microseconds of a sum as it is, and padded; None where tensor cores alone would take longer."""
    before = microseconds_of(module, function, found.op)
    if least_microseconds(module, found.op, found.padded_extents) >= before:
        return before, None
    return before, microseconds_of(module, function, found.op, _pad_copy)


def _pad_copy(op: ir.Operation) -> None:
    found = padded_sum(op)
    assert found is not None  # as of the op that the copy is of
    found.apply()
