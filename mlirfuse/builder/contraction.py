"""Matrix products. float16 and bfloat16 accumulate in float32; the result is rounded once, to the common dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlir import ir
from mlir.dialects import arith

from mlirfuse.builder.body import convert
from mlirfuse.builder.casting import cast, tensor_argument
from mlirfuse.builder.emit import broadcast_access, contraction
from mlirfuse.builder.extents import Dim, Shape, needs_static, same, show
from mlirfuse.builder.operands import broadcast, dtype_argument, promote
from mlirfuse.builder.source import at_user_line
from mlirfuse.builder.state import Access, TensorBase
from mlirfuse.dtypes import DType, float32
from mlirfuse.errors import DTypeError, ShapeError, TraceError

if TYPE_CHECKING:
    from mlirfuse.builder.tensor import Tensor


def matmul(x1: Tensor, x2: Tensor, /, *, dtype: object = None) -> Tensor:
    """The matrix product over the last dimension of x1 and the last but one of x2; leading dimensions broadcast.

    A vector on the left is a row, one on the right a column, and its dimension is missing from the result. `dtype` is
    what the accumulator is rounded to; without it the operands' common dtype. Transposes of operands cost nothing.

    Raises:
        ShapeError: an operand has no dimensions, the contracted extents differ, or leading ones do not broadcast.
        DTypeError: bools, or dtypes that do not mix.
        NeedsStatic: the contracted extent, or that of the result's rows or columns, is dynamic.
    """
    left, right = tensor_argument(x1, "matmul"), tensor_argument(x2, "matmul")
    if left.state is not right.state:
        raise at_user_line(TraceError("matmul mixes tensors of different traces"))
    common = promote(left.dtype, right.dtype, "matmul")
    if common.kind == "bool":
        raise at_user_line(DTypeError("matmul does not take bool", hint="use .astype(...)"))
    result = common if dtype is None else dtype_argument(dtype)
    wide = _accumulator(common)
    _check_shapes(left, right)

    batch = broadcast([left.shape[:-2], right.shape[:-2]], "matmul")
    rows, columns = left.shape[-2:-1], right.shape[-1:] if right.ndim > 1 else ()
    m, n, k = len(batch), len(batch) + len(rows), len(batch) + len(rows) + len(columns)
    left_access = (*_batch_access(left.shape, batch), *((m,) if rows else ()), k)
    right_access = (*_batch_access(right.shape, batch), k, *((n,) if columns else ()))

    def body(a: ir.Value, b: ir.Value, total: ir.Value) -> ir.Value:
        factors = convert(a, common, wide), convert(b, common, wide)
        if wide.kind == "float":
            return arith.AddFOp(total, arith.MulFOp(*factors).result).result
        return arith.AddIOp(total, arith.MulIOp(*factors).result).result

    inputs = [(cast(left, common), left_access), (cast(right, common), right_access)]
    total = contraction(inputs, (*batch, *rows, *columns), k + 1, wide, body)
    return cast(total, result)


def _accumulator(dtype: DType) -> DType:
    return float32 if dtype.kind == "float" and dtype.bits == 16 else dtype


def _batch_access(shape: Shape, batch: Shape) -> Access:
    return broadcast_access(shape[:-2], batch)


def _check_shapes(left: TensorBase, right: TensorBase) -> None:
    shapes = f"{show(left.shape)} and {show(right.shape)}"
    if not left.ndim or not right.ndim:
        raise at_user_line(ShapeError(f"matmul of shapes {shapes}", hint="multiply by a scalar with *"))
    inner, outer = left.shape[-1], right.shape[-2 if right.ndim > 1 else -1]
    # Rows and columns too: tiles, splits and the instruction are chosen by them.
    for extent in (inner, outer, *left.shape[-2:-1], *right.shape[-1:]):
        if isinstance(extent, Dim):
            needs_static(extent, f"matmul of {shapes}")
    if not same(inner, outer):
        raise at_user_line(
            ShapeError(f"matmul of shapes {shapes}: {inner} columns do not meet {outer} rows", hint="transpose one")
        )
