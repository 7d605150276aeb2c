"""The summary of `explain`: kernels, what bounds each, and the candidates that schedules were chosen among."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from mlirfuse.compiler.predicted import Predicted, PredictedKernel
from mlirfuse.schedule.contractions.grid import tile_count
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.predict import Prediction
from mlirfuse.schedule.schedule import Schedule

WIDTH = 150
SHOWN = 3
"""Candidates of each kernel that the summary shows, and the chosen one."""

PARTS: dict[str, tuple[str, ...]] = {
    "DRAM": ("dram",),
    "L2": ("l2",),
    "shared": ("shared", "dsmem"),
    "tensor": ("tensor",),
    "CUDA cores": ("issue",),
    "special": ("special",),
    "latency": ("latency", "blocks", "exposed"),
    "sync": ("synchronisation",),
    "launch": ("launch",),
}
"""Columns of the table of candidates, each with the parts of a `Prediction` that it adds up."""


def summary(found: Predicted) -> str:
    """The summary as text: a table of kernels, and one of candidates for each of them."""
    count = sum(kernel.launches for kernel in found.kernels)
    head = (
        f"{count} kernel{'s' if count != 1 else ''}, predicted {_us(found.microseconds)} us on {found.device}, "
        f"roofline {_us(found.roofline_us)} us"
    )
    if found.workspace_bytes:
        head += f", workspace {_bytes(found.workspace_bytes)}"
    assumed = f"chosen and predicted for {', '.join(found.assumed)}, which run time may change: explain(shapes=[...])"
    parts = [head, *([assumed] if found.assumed else [])]
    if found.kernels:
        parts.append(_text(_kernels(found.kernels)))
    for kernel in found.kernels:
        reason = split_reason(kernel)
        parts += [choice(kernel), *([reason] if reason else []), _text(_candidates(kernel))]
    return "\n".join(parts)


def choice(kernel: PredictedKernel) -> str:
    """A line that says what bounds a kernel, and where its schedule is among the candidates."""
    schedules = [candidate.schedule for candidate in kernel.candidates]
    time, place = kernel.prediction.microseconds, "is none of the candidates"
    if kernel.schedule in schedules:
        rank = schedules.index(kernel.schedule)
        first = kernel.candidates[0].prediction.microseconds
        place = "is the fastest" if rank == 0 else f"is number {rank + 1}, {_us(time - first)} us behind the first,"
        place += f" of {len(schedules)} candidates"
    part = getattr(kernel.prediction, kernel.prediction.bound)
    return (
        f"{kernel.name}: the schedule {place}; bound by {kernel.prediction.explanation}, {_us(part)} of {_us(time)} us"
    )


def split_reason(kernel: PredictedKernel) -> str | None:
    """A line that says into how many blocks a tile's sum was split, and what it would take otherwise; None for kernels
    that are no contractions.
    """
    contraction = kernel.schedule.contraction
    if contraction is None or not isinstance(kernel.sized, ContractionProblem):
        return None
    count, split = tile_count(kernel.schedule, kernel.sized), contraction.split
    steps = kernel.sized.steps(contraction.k)
    others = [
        candidate.prediction.microseconds
        for candidate in kernel.candidates
        if candidate.schedule.contraction is not None and (candidate.schedule.contraction.split == 1) == (split > 1)
    ]
    tiles = f"{count} tile{'s' if count != 1 else ''} of {steps} steps on {kernel.machine.sms} SMs"
    how = contraction.split_text or "no split"
    other = "without" if split > 1 else "with the best split"
    rest = f": {_us(min(others))} us {other}" if others else ""
    return f"{kernel.name}: {how} of {tiles}, {_us(kernel.prediction.microseconds)} us{rest}"


def described(schedule: Schedule) -> str:
    """The fields in which schedules of one problem differ most."""
    layout, contraction, loop = schedule.layout, schedule.contraction, schedule.persistent_loop
    tile = "x".join(map(str, schedule.tile))
    more = [f"cluster {layout.cluster}" if layout.cluster > 1 else ""]
    more.append(f"{schedule.blocks_per_sm} an SM" if schedule.blocks_per_sm else "")
    if contraction is not None:
        more += [
            f"{contraction.stages} stages of {contraction.k}",
            contraction.split_text,
            "persistent" if contraction.persistent else "",
            f"{contraction.consumer_groups} groups" if contraction.consumer_groups > 1 else "",
            f"cluster {contraction.cluster}" if contraction.cluster > 1 else "",
            "swapped" if contraction.swapped else "",
            "arguments staged" if contraction.argument_stages else "",
        ]
    else:
        grid = schedule.grid_persistent
        where = f"loop, {loop.grid_reduction}" if loop is not None else schedule.persistence
        more.append(where if grid is None else f"grid persistent, {grid.kept_tiles} tiles kept")
        more.append(f"{schedule.shared_spill} spilled to shared" if schedule.shared_spill else "")
    return ", ".join([tile, f"{layout.threads} threads of {layout.elements_per_thread}", *filter(None, more)])


def _kernels(kernels: Sequence[PredictedKernel]) -> Table:
    table = _table("kernel", "bound by")
    for title in ("predicted us", "roofline us", "of it"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("roofline by", no_wrap=True)
    for kernel in kernels:
        times = f" x{kernel.launches}" if kernel.launches > 1 else ""
        share = kernel.roofline_us / kernel.prediction.microseconds
        table.add_row(
            kernel.name + times,
            kernel.prediction.explanation,
            _us(kernel.prediction.microseconds),
            _us(kernel.roofline_us),
            f"{share:.0%}",
            kernel.roofline_bound,
        )
    return table


def _candidates(kernel: PredictedKernel) -> Table:
    table = _table("", "family", "schedule")
    table.add_column("us", justify="right", no_wrap=True)
    for title in PARTS:
        table.add_column(title, justify="right", no_wrap=True)
    shown = [(c.family, c.schedule, c.prediction) for c in kernel.candidates[:SHOWN]]
    if kernel.schedule not in [schedule for _, schedule, _ in shown]:
        family = next((c.family for c in kernel.candidates if c.schedule == kernel.schedule), "other")
        shown.append((family, kernel.schedule, kernel.prediction))
    for family, schedule, prediction in shown:
        mark = "*" if schedule == kernel.schedule else ""
        times = [_us(prediction.microseconds), *(_us(_part(prediction, names)) for names in PARTS.values())]
        table.add_row(mark, family, described(schedule), *times)
    return table


def _table(*columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for title in columns:
        table.add_column(title, overflow="fold")
    return table


def _text(table: Table) -> str:
    console = Console(file=StringIO(), width=WIDTH, color_system=None, force_terminal=False)
    console.print(table)
    assert isinstance(console.file, StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"


def _part(prediction: Prediction, names: Sequence[str]) -> float:
    return sum(float(getattr(prediction, name)) for name in names)


def _bytes(count: int) -> str:
    """Decimal units, as of memory sizes in the documentation."""
    for unit, size in (("MB", 1_000_000), ("kB", 1_000)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def _us(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
