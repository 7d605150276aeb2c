"""Matrix products. Floats of 16 and 8 bits accumulate in float32; the result is rounded once."""

from __future__ import annotations

from typing import Any

from mlirfuse.builder.array_types import ArrayT
from mlirfuse.builder.emission.emit import broadcast_access
from mlirfuse.builder.emission.operands import broadcast
from mlirfuse.builder.extents import Dim, Shape, needs_static, same, show
from mlirfuse.builder.functions.casting import cast, tensor_argument
from mlirfuse.builder.functions.products.sums_of_products import product_types, sum_of_products
from mlirfuse.builder.source import at_user_line
from mlirfuse.builder.state import LEAK_HINT, Access, TensorBase
from mlirfuse.errors import DTypeError, ShapeError, TraceError


def matmul(x1: ArrayT, x2: ArrayT, /, *, dtype: object = None, precision: str | None = None) -> ArrayT:
    """The matrix product over the last dimension of x1 and the last but one of x2; leading dimensions broadcast.

    A vector on the left is a row and a vector on the right a column; the result does not have the vector's dimension.
    The accumulator is rounded to `dtype`, by default the operands' common dtype, or float32 for float8 operands.
    Products of integers are summed in `dtype` where that is a wider integer or a float. float8 operands may be of
    different float8 types. Transposes of operands are fused into the product.

    `precision` selects how operands are multiplied (`mlirfuse/support/precision.py`). For float32: `"ieee"` (default)
    as NumPy; `"3xtf32"` on the tensor cores, about as accurate, but infinities give NaN; `"tf32"` on the tensor cores
    with operands of 11 significant bits. In both tf32 modes, numbers from 2^128 - 2^116 on count as infinities. For
    float8: `"ieee"` accumulates in float32; `"fast_accum"` accumulates in the tensor cores, with about 14 bits on
    Hopper.

    Raises:
        ArgumentError: a precision that is not one of these, or not for the operands' dtype.
        ShapeError: an operand has no dimensions, the contracted extents differ, or leading ones do not broadcast.
        DTypeError: bools, or dtypes that do not mix.
        NeedsStatic: the contracted extent is dynamic, or the result's rows or columns are and the trace was started
            without `dynamic_products`.
    """
    left, right = tensor_argument(x1, "matmul"), tensor_argument(x2, "matmul")
    if left.state is not right.state:
        raise at_user_line(TraceError("matmul mixes tensors of different traces", hint=LEAK_HINT))
    if "bool" == left.dtype.kind == right.dtype.kind:
        raise at_user_line(DTypeError("matmul does not take bool", hint="use .astype(...), or mf.einsum"))
    types = product_types([left.dtype, right.dtype], dtype, precision, "matmul")
    _check_shapes(left, right)

    batch = broadcast([left.shape[:-2], right.shape[:-2]], "matmul")
    rows, columns = left.shape[-2:-1], right.shape[-1:] if right.ndim > 1 else ()
    m, n, k = len(batch), len(batch) + len(rows), len(batch) + len(rows) + len(columns)
    left_access = (*_batch_access(left.shape, batch), *((m,) if rows else ()), k)
    right_access = (*_batch_access(right.shape, batch), k, *((n,) if columns else ()))

    inputs = [(cast(left, types.of(left.dtype)), left_access), (cast(right, types.of(right.dtype)), right_access)]
    rounded: Any = cast(sum_of_products(inputs, (*batch, *rows, *columns), k + 1, types), types.result)
    return rounded


def _batch_access(shape: Shape, batch: Shape) -> Access:
    return broadcast_access(shape[:-2], batch)


def _check_shapes(left: TensorBase, right: TensorBase) -> None:
    shapes = f"{show(left.shape)} and {show(right.shape)}"
    if not left.ndim or not right.ndim:
        raise at_user_line(ShapeError(f"matmul of shapes {shapes}", hint="multiply by a scalar with *"))
    inner, outer = left.shape[-1], right.shape[-2 if right.ndim > 1 else -1]
    # The schedule depends on rows and columns too, unless the caller wants one kernel for all extents.
    tiled_by = () if left.state.dynamic_products else (*left.shape[-2:-1], *right.shape[-1:])
    for number, extent in enumerate((inner, outer, *tiled_by)):
        if isinstance(extent, Dim):
            needs_static(extent, f"matmul of {shapes}", tiled=number > 1)
    if not same(inner, outer):
        raise at_user_line(
            ShapeError(f"matmul of shapes {shapes}: {inner} columns do not match {outer} rows", hint="transpose one")
        )
