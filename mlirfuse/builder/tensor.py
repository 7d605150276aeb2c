"""The values that a traced function computes with."""

# ruff: noqa: N802 (T and mT are the array API's names)

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from mlirfuse.builder.counterparts import instead_of_attribute
from mlirfuse.builder.errors import ControlFlowError, MissingAttributeError, UnsupportedError
from mlirfuse.builder.extents import Extent, needs_static_symbols
from mlirfuse.builder.functions import casting, indexing, manipulation, reductions
from mlirfuse.builder.functions.axes import Axes
from mlirfuse.builder.functions.indexing import Index
from mlirfuse.builder.functions.reductions import Axis
from mlirfuse.builder.operators import Operators
from mlirfuse.builder.source import at_user_line
from mlirfuse.builder.state import ScalarBase, TensorBase
from mlirfuse.errors import ShapeError


class Scalar(Operators, ScalarBase):
    """A Python number that is passed at run time and adopts the dtype of tensor operands."""

    __slots__ = ()

    def _needs_data(self, what: str, hint: str) -> ControlFlowError:
        """Raises `NeedsStatic` where extents become numbers of the compilation, and the value with them."""
        if self.symbols:
            needs_static_symbols(self.symbols, f"using {self.name or 'a number computed from an extent'} for {what}")
        return super()._needs_data(what, hint)

    def _traced(self) -> str:
        return f"{self.name!r}, a number that is passed at run time," if self.name else "a number of run time"

    def __getitem__(self, key: object) -> NoReturn:
        raise self._has_no("dimensions to index")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # a protocol that Python or NumPy asks for
            raise AttributeError(name)
        raise self._has_no(repr(name))

    def _has_no(self, what: str) -> MissingAttributeError:
        hint = "numbers are operands of arithmetic; give an array for this argument of the fused function"
        return at_user_line(MissingAttributeError(f"{self._traced()} has no {what}", hint=hint))


class Tensor(Operators, TensorBase):
    """A traced tensor. It has a shape and a dtype and no data; operations on it build IR.

    Attributes:
        shape: an int for each static dimension; for each dynamic one an object that `reshape` accepts, and that raises
            `NeedsStatic` if its number is needed.
        dtype: the element type.
    """

    __slots__ = ()

    @property
    def T(self) -> Tensor:
        """The transpose of a matrix; raises `ShapeError` for other ranks."""
        if self.ndim != 2:
            raise at_user_line(
                ShapeError(f".T is for 2 dimensions, not {self.ndim}", hint="use .mT or mf.permute_dims")
            )
        return self.mT

    @property
    def mT(self) -> Tensor:
        """`matrix_transpose`."""
        return manipulation.matrix_transpose(self)

    def astype(self, dtype: object) -> Tensor:
        """See `mlirfuse.builder.functions.casting.astype`."""
        return casting.astype(self, dtype)

    def reshape(self, *shape: Extent | Sequence[Extent]) -> Tensor:
        """`reshape(2, 3)` or `reshape((2, 3))`; see `mlirfuse.builder.functions.manipulation.reshape`."""
        return manipulation.reshape(self, shape[0] if len(shape) == 1 else shape)  # type: ignore[arg-type]

    def transpose(self, *axes: int | Sequence[int]) -> Tensor:
        """`permute_dims`; without axes, the dimensions in reverse order."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return manipulation.permute_dims(self, order or range(self.ndim)[::-1])  # type: ignore[arg-type]

    def squeeze(self, axis: Axes) -> Tensor:
        """See `mlirfuse.builder.functions.manipulation.squeeze`."""
        return manipulation.squeeze(self, axis)

    def sum(self, axis: Axis = None, *, dtype: object = None, keepdims: bool = False) -> Tensor:
        """See `mlirfuse.builder.functions.reductions.sum`."""
        return reductions.sum(self, axis, dtype=dtype, keepdims=keepdims)

    def prod(self, axis: Axis = None, *, dtype: object = None, keepdims: bool = False) -> Tensor:
        """See `mlirfuse.builder.functions.reductions.prod`."""
        return reductions.prod(self, axis, dtype=dtype, keepdims=keepdims)

    def mean(self, axis: Axis = None, *, dtype: object = None, keepdims: bool = False) -> Tensor:
        """See `mlirfuse.builder.functions.reductions.mean`."""
        return reductions.mean(self, axis, dtype=dtype, keepdims=keepdims)

    def max(self, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
        """See `mlirfuse.builder.functions.reductions.max`."""
        return reductions.max(self, axis, keepdims=keepdims)

    def min(self, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
        """See `mlirfuse.builder.functions.reductions.min`."""
        return reductions.min(self, axis, keepdims=keepdims)

    def var(self, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
        """See `mlirfuse.builder.functions.reductions.var`."""
        return reductions.var(self, axis, correction=correction, keepdims=keepdims)

    def std(self, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
        """See `mlirfuse.builder.functions.reductions.std`."""
        return reductions.std(self, axis, correction=correction, keepdims=keepdims)

    def any(self, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
        """See `mlirfuse.builder.functions.reductions.any`."""
        return reductions.any(self, axis, keepdims=keepdims)

    def all(self, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
        """See `mlirfuse.builder.functions.reductions.all`."""
        return reductions.all(self, axis, keepdims=keepdims)

    def __getitem__(self, key: Index | tuple[Index, ...]) -> Tensor:
        """See `mlirfuse.builder.functions.indexing.index`: a view."""
        return indexing.index(self, key)

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise at_user_line(
            UnsupportedError(
                "elements of a traced tensor cannot be assigned", hint="use mf.where, which makes a new one"
            )
        )

    def __delitem__(self, key: object) -> NoReturn:
        raise at_user_line(UnsupportedError("elements of a traced tensor cannot be deleted"))

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # a protocol that Python or NumPy asks for
            raise AttributeError(name)
        hint = instead_of_attribute(name)
        raise at_user_line(MissingAttributeError(f"a traced tensor has no {name!r}", hint=hint))

    def __len__(self) -> NoReturn:
        raise at_user_line(ControlFlowError("len() of a traced tensor", hint="use x.shape[0]"))

    def __iter__(self) -> NoReturn:
        raise at_user_line(
            ControlFlowError("a traced tensor cannot be iterated over", hint="use operations on whole tensors")
        )
