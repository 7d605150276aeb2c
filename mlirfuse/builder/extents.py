"""Extents of traced shapes: an integer, or a `Dim`, a product of named unknowns that is known when the kernel runs.

Two unknown extents of one broadcast dimension are assumed equal: both symbols then have the same `Symbol.root`, and the
runtime checks the equality on every call (see `trace.equal_extents`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from mlir import ir

from mlirfuse.builder.errors import NeedsStatic
from mlirfuse.builder.source import at_user_line

if TYPE_CHECKING:
    from mlirfuse.builder.state import ScalarBase, TraceState


class Symbol:
    """One unknown extent of the arguments.

    Attributes:
        name: the user's name, or `argument.dimension`.
        named: whether the user gave the name: extents of two different names are never assumed equal.
        order: number of symbols created before this one.
        sources: (argument, dimension) pairs that have this extent.
        value: the `tensor.dim` that reads it.
        state: the trace of the arguments.
    """

    def __init__(self, name: str, named: bool, order: int):
        self.name = name
        self.named = named
        self.order = order
        self.sources: list[tuple[int, int]] = []
        self.value: ir.Value | None = None
        self.state: TraceState | None = None
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

    Products, and quotients that are exact, are extents again, as `reshape` and `broadcast_to` take them. Other
    arithmetic gives numbers of run time (`ScalarBase`), of Python's types. Anything that needs the number while tracing
    raises `NeedsStatic`, as do comparisons with extents that are not surely equal.
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

    def scalar(self) -> ScalarBase:
        """The extent as a number of run time."""
        state = self.symbols[0].state
        return needs_static(self, f"using the extent {self} as a number") if state is None else state.number_of(self)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, int | Dim) and not isinstance(other, bool) and not (isinstance(other, int) and other < 0):
            return multiply(self, other)
        return self.scalar() * _number(other)

    def __rmul__(self, other: Any) -> Any:
        return self * other if isinstance(other, int | Dim) else _number(other) * self.scalar()

    def __floordiv__(self, other: Any) -> Any:
        quotient = divide(self, other) if isinstance(other, Dim) or (type(other) is int and other > 0) else None
        return self.scalar() // _number(other) if quotient is None else quotient

    def __mod__(self, other: Any) -> Any:
        is_exact = (isinstance(other, Dim) or (type(other) is int and other > 0)) and divide(self, other) is not None
        return 0 if is_exact else self.scalar() % _number(other)

    def __pos__(self) -> Dim:
        return self

    __abs__ = __pos__

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

    __index__ = __int__ = __float__ = __bool__ = __round__ = __trunc__ = __floor__ = __ceil__ = _number


def _number(value: Any) -> Any:
    return value.scalar() if isinstance(value, Dim) else value


def _operation(name: str) -> Callable[[Dim, Any], Any]:
    def operate(self: Dim, *others: Any) -> Any:
        return getattr(self.scalar(), name)(*map(_number, others))

    operate.__name__ = name
    return operate


def _ufunc(self: Dim, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """NumPy's ufuncs, which a NumPy scalar on the left of an operator calls, of extents as numbers."""
    return self.scalar().__array_ufunc__(ufunc, method, *map(_number, inputs), **options)  # type: ignore[attr-defined]


for _name in (
    *("add", "radd", "sub", "rsub", "truediv", "rtruediv", "rfloordiv", "rmod", "pow", "rpow"),
    *("neg", "lt", "le", "gt", "ge"),
):
    setattr(Dim, f"__{_name}__", _operation(f"__{_name}__"))
Dim.__array_ufunc__ = _ufunc  # type: ignore[attr-defined]


Extent = int | Dim
Shape = tuple[Extent, ...]


def needs_static(extent: Dim, what: str, *, tiled: bool = False) -> NoReturn:
    """Raises `NeedsStatic` for the first symbol of the extent; `what` names the operation that needs the number, and
    `tiled` says that it only needs it for a tile.
    """
    needs_static_symbols(extent.symbols[:1], what, tiled=tiled)


def needs_static_symbols(symbols: Sequence[Symbol], what: str, *, tiled: bool = False) -> NoReturn:
    """Raises `NeedsStatic` for these symbols; `what` names the operation that needs the numbers."""
    symbol = symbols[0].root
    error = NeedsStatic(
        f"{what} needs the dynamic extent {symbol.name!r} to be static",
        hint=f"give {symbol.name!r} a number in the TensorSpec",
    )
    error.symbol = symbol.name
    error.sources = tuple(source for each in symbols for source in each.root.sources)
    error.tiled = tiled
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
