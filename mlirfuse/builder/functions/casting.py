"""Dtype conversion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirfuse.builder.array_types import array_function
from mlirfuse.builder.emission.body import convert
from mlirfuse.builder.emission.lift import build
from mlirfuse.builder.emission.operands import dtype_argument, resolve
from mlirfuse.builder.source import at_user_line
from mlirfuse.builder.state import TensorBase
from mlirfuse.errors import TraceError
from mlirfuse.support.dtypes import DType

if TYPE_CHECKING:
    from mlirfuse.builder.tensor import Tensor


@array_function
def astype(x: Tensor, dtype: object, /) -> Tensor:
    """Converts to another dtype, rounded to nearest; float to int truncates, anything to bool is `!= 0`.

    The same dtype gives x itself.

    Raises:
        DTypeError: a dtype that mlirfuse does not know.
        TraceError: x is no tensor.
    """
    target = dtype_argument(dtype)
    return cast(tensor_argument(x, "astype"), target)


def cast(x: TensorBase, target: DType) -> Tensor:
    """`astype` for arguments that were checked."""
    source = x.dtype
    if source == target:
        return x  # type: ignore[return-value]
    return build("astype", [x], [source], source, target, lambda element: convert(element, source, target))


def tensor_argument(x: object, function: str) -> TensorBase:
    """x, if it is a tensor; raises `TraceError` otherwise."""
    resolved = resolve(x, function)
    if not isinstance(resolved, TensorBase):
        hint = "numbers are operands of arithmetic; give an array for this argument of the fused function"
        raise at_user_line(TraceError(f"{function} takes a tensor, not {x!r}", hint=hint))
    return resolved
