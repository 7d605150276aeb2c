"""What a heuristic may know of a contraction: sizes, dtypes and alignment, no IR."""

from __future__ import annotations

from dataclasses import dataclass

from mlirfuse.support.dtypes import DType
from mlirfuse.support.kept import kept_property
from mlirfuse.support.precision import FAST_ACCUM, IEEE


@dataclass(frozen=True)
class ContractionProblem:
    """What a heuristic may know of a contraction.

    Attributes:
        batch: number of products for each batch dimension, outermost first; None where dynamic.
        m: rows of the result; None where dynamic.
        n: columns of the result; None where dynamic.
        k: elements that are summed over in steps.
        outer_k: how often, for the other dimensions that are summed over.
        element: dtype of the operands.
        accumulator: dtype of the sums.
        row_bytes: bytes to which every row of both operands is aligned, 16 at most.
        k_contiguous: for each operand whether k is the dimension in which its memory is contiguous.
        precision: how precisely operands are multiplied (`mlirfuse/support/precision.py`).
        accumulator_bytes: of an element of all reductions together, which the kernel reduces its result to, over
            several tiles.
        reduced_over: whether these are over rows, and over columns.
        errors_show: whether a result is as precise as the sums, so that it shows what tensor cores cut off of them.
        computed_from: for each operand that the kernel computes, bytes of an element of what it reads; else None.
        sources: for each operand that the kernel computes, bytes of an element of each argument that has all of its
            dimensions.
        computing: for each operand that the kernel computes, instructions that compute an element, and those of
            special-function units beside.
        residual_bytes: of an element of an argument that the epilogue reads beside every element of a result of its
            type; 0 where there is none.
        staged_arguments: bytes of an element of each other argument that the epilogue reads beside every element, and
            that a tensor map describes: `ContractionSchedule.argument_stages` are theirs.
        unmapped: whether no tensor map describes an operand, as its strides may be negative or it is a gathered view.
        step_divides: elements of k that steps copied by tensor maps must divide; 0 for any.
        batch_reads: for each batch dimension whether operands A and B have it: an operand without one is read again for
            each of its products, as all but one of several loops of m or n are batch dimensions; empty where both
            operands have all.
        scattered: for each operand whether its memory is contiguous along none of its tile's dimensions, so that each
            element of a tile lies in a sector of its own.
        one_array: whether both operands are one array, as of a Gram matrix, which is then fetched for both at once.
        arrays: operands A and operands B: of several products of this shape that share an operand, one of these is 1
            and the other is the number of products.
        epilogue: what follows the product for each of its elements; None where it is only stored, as operands are.
        hints: of each of (*batch, m, n) that is None what it is expected to be, as far as anybody says so; the others
            are None. Empty where there is no hint.
        windows: for each operand that is a gathered view, elements of its source; along m (or n) how many elements
            read memory of their own, before others read it again; and bytes of the source's rows, if lines of the view
            end past these, 0 if not; else None.
        operand_sums: sums of elements of operand A, and of operand B, along k, which the kernel makes as well.
        scattered_results: whether results are stored by threads, at positions that no tensor map describes.
        strided: of results, and of arguments that the epilogue reads beside every element, the number whose memory is
            contiguous along neither rows nor columns, so that each element is an access by itself.
        k_ends: neighbouring columns for which operand B ends at the same element along k, and the share of k up to
            there, in the mean over all columns; (0, 1.0) where it ends nowhere earlier.
    """

    batch: tuple[int | None, ...]
    m: int | None
    n: int | None
    k: int
    element: DType
    accumulator: DType
    row_bytes: int
    k_contiguous: tuple[bool, bool] = (True, True)
    precision: str = IEEE
    accumulator_bytes: int = 0
    reduced_over: tuple[bool, bool] = (False, False)
    errors_show: bool = False
    computed_from: tuple[int | None, ...] = (None, None)
    sources: tuple[tuple[int, ...], ...] = ((), ())
    computing: tuple[tuple[float, float], ...] = ((0.0, 0.0), (0.0, 0.0))
    residual_bytes: int = 0
    staged_arguments: tuple[int, ...] = ()
    unmapped: bool = False
    outer_k: int = 1
    step_divides: int = 0
    batch_reads: tuple[tuple[bool, bool], ...] = ()
    scattered: tuple[bool, bool] = (False, False)
    one_array: bool = False
    arrays: tuple[int, int] = (1, 1)
    epilogue: EpilogueWork | None = None
    hints: tuple[int | None, ...] = ()
    windows: tuple[tuple[int, int, int] | None, ...] = (None, None)
    operand_sums: tuple[int, int] = (0, 0)
    scattered_results: bool = False
    strided: tuple[int, int] = (0, 0)
    k_ends: tuple[int, float] = (0, 1.0)

    @kept_property
    def expected(self) -> tuple[int | None, ...]:
        """The extents of (*batch, m, n), or what they are expected to be; None where nobody says so."""
        extents = (*self.batch, self.m, self.n)
        hints = self.hints or (None,) * len(extents)
        return tuple(hint if extent is None else extent for extent, hint in zip(extents, hints, strict=True))

    @kept_property
    def work(self) -> EpilogueWork:
        """`epilogue`, or that of a product which is only stored, in the operands' type."""
        return self.epilogue or EpilogueWork(self.element.bytes, self.residual_bytes, int(self.residual_bytes > 0))

    @property
    def batch_reads_of(self) -> tuple[tuple[bool, bool], ...]:
        """`batch_reads`, for every batch dimension."""
        return self.batch_reads or ((True, True),) * len(self.batch)

    @property
    def summed(self) -> int:
        """Elements that are summed over."""
        return self.outer_k * self.k

    def steps(self, step: int) -> int:
        """Steps of so many elements along k, none of which crosses the end of k."""
        return self.outer_k * -(-self.k // step)

    @property
    def products(self) -> int:
        """Products of this shape, which share an operand where there are several."""
        return max(self.arrays)

    @property
    def promotes(self) -> bool:
        """Whether sums on Hopper's tensor cores, which keep too few bits of them, are carried on outside."""
        return self.element.is_float8 and self.precision != FAST_ACCUM


@dataclass(frozen=True)
class EpilogueWork:
    """What follows a contraction, for each element of the product; of several products the mean.

    Attributes:
        written: bytes of the results that have a row for each m and a column for each n.
        read: bytes of the arguments that have so too, in the mean over batch dimensions that an argument lacks.
        arguments: how many of these there are.
        instructions: of a thread, beside conversions and accesses to memory.
        special: special functions.
        results: how many results have a row for each m and a column for each n; of several products in all.
    """

    written: float
    read: float = 0.0
    arguments: float = 0.0
    instructions: float = 0.0
    special: float = 0.0
    results: int = 1
