"""Constant tensors with the shape of another tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirfuse.builder.array_types import array_function
from mlirfuse.builder.emission.emit import pointwise
from mlirfuse.builder.emission.operands import Operand, check_fits, dtype_argument, element, resolve
from mlirfuse.builder.functions.casting import tensor_argument
from mlirfuse.builder.source import at_user_line
from mlirfuse.builder.state import TensorBase
from mlirfuse.errors import TraceError

if TYPE_CHECKING:
    from mlirfuse.builder.tensor import Tensor


@array_function
def full_like(x: Tensor, /, fill_value: Operand, *, dtype: object = None) -> Tensor:
    """A tensor of x's shape with every element `fill_value`, of x's dtype where none is given.

    Raises:
        TraceError: the fill value is a tensor.
        DTypeError: a dtype that mlirfuse does not know, or an integer that does not fit it.
    """
    source = tensor_argument(x, "full_like")
    value = resolve(fill_value, "full_like")
    if isinstance(value, TensorBase):
        raise at_user_line(TraceError("full_like fills with a number, not a tensor", hint="use broadcast_to"))
    target = source.dtype if dtype is None else dtype_argument(dtype)
    check_fits(value, target, "full_like")
    body = lambda: element(value, target, target)  # noqa: E731
    return pointwise(source.state, [], source.shape, target, body)  # type: ignore[return-value]


@array_function
def zeros_like(x: Tensor, /, *, dtype: object = None) -> Tensor:
    """A tensor of zeros of x's shape, and of x's dtype where none is given."""
    return full_like(x, 0, dtype=dtype)


@array_function
def ones_like(x: Tensor, /, *, dtype: object = None) -> Tensor:
    """A tensor of ones of x's shape, and of x's dtype where none is given."""
    return full_like(x, 1, dtype=dtype)
