"""`fuse-scatter-results`: products write their results where a kernel behind them would put the elements."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import symbol
from mlirfuse.dialect.gathered_view import DEFINITION
from mlirfuse.passes.kernels.host import callee, launches
from mlirfuse.passes.kernels.kernel_pair import Names, merge_pairs
from mlirfuse.passes.kernels.scattered_pair import ScatteredPair
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import defining_op


@dataclass(frozen=True)
class FuseScatterResults(Pass):
    """Moves an elementwise kernel that reads a product's result through a gathered view into the product's kernel.

    Requires kernels on tensors, called by a host function. Such a view puts the results of a batch of products in
    order, as the residue classes of a strided convolution's data gradient. The elementwise ops run on the tile of the
    product, as an epilogue; what else they read is gathered, and a `fuse.scatter` puts their results in the view's
    order. Where the view is zero between the product's elements, as where filters are smaller than the stride, the ops
    run on zeros too, up to 15 for each element. The pass declines where the view's other elements are not the
    product's, each one once (`analysis/memory/inverse_gathers.py`); where the view is read by several kernels, or the
    result through other views as well; where its reader is not elementwise, or returns or reads something in an order
    that no affine map gives; where an op would not fit into the product's epilogue; and where neighbours of a row are
    apart in the result, or its runs of contiguous elements are shorter than an access of 16 bytes. Where fusion is off
    (`fuse.operation`), only kernels of one operation are fused.

    ```mlir
    %0 = call @f_0(%dy, %w) : (...) -> tensor<4x6272x64xf16>
    %1 = tensor.expand_shape %0 [[0, 1], [2, 3, 4], [5]] ... into tensor<2x2x8x28x28x64xf16>
    %2 = "fuse.gathered_view"(%1) {map = affine_map<(n, h, w, c) -> (h mod 2, w mod 2, n, h floordiv 2,
                                                                     w floordiv 2, c)>, ...} : ...
    %dx = call @f_1(%2, %bias) : (tensor<8x56x56x64xf16>, tensor<64xf16>) -> tensor<8x56x56x64xf16>
    ```
    becomes
    ```mlir
    %dx = call @f_0(%dy, %w, %bias) : (...) -> tensor<8x56x56x64xf16>
    func.func private @f_0(...) {
      ...
      %dx = "fuse.scatter"(%biased) {map = affine_map<(a, b, n, h, w, c) -> (n, h * 2 + a, w * 2 + b, c)>, ...}
          : (tensor<4x6272x64xf16>) -> tensor<8x56x56x64xf16>
      return %dx
    }
    ```
    """

    name: ClassVar[str] = "fuse-scatter-results"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        merge_pairs(module, _pairs, ScatteredPair.obstacle, partial(self._report, remarks))

    def _report(self, remarks: Remarks, pair: ScatteredPair, reason: str | None) -> None:
        first, second = symbol(pair.first), symbol(pair.second)
        if reason is None:
            remarks.applied(self, f"{first} stores its results in the order of {second}", pair.second_call)
        else:
            remarks.declined(self, f"{first} stays apart from {second}: {reason}", pair.second_call)


def _pairs(module: ir.Operation, function: ir.Operation, declined: Collection[Names]) -> Iterator[ScatteredPair]:
    """Pairs of a launch and one that reads a view of the first one's result, without declined ones."""
    known = launches(module, function)
    for second, kernel in known.items():
        for operand in second.operands:
            view = defining_op(operand)
            if view is None or view.name != DEFINITION.full_name:
                continue
            reshape = defining_op(view.operands[0])
            if reshape is not None and reshape.name != "tensor.expand_shape":
                reshape = None
            first = defining_op((view if reshape is None else reshape).operands[0])
            if first in known and (callee(first), callee(second)) not in declined:
                yield ScatteredPair(first, second, known[first], kernel, view, reshape)
