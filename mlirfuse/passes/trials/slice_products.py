"""`fuse-slice-products`: a product of which only slices are read becomes a product for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.contractions.contraction import product_of
from mlirfuse.analysis.kernels import body, host_functions
from mlirfuse.analysis.memory.host_views import extents_of
from mlirfuse.dialect.attributes import OPERATION
from mlirfuse.passes.slices.sliced_ops import SlicedOps, Value, behind, is_elementwise, is_reshape, readers, slice_of
from mlirfuse.passes.trials.trial import compare
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import erase_dead


@dataclass(frozen=True)
class FuseSliceProducts(Pass):
    """Multiplies slices of an operand in place of slicing a product, where the kernels then clearly take less time.

    Requires functions of tensor ops. Gates and values of a packed projection, or the gates of a recurrent cell, are
    slices of one product: its kernel writes them all, and another one reads them. Products of slices of the packed
    weights, which are views, share the other operand and a kernel (`fuse-shared-operands`), and what reads the slices
    is its epilogue. Elementwise ops between the product and the slices are followed (`fuse-bubble-slices`). Slices that
    overlap would be multiplied twice, and are left alone. The kernels of both forms, up to the ops that read the
    slices, are scheduled on trial.

    Attributes:
        always: whether slices are multiplied whatever is predicted.

    ```mlir
    %h = linalg.generic ... ins(%x, %w : tensor<64x512xbf16>, tensor<512x2048xbf16>) ... -> tensor<64x2048xf32>
    %gate = tensor.extract_slice %h[0, 0] [64, 1024] [1, 1] : tensor<64x2048xf32> to tensor<64x1024xf32>
    %up = tensor.extract_slice %h[0, 1024] [64, 1024] [1, 1] : tensor<64x2048xf32> to tensor<64x1024xf32>
    ```
    becomes
    ```mlir
    %0 = tensor.extract_slice %w[0, 0] [512, 1024] [1, 1] : tensor<512x2048xbf16> to tensor<512x1024xbf16>
    %1 = tensor.extract_slice %w[0, 1024] [512, 1024] [1, 1] : tensor<512x2048xbf16> to tensor<512x1024xbf16>
    %gate = linalg.generic ... ins(%x, %0 : tensor<64x512xbf16>, tensor<512x1024xbf16>) ... -> tensor<64x1024xf32>
    %up = linalg.generic ... ins(%x, %1 : tensor<64x512xbf16>, tensor<512x1024xbf16>) ... -> tensor<64x1024xf32>
    ```
    """

    name: ClassVar[str] = "fuse-slice-products"
    always: bool = False

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for function in host_functions(module):
            products = [op for op in body(function) if _is_product(op)]
            found = _joined([sliced for op in products if (sliced := _SlicedProducts.of(op)) is not None])
            if not found:
                remarks.declined(self, "no product is read in slices that do not overlap", function)
            for sliced in found:
                times = f"{len(sliced.slices)} slices of {len(sliced.products)} product(s)"
                if not self.always:
                    trial = compare(module, function, sliced.ops, sliced.replace_copies)
                    times += (
                        f" are predicted to take {trial.after:.1f} us by themselves, {trial.before:.1f} us together"
                    )
                    if not trial.gains:
                        remarks.declined(self, times, sliced.products[0])
                        continue
                remarks.applied(self, times, sliced.products[0])
                sliced.replace()
            erase_dead([op for op in body(function) if op.results])


@dataclass(frozen=True)
class _SlicedProducts:
    """Products of which only slices are read, the same of all: one, or several that are added up.

    Attributes:
        products: the ops that multiply.
        slices: the ops that slice their results, or what is computed of these, and what they slice.
        between: the elementwise ops between the products and the slices.
        behind: the ops that read the slices, and may be their product's epilogue.
    """

    products: list[ir.Operation]
    slices: dict[ir.Operation, Value]
    between: list[ir.Operation]
    behind: list[ir.Operation]

    @property
    def ops(self) -> list[ir.Operation]:
        """All of them, with the reshapes between them."""
        computed = [*self.products, *self.between, *self.slices, *self.behind]
        return [*computed, *(view for op in computed for view in _views(op))]

    @classmethod
    def of(cls, product: ir.Operation) -> _SlicedProducts | None:
        """The slices of a product; None where other ops read it too, or slices overlap."""
        slices: dict[ir.Operation, Value] = {}
        between: list[ir.Operation] = []
        open_ = [product]
        while open_:
            op = open_.pop()
            for reader in readers(op):
                found = slice_of(reader, op, SlicedOps())
                if found is not None:
                    slices[reader] = found
                elif not is_elementwise(reader):
                    return None
                elif reader not in between:
                    between.append(reader)
                    open_.append(reader)
        elements = sum(prod(extent or 1 for extent in extents_of(op.results[0])) for op in slices)
        if len(slices) < 2 or elements > prod(extent or 1 for extent in extents_of(product.results[0])):
            return None
        return cls([product], slices, between, behind(slices, is_elementwise))

    def replace(self) -> None:
        """Multiplies for each slice."""
        _replace(self.slices, self.products)

    def replace_copies(self, copies: dict[ir.Operation, ir.Operation]) -> None:
        """The same of copies of the ops."""
        values = {old: new for op, copy in copies.items() for old, new in zip(op.results, copy.results, strict=True)}
        slices = {copies[op]: (values[v], ranges) for op, (v, ranges) in self.slices.items()}
        _replace(slices, [copies[op] for op in self.products])


def _joined(found: Sequence[_SlicedProducts]) -> list[_SlicedProducts]:
    """The products that have slices in common, together."""
    joined: list[_SlicedProducts] = []
    for each in found:
        other = next((o for o in joined if not o.slices.keys().isdisjoint(each.slices)), None)
        if other is None:
            joined.append(each)
            continue
        other.products.extend(each.products)
        other.slices.update(each.slices)
        for own, more in ((other.between, each.between), (other.behind, each.behind)):
            own.extend(op for op in more if op not in own)
    return joined


def _replace(slices: dict[ir.Operation, Value], products: Sequence[ir.Operation]) -> None:
    SlicedOps(lambda op: op in products or is_elementwise(op)).replace(slices)


def _is_product(op: ir.Operation) -> bool:
    """Whether an op multiplies and sums; not where fusion is off."""
    return OPERATION not in op.attributes and product_of(op) is not None


def _views(op: ir.Operation) -> list[ir.Operation]:
    """The reshapes of an op's result."""
    views = [use.owner.operation for use in op.results[0].uses if is_reshape(use.owner.operation)]
    return [*views, *(behind for view in views for behind in _views(view))]
