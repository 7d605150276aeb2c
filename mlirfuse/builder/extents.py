"""Extents of traced shapes: an integer, or a `Dim`, a product of named unknowns that is known when the kernel runs.

Two unknown extents of one broadcast dimension are assumed equal: both symbols then have the same `Symbol.root`, and the
runtime checks the equality on every call (see `trace.equal_extents`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from mlir import ir

from mlirfuse.builder.errors import NeedsStatic
from mlirfuse.builder.source import at_user_line


class Symbol:
    """One unknown extent of the arguments.

    Attributes:
        name: the user's name, or `argument.dimension`.
        named: whether the user gave the name: extents of two different names are never assumed equal.
        order: number of symbols created before this one.
        sources: (argument, dimension) pairs that have this extent.
        value: the `tensor.dim` that reads it.
    """

    def __init__(self, name: str, named: bool, order: int):
        self.name = name
        self.named = named
        self.order = order
        self.sources: list[tuple[int, int]] = []
        self.value: ir.Value | None = None
        self._parent: Symbol | None = None

    @property
    def root(self) -> Symbol:
        """The representative of all symbols that are equal to this one."""
        return self if self._parent is None else self._parent.root

    def unify(self, other: Symbol) -> bool:
        """Assumes two symbols equal; returns False where the user named both, differently."""
        a, b = self.root, other.root
        if a is b:
            return True
        if a.named and b.named:
            return False
        keep, drop = sorted((a, b), key=lambda s: (not s.named, s.order))
        drop._parent = keep
        keep.sources += drop.sources
        return True


@dataclass(frozen=True)
class Reordered:
    """Dimensions of arguments, as (argument, dimension), whose order in memory a function changes, or reduces around.

    Such a kernel is chosen by these extents. A leading dimension is never among them: it counts rows,
    whatever their order.

    Attributes:
        innermost: dimensions that become the last of an array, along which vectors run.
        inner: all others.
    """

    innermost: frozenset[tuple[int, int]] = frozenset()
    inner: frozenset[tuple[int, int]] = frozenset()

    def __or__(self, other: Reordered) -> Reordered:
        return Reordered(self.innermost | other.innermost, self.inner | other.inner)

    def after(self, shape: Shape, axes: Sequence[int]) -> Reordered:
        """With what a permutation moves: dimension i of the result is dimension `axes[i]` of the shape."""
        kept = [a for a in axes if not is_one(shape[a])]
        if kept == sorted(kept):
            return self
        sources = [{s for symbol in _symbols(shape[a]) for s in symbol.sources if s[1]} for a in kept]
        return self | Reordered(frozenset(sources[-1]), frozenset().union(*sources[:-1]))

    def between(self, shape: Shape, axes: Sequence[int]) -> Reordered:
        """With the dimensions that lie between those that are reduced, as the columns of windows do."""
        sources = [_symbols(shape[d]) for d in range(min(axes, default=0), max(axes, default=0)) if d not in axes]
        return self | Reordered(
            inner=frozenset(s for symbols in sources for one in symbols for s in one.sources if s[1])
        )


UNCHANGED = Reordered()
"""No dimension changes its place."""


class Dim:
    """A dynamic extent: a static factor times a product of symbols.

    In user code it can be multiplied, divided where that is exact, compared with extents that are surely equal, and
    passed to `reshape` and `broadcast_to`. Anything that needs its number raises `NeedsStatic`.
    """

    __slots__ = ("_symbols", "factor")

    def __init__(self, factor: int, symbols: tuple[Symbol, ...]):
        self.factor = factor
        self._symbols = symbols

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """The symbols of the product, equal ones replaced by their root, in a fixed order."""
        return tuple(sorted((s.root for s in self._symbols), key=lambda s: s.order))

    def __repr__(self) -> str:
        return "*".join([str(self.factor)] * (self.factor != 1) + [s.name for s in self.symbols])

    def __mul__(self, other: Extent) -> Extent:
        return multiply(self, other) if isinstance(other, int | Dim) else NotImplemented

    __rmul__ = __mul__

    def __floordiv__(self, other: Extent) -> Extent:
        if not isinstance(other, int | Dim):
            return NotImplemented
        quotient = None if isinstance(other, int) and other <= 0 else divide(self, other)
        return needs_static(self, f"dividing the extent {self} by {other}") if quotient is None else quotient

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Dim) and same(self, other):
            return True
        if isinstance(other, int | Dim):
            needs_static(self, f"comparing the extent {self} with {other}")
        return False

    def __hash__(self) -> int:
        return hash((self.factor, self.symbols))

    def _number(self, *_: object) -> NoReturn:
        needs_static(self, f"using the extent {self} as a number")

    __index__ = __int__ = __float__ = __bool__ = __neg__ = _number
    __add__ = __radd__ = __sub__ = __rsub__ = __truediv__ = __rtruediv__ = __rfloordiv__ = __mod__ = __rmod__ = _number
    __pow__ = __rpow__ = __lt__ = __le__ = __gt__ = __ge__ = _number


Extent = int | Dim
Shape = tuple[Extent, ...]


def needs_static(extent: Dim, what: str) -> NoReturn:
    """Raises `NeedsStatic` for the first symbol of the extent; `what` names the operation that needs the number."""
    symbol = extent.symbols[0]
    error = NeedsStatic(
        f"{what} needs the dynamic extent {symbol.name!r} to be static",
        hint=f"give {symbol.name!r} a number in the TensorSpec",
    )
    error.symbol = symbol.name
    error.sources = tuple(symbol.sources)
    raise at_user_line(error)


def multiply(a: Extent, b: Extent) -> Extent:
    """The product of two extents; 0 where one of them is a static 0."""
    factor = (a if isinstance(a, int) else a.factor) * (b if isinstance(b, int) else b.factor)
    symbols = _symbols(a) + _symbols(b)
    return Dim(factor, symbols) if symbols and factor else factor


def product(shape: Shape) -> Extent:
    """Number of elements of the shape."""
    total: Extent = 1
    for extent in shape:
        total = multiply(total, extent)
    return total


def divide(a: Extent, b: Extent) -> Extent | None:
    """The exact quotient a / b, or None if `b` is not known to divide `a`."""
    divisor = b if isinstance(b, int) else b.factor
    factor = a if isinstance(a, int) else a.factor
    rest = list(_symbols(a))
    for symbol in _symbols(b):
        if symbol not in rest:
            return None
        rest.remove(symbol)
    if divisor == 0 or factor % divisor:
        return None
    return Dim(factor // divisor, tuple(rest)) if rest else factor // divisor


def same(a: Extent, b: Extent) -> bool:
    """Whether two extents are known to be equal."""
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    return a.factor == b.factor and a.symbols == b.symbols


def is_one(extent: Extent) -> bool:
    """Whether the extent is the number 1, so that the dimension broadcasts."""
    return isinstance(extent, int) and extent == 1


def same_shape(a: Shape, b: Shape) -> bool:
    """Whether the shapes are known to be equal."""
    return len(a) == len(b) and all(map(same, a, b))


def unify(a: Extent, b: Extent) -> Extent | None:
    """The extent that two extents broadcast to, or None where they cannot broadcast.

    Different unknowns are assumed equal unless both have names given by the user. An unknown with a number other than 1
    raises `NeedsStatic`, because broadcasting depends on the unknown's value.
    """
    if isinstance(a, int) and isinstance(b, int):
        return a if a == b or b == 1 else b if a == 1 else None
    if isinstance(a, int):
        a, b = b, a
    assert isinstance(a, Dim)
    if isinstance(b, int):
        return a if b == 1 else needs_static(a, f"broadcasting {a} with {b}")
    if same(a, b):
        return a
    if a.factor == b.factor == 1 and len(a.symbols) == len(b.symbols) == 1:
        return a if a.symbols[0].unify(b.symbols[0]) else None
    return needs_static(a, f"broadcasting {a} with {b}")


def show(shape: Shape) -> str:
    """The shape as error messages print it."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _symbols(extent: Extent) -> tuple[Symbol, ...]:
    return () if isinstance(extent, int) else extent.symbols
