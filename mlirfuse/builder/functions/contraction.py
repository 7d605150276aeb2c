"""Matrix products. Floats of 16 and 8 bits accumulate in float32; the result is rounded once."""

from __future__ import annotations

from typing import Any

from mlir import ir
from mlir.dialects import arith

from mlirfuse.builder.array_types import ArrayT
from mlirfuse.builder.emission.body import convert
from mlirfuse.builder.emission.emit import broadcast_access, contraction
from mlirfuse.builder.emission.operands import broadcast, dtype_argument, promote
from mlirfuse.builder.extents import Dim, Shape, needs_static, same, show
from mlirfuse.builder.functions.casting import cast, tensor_argument
from mlirfuse.builder.source import at_user_line
from mlirfuse.builder.state import LEAK_HINT, Access, TensorBase
from mlirfuse.dialect.attributes import PRECISION
from mlirfuse.errors import ArgumentError, DTypeError, ShapeError, TraceError
from mlirfuse.support.dtypes import DType, float32
from mlirfuse.support.precision import IEEE, PRECISIONS


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
    common = promote(left.dtype, right.dtype, "matmul")
    if common.kind == "bool":
        raise at_user_line(DTypeError("matmul does not take bool", hint="use .astype(...)"))
    both_float8 = left.dtype.is_float8 and right.dtype.is_float8
    if common.is_float8 and not both_float8:  # integers would be rounded to three bits
        pair = f"{left.dtype.name} with {right.dtype.name}"
        raise at_user_line(DTypeError(f"matmul: cannot mix {pair}", hint="cast one side with .astype(...)"))
    result = dtype_argument(dtype) if dtype is not None else float32 if both_float8 else common
    wide = float32 if both_float8 else _accumulator(common, result)
    exactness = _precision(precision, left.dtype if both_float8 else common)
    _check_shapes(left, right)

    batch = broadcast([left.shape[:-2], right.shape[:-2]], "matmul")
    rows, columns = left.shape[-2:-1], right.shape[-1:] if right.ndim > 1 else ()
    m, n, k = len(batch), len(batch) + len(rows), len(batch) + len(rows) + len(columns)
    left_access = (*_batch_access(left.shape, batch), *((m,) if rows else ()), k)
    right_access = (*_batch_access(right.shape, batch), k, *((n,) if columns else ()))

    def body(a: ir.Value, b: ir.Value, accumulator: ir.Value) -> ir.Value:
        operands = [convert(x, dtype, wide) for x, dtype in zip((a, b), operand_dtypes, strict=True)]
        if wide.kind == "float":
            product = arith.MulFOp(*operands)
            if exactness != IEEE:
                product.operation.attributes[PRECISION] = ir.StringAttr.get(exactness)
            return arith.AddFOp(accumulator, product.result).result
        return arith.AddIOp(accumulator, arith.MulIOp(*operands).result).result

    operand_dtypes = (left.dtype, right.dtype) if both_float8 else (common, common)
    inputs = [(cast(left, operand_dtypes[0]), left_access), (cast(right, operand_dtypes[1]), right_access)]
    accumulator = contraction(inputs, (*batch, *rows, *columns), k + 1, wide, body)
    rounded: Any = cast(accumulator, result)
    return rounded


def _accumulator(dtype: DType, result: DType) -> DType:
    """What products of a dtype are summed in: integers in the result's dtype where that holds more, as in NumPy."""
    if dtype.kind == "int" and result.kind == "int":
        return result if result.bits > dtype.bits else dtype
    wide = result if dtype.kind == "int" and result.kind == "float" and not result.is_float8 else dtype
    return float32 if wide.kind == "float" and wide.bits == 16 else wide


def _precision(name: str | None, dtype: DType) -> str:
    """The precision that was asked for, or the default; raises `ArgumentError`."""
    if name is None:
        return IEEE
    known = [p for p, of in PRECISIONS.items() if of is None or dtype.name.startswith(of)]
    if name not in known:
        raise at_user_line(
            ArgumentError(f"matmul of {dtype.name} has no precision {name!r}", hint=f"one of {', '.join(known)}")
        )
    return name


def _batch_access(shape: Shape, batch: Shape) -> Access:
    return broadcast_access(shape[:-2], batch)


def _check_shapes(left: TensorBase, right: TensorBase) -> None:
    shapes = f"{show(left.shape)} and {show(right.shape)}"
    if not left.ndim or not right.ndim:
        raise at_user_line(ShapeError(f"matmul of shapes {shapes}", hint="multiply by a scalar with *"))
    inner, outer = left.shape[-1], right.shape[-2 if right.ndim > 1 else -1]
    # The schedule depends on rows and columns too, unless the caller wants one kernel for all extents.
    tiled_by = () if left.state.dynamic_products else (*left.shape[-2:-1], *right.shape[-1:])
    for extent in (inner, outer, *tiled_by):
        if isinstance(extent, Dim):
            needs_static(extent, f"matmul of {shapes}")
    if not same(inner, outer):
        raise at_user_line(
            ShapeError(f"matmul of shapes {shapes}: {inner} columns do not match {outer} rows", hint="transpose one")
        )
