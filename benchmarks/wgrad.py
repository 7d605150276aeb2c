"""Convolutions and their gradients in f16 against cuDNN: layers of ResNet-50 at two batch sizes, and of other models.

Each process compiles on its own, and times under a lock. Results go to a JSON file, one row a layer and pass. Columns:
our microseconds, cuDNN's (benchmark mode, channels last), speed (cuDNN's over ours), and relative errors in the 2-norm
against double precision; workspace in bytes. The pass `bias` is wgrad with a bias's gradient, in one kernel of ours:
the report says what it costs beside wgrad alone.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from timing import Contestant, input_sets, release_memory, run_contest

import mlirfuse as mf

PASSES = ("wgrad", "bias", "forward", "dgrad")


@dataclass(frozen=True)
class Layer:
    """A convolution of square images and filters.

    Attributes:
        name: the model.
        batch, size, channels, filters, taps, stride: N, H = W, C, K, R = S, and the stride.
        dilation, groups: as in `mf.conv2d`; the padding keeps the size where the stride is 1, unless it is given.
    """

    name: str
    batch: int
    size: int
    channels: int
    filters: int
    taps: int
    stride: int = 1
    dilation: int = 1
    groups: int = 1
    padding: int | None = None

    @property
    def parameters(self) -> dict[str, int]:
        """Keyword arguments of the convolution."""
        padding = (self.taps - 1) * self.dilation // 2 if self.padding is None else self.padding
        return {"stride": self.stride, "padding": padding, "dilation": self.dilation, "groups": self.groups}

    @property
    def output(self) -> int:
        """P = Q."""
        p = self.parameters
        return (self.size + 2 * p["padding"] - (self.taps - 1) * self.dilation - 1) // self.stride + 1

    @property
    def flops(self) -> int:
        """Products and sums of one pass."""
        return 2 * self.batch * self.output**2 * self.filters * self.channels // self.groups * self.taps**2

    @property
    def label(self) -> str:
        """The layer in one word."""
        extra = f" d{self.dilation}" * (self.dilation > 1) + f" g{self.groups}" * (self.groups > 1)
        shape = f"{self.size}^2 {self.channels}->{self.filters} {self.taps}x{self.taps} s{self.stride}{extra}"
        return f"{self.name} b{self.batch} {shape}"


_RESNET = (
    (224, 3, 64, 7, 2), (56, 64, 64, 3, 1), (56, 64, 64, 1, 1), (56, 64, 256, 1, 1), (56, 256, 64, 1, 1),
    (56, 128, 128, 3, 2), (28, 128, 128, 3, 1), (28, 512, 128, 1, 1), (14, 256, 256, 3, 1), (14, 1024, 256, 1, 1),
    (7, 512, 512, 3, 1), (7, 2048, 512, 1, 1),
)  # fmt: skip

RESNET = tuple(Layer("resnet50", batch, *layer) for batch in (8, 256) for layer in _RESNET)

OTHERS = (
    Layer("sd-unet", 4, 64, 320, 320, 3),
    Layer("sd-unet", 4, 32, 640, 640, 3),
    Layer("sd-unet", 4, 64, 4, 320, 3),
    Layer("sd-unet", 4, 64, 320, 320, 3, 2),
    Layer("sdxl-unet", 2, 32, 1280, 1280, 3),
    Layer("vae", 1, 256, 256, 128, 3),
    Layer("vgg16", 32, 224, 64, 64, 3),
    Layer("vgg16", 32, 112, 128, 128, 3),
    Layer("vgg16", 32, 28, 512, 512, 3),
    Layer("deeplab", 8, 33, 2048, 256, 3, 1, 6),
    Layer("deeplab", 8, 33, 2048, 256, 3, 1, 12),
    Layer("deeplab", 8, 65, 256, 256, 3, 1, 2),
    Layer("efficientnet-b0", 64, 112, 16, 96, 1),
    Layer("efficientnet-b0", 64, 28, 40, 240, 1),
    Layer("efficientnet-b3", 32, 19, 136, 816, 1),
    Layer("vit-b16", 64, 224, 3, 768, 16, 16, padding=0),
    Layer("convnext-t", 64, 224, 3, 96, 4, 4, padding=0),
    Layer("convnext-t", 64, 56, 96, 192, 2, 2, padding=0),
    Layer("inception", 64, 35, 48, 64, 5),
    Layer("resnet50", 64, 56, 256, 512, 1, 2, padding=0),
    Layer("resnet101", 64, 14, 256, 256, 3),
    Layer("yolov8", 16, 80, 128, 128, 3),
    Layer("resnext50", 32, 56, 128, 128, 3, 1, 1, 32),
)

NARROW = (
    Layer("yolov8n", 16, 320, 16, 32, 3, 2),
    Layer("yolov8n", 16, 160, 32, 32, 3),
    Layer("hrnet-w18", 32, 56, 18, 18, 3),
    Layer("hrnet-w48", 16, 64, 48, 48, 3),
    Layer("hrnet-w48", 16, 32, 96, 96, 3),
    Layer("efficientnet-v2-s", 32, 192, 24, 24, 3),
    Layer("efficientnet-v2-s", 32, 96, 48, 192, 3),
    Layer("densenet121", 32, 28, 128, 32, 3),
    Layer("unet", 4, 256, 32, 32, 3),
    Layer("googlenet", 64, 28, 96, 128, 3),
    Layer("googlenet", 64, 28, 16, 32, 5),
    Layer("shufflenet-v2", 64, 28, 58, 58, 1),
    Layer("mobilenet-v2", 64, 224, 3, 32, 3, 2),
    Layer("vgg16", 32, 224, 3, 64, 3),
    Layer("alexnet", 128, 224, 3, 64, 11, 4, padding=2),
    Layer("segformer-b0", 16, 512, 3, 32, 7, 4),
)
"""Few channels: images, and widths that fill no line of 128 bytes."""

DEPTHWISE = (
    Layer("convnext-t", 64, 56, 96, 96, 7, groups=96),
    Layer("convnext-t", 64, 14, 384, 384, 7, groups=384),
    Layer("mobilenet-v2", 64, 112, 32, 32, 3, groups=32),
    Layer("mobilenet-v2", 64, 56, 144, 144, 3, 2, groups=144),
    Layer("efficientnet-b0", 64, 28, 240, 240, 5, groups=240),
)

_GROUPED = (
    ("resnext50-32x4d", 28, 256, 1, 32), ("resnext50-32x4d", 14, 512, 1, 32), ("resnext101-32x8d", 56, 256, 1, 32),
    ("resnext101-32x8d", 56, 512, 2, 32), ("resnext101-32x8d", 14, 1024, 1, 32), ("resnext101-32x8d", 7, 2048, 1, 32),
    ("regnety-3.2gf", 28, 216, 1, 9), ("regnety-3.2gf", 14, 576, 1, 24), ("regnetx-3.2gf", 28, 192, 1, 4),
    ("regnetx-3.2gf", 14, 432, 1, 9), ("regnety-16gf", 28, 448, 1, 4), ("regnety-16gf", 14, 1232, 1, 11),
)  # fmt: skip

GROUPED = tuple(
    Layer(model, 32, size, width, width, 3, stride, groups=groups) for model, size, width, stride, groups in _GROUPED
)
"""Groups of 8, 16, 32, 64, 24, 48 and 112 channels."""


def _functions(layer: Layer, which: str) -> tuple[Any, Any]:
    """Our function and PyTorch's, of a pass's two arrays with channels last."""
    import torch

    p = layer.parameters
    taps, size = layer.taps, layer.size
    stride, padding, dilation = ([p[key]] * 2 for key in ("stride", "padding", "dilation"))

    def backward(dy: Any, x: Any, w: Any, mask: list[bool]) -> Any:
        sizes = [layer.filters] if mask[2] else None
        found = torch.ops.aten.convolution_backward(
            dy, x, w, sizes, stride, padding, dilation, False, [0, 0], p["groups"], mask
        )
        return tuple(found[1:]) if mask[2] else found[mask.index(True)]

    if which == "forward":
        ours = mf.fuse(lambda x, w: mf.conv2d(x, w, **p))
        return ours, lambda x, w: torch.nn.functional.conv2d(x, w, None, stride, padding, dilation, p["groups"])
    if which in ("wgrad", "bias"):
        shape, with_bias = (layer.filters, layer.channels // layer.groups, taps, taps), which == "bias"

        def gradients(x: Any, dy: Any) -> Any:
            dw = mf.conv2d_wgrad(x, dy, kernel_size=taps, **p)
            return (dw, mf.sum(dy, axis=(0, 1, 2))) if with_bias else dw

        ours = mf.fuse(gradients)

        def theirs(x: Any, dy: Any) -> Any:
            w = torch.empty(shape, dtype=x.dtype, device="cuda", memory_format=torch.channels_last)
            return backward(dy, x, w, [False, True, with_bias])

        return ours, theirs
    shape = (layer.batch, layer.channels, size, size)
    ours = mf.fuse(lambda dy, w: mf.conv2d_dgrad(dy, w, input_size=size, **p))

    def gradient(dy: Any, w: Any) -> Any:
        x = torch.empty(shape, dtype=dy.dtype, device="cuda", memory_format=torch.channels_last)
        return backward(dy, x, w, [True, False, False])

    return ours, gradient


def _arrays(layer: Layer, which: str, seed: int) -> list[Any]:
    """The two arrays of a pass, with channels last, as contiguous tensors (n, h, w, c)."""
    import torch

    generator = torch.Generator("cuda").manual_seed(seed)
    x = (layer.batch, layer.size, layer.size, layer.channels)
    w = (layer.filters, layer.taps, layer.taps, layer.channels // layer.groups)
    dy = (layer.batch, layer.output, layer.output, layer.filters)
    shapes = {"forward": (x, w), "wgrad": (x, dy), "bias": (x, dy), "dgrad": (dy, w)}[which]
    return [torch.randn(s, generator=generator, device="cuda", dtype=torch.float16) for s in shapes]


def _first(array: Any) -> Any:
    return array.permute(0, 3, 1, 2)


def _results(found: Any, *, last: bool = False) -> list[Any]:
    """A pass's results with channels first; `last` says that they have them last."""
    results = found if isinstance(found, tuple) else (found,)
    return [_first(result) if last and result.ndim == 4 else result for result in results]


