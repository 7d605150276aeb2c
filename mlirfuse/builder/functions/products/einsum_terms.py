"""Operands of an einsum with an index for each dimension, and the ops on them: diagonals, sums, products."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from mlirfuse.builder.emission.body import convert
from mlirfuse.builder.emission.emit import pointwise, transpose
from mlirfuse.builder.extents import Dim, Extent, Shape, needs_static
from mlirfuse.builder.functions import reductions
from mlirfuse.builder.functions.casting import cast
from mlirfuse.builder.functions.diagonals import diagonal_of
from mlirfuse.builder.functions.manipulation import reshape_to
from mlirfuse.builder.functions.products.einsum_notation import Index
from mlirfuse.builder.functions.products.sums_of_products import ProductTypes, sum_of_products
from mlirfuse.builder.state import Access, TensorBase
from mlirfuse.dialect.attributes import FACTOR_SUM
from mlirfuse.support.dtypes import DType, bool_
from mlirfuse.support.rewriting import defining_op


@dataclass(frozen=True, eq=False)
class Term:
    """A tensor with an index for each dimension; None for an extent of 1, which broadcasts or is dropped."""

    tensor: TensorBase
    indices: tuple[Index | None, ...]

    @property
    def named(self) -> set[Index]:
        """The indices of dimensions that are not dropped."""
        return {index for index in self.indices if index is not None}

    def access(self, loops: Mapping[Index, int]) -> Access:
        """The loop that runs along each dimension."""
        return tuple(None if index is None else loops[index] for index in self.indices)


@dataclass(frozen=True)
class Contractor:
    """Multiplies and sums terms.

    Attributes:
        extents: the extent of each index.
        types: the dtypes of products and sums.
    """

    extents: Mapping[Index, Extent]
    types: ProductTypes

    def without_repeats(self, term: Term) -> Term:
        """The diagonal of a term that has an index twice."""
        indices = [index for index in term.indices if index is not None]
        kept = tuple(dict.fromkeys(indices))
        if len(kept) == len(indices):
            return term
        loops = {index: loop for loop, index in enumerate(kept)}
        return Term(diagonal_of(term.tensor, term.access(loops), self._shape(kept)), kept)

    def summed(self, term: Term, keep: Collection[Index]) -> Term:
        """The sum over all indices but those to keep, in the type of sums; the term itself where there are none."""
        axes = tuple(d for d, index in enumerate(term.indices) if index is not None and index not in keep)
        if not axes:
            return term
        total = reductions.sum(self._operand(term), axes, dtype=self.types.sum)
        return Term(total, tuple(index for d, index in enumerate(term.indices) if d not in axes))

    def _summed_factor(self, term: Term, keep: Collection[Index]) -> Term:
        """The same of a factor, which is marked: its products may be summed instead."""
        total = self.summed(term, keep)
        made = defining_op(total.tensor.value)
        if total is not term and made is not None and made.name == "linalg.generic":
            made.attributes[FACTOR_SUM] = ir.UnitAttr.get(made.context)
        return total

    def product(self, left: Term, right: Term, *, keep: Collection[Index], result: tuple[Index, ...] | None) -> Term:
        """The product of two terms, summed over all indices but those to keep.

        Args:
            left: one term.
            right: the other.
            keep: the indices that are not summed over.
            result: the indices of the result in order; None for any order.

        Returns:
            The result, in the type of sums where it is the last one, or no contraction has rounded it.
        """
        alone = [index for index in (*left.indices, *right.indices) if index in (left.named ^ right.named) - {*keep}]
        left, right = (
            self._summed_factor(term, {*keep, *other.named}) for term, other in ((left, right), (right, left))
        )
        own = [left.named, right.named]
        summed = [i for i in left.indices if i in own[1] and i not in keep]
        batch = [i for i in left.indices if i in own[1] and i in keep]
        rows, columns = ([i for i in t.indices if i in o - other] for t, o, other in self._sides(left, right, own))
        order = (*batch, *rows, *columns) if result is None else result
        free = [i for i in order if i not in batch]
        if free and free[-1] in rows:
            left, right, rows, columns = right, left, columns, rows
        loops = {index: loop for loop, index in enumerate((*order, *summed))}
        if alone and not left.tensor.state.dynamic_products:
            self._check_static(alone, list(order), left)
        if not summed:
            return Term(self._pointwise(left, right, loops, self._shape(order)), order)
        self._check_static(summed, list(order) if rows and columns else [], left)
        is_rounded = bool(rows and columns)
        inputs = [(self._operand(term, rounded=is_rounded), term.access(loops)) for term in (left, right)]
        total = sum_of_products(inputs, self._shape(order), len(loops), self.types)
        if result is None and self.types.operand is not None and self.types.sum.kind == "float":
            total = cast(total, self.types.operand)
        return Term(total, tuple(order))

    def permuted(self, term: Term, wanted: tuple[Index, ...]) -> Term:
        """The term with the dimensions of `wanted`, which are all that it has, in this order."""
        kept = tuple(index for index in term.indices if index is not None)
        tensor = reshape_to(self._operand(term), self._shape(kept))
        if kept == wanted:
            return Term(tensor, wanted)
        return Term(transpose(tensor, [kept.index(index) for index in wanted]), wanted)

    def _sides(
        self, left: Term, right: Term, own: list[set[Index]]
    ) -> tuple[tuple[Term, set[Index], set[Index]], tuple[Term, set[Index], set[Index]]]:
        return (left, own[0], own[1]), (right, own[1], own[0])

    def _shape(self, indices: Collection[Index]) -> Shape:
        return tuple(self.extents[index] for index in indices)

    def _operand(self, term: Term, *, rounded: bool = False) -> TensorBase:
        """A term's tensor in the dtype of operands, or in that of sums if it has that and need not be rounded."""
        dtype = term.tensor.dtype
        if dtype == bool_ or rounded or dtype != self.types.sum:
            return cast(term.tensor, self.types.of(dtype))
        return term.tensor

    def _pointwise(self, left: Term, right: Term, loops: Mapping[Index, int], shape: Shape) -> TensorBase:
        """The product of two terms element by element, in the type of sums."""
        wide, dtypes = self.types.sum, [self._rounding(term) for term in (left, right)]
        sources = [term.tensor.dtype for term in (left, right)]

        def body(*elements: ir.Value) -> ir.Value:
            a, b = (
                convert(convert(element, source, dtype), dtype, wide)
                for element, source, dtype in zip(elements, sources, dtypes, strict=True)
            )
            return (arith.MulFOp if wide.kind == "float" else arith.MulIOp)(a, b).result

        inputs = [(term.tensor, term.access(loops)) for term in (left, right)]
        return pointwise(left.tensor.state, inputs, shape, wide, body)

    def _rounding(self, term: Term) -> DType:
        dtype = term.tensor.dtype
        return dtype if dtype == self.types.sum else self.types.of(dtype)

    def _check_static(self, summed: list[Index], tiled: list[Index], left: Term) -> None:
        """Raises `NeedsStatic` for a dynamic extent that the product's schedule depends on: its tiles, the split of its
        sums over blocks, and the order of its operands in memory.
        """
        of_result = [] if left.tensor.state.dynamic_products else tiled
        for index in (*summed, *of_result):
            extent = self.extents[index]
            if isinstance(extent, Dim):
                what = "einsum over index" if index in summed else "einsum with the index"
                needs_static(extent, f"{what} {index!r}")
