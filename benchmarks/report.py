"""What a benchmark run found: as a table, as JSON, as a plot, and against the targets."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.table import Table

MEMCPY, MLIRFUSE = "memcpy", "mlirfuse"


@dataclass(frozen=True)
class Measurement:
    """One function at one size.

    Attributes:
        kernel: the function.
        rows, columns: the shape of x, in half precision.
        nbytes: bytes of x.
        microseconds: GPU time of a call, by contestant.
        failures: why a contestant has no time.
        first_call_seconds: compiling, loading and launching, the first time this signature was called.
        ceiling: the contestant that only moves the bytes.
        streams: arrays of `nbytes` that a call reads and writes at least.
        stack_bytes: local memory of a thread of mlirfuse's kernels, which hold nothing but spills there.
        repeatable: whether many runs of mlirfuse gave equal bits.
    """

    kernel: str
    rows: int
    columns: int
    nbytes: int
    microseconds: dict[str, float]
    failures: dict[str, str] = field(default_factory=dict)
    first_call_seconds: float | None = None
    ceiling: str = MEMCPY
    streams: int = 2
    stack_bytes: int | None = None
    repeatable: bool | None = None

    def ratio(self, name: str) -> float | None:
        """Speed relative to the ceiling; None where one of both has no time."""
        if name not in self.microseconds or self.ceiling not in self.microseconds:
            return None
        return self.microseconds[self.ceiling] / self.microseconds[name]

    def gigabytes_per_second(self, name: str) -> float | None:
        """Bytes read and written at least, over time."""
        if name not in self.microseconds:
            return None
        return self.streams * self.nbytes / self.microseconds[name] / 1e3


@dataclass(frozen=True)
class Accuracy:
    """Largest errors against float64 over some rows, of mlirfuse and of PyTorch in the same precision."""

    kernel: str
    columns: int
    error: float
    torch_error: float


@dataclass(frozen=True)
class Check:
    """A target and what was measured; `bound` says which side of it passes."""

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


def at_least(name: str, value: float, bound: float) -> Check:
    """Passes from the bound upwards."""
    return Check(name, value, f">= {bound:g}", value >= bound)


def at_most(name: str, value: float, bound: float) -> Check:
    """Passes up to the bound."""
    return Check(name, value, f"<= {bound:g}", value <= bound)


def measurement_table(title: str, measurements: Sequence[Measurement]) -> Table:
    """Microseconds of every contestant, and the share of the ceiling's speed that mlirfuse reaches."""
    names = list(dict.fromkeys(n for m in measurements for n in (*m.microseconds, *m.failures)))
    kernels = {m.kernel for m in measurements}
    table = Table(title=title, title_justify="left")
    for column in (*(("function",) if len(kernels) > 1 else ()), "rows", "columns", *names, "share", "GB/s", "first s"):
        table.add_column(column, justify="right")
    for m in measurements:
        ratio, bandwidth = m.ratio(MLIRFUSE), m.gigabytes_per_second(MLIRFUSE)
        table.add_row(
            *((m.kernel,) if len(kernels) > 1 else ()),
            str(m.rows),
            str(m.columns),
            *(_cell(m, name) for name in names),
            "-" if ratio is None else f"{ratio:.3f}",
            "-" if bandwidth is None else f"{bandwidth:.0f}",
            "-" if m.first_call_seconds is None else f"{m.first_call_seconds:.2f}",
        )
    ratios = [r for m in measurements if (r := m.ratio(MLIRFUSE)) is not None]
    if ratios:
        table.caption = f"microseconds; mlirfuse reaches {geomean(ratios):.3f} of {measurements[0].ceiling} (geomean)"
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


def write_json(results: Results, found: Sequence[Check], path: Path) -> None:
    """Writes everything, with derived ratios and the targets that were checked."""
    data = asdict(results)
    for entry, m in zip(data["measurements"], results.measurements, strict=True):
        entry["share_of_ceiling"] = {name: m.ratio(name) for name in m.microseconds}
    data["checks"] = [asdict(c) for c in found]
    path.write_text(json.dumps(data, indent=1) + "\n")


def write_plot(results: Results, path: Path) -> None:
    """Bandwidth over the row's length, one panel a function, with the ceiling dashed; needs matplotlib."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    kernels = list(dict.fromkeys(m.kernel for m in results.measurements))
    figure, panels = plt.subplots(1, len(kernels), figsize=(5.5 * len(kernels), 4), squeeze=False, sharey=True)
    for panel, kernel in zip(panels[0], kernels, strict=True):
        measurements = sorted(results.of(kernel), key=lambda m: m.columns)
        for name in dict.fromkeys(n for m in measurements for n in m.microseconds):
            points = [(m.columns, v) for m in measurements if (v := m.gigabytes_per_second(name)) is not None]
            style = (
                {"color": "black", "linestyle": "--"}
                if name == measurements[0].ceiling
                else {"marker": "o", "markersize": 4}
            )
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
