"""What a benchmark run found: as a table, as JSON, as a plot, and against the targets."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.table import Table

CEILING, MLIRFUSE = "memcpy", "mlirfuse"
RIVALS = ("torch.compile", "quack")
"""Those that mlirfuse must be faster than, at every size."""


@dataclass(frozen=True)
class Measurement:
    """One function at one size.

    Attributes:
        kernel: the function.
        rows, columns: the shape of x, in half precision.
        nbytes: bytes of x; as many are written.
        microseconds: GPU time of a call, by contestant.
        failures: why a contestant has no time.
        first_call_seconds: compiling, loading and launching, the first time this signature was called.
    """

    kernel: str
    rows: int
    columns: int
    nbytes: int
    microseconds: dict[str, float]
    failures: dict[str, str] = field(default_factory=dict)
    first_call_seconds: float | None = None

    def ratio(self, name: str) -> float | None:
        """Speed relative to a copy of the same bytes; None where one of both has no time."""
        if name not in self.microseconds or CEILING not in self.microseconds:
            return None
        return self.microseconds[CEILING] / self.microseconds[name]

    def gigabytes_per_second(self, name: str) -> float | None:
        """Bytes of x read and bytes of the result written, over time."""
        if name not in self.microseconds:
            return None
        return 2 * self.nbytes / self.microseconds[name] / 1e3


@dataclass(frozen=True)
class Accuracy:
    """Largest errors against float64 over some rows, of mlirfuse and of PyTorch in the same precision."""

    kernel: str
    columns: int
    error: float
    torch_error: float


@dataclass(frozen=True)
class Check:
    """A target of issue 2 and what was measured; `bound` says which side of it passes."""

    name: str
    value: float
    bound: str
    passed: bool


@dataclass
class Results:
    """All of one run."""

    machine: dict[str, str]
    measurements: list[Measurement] = field(default_factory=list)
    accuracy: list[Accuracy] = field(default_factory=list)
    host_microseconds: dict[str, float] = field(default_factory=dict)

    def of(self, *kernels: str) -> list[Measurement]:
        """The measurements of these functions."""
        return [m for m in self.measurements if m.kernel in kernels]


def geomean(values: Iterable[float]) -> float:
    """Geometric mean; nan of nothing."""
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def checks(results: Results) -> list[Check]:
    """The targets that this run can speak to."""
    found: list[Check] = []
    norms = results.of("layernorm")
    ratios = {m.columns: r for m in norms if (r := m.ratio(MLIRFUSE)) is not None}
    if ratios:
        found.append(_at_least("LayerNorm: geomean of memcpy", geomean(ratios.values()), 0.95))
        found += [_at_least(f"LayerNorm {n}: share of memcpy", ratio, 0.90) for n, ratio in ratios.items()]
        found += [_at_least(f"LayerNorm {n}: against its neighbours", c, 0.95) for n, c in _cliffs(ratios).items()]
    for m in norms:
        for rival in RIVALS:
            if rival in m.microseconds and MLIRFUSE in m.microseconds:
                speedup = m.microseconds[rival] / m.microseconds[MLIRFUSE]
                found.append(Check(f"LayerNorm {m.columns}: against {rival}", speedup, "> 1", speedup > 1))
    for m in results.of("rms_norm", "softmax", "log_softmax"):
        ratio = m.ratio(MLIRFUSE)
        if ratio is not None:
            found.append(_at_least(f"{m.kernel} {m.columns}: share of memcpy", ratio, 0.85))
    first = [m.first_call_seconds for m in results.measurements if m.first_call_seconds is not None]
    if first:
        found.append(_at_most("slowest first call, s", max(first), 0.5))
    found += [
        _at_most(f"{name}: host time, us", value, 8.0)
        for name, value in results.host_microseconds.items()
        if name.startswith("mlirfuse, out=")
    ]
    found += [
        _at_most(f"{a.kernel} {a.columns}: error, of torch's", a.error / a.torch_error, 2.0)
        for a in results.accuracy
        if a.torch_error > 0
    ]
    return found


def _cliffs(ratios: dict[int, float]) -> dict[int, float]:
    """Ratios of awkward sizes (rows that are no multiple of 128 elements) over the mean of their neighbours' ratios."""
    sizes = sorted(ratios)
    cliffs = {}
    for before, size, after in zip(sizes, sizes[1:], sizes[2:], strict=False):
        if size % 128:
            cliffs[size] = 2 * ratios[size] / (ratios[before] + ratios[after])
    return cliffs


