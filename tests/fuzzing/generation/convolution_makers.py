"""The maker of convolutions and their gradients."""

from __future__ import annotations

from math import prod

from tests.fuzzing.generation.generator import Generator, Retry
from tests.fuzzing.types import FLOAT8


def convolution(make: Generator) -> None:
    """A convolution of one or two spatial dimensions, or a gradient, of a value where one has enough dimensions."""
    rank = make.random.randint(1, 2)
    known = make.tensors(lambda x: len(x.shape) == rank + 2 and x.value.size > 0)
    known = [n for n in known if make.known[n].dtype not in ("bool", *FLOAT8)]
    if known and make.chance(0.7):
        name = make.random.choice(known)
    else:
        few = max(1, int((make.profile.elements // 4) ** (1 / (rank + 2))))
        drawn = [make.random.randint(1, 2), *(make.random.randint(1, 3 * few) for _ in range(rank))]
        name = make.add_input((*drawn, make.random.randint(1, few + 1)))
    x = make.known[name]
    if x.dtype == "bool" or x.dtype in FLOAT8 or x.value.size > make.profile.elements:
        raise Retry
    images, *sizes, channels = x.shape
    taps = [make.random.randint(1, 3) for _ in sizes]
    stride = tuple(make.random.choice((1, 1, 1, 2, 3)) for _ in sizes)
    dilation = tuple(make.random.choice((1, 1, 1, 2)) for _ in sizes)
    padding = tuple((make.random.randint(0, 2), make.random.randint(0, 2)) for _ in sizes)
    filters = make.random.choice((1, 2, 3, 8, 16))
    geometry = {"stride": stride, "padding": padding, "dilation": dilation}
    reach = [(r - 1) * d + 1 for r, d in zip(taps, dilation, strict=True)]
    way = make.random.choice(("forward", "wgrad", "dgrad"))
    if way == "dgrad":  # `x` is the gradient of the result
        inputs = [
            (p - 1) * s + n - sum(pad) + make.random.randrange(s)
            for p, s, n, pad in zip(sizes, stride, reach, padding, strict=True)
        ]
        _within(make, images * prod(sizes) * prod(taps) * channels * filters, *inputs)
        w = make.add_input((channels, *taps, filters), x.dtype)
        make.state(f"conv{rank}d_dgrad", [name, w], input_size=tuple(inputs), **geometry)
        return
    outputs = [(n + sum(pad) - r) // s + 1 for n, pad, r, s in zip(sizes, padding, reach, stride, strict=True)]
    fits = all(n + sum(pad) >= r for n, pad, r in zip(sizes, padding, reach, strict=True))
    _within(make, images * prod(outputs) * prod(taps) * channels * filters, *outputs, int(fits))
    if way == "forward":
        made = make.state(f"conv{rank}d", [name, make.add_input((filters, *taps, channels), x.dtype)], **geometry)
        if make.chance(0.3):
            make.state("add", [made, make.add_input((filters,), make.known[made].dtype)])
        return
    dy = make.add_input((images, *outputs, filters), x.dtype)
    make.state(f"conv{rank}d_wgrad", [name, dy], kernel_size=tuple(taps), **geometry)


def _within(make: Generator, inner: int, *least_one: int) -> None:
    """Raises `Retry` for products over too many elements, and for extents of 0."""
    if inner > make.profile.inner or min(least_one) < 1:
        raise Retry
