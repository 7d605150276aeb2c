"""Python's operators on traced values, and errors for the protocols that would need the values' data."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from mlirfuse.builder.counterparts import instead_of_function
from mlirfuse.builder.emission.lift import FUNCTIONS
from mlirfuse.builder.emission.operands import Operand
from mlirfuse.builder.errors import ControlFlowError, UnsupportedError
from mlirfuse.builder.source import at_user_line

if TYPE_CHECKING:
    from mlirfuse.builder.tensor import Tensor

    # Type checkers see the functions return their arguments' types, and the methods return tensors.
    arithmetic: Any
    comparisons: Any
    contraction: Any
    powers: Any
    shifts: Any
else:
    from mlirfuse.builder.functions import arithmetic, comparisons, powers, shifts
    from mlirfuse.builder.functions.products import contraction

CONSTANT = "bind it by functools.partial, or pass it in a tuple: numbers are passed at run time, tuples are constants"
"""The hint of errors about Python code that needs a traced value as an index."""


def _refused(what: str, hint: str | None = None) -> Callable[..., NoReturn]:
    """A method for an operator that cannot be traced."""

    def refuse(self: object, *_: object) -> NoReturn:
        raise at_user_line(UnsupportedError(f"{what} of a traced value is not supported", hint=hint))

    return refuse


class Operators:
    """Arithmetic, comparison and logic operators; protocols that need a number raise `ControlFlowError`."""

    __slots__ = ()

    def __add__(self, other: Operand) -> Tensor:
        return arithmetic.add(self, other)

    def __radd__(self, other: Operand) -> Tensor:
        return arithmetic.add(other, self)

    def __sub__(self, other: Operand) -> Tensor:
        return arithmetic.subtract(self, other)

    def __rsub__(self, other: Operand) -> Tensor:
        return arithmetic.subtract(other, self)

    def __mul__(self, other: Operand) -> Tensor:
        return arithmetic.multiply(self, other)

    def __rmul__(self, other: Operand) -> Tensor:
        return arithmetic.multiply(other, self)

    def __truediv__(self, other: Operand) -> Tensor:
        return arithmetic.divide(self, other)

    def __rtruediv__(self, other: Operand) -> Tensor:
        return arithmetic.divide(other, self)

    def __floordiv__(self, other: Operand) -> Tensor:
        return arithmetic.floor_divide(self, other)

    def __rfloordiv__(self, other: Operand) -> Tensor:
        return arithmetic.floor_divide(other, self)

    def __mod__(self, other: Operand) -> Tensor:
        return arithmetic.remainder(self, other)

    def __rmod__(self, other: Operand) -> Tensor:
        return arithmetic.remainder(other, self)

    def __pow__(self, other: Operand) -> Tensor:
        return powers.pow(self, other)

    def __rpow__(self, other: Operand) -> Tensor:
        return powers.pow(other, self)

    def __neg__(self) -> Tensor:
        return arithmetic.negative(self)

    def __pos__(self) -> Tensor:
        return self  # type: ignore[return-value]

    def __abs__(self) -> Tensor:
        return arithmetic.abs(self)

    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]
        return comparisons.equal(self, other)

    def __ne__(self, other: object) -> Tensor:  # type: ignore[override]
        return comparisons.not_equal(self, other)

    def __lt__(self, other: Operand) -> Tensor:
        return comparisons.less(self, other)

    def __le__(self, other: Operand) -> Tensor:
        return comparisons.less_equal(self, other)

    def __gt__(self, other: Operand) -> Tensor:
        return comparisons.greater(self, other)

    def __ge__(self, other: Operand) -> Tensor:
        return comparisons.greater_equal(self, other)

    __hash__ = None  # type: ignore[assignment]  # == returns a tensor, so that traced values cannot be keys

    def __and__(self, other: Operand) -> Tensor:
        return comparisons.bitwise_and(self, other)

    def __rand__(self, other: Operand) -> Tensor:
        return comparisons.bitwise_and(other, self)

    def __or__(self, other: Operand) -> Tensor:
        return comparisons.bitwise_or(self, other)

    def __ror__(self, other: Operand) -> Tensor:
        return comparisons.bitwise_or(other, self)

    def __xor__(self, other: Operand) -> Tensor:
        return comparisons.bitwise_xor(self, other)

    def __rxor__(self, other: Operand) -> Tensor:
        return comparisons.bitwise_xor(other, self)

    def __invert__(self) -> Tensor:
        return comparisons.bitwise_invert(self)

    def __lshift__(self, other: Operand) -> Tensor:
        return shifts.bitwise_left_shift(self, other)

    def __rlshift__(self, other: Operand) -> Tensor:
        return shifts.bitwise_left_shift(other, self)

    def __rshift__(self, other: Operand) -> Tensor:
        return shifts.bitwise_right_shift(self, other)

    def __rrshift__(self, other: Operand) -> Tensor:
        return shifts.bitwise_right_shift(other, self)

    def __matmul__(self, other: Operand) -> Tensor:
        return contraction.matmul(self, other)

    def __rmatmul__(self, other: Operand) -> Tensor:
        return contraction.matmul(other, self)

    __divmod__ = __rdivmod__ = _refused("divmod", "use x // y and x % y")
    __round__ = __trunc__ = _refused("rounding", "use mf.round(x), or mf.trunc(x)")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Redirects NumPy's ufuncs, which a NumPy scalar on the left of an operator calls, to the traced function."""
        function = FUNCTIONS.get(ufunc.__name__)
        if function is None or method != "__call__" or options:
            what = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
            raise _not_numpys(what)
        return function(*inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> NoReturn:
        raise _not_numpys(function.__name__)

    def __format__(self, specification: str) -> str:
        if specification:
            raise self._needs_data(f"its value as {specification!r}", "print x.shape or x.dtype")
        return str(self)

    def __bool__(self) -> bool:
        hint = "use mf.where for a choice per element; `and`, `or`, `not` are &, |, ~; bind a flag by functools.partial"
        raise self._needs_data("its truth value", hint)

    def __float__(self) -> float:
        raise self._needs_data("its value as a float", "use mlirfuse's functions: mf.sqrt in place of math.sqrt")

    def __int__(self) -> int:
        raise self._needs_data("its value as an int", "use mf.trunc, mf.floor or .astype(mf.int32)")

    def __index__(self) -> int:
        raise self._needs_data("its value as an index", CONSTANT)

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise self._needs_data("its data as a NumPy array", "use mlirfuse's own functions")

    def _needs_data(self, what: str, hint: str) -> ControlFlowError:
        """The error of an operation that needs a number while tracing; `_traced` names the value."""
        return at_user_line(ControlFlowError(f"{self._traced()} has no data, and Python asked for {what}", hint=hint))

    def _traced(self) -> str:
        return "a traced value"


def _not_numpys(what: str) -> UnsupportedError:
    """The error for a NumPy function that has no traced counterpart."""
    hint = instead_of_function(what) or "use mlirfuse's own functions; dir(mlirfuse) lists them"
    return at_user_line(UnsupportedError(f"np.{what} cannot be traced", hint=hint))
