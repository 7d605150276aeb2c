"""Host time of a warm call of fused functions against a bare CuPy launch of a kernel with as many arguments.

    python benchmarks/warm_calls.py [--json FILE]

Functions of one and three small float32 arrays, with and without `out=`, on CuPy arrays and PyTorch tensors, and
functions that return views; then the steps of a call alone. All take turns in batches that fit the driver's queue; the
median of the batches' time a call counts. Goals, relative to the bare launch: 1.2 with `out=`, 1.6 without; 3 us for a
view.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from timing import host_us

import mlirfuse as mf
from mlirfuse.runtime.arrays.arrays import signature
from mlirfuse.runtime.device import cuda

SHAPE = (16, 16)
Call = Callable[[], object]

FUNCTIONS: dict[int, Callable[..., Any]] = {1: lambda x: x * 2.0, 3: lambda x, y, z: x * y + z}
VIEWS: dict[str, Callable[..., Any]] = {"transpose": lambda x: x.T, "identity": lambda x: x}

KERNEL = """
extern "C" __global__ void apply({parameters}, float* r) {{ int i = threadIdx.x; r[i] = {value}; }}
"""


def bare(arrays: list[Any], out: Any) -> Call:
    """A `cupy.RawKernel` of as many pointers, launched on arrays that exist."""
    cupy = cuda.cupy()
    names = [f"p{i}" for i in range(len(arrays))]
    parameters = ", ".join(f"const float* {name}" for name in names)
    source = KERNEL.format(parameters=parameters, value=" + ".join(f"{name}[i]" for name in names))
    kernel = cupy.RawKernel(source, "apply")
    return lambda: kernel((1,), (256,), (*arrays, out))


def calls_of(framework: str, ones: Callable[[], Any], counts: tuple[int, ...] = (1, 3)) -> Iterator[tuple[str, Call]]:
    """Warm calls on arrays of one framework; `ones` makes an array."""
    for count in counts:
        fused, arrays, out = mf.fuse(FUNCTIONS[count]), [ones() for _ in range(count)], ones()
        into = mf.fuse(FUNCTIONS[count])
        yield f"{framework}, {count} arguments", lambda f=fused, a=arrays: f(*a)
        yield f"{framework}, {count} arguments, out=", lambda f=into, a=arrays, o=out: f(*a, out=o)
    for name, function in VIEWS.items():
        fused, x = mf.fuse(function), ones()
        yield f"{framework}, {name}", lambda f=fused, x=x: f(x)


def steps(framework: str, ones: Callable[[], Any]) -> Iterator[tuple[str, Call]]:
    """The parts of a call with three arguments, each alone."""
    fused, arrays = mf.fuse(FUNCTIONS[3]), tuple(ones() for _ in range(3))
    for _ in range(4):
        fused(*arrays)
    last = fused._dispatch._last
    assert last is not None
    plan = last.plan
    values = last.recognise(arrays, None)
    words = [*(values or signature(arrays)[1]), arrays[0].data_ptr() if framework == "torch" else arrays[0].data.ptr]
    stream = plan._current_stream()
    yield f"{framework}: recognises", lambda: last.recognise(arrays, None)
    yield f"{framework}: key", lambda: signature(arrays)
    yield f"{framework}: current stream", plan._current_stream
    yield f"{framework}: allocates", plan._allocate[0]
    yield f"{framework}: launches", lambda: plan._submit(words, stream)
    yield f"{framework}: dispatches", lambda: fused._dispatch(arrays)


def variants() -> Iterator[tuple[str, Call]]:
    """(name, call) of everything measured."""
    cupy = cuda.cupy()

    def ones() -> Any:
        return cupy.ones(SHAPE, np.float32)

    for count in FUNCTIONS:
        yield f"bare CuPy launch, {count} arguments", bare([ones() for _ in range(count)], ones())
    yield "cupy.empty", lambda: cupy.empty(SHAPE, np.float32)
    x = ones()
    yield "x.T of CuPy", lambda: x.T
    yield from calls_of("CuPy", ones)
    yield from steps("CuPy", ones)
    try:
        import torch
    except ImportError:
        return

    def torch_ones() -> Any:
        return torch.ones(SHAPE, device="cuda")

    t = torch_ones()
    yield "torch.empty", lambda: torch.empty(SHAPE, device="cuda")
    yield "x.T of torch", lambda: t.T
    yield from calls_of("torch", torch_ones)
    yield from steps("torch", torch_ones)


def main() -> int:
    """Prints the table; writes JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    options = parser.parse_args()
    measured = host_us(dict(variants()), cuda.cupy().cuda.runtime.deviceSynchronize)
    table = Table("host time of a call", "us", "of the bare launch")
    for name, value in measured.items():
        count = 1 if ", 1 " in name else 3
        table.add_row(name, f"{value:.2f}", f"{value / measured[f'bare CuPy launch, {count} arguments']:.2f}")
    Console(width=100).print(table)
    if options.json:
        options.json.write_text(json.dumps({"shape": SHAPE, "microseconds": measured}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
