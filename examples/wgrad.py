"""Weight gradients of ResNet-50's convolutions, and of a bias with them: python examples/wgrad.py [--plot wgrad.png]

The sum over images and pixels is huge and the result small, so that one tile's sum is split over many blocks. On a GPU
the table has measured times; without one it has the times that the cost model predicts for an H200, and the errors are
those of small layers of the same kinds in the interpreter. `explain()` says why a split was chosen.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from arrays import on_gpu_or_interpreter

import mlirfuse as mf

LAYERS = (
    (224, 3, 64, 7, 2), (56, 64, 64, 3, 1), (56, 64, 64, 1, 1), (56, 64, 256, 1, 1), (56, 256, 64, 1, 1),
    (56, 128, 128, 3, 2), (28, 128, 128, 3, 1), (28, 512, 128, 1, 1), (14, 256, 256, 3, 1), (14, 1024, 256, 1, 1),
    (7, 512, 512, 3, 1), (7, 2048, 512, 1, 1),
)  # fmt: skip
"""H = W, channels, filters, taps, stride."""


@dataclass(frozen=True)
class Layer:
    """A convolution of square images and filters, whose padding keeps the size where the stride is 1."""

    batch: int
    size: int
    channels: int
    filters: int
    taps: int
    stride: int

    @property
    def padding(self) -> int:
        return self.taps // 2

    @property
    def output(self) -> int:
        return (self.size + 2 * self.padding - self.taps) // self.stride + 1

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Of x and dy."""
        return (
            (self.batch, self.size, self.size, self.channels),
            (self.batch, self.output, self.output, self.filters),
        )

    @property
    def label(self) -> str:
        return f"{self.size}^2 {self.channels}->{self.filters} {self.taps}x{self.taps} s{self.stride} b{self.batch}"

    def small(self) -> Layer:
        """A layer of the same kind that the interpreter runs in a moment."""
        return Layer(
            2, min(self.size, 4 + self.taps), min(self.channels, 16), min(self.filters, 24), self.taps, self.stride
        )


def gradients_of(layer: Layer):
    """The gradients of a layer's filters and bias."""

    def gradients(x, dy):
        dw = mf.conv2d_wgrad(x, dy, kernel_size=layer.taps, stride=layer.stride, padding=layer.padding)
        return dw, mf.sum(dy, axis=(0, 1, 2))

    return gradients


def reference(layer: Layer, x: np.ndarray, dy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same in float64, tap by tap."""
    pad = (layer.padding, layer.padding)
    padded, grads = np.pad(x.astype(np.float64), ((0, 0), pad, pad, (0, 0))), dy.astype(np.float64)
    dw = np.zeros((layer.filters, layer.taps, layer.taps, layer.channels))
    reach = (layer.output - 1) * layer.stride + 1
    for r in range(layer.taps):
        for s in range(layer.taps):
            pixels = padded[:, r : r + reach : layer.stride, s : s + reach : layer.stride]
            dw[:, r, s] = np.tensordot(grads, pixels, ((0, 1, 2), (0, 1, 2)))
    return dw, grads.sum((0, 1, 2))


def largest_error(layer: Layer, function: Any, to_device: Any, to_numpy: Any) -> float:
    """Of both gradients of random data, of their largest elements."""
    rng = np.random.default_rng(0)
    x, dy = (rng.standard_normal(shape).astype(np.float16) for shape in layer.shapes)
    found = function(to_device(x), to_device(dy))
    pairs = zip(found, reference(layer, x, dy), strict=True)
    return max(float(np.abs(to_numpy(own) - exact).max() / np.abs(exact).max()) for own, exact in pairs)


def measured(layer: Layer, function: Any, calls: int = 20) -> float:
    """Microseconds of a call on the GPU, of arrays that change from call to call."""
    import cupy

    sets = [[cupy.random.standard_normal(s).astype(cupy.float16) for s in layer.shapes] for _ in range(3)]
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    for number in range(calls + 3):
        if number == 3:
            start.record()
        function(*sets[number % 3])
    end.record()
    end.synchronize()
    return 1e3 * float(cupy.cuda.get_elapsed_time(start, end)) / calls


def plot(rows: list[tuple[Layer, float, float]], title: str, path: Path) -> None:
    """Times of all layers beside the least that memory and tensor cores allow, as a PNG."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("no plot: matplotlib is not installed")
        return
    figure = Figure(figsize=(9, 0.4 * len(rows) + 1.5), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(rows))
    axes.barh(places - 0.2, [time for _, time, _ in rows], 0.4, label=title)
    axes.barh(places + 0.2, [least for _, _, least in rows], 0.4, label="roofline")
    axes.set_yticks(places, [layer.label for layer, _, _ in rows])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("microseconds")
    axes.legend()
    figure.savefig(path, format="png")
    print(f"plot: {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, nargs="+", help="images; 8 and 256 on a GPU, otherwise 8")
    parser.add_argument("--plot", type=Path, default=Path(tempfile.gettempdir()) / "wgrad.png")
    options = parser.parse_args()
    target, to_device, to_numpy = on_gpu_or_interpreter()
    on_gpu = target is None
    title = "measured" if on_gpu else "predicted for an H200"
    errors = "of the layer" if on_gpu else "of a small layer in the interpreter"
    print(f"times are {title}; largest error {errors}, of the largest element, against float64")
    print(f"{'layer':32s}{'us':>9s}{'roofline':>9s}{'kernels':>8s}{'split':>6s}{'MB':>6s}{'error':>9s}")
    rows = []
    for batch in options.batch or ((8, 256) if on_gpu else (8,)):
        for layer in (Layer(batch, *extents) for extents in LAYERS):
            specs = [mf.TensorSpec(shape, mf.float16) for shape in layer.shapes]
            compiled = mf.fuse(gradients_of(layer), target=None if on_gpu else "sm_90a").lower(*specs).compile()
            found = compiled.predicted()
            split = max(k.schedule.contraction.split for k in found.kernels if k.schedule.contraction is not None)
            checked = layer if on_gpu else layer.small()
            error = largest_error(checked, mf.fuse(gradients_of(checked), target=target), to_device, to_numpy)
            time = measured(layer, mf.fuse(gradients_of(layer))) if on_gpu else found.microseconds
            count, size = sum(k.launches for k in found.kernels), found.workspace_bytes / 1e6
            least = f"{found.roofline_us:9.1f}{count:8d}{split:6d}{size:6.1f}"
            print(f"{layer.label:32s}{time:9.1f}{least}{error:9.1e}", flush=True)
            assert error < 2e-3
            rows.append((layer, time, found.roofline_us))
    plot(rows, title, options.plot)


if __name__ == "__main__":
    main()
