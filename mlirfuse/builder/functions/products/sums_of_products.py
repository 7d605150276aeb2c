"""Sums of products of two tensors over some indices, as `matmul` and `einsum` emit them: one `linalg.generic`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from mlirfuse.builder.emission.body import convert
from mlirfuse.builder.emission.emit import contraction
from mlirfuse.builder.emission.operands import dtype_argument, promote
from mlirfuse.builder.extents import Shape
from mlirfuse.builder.source import at_user_line
from mlirfuse.builder.state import Access, TensorBase
from mlirfuse.dialect.attributes import PRECISION
from mlirfuse.errors import ArgumentError, DTypeError
from mlirfuse.support.dtypes import DType, float32
from mlirfuse.support.precision import IEEE, PRECISIONS


@dataclass(frozen=True)
class ProductTypes:
    """The dtypes of a sum of products.

    Attributes:
        operand: what the operands are rounded to before they are multiplied; None for float8 operands as they are.
        sum: what products are summed in.
        result: what the sum is rounded to.
        precision: how operands are multiplied, a key of `PRECISIONS`.
    """

    operand: DType | None
    sum: DType
    result: DType
    precision: str

    def of(self, operand: DType) -> DType:
        """What an operand of that dtype is rounded to."""
        return self.operand or operand


def product_types(operands: Sequence[DType], dtype: object, precision: str | None, function: str) -> ProductTypes:
    """The dtypes of a sum of products of operands of these dtypes, none of them bool.

    Args:
        operands: the operands' dtypes.
        dtype: the result's as the user gave it; None for the operands' common one, or float32 for float8 operands.
        precision: as the user gave it; None for the default.
        function: the user's function, for messages.

    Raises:
        ArgumentError: a precision that is not one of `PRECISIONS`, or not for the operands' dtype.
        DTypeError: dtypes that do not mix.
    """
    only_float8 = all(operand.is_float8 for operand in operands)
    common = operands[0]
    for other in operands[1:]:
        common = promote(common, other, function)
    if common.is_float8 and not only_float8:  # integers would be rounded to three bits
        pair = " with ".join(dict.fromkeys(operand.name for operand in operands))
        raise at_user_line(DTypeError(f"{function}: cannot mix {pair}", hint="cast one side with .astype(...)"))
    result = dtype_argument(dtype) if dtype is not None else float32 if only_float8 else common
    wide = float32 if only_float8 else accumulator(common, result)
    exactness = _precision(precision, operands[0] if only_float8 else common, function)
    return ProductTypes(None if only_float8 else common, wide, result, exactness)


def sum_of_products(
    operands: Sequence[tuple[TensorBase, Access]], shape: Shape, loops: int, types: ProductTypes
) -> TensorBase:
    """The sums, in the dtype `types.sum`, of products of two operands over all loops behind those of `shape`."""
    dtypes = [tensor.dtype for tensor, _ in operands]

    def body(a: ir.Value, b: ir.Value, total: ir.Value) -> ir.Value:
        left, right = (convert(x, dtype, types.sum) for x, dtype in zip((a, b), dtypes, strict=True))
        if types.sum.kind != "float":
            return arith.AddIOp(total, arith.MulIOp(left, right).result).result
        product = arith.MulFOp(left, right)
        if types.precision != IEEE:
            product.operation.attributes[PRECISION] = ir.StringAttr.get(types.precision)
        return arith.AddFOp(total, product.result).result

    return contraction(operands, shape, loops, types.sum, body)


def accumulator(dtype: DType, result: DType) -> DType:
    """What products of a dtype are summed in: integers in the result's dtype where that holds more, as in NumPy."""
    if dtype.kind == "int" and result.kind == "int":
        return result if result.bits > dtype.bits else dtype
    wide = result if dtype.kind == "int" and result.kind == "float" and not result.is_float8 else dtype
    return float32 if wide.kind == "float" and wide.bits == 16 else wide


def _precision(name: str | None, dtype: DType, function: str) -> str:
    """The precision that was asked for, or the default; raises `ArgumentError`."""
    if name is None:
        return IEEE
    known = [p for p, of in PRECISIONS.items() if of is None or dtype.name.startswith(of)]
    if name not in known:
        raise at_user_line(
            ArgumentError(f"{function} of {dtype.name} has no precision {name!r}", hint=f"one of {', '.join(known)}")
        )
    return name
