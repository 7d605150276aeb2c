"""Types of the public functions: an array of some framework in, one of the same type out.

While a function is traced, its arguments are `Tensor`s. The function's author annotates parameters with the type of the
arrays that callers pass, such as `torch.Tensor`, `np.ndarray` or `mf.Tensor`; type checkers propagate this type through
calls of mlirfuse's functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

import numpy as np

if TYPE_CHECKING:
    from mlirfuse.builder.tensor import Tensor

Number = bool | int | float
ScalarLike = Number | np.generic


class Array(Protocol):
    """Any array with a shape and a dtype: traced tensors, and the arrays of NumPy, CuPy, PyTorch and JAX."""

    @property
    def shape(self) -> Any:
        """One extent a dimension."""

    @property
    def dtype(self) -> Any:
        """The element type."""


ArrayT = TypeVar("ArrayT", bound=Array)
_P = ParamSpec("_P")


class UnaryFunction(Protocol):
    """An elementwise function of one array."""

    def __call__(self, x: ArrayT, /) -> ArrayT: ...


class BinaryFunction(Protocol):
    """An elementwise function of two arrays, or of one and a number."""

    @overload
    def __call__(self, a: ArrayT, b: ArrayT | ScalarLike, /) -> ArrayT: ...

    @overload
    def __call__(self, a: ScalarLike, b: ArrayT, /) -> ArrayT: ...


class ArrayFunction(Protocol[_P]):
    """A function of an array and of parameters such as axes."""

    def __call__(self, x: ArrayT, /, *args: _P.args, **kwargs: _P.kwargs) -> ArrayT: ...


def array_function(function: Callable[Concatenate[Tensor, _P], Tensor]) -> ArrayFunction[_P]:
    """Decorator: types a function of traced tensors as a function of any array; returns the function itself."""
    return cast("ArrayFunction[_P]", function)
