"""`einsum`: sums of products by an equation, one contraction a pair of operands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from mlirfuse.builder.array_types import ArrayT
from mlirfuse.builder.emission.operands import Constant, common_dtype, resolve, state_of
from mlirfuse.builder.extents import Extent, is_one, show, unify
from mlirfuse.builder.functions import arithmetic
from mlirfuse.builder.functions.axes import integer
from mlirfuse.builder.functions.casting import cast
from mlirfuse.builder.functions.comparisons import logical_and
from mlirfuse.builder.functions.manipulation import reshape_to
from mlirfuse.builder.functions.products.contraction_order import contraction_order, in_pairs
from mlirfuse.builder.functions.products.einsum_notation import Equation, Index, from_lists, parse
from mlirfuse.builder.functions.products.einsum_terms import Contractor, Term
from mlirfuse.builder.functions.products.sums_of_products import ProductTypes, product_types
from mlirfuse.builder.source import at_user_line
from mlirfuse.builder.state import ScalarBase, TensorBase
from mlirfuse.errors import ArgumentError, TraceError
from mlirfuse.support.dtypes import DType, bool_, float16


def einsum(
    equation: str | ArrayT,
    /,
    *operands: Any,
    dtype: object = None,
    precision: str | None = None,
    optimize: bool | str | Sequence[Any] = True,
) -> Any:
    """Multiplies operands and sums over indices, in the notation of `numpy.einsum`: `einsum("bij,bjk->bik", x, y)`.

    Each operand has a letter for every dimension. Dimensions with the same letter are traversed together, extents of 1
    broadcast, and letters that the result does not have are summed over. `...` stands for further dimensions, which
    broadcast. A letter twice in one operand is a diagonal. Without `->` the result has the letters that occur once, in
    alphabetical order, behind the ellipsis' dimensions. `einsum(x, [0, 1], y, [1, 2], [0, 2])` has ints for letters.

    Permutations are fused into the contractions that read them. Factors that have only indices of the result are
    multiplied last, into the sums. Sums are rounded once to `dtype`, by default the operands' common dtype, or float32
    for float8 operands; intermediate results between contractions have the operands' common dtype. Bools give whether
    any product is true.

    Args:
        equation: the equation, or the first operand of the alternating form.
        operands: tensors and numbers; numbers have no indices.
        dtype: of the result, as in `matmul`.
        precision: how operands are multiplied, as in `matmul`.
        optimize: the order of contractions: True for the fewest multiplications (opt_einsum's "auto"), the name of
            another algorithm of opt_einsum, False for operands from left to right, or pairs of positions as
            `numpy.einsum_path` returns them.

    Raises:
        ArgumentError: a malformed equation, another number of operands than the equation has, an index of the result
            that no operand has, an unknown precision or order.
        ShapeError: an operand has more or fewer dimensions than indices, or the extents of an index differ.
        DTypeError: dtypes that do not mix.
        NeedsStatic: a summed extent is dynamic, or another one of a product of matrices is and the trace was started
            without `dynamic_products`.
    """
    text, values = (equation, list(operands)) if isinstance(equation, str) else from_lists((equation, *operands))
    resolved = [resolve(value, "einsum") for value in values]
    parsed = parse(text, [operand.ndim if isinstance(operand, TensorBase) else 0 for operand in resolved])
    tensors = [operand for operand in resolved if isinstance(operand, TensorBase)]
    if not tensors:
        raise at_user_line(TraceError(f"einsum {text!r} has no tensor", hint="compute with numbers in Python"))
    state_of(resolved, "einsum")
    types, returned = _types(resolved, dtype, precision)
    extents = _extents(parsed, resolved)
    terms = [
        Term(operand, tuple(None if is_one(e) else i for i, e in zip(indices, operand.shape, strict=True)))
        for operand, indices in zip(resolved, parsed.operands, strict=True)
        if isinstance(operand, TensorBase)
    ]
    wanted = tuple(index for index in parsed.result if not is_one(extents[index]))
    total = _contracted(Contractor(extents, types), terms, wanted, optimize)
    numbers = [v for v, operand in zip(values, resolved, strict=True) if not isinstance(operand, TensorBase)]
    if returned == bool_:  # sums of bools are numbers, which no bool multiplies
        total, numbers = reduce(logical_and, numbers, cast(total, returned)), []
    total = cast(reduce(arithmetic.multiply, numbers, total), returned)
    return reshape_to(total, tuple(extents[index] for index in parsed.result))


def _types(
    resolved: Sequence[TensorBase | ScalarBase | Constant], dtype: object, precision: str | None
) -> tuple[ProductTypes, DType]:
    """The dtypes that products are computed in, and the result's. Bools are multiplied as float16, which no sum of
    theirs, in float32, makes zero.
    """
    dtypes = [operand.dtype for operand in resolved if isinstance(operand, TensorBase)]
    common = common_dtype(list(resolved), "einsum") if len(dtypes) < len(resolved) else None
    if all(d == bool_ for d in dtypes) and common in (None, bool_) and dtype is None:
        return product_types([float16], None, precision, "einsum"), bool_
    if common is not None:
        dtypes.append(common)
    types = product_types(dtypes, dtype, precision, "einsum")
    if types.operand is None and len(dtypes) != 2:  # only contractions take float8 operands as they are
        types = replace(types, operand=float16)
    return types, types.result


def _extents(parsed: Equation, resolved: Sequence[TensorBase | ScalarBase | Constant]) -> dict[Index, Extent]:
    """The extent of each index; raises `ShapeError` where two operands differ."""
    extents: dict[Index, Extent] = {}
    first: dict[Index, int] = {}
    for number, (operand, indices) in enumerate(zip(resolved, parsed.operands, strict=True)):
        own: dict[Index, Extent] = {}
        for dim, index in enumerate(indices):
            assert isinstance(operand, TensorBase)  # numbers have no indices
            extent = operand.shape[dim]
            within = own.setdefault(index, extent)
            if is_one(within) != is_one(extent) or (unified := unify(within, extent)) is None:
                what = f"index {index!r} has extents {within} and {extent} in operand {number}, {show(operand.shape)}"
                raise parsed.mismatch(number, dim, what, "a diagonal needs equal extents")
            own[index] = unified
            known = extents.setdefault(index, extent)
            both = unify(known, extent)
            if both is None:
                other = resolved[first[index]]
                assert isinstance(other, TensorBase)
                name = "a dimension of the ellipsis" if index.startswith(".") else f"index {index!r}"
                what = (
                    f"{name} has extent {known} in operand {first[index]}, {show(other.shape)}, "
                    f"and {extent} in operand {number}, {show(operand.shape)}"
                )
                raise parsed.mismatch(number, dim, what, "extents must be equal, or one of them 1")
            if index not in first or (is_one(known) and not is_one(extent)):
                first[index] = number
            extents[index] = both
    return extents


def _contracted(
    contractor: Contractor, terms: list[Term], wanted: tuple[Index, ...], optimize: bool | str | Sequence[Any]
) -> TensorBase:
    """The sum of products over all indices but the wanted ones, in that order, not rounded to the result's dtype."""
    terms = [contractor.without_repeats(term) for term in terms]
    terms, last = _scales_of_result(terms, wanted)
    within = tuple(index for index in wanted if any(index in term.indices for term in terms)) if last else wanted
    for pair in _pairs(terms, within, contractor.extents, optimize):
        taken = [terms[position] for position in pair]
        terms = [term for position, term in enumerate(terms) if position not in pair]
        others = {index for term in terms for index in term.named}
        terms.append(contractor.product(*taken, keep=others | set(within), result=None if terms else within))
    total = contractor.summed(terms[0], within)
    for factor in last:
        everything = {index for index in wanted if index in total.indices or index in factor.indices}
        total = contractor.product(total, factor, keep=everything, result=tuple(i for i in wanted if i in everything))
    return contractor.permuted(total, wanted).tensor


def _scales_of_result(terms: list[Term], wanted: tuple[Index, ...]) -> tuple[list[Term], list[Term]]:
    """Splits off factors that scale the result: all of their indices are indices of the others' result."""
    rest = list(terms)
    last: list[Term] = []
    for term in sorted(terms, key=lambda t: len(t.indices)):
        others = [t for t in rest if t is not term]
        free = {index for t in others for index in t.named} & set(wanted)
        sums = {index for t in others for index in t.named} - set(wanted)
        if others and sums and term.named <= free:
            rest, last = others, [*last, term]
    return rest, last


def _pairs(
    terms: Sequence[Term],
    wanted: tuple[Index, ...],
    extents: Mapping[Index, Extent],
    optimize: bool | str | Sequence[Any],
) -> list[tuple[int, int]]:
    """The positions of the two operands of each contraction; each result is appended to the operands that are left."""
    if len(terms) < 2:
        return []
    if optimize is False or (len(terms) == 2 and optimize is True):
        return [(0, 1)] + [(0, len(terms) - 1 - step) for step in range(1, len(terms) - 1)]
    if optimize is True or isinstance(optimize, str):
        algorithm = "auto" if optimize is True else optimize
        return contraction_order([frozenset(t.named) for t in terms], frozenset(wanted), extents, algorithm)
    if not isinstance(optimize, Iterable) or any(not isinstance(step, Iterable) for step in optimize):
        hint = "pass True, False, the name of an algorithm of opt_einsum, or pairs of positions"
        raise at_user_line(ArgumentError(f"einsum: optimize is {optimize!r}", hint=hint))
    steps = [[integer(p, "einsum: optimize") for p in step] for step in optimize if not isinstance(step, str)]
    return in_pairs(steps, len(terms))
