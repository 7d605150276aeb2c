"""Declaration of a discardable attribute of the `fuse` dialect, and the types that such an attribute may have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlir import ir

from mlirfuse.support.strides import WORDS

ALIGNMENTS = (1, 2, 4, 8, 16)
"""Valid values of `fuse.align`, in bytes."""


@dataclass(frozen=True)
class Type:
    """The type of an attribute: a phrase for docs and errors, and a predicate."""

    text: str
    legal: Callable[[ir.Attribute], bool]


@dataclass(frozen=True)
class Attribute:
    """One attribute of the dialect.

    Attributes:
        name: the full name, with the dialect's prefix.
        type: the attribute's type.
        carriers: names of the ops that may have the attribute; None for all ops.
        holders: names of the functions whose arguments, or buffers in shared memory, may have the attribute.
        meaning: the attribute's meaning, in a sentence or two.
        set_by: passes or modules that set it.
        read_by: passes or modules that read it.
    """

    name: str
    type: Type
    carriers: tuple[str, ...] | None
    holders: tuple[str, ...]
    meaning: str
    set_by: str
    read_by: str


ATTRIBUTES: dict[str, Attribute] = {}
"""All attributes by full name, in the order in which a program gets them."""

UNIT = Type("a unit attribute", lambda a: isinstance(a, ir.UnitAttr))
STRING = Type("a string", lambda a: isinstance(a, ir.StringAttr))
SYMBOL = Type("a symbol", lambda a: isinstance(a, ir.FlatSymbolRefAttr))
DICTIONARY = Type("a dictionary", lambda a: isinstance(a, ir.DictAttr))
MAP = Type("an affine map", lambda a: isinstance(a, ir.AffineMapAttr))
I64 = Type("an i64", lambda a: isinstance(a, ir.IntegerAttr))
INTEGERS = Type("an array<i64>", lambda a: isinstance(a, ir.DenseI64ArrayAttr))
PAIRS = Type("pairs in an array<i64>", lambda a: isinstance(a, ir.DenseI64ArrayAttr) and len(a) % 2 == 0)


def _is_stride(entry: ir.Attribute) -> bool:
    return isinstance(entry, ir.IntegerAttr) or (isinstance(entry, ir.StringAttr) and entry.value in WORDS.values())


STRIDE_ENTRIES = Type(
    'an array of strides, "?", "negative" or "packed" where run time knows them',
    lambda a: isinstance(a, ir.ArrayAttr) and all(map(_is_stride, a)),
)
ALIGNMENT = Type("1, 2, 4, 8 or 16", lambda a: isinstance(a, ir.IntegerAttr) and a.value in ALIGNMENTS)


def array_of(text: str, element: type[ir.Attribute]) -> Type:
    """An array of attributes of one kind."""
    return Type(
        f"an array of {text}", lambda a: isinstance(a, ir.ArrayAttr) and all(isinstance(entry, element) for entry in a)
    )


def one_of(*words: str) -> Type:
    """One of some strings."""
    return Type(f"one of {', '.join(map(repr, words))}", lambda a: isinstance(a, ir.StringAttr) and a.value in words)


def declare(
    name: str,
    type_: Type,
    carriers: tuple[str, ...] | None,
    meaning: str,
    *,
    set_by: str,
    read_by: str,
    holders: tuple[str, ...] = (),
) -> str:
    """Adds an attribute to `ATTRIBUTES`, and returns its full name."""
    full = f"fuse.{name}"
    ATTRIBUTES[full] = Attribute(full, type_, carriers, holders, meaning, set_by, read_by)
    return full
