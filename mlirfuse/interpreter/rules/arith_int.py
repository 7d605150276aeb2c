"""`arith` on integers, index and i1. Overflow wraps; unsigned ops reinterpret the same bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mlir import ir

from mlirfuse.interpreter.registry import direct, pure
from mlirfuse.interpreter.site import Site

Function = Callable[..., np.ndarray]


_UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def as_unsigned(a: np.ndarray) -> np.ndarray:
    """The same bits read as an unsigned integer; i1 as uint8."""
    return a.view(_UNSIGNED[a.dtype.itemsize])


def as_signed(a: np.ndarray) -> np.ndarray:
    """The operand as a signed integer: true of i1 is -1, and other integers are signed already."""
    return -a.astype(np.int8) if a.dtype == np.bool_ else a


def unsigned(function: Function) -> Function:
    """A function applied to the operands' bits as unsigned integers, with a result of the operands' type."""

    def apply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        result = function(as_unsigned(a), as_unsigned(b))
        return result.astype(np.bool_) if a.dtype == np.bool_ else result.view(a.dtype)

    return apply


def _on_bits(function: Function, on_bool: Function) -> Function:
    return lambda a, b: on_bool(a, b) if a.dtype.kind == "b" else function(a, b)


def divide_to_zero(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Signed division that rounds towards zero, as on the device; NumPy's division rounds down."""
    quotient = a // b
    return quotient + ((quotient < 0) & (quotient * b != a)).astype(a.dtype)


def _shift(function: Function) -> Function:
    """A shift whose result for the width or more, poison on the device, is that of shifts by one bit each."""

    def apply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return function(a, np.minimum(as_unsigned(b), a.dtype.itemsize * 8 - 1).astype(b.dtype))

    return apply


def _shift_left(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(as_unsigned(b) >= a.dtype.itemsize * 8, 0, np.left_shift(a, b)).astype(a.dtype)


def _shift_right_unsigned(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    shifted = np.right_shift(as_unsigned(a), as_unsigned(b))
    return np.where(as_unsigned(b) >= a.dtype.itemsize * 8, 0, shifted).astype(shifted.dtype).view(a.dtype)


BINARY: dict[str, Function] = {
    "addi": _on_bits(np.add, np.logical_xor),
    "subi": _on_bits(np.subtract, np.logical_xor),
    "muli": _on_bits(np.multiply, np.logical_and),
    "divsi": divide_to_zero,
    "remsi": lambda a, b: a - divide_to_zero(a, b) * b,
    "divui": unsigned(np.floor_divide),
    "remui": unsigned(np.remainder),
    "floordivsi": np.floor_divide,
    "ceildivsi": lambda a, b: -(-a // b),
    "ceildivui": unsigned(lambda a, b: a // b + (a % b != 0).astype(a.dtype)),
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "shli": _shift_left,
    "shrsi": _shift(np.right_shift),
    "shrui": _shift_right_unsigned,
    # As a signed number, true of i1 is -1, less than false.
    "maxsi": _on_bits(np.maximum, np.logical_and),
    "minsi": _on_bits(np.minimum, np.logical_or),
    "maxui": unsigned(np.maximum),
    "minui": unsigned(np.minimum),
}


for _name, _function in BINARY.items():
    direct(f"arith.{_name}")(_function)

# By the number that encodes the predicate: eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge.
_COMPARE: tuple[Function, ...] = (np.less, np.less_equal, np.greater, np.greater_equal)
PREDICATES: tuple[Function, ...] = (
    np.equal,
    np.not_equal,
    *[lambda a, b, f=f: f(as_signed(a), as_signed(b)) for f in _COMPARE],
    *[lambda a, b, f=f: f(as_unsigned(a), as_unsigned(b)) for f in _COMPARE],
)


@pure("arith.cmpi")
def _cmpi(site: Site) -> Function:
    return PREDICATES[ir.IntegerAttr(site.op.attributes["predicate"]).value]


@direct("arith.addui_extended")
def _addui_extended(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    total = as_unsigned(a) + as_unsigned(b)
    return total.view(a.dtype), total < as_unsigned(a)