def _error(found: Sequence[Any], exact: Sequence[Any]) -> float:
    """The largest relative error of the results."""
    import torch

    norms = [torch.linalg.vector_norm(result.double()).clamp_min(1e-30) for result in exact]
    pairs = zip(found, exact, norms, strict=True)
    return max(float(torch.linalg.vector_norm(a.double() - b.double()) / norm) for a, b, norm in pairs)


def measure(job: tuple[Layer, str]) -> dict[str, Any]:
    """A row: compiled outside of the lock, checked and timed inside."""
    import torch

    layer, which = job
    torch.backends.cudnn.benchmark = True
    row: dict[str, Any] = {"layer": layer.label, "pass": which, "flops": layer.flops, "batch": layer.batch}
    try:
        ours, theirs = _functions(layer, which)
        arrays = _arrays(layer, which, 0)
        begin = time.perf_counter()
        found = ours(*arrays)
        row["first_call_seconds"] = time.perf_counter() - begin
        compiled = next(reversed(ours._compiled.values()))
        row["schedules"] = [line for line in compiled.explain().splitlines() if " steps on " in line]
        predicted = compiled.predicted([tuple(a.shape) for a in arrays])
        row["workspace_bytes"], row["kernels"] = predicted.workspace_bytes, len(predicted.kernels)
        row["predicted_microseconds"] = predicted.microseconds
        with _LOCK:
            found, peer = _results(found, last=True), _results(theirs(*map(_first, arrays)))
            row["against_peer"] = _error(found, peer)
            if layer.flops < 2e10:
                exact = _results(theirs(*(_first(a).double() for a in arrays)))
                row["error"], row["peer_error"] = _error(found, exact), _error(peer, exact)
                del exact
            del found, peer
            nbytes = sum(a.nbytes for a in arrays)
            sets = input_sets(max(nbytes, 4_000_000))
            data = [arrays, *(_arrays(layer, which, seed) for seed in range(1, sets))]
            contest = run_contest(
                [
                    Contestant("mlirfuse", lambda i: ours(*data[i])),
                    Contestant("cudnn", lambda i: theirs(*map(_first, data[i]))),
                ],
                sets,
                max(nbytes, 4_000_000),
                5,
            )
            row["microseconds"] = {name: timing.microseconds for name, timing in contest.timings.items()}
            row["speed"] = contest.speed("mlirfuse", "cudnn")
            row["failures"] = contest.failures
            del arrays
            release_memory()
    except Exception as error:  # noqa: BLE001  # a layer that fails is a result; it is reported
        row["failures"] = {"mlirfuse": f"{type(error).__name__}: {str(error)[:400]}"}
    return row