def _at_least(name: str, value: float, bound: float) -> Check:
    return Check(name, value, f">= {bound:g}", value >= bound)


def _at_most(name: str, value: float, bound: float) -> Check:
    return Check(name, value, f"<= {bound:g}", value <= bound)


def measurement_table(title: str, measurements: Sequence[Measurement]) -> Table:
    """Microseconds of every contestant, and the share of memcpy's speed that mlirfuse reaches."""
    names = list(dict.fromkeys(n for m in measurements for n in (*m.microseconds, *m.failures)))
    kernels = {m.kernel for m in measurements}
    table = Table(title=title, title_justify="left")
    for column in (*(("function",) if len(kernels) > 1 else ()), "columns", *names, "share", "GB/s", "first s"):
        table.add_column(column, justify="right")
    for m in measurements:
        ratio, bandwidth = m.ratio(MLIRFUSE), m.gigabytes_per_second(MLIRFUSE)
        table.add_row(
            *((m.kernel,) if len(kernels) > 1 else ()),
            str(m.columns),
            *(_cell(m, name) for name in names),
            "-" if ratio is None else f"{ratio:.3f}",
            "-" if bandwidth is None else f"{bandwidth:.0f}",
            "-" if m.first_call_seconds is None else f"{m.first_call_seconds:.2f}",
        )
    ratios = [r for m in measurements if (r := m.ratio(MLIRFUSE)) is not None]
    if ratios:
        table.caption = f"microseconds; mlirfuse reaches {geomean(ratios):.3f} of memcpy (geomean)"
    return table


def _cell(m: Measurement, name: str) -> str:
    if name in m.failures:
        return "failed"
    return f"{m.microseconds[name]:.1f}" if name in m.microseconds else "-"


def check_table(found: Sequence[Check]) -> Table:
    """Every target that was missed, and how many were met."""
    missed = [c for c in found if not c.passed]
    table = Table("target", "measured", "bound", title=f"{len(found) - len(missed)} of {len(found)} targets met")
    for check in missed:
        table.add_row(check.name, f"[bold red]{check.value:.3f}[/]", check.bound)
    return table


def write_json(results: Results, path: Path) -> None:
    """Writes everything, with derived ratios and the targets."""
    data = asdict(results)
    for entry, m in zip(data["measurements"], results.measurements, strict=True):
        entry["share_of_memcpy"] = {name: m.ratio(name) for name in m.microseconds}
    data["checks"] = [asdict(c) for c in checks(results)]
    path.write_text(json.dumps(data, indent=1) + "\n")


def write_plot(results: Results, path: Path) -> None:
    """Bandwidth over the row's length, one panel a function, with memcpy as the ceiling; needs matplotlib."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    kernels = list(dict.fromkeys(m.kernel for m in results.measurements))
    figure, panels = plt.subplots(1, len(kernels), figsize=(5.5 * len(kernels), 4), squeeze=False, sharey=True)
    for panel, kernel in zip(panels[0], kernels, strict=True):
        measurements = sorted(results.of(kernel), key=lambda m: m.columns)
        for name in dict.fromkeys(n for m in measurements for n in m.microseconds):
            points = [(m.columns, v) for m in measurements if (v := m.gigabytes_per_second(name)) is not None]
            style = {"color": "black", "linestyle": "--"} if name == CEILING else {"marker": "o", "markersize": 4}
            panel.plot(*zip(*points, strict=True), label=name, **style)
        ticks = [m.columns for m in measurements]
        panel.set_xscale("log", base=2)
        panel.set_xticks(ticks, [str(t) for t in ticks], rotation=60, fontsize=7)
        panel.minorticks_off()
        panel.set_ylim(bottom=0)
        panel.set_title(f"{kernel}, float16")
        panel.set_xlabel("columns")
        panel.grid(alpha=0.3)
        panel.legend(fontsize=7)
    panels[0][0].set_ylabel("GB/s read and written")
    figure.suptitle(results.machine.get("gpu", ""), fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)
