"""What a program of the survey is: a function over arrays of any framework, and its arguments, real and small."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Function = Callable[..., Any]
"""`fn(xp, *arrays)`: xp is `mlirfuse`, or `torch_arrays` or `numpy_arrays`, which spell functions as mlirfuse does."""

DTYPES = {
    "bf16": "bfloat16",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "bool": "bool",
}
_ARGUMENT = re.compile(r"(\w+):([a-z0-9]+)(\+|<[A-Z]\w*|~)?\[([^\]]*)\]")


@dataclass(frozen=True)
class Argument:
    """An array argument.

    Attributes:
        name: of the formula.
        dtype: its name in mlirfuse.
        shape: extents.
        values: `+` for positive numbers of at least 0.1, `~` for 0, 1, 2, ... along the last axis, an int for
            integers below it; "" for normal numbers, integers of -127 to 127, and true in nine cases of ten.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    values: str | int = ""

    @property
    def elements(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def nbytes(self) -> int:
        bits = re.search(r"\d+", self.dtype)
        return self.elements * (int(bits[0]) // 8 if bits else 1)


@dataclass(frozen=True)
class Program:
    """A function with arguments of one size.

    Attributes:
        domain: where such functions are used.
        fn: the formula, which all frameworks run.
        text: the arguments, `x:bf16[R,C] w:f32[C]`: names, dtypes, and extents as names of `sizes`, numbers, or
            products of both; behind the dtype what the values are (`Argument.values`; `<V` for integers below V).
        sizes: extents by name.
        torch: PyTorch's own spelling, where it has a function for the formula; takes the arrays alone.
        flops: operations of matrix products, as an expression of `sizes` such as `2*M*N*K`.
        small: extents of the small variant that must not be what `small_sizes` makes of them.
        compiled: whether `torch.compile` is a peer; False where it would call the same library.
    """

    domain: str
    fn: Function
    text: str
    sizes: Mapping[str, int]
    torch: Function | None = None
    flops: str = ""
    small: Mapping[str, int] | None = None
    compiled: bool = True
    label: str = ""

    @property
    def name(self) -> str:
        """The formula and its sizes, such as `rms_norm R=8192 C=4096`; unique in the table."""
        return " ".join((self.label or self.fn.__name__, *(f"{k}={v}" for k, v in self.sizes.items())))

    def arguments(self, small: bool = False) -> tuple[Argument, ...]:
        """The arguments in order."""
        return parse(self.text, self.small_sizes() if small else self.sizes)

    def small_sizes(self) -> dict[str, int]:
        """Extents that a test can afford, odd where the real ones are, and otherwise different from each other."""
        last = {_names(a[3].split(",")[-1])[-1] for a in _ARGUMENT.findall(self.text) if _names(a[3].split(",")[-1])}
        found = {k: _small(v, k in last, n) for n, (k, v) in enumerate(self.sizes.items())}
        return found | dict(self.small or {})

    def product_flops(self) -> float:
        """Operations of its matrix products; 0 without."""
        return float(eval(self.flops, {}, dict(self.sizes))) if self.flops else 0.0  # the table's own text

    def product_dtype(self) -> str:
        """The dtype of the operands of its matrix products, for the rate of the tensor cores; "" without products."""
        matrices = (a for a in self.arguments() if len(a.shape) > 1 and a.dtype != "bool")
        return min(matrices, key=lambda a: a.nbytes / a.elements).dtype if self.flops else ""


def parse(text: str, sizes: Mapping[str, int]) -> tuple[Argument, ...]:
    """The arguments that a text of `Program.text` describes."""
    left = _ARGUMENT.sub("", text).strip()
    if left:
        raise ValueError(f"{text!r}: what is {left!r}?")
    return tuple(_argument(*found, sizes) for found in _ARGUMENT.findall(text))


def sized(domain: str, fn: Function, text: str, *sizes: str, small: str = "", **options: Any) -> Iterator[Program]:
    """One program for each of the sizes, such as `R=8192 C=4096`."""
    for size in sizes:
        yield Program(domain, fn, text, numbers(size), small=numbers(small), **options)


def numbers(text: str) -> dict[str, int]:
    """`R=8192 C=4096` as a dictionary."""
    return {name: int(value) for name, value in (part.split("=") for part in text.split())}


def duplicates(programs: Sequence[Program]) -> list[str]:
    """Names that two programs share."""
    names = [program.name for program in programs]
    return sorted({name for name in names if names.count(name) > 1})


def _argument(name: str, dtype: str, values: str, shape: str, sizes: Mapping[str, int]) -> Argument:
    extents = tuple(eval(extent, {}, dict(sizes)) for extent in shape.split(",") if extent)  # the table's own text
    return Argument(name, DTYPES[dtype], extents, sizes[values[1:]] if values.startswith("<") else values)


def _names(extent: str) -> list[str]:
    return re.findall(r"[A-Za-z]\w*", extent)


def _small(extent: int, innermost: bool, position: int) -> int:
    """Small, but with the divisors that blocks and vectors need in the innermost dimension."""
    if extent <= 8:
        return extent
    if innermost and extent % 64 == 0:
        return 64
    return (9 if extent % 2 else 6) + 2 * position
