"""`fuse-merge-groups`: convolutions of narrow groups become convolutions of fewer groups, with zeros between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import body, functions, is_tile_program
from mlirfuse.analysis.loops.structure import reduces
from mlirfuse.passes.groups.grouped_sum import RESULT, GroupedSum, arrays, grouped_sum, is_view
from mlirfuse.passes.groups.lines import line_of
from mlirfuse.passes.groups.merged_groups import MergedGroups
from mlirfuse.passes.groups.sum_trials import least_microseconds, microseconds_of
from mlirfuse.passmanager.base import Pass, Remarks

Merge = tuple[int, int]
"""How many groups become one, and the elements of gathered views of which each of these has whole runs."""


@dataclass(frozen=True)
class FuseMergeGroups(Pass):
    """Merges neighbouring products of a batch, of which one array becomes block-diagonal, where that is faster.

    Requires functions of tensor ops with static extents. A candidate is a sum of products over a batch of groups, such
    as C[m, g, n] = sum over k of A[m, g, k] * B[g, n, k], where two of the arrays have the group and a loop of the
    third one side by side in memory: of a convolution's images the group and its channels. The third array is the
    filters, forward and in a data gradient, and the result, in a weight gradient. Of `f` groups as one,
    - filters are copied to a block-diagonal array, `f` times as large, with zeros off the diagonal;
    - a weight gradient is computed with the blocks off the diagonal, and those on it are copied;
    - images and results are only viewed with other extents, so that rows of tiles are full lines.
    Merged groups of a gathered view may have whole 128-byte lines, which begin with their own elements: those of the
    next groups behind them meet zeros. Filters that are a gathered view may just be copied, group by group.

    The merge with the least predicted time of all its kernels is chosen, by trials of the sum alone. The pass declines
    where neighbouring groups are no neighbours in memory, as of heads that are the outer dimension; where a group has
    one channel or filter; where no operand has windows, so that the op may be any batch of products, whose infinities
    are to stay apart; and where no merge is faster. Given schedules are those of the kernels of merged groups.

    ```mlir
    %windows = "fuse.gathered_view"(%x) {map = affine_map<(n, p, g, r, c) -> (n, p + r - 1, g * 4 + c)>, ...}
    %w = tensor.expand_shape %filters ... : tensor<128x3x4xf16> into tensor<32x4x3x4xf16>
    %y = linalg.generic {iterator_types = [...]} ins(%windows, %w) outs(... : tensor<8x56x32x4xf32>) ...
    %result = tensor.collapse_shape %y [[0], [1], [2, 3]] : ... into tensor<8x56x128xf32>
    ```
    becomes
    ```mlir
    %blocks = "fuse.gathered_view"(%w) {ranks = array<i64: 1, 2, 1, 2>,
        map = affine_map<(g, e, k, r, f, c) -> (g * 16 + e + (e - f) * 32, k, r, c)>, ...}
        : (tensor<32x4x3x4xf16>) -> tensor<2x64x3x64xf16>
    %diagonal = linalg.generic {...} ins(%blocks) ...                            // a copy
    %windows = "fuse.gathered_view"(%x) {map = affine_map<(n, p, g, r, c) -> (n, p + r - 1, g * 64 + c)>, ...}
    %y = linalg.generic {iterator_types = [...]} ins(%windows, %diagonal) outs(... : tensor<8x56x2x64xf32>) ...
    %result = tensor.collapse_shape %y [[0], [1], [2, 3]] : ... into tensor<8x56x128xf32>
    ```

    Products with the zeros are zero if numbers are finite: an infinite x or dy makes NaN in the groups beside its own.
    """

    name: ClassVar[str] = "fuse-merge-groups"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for function in functions(module):
            ops = body(function)
            if not ops or is_tile_program(function):
                continue
            batches = 0
            for op in [op for op in ops if op.name == "linalg.generic" and reduces(op)]:
                found = grouped_sum(op)
                batches += found != ""
                if isinstance(found, str):
                    if found:
                        remarks.declined(self, found, op)
                else:
                    self._merge(module, function, found, remarks)
            if not batches:
                remarks.declined(self, "no sum of products over groups", function)

    def _merge(self, module: ir.Operation, function: ir.Operation, found: GroupedSum, remarks: Remarks) -> None:
        merge, times = fastest(module, function, found)
        if merge is None:
            remarks.declined(self, f"{found.groups} groups stay as they are: {times}", found.op)
            return
        MergedGroups(found, *merge).apply()
        merged, run = merge
        copied = "" if found.block == RESULT else ", with an operand copied"
        count = f"became {found.groups // merged}" if merged > 1 else f"stay apart{copied}"
        lines = f", in runs of {run} elements" if run > 1 else ""
        remarks.applied(self, f"{found.groups} groups {count}{lines}: {times}", function)


def merges(found: GroupedSum) -> Iterator[Merge]:
    """How the groups of a sum may be merged: to one line of a gathered view or less, and to whole lines.

    Of merged groups that end in the same line only the widest have whole lines: the narrower ones copy as much for
    fewer results.
    """
    operands = list(enumerate(arrays(found.op)[:RESULT]))
    views = [(found.inner[number], value) for number, value in operands if number in found.inner and is_view(value)]
    copied = any(number == found.block and is_view(value) for number, value in operands)
    divisors = [n for n in range(1, found.groups + 1) if found.groups % n == 0]
    for merged, wider in zip(divisors, [*divisors[1:], None], strict=True):
        lines = [(found.extents[loop], line_of(value)) for loop, value in views]
        narrow = all(merged * extent <= line or merged * extent % line == 0 for extent, line in lines)
        if narrow and (merged > 1 or copied):
            yield merged, 1
        for extent, line in lines:
            ends = -(-merged * extent // line) * line
            if merged * extent < ends and (wider is None or wider * extent > ends):
                yield merged, line


def _merge_copy(merge: Merge, op: ir.Operation) -> None:
    alone = grouped_sum(op)
    assert isinstance(alone, GroupedSum)  # as the original is
    MergedGroups(alone, *merge).apply()


def fastest(module: ir.Operation, function: ir.Operation, found: GroupedSum) -> tuple[Merge | None, str]:
    """The merge with the least predicted time, None for the groups as they are; and the times in words."""
    times: dict[Merge | None, float] = {None: microseconds_of(module, function, found.op)}
    for merge in merges(found):
        if least_microseconds(module, found.op, MergedGroups(found, *merge).extents) < min(times.values()):
            times[merge] = microseconds_of(module, function, found.op, partial(_merge_copy, merge))
    best = min(times, key=lambda merge: times[merge])
    rest = [time for merge, time in times.items() if merge is not None]
    merged = f", {min(rest):.1f} us merged" if rest else ""
    return best, f"{times[None]:.1f} us as they are{merged}"
