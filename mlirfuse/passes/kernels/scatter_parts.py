"""`fuse-scatter-parts`: kernels whose results are joined store them one beside the other."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import symbol
from mlirfuse.dialect.gathered_view import DEFINITION
from mlirfuse.passes.kernels.host import callee, launches
from mlirfuse.passes.kernels.joined_parts import JoinedParts
from mlirfuse.passes.kernels.kernel_pair import Names, merge_pairs
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import defining_op


@dataclass(frozen=True)
class FuseScatterParts(Pass):
    """Merges a kernel that only joins results of another one into that.

    Requires kernels on tensors, called by a host function. The second kernel selects, at each place, the element of the
    part that the place is in (`mf.concat`, `mf.stack`), and may compute a function of each element behind that, such as
    a cast, in another order of dimensions. The first one then computes the function of each of its results, and a
    `fuse.scatter` puts these where they belong. The pass declines where parts have other shapes, or come from
    elsewhere; where the second kernel computes with more than the parts; where the first one computes a matrix product,
    or the parts of fewer dimensions than it has; and where neighbours of a part are apart in the whole, but for
    interleaved parts, whose neighbours a thread stores together (`fuse-merge-stores`). Where fusion is off, only
    kernels of one operation are fused.

    ```mlir
    %0:2 = call @f_0(%x) : (...) -> (tensor<64x32xf32>, tensor<64x32xf32>)
    %1 = "fuse.gathered_view"(%0#0) {map = affine_map<(i, j) -> (i, j)>, ...} : ... -> tensor<64x64xf32>
    %2 = "fuse.gathered_view"(%0#1) {map = affine_map<(i, j) -> (i, j - 32)>, ...} : ... -> tensor<64x64xf32>
    %y = call @f_1(%1, %2, ...) : (...) -> tensor<64x64xbf16>
    ```
    becomes
    ```mlir
    %y = call @f_0(%x) : (...) -> tensor<64x64xbf16>
    func.func private @f_0(...) {
      ...
      %y = "fuse.scatter"(%left, %right) {map = affine_map<(i, j, part) -> (i, j + part * 32)>, sources = array<i64: 2>,
          ...} : (tensor<64x32xbf16>, tensor<64x32xbf16>) -> tensor<64x64xbf16>
      return %y
    }
    ```
    """

    name: ClassVar[str] = "fuse-scatter-parts"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        merge_pairs(module, joined_pairs, JoinedParts.obstacle, partial(self._report, remarks))

    def _report(self, remarks: Remarks, pair: JoinedParts, reason: str | None) -> None:
        first, second = symbol(pair.first), symbol(pair.second)
        if reason is None:
            remarks.applied(self, f"{first} stores its results where {second} put them", pair.second_call)
        else:
            remarks.declined(self, f"{first} stays apart from {second}: {reason}", pair.second_call)


def joined_pairs(module: ir.Operation, function: ir.Operation, declined: Collection[Names]) -> Iterator[JoinedParts]:
    """Pairs of a launch and one that reads only views, of its results among others; without declined ones."""
    known = launches(module, function)
    for second, kernel in known.items():
        views = [defining_op(operand) for operand in second.operands]
        if not views or any(view is None or view.name != DEFINITION.full_name for view in views):
            continue
        for view in views:
            assert view is not None  # checked above
            maker = defining_op(view.operands[0])
            if maker is not None and maker.name == "tensor.expand_shape":
                maker = defining_op(maker.operands[0])
            if maker in known and (callee(maker), callee(second)) not in declined:
                yield JoinedParts(maker, second, known[maker], kernel)
