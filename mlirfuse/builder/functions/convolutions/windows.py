"""The arithmetic of convolutions: arguments, extents, and where each product's elements lie. No IR."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlirfuse.builder.extents import show
from mlirfuse.builder.functions.axes import integer
from mlirfuse.builder.source import at_user_line
from mlirfuse.errors import ArgumentError, ShapeError

Padding = int | str | Sequence[int] | Sequence[Sequence[int]]


@dataclass(frozen=True)
class Window:
    """One spatial dimension of a convolution.

    Attributes:
        size: extent of the input.
        taps: extent of the filter.
        stride: input elements between neighbouring outputs.
        dilation: input elements between neighbouring taps.
        before: zeros in front of the input.
        after: zeros behind the input.
    """

    size: int
    taps: int
    stride: int
    dilation: int
    before: int
    after: int

    @property
    def reach(self) -> int:
        """Input elements from the first tap to the last one, both included."""
        return (self.taps - 1) * self.dilation + 1

    @property
    def outputs(self) -> int:
        """Extent of the output."""
        return (self.size + self.before + self.after - self.reach) // self.stride + 1


def windows(
    function: str, sizes: Sequence[int], taps: Sequence[int], stride: object, padding: object, dilation: object
) -> list[Window]:
    """The windows of each spatial dimension.

    Raises:
        ArgumentError: a stride or dilation below 1, negative padding, or arguments that do not fit the dimensions.
        ShapeError: a filter that is empty, or larger than the padded input.
    """
    strides = per_dimension(function, "stride", stride, len(sizes), 1)
    dilations = per_dimension(function, "dilation", dilation, len(sizes), 1)
    if any(n < 1 for n in taps):
        raise at_user_line(ShapeError(f"{function}: the filter of extents {show(tuple(taps))} is empty"))
    pads = _padding(function, padding, sizes, taps, strides, dilations)
    found = [
        Window(size, tap, s, d, *pad)
        for size, tap, s, d, pad in zip(sizes, taps, strides, dilations, pads, strict=True)
    ]
    for axis, window in enumerate(found):
        padded = window.size + window.before + window.after
        if window.reach > padded:
            raise at_user_line(
                ShapeError(
                    f"{function}: the filter reaches over {window.reach} elements ({window.taps} taps, dilation "
                    f"{window.dilation}), and the padded input has {padded} along spatial dimension {axis}",
                    hint="pad more, or take a smaller filter",
                )
            )
    return found


def per_dimension(function: str, name: str, value: object, rank: int, least: int) -> list[int]:
    """An argument that is one int for all spatial dimensions, or one int a dimension; raises `ArgumentError`."""
    entries = list(value) if isinstance(value, tuple | list) else [value] * rank
    if len(entries) != rank:
        raise at_user_line(
            ArgumentError(f"{function}: {name} {value!r} has {len(entries)} entries for {rank} spatial dimension(s)")
        )
    numbers = [integer(entry, f"{function}: {name}") for entry in entries]
    if any(n < least for n in numbers):
        raise at_user_line(ArgumentError(f"{function}: {name} {value!r} must be at least {least}"))
    return numbers


def _padding(
    function: str,
    padding: object,
    sizes: Sequence[int],
    taps: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> list[tuple[int, int]]:
    rank = len(sizes)
    if isinstance(padding, str):
        if padding == "valid":
            return [(0, 0)] * rank
        if padding != "same":
            raise at_user_line(
                ArgumentError(f"{function}: padding {padding!r}", hint='give "same", "valid", ints, or pairs of ints')
            )
        pads = [
            max((-(-size // s) - 1) * s + (tap - 1) * d + 1 - size, 0)
            for size, tap, s, d in zip(sizes, taps, strides, dilations, strict=True)
        ]
        return [(pad // 2, pad - pad // 2) for pad in pads]
    entries = list(padding) if isinstance(padding, tuple | list) else [padding] * rank
    if rank == 1 and len(entries) == 2 and not any(isinstance(e, tuple | list) for e in entries):
        entries = [tuple(entries)]
    pairs = [tuple(entry) if isinstance(entry, tuple | list) else (entry, entry) for entry in entries]
    if len(pairs) != rank or any(len(pair) != 2 for pair in pairs):
        raise at_user_line(
            ArgumentError(
                f"{function}: padding {padding!r} does not fit {rank} spatial dimension(s)",
                hint="give an int, an int a dimension, or a (before, after) pair a dimension",
            )
        )
    numbers = [
        (integer(before, f"{function}: padding"), integer(after, f"{function}: padding")) for before, after in pairs
    ]
    if any(n < 0 for pair in numbers for n in pair):
        raise at_user_line(ArgumentError(f"{function}: padding {padding!r} is negative", hint="slice the input first"))
    return numbers