def _start(lock: Any) -> None:
    global _LOCK
    _LOCK = lock


def report(rows: Sequence[dict[str, Any]]) -> str:
    """A table of rows, and geometric means."""
    lines = []
    for row in rows:
        times = row.get("microseconds", {})
        own, peer = (times.get(name, float("nan")) for name in ("mlirfuse", "cudnn"))
        speed, failures = row.get("speed") or float("nan"), row.get("failures") or ""
        errors = [f"{row.get(key, float('nan')):.1e}" for key in ("error", "peer_error", "against_peer")]
        lines.append(
            f"{row['pass']:8s}{row['layer']:52s}{own:9.1f}{peer:9.1f}{speed:7.3f}"
            f"{row.get('workspace_bytes', 0) / 1e6:7.1f} MB  {' '.join(errors)} {failures}"
        )
    for which in PASSES:
        speeds = [row["speed"] for row in rows if row["pass"] == which and row.get("speed")]
        if speeds:
            mean = math.exp(sum(map(math.log, speeds)) / len(speeds))
            lines.append(f"{which}: geomean {mean:.3f}, least {min(speeds):.3f}, of {len(speeds)}")
    own = {(row["pass"], row["layer"]): row["microseconds"]["mlirfuse"] for row in rows if row.get("microseconds")}
    costs = [
        time / own["wgrad", layer]
        for (which, layer), time in own.items()
        if which == "bias" and ("wgrad", layer) in own
    ]
    if costs:
        mean = math.exp(sum(map(math.log, costs)) / len(costs))
        lines.append(f"a bias's gradient beside wgrad: geomean {mean:.3f}, most {max(costs):.3f}, of {len(costs)}")
    return "\n".join(lines)


def main() -> None:
    """Runs the layers that the options choose."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", default="resnet,others,narrow,depthwise,grouped")
    parser.add_argument("--passes", default=",".join(PASSES))
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=95, help="no new rows are awaited after that")
    parser.add_argument("--out", type=Path, default=Path("wgrad.json"))
    options = parser.parse_args()
    sets = {"resnet": RESNET, "others": OTHERS, "narrow": NARROW, "depthwise": DEPTHWISE, "grouped": GROUPED}
    jobs = [
        (layer, which)
        for which in options.passes.split(",")
        for name in options.layers.split(",")
        for layer in sets[name]
    ]
    end = time.monotonic() + options.seconds
    context = multiprocessing.get_context("spawn")
    rows: list[dict[str, Any]] = []
    with context.Pool(options.jobs, _start, (context.Lock(),)) as pool:
        results = pool.imap_unordered(measure, jobs)
        while len(rows) < len(jobs):
            try:
                rows.append(results.next(timeout=max(end - time.monotonic(), 0.01)))
            except multiprocessing.TimeoutError:
                break
            options.out.write_text(json.dumps(rows, indent=1))
        pool.terminate()
    print(report(rows))


if __name__ == "__main__":
    main()
