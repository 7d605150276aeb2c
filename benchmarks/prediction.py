"""Compares predicted with measured times of candidates: how near they are, how well they rank, and what they choose.

    python benchmarks/prediction.py [FILE...] [--registers] [--choose] [--worst N] [--plot PNG] [--reduce FILE]

A FILE is what `candidates.py` wrote, or the reduced form of it in `results/`. Candidates that spill are counted, and
left out of the figures, as the compiler launches none. Candidates of one program are compared within a file only, whose
kernels one version of the compiler made. No GPU is needed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from fractions import Fraction
from math import exp, log, prod, sqrt
from pathlib import Path
from typing import Any

from mlirfuse.errors import ScheduleError
from mlirfuse.machine import MachineModel, machine_of
from mlirfuse.schedule.choice.choice import choose_schedule
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.parts.array_access import ArrayAccess
from mlirfuse.schedule.parts.grid_persistent import GridPersistent
from mlirfuse.schedule.parts.persistent_loop import PersistentLoop
from mlirfuse.schedule.parts.transposed_tiles import TransposedTiles
from mlirfuse.schedule.predict import Prediction, predict
from mlirfuse.schedule.problem import (
    GridPersistentProblem,
    PersistentLoopProblem,
    Problem,
    RowReduction,
    SharedInstructions,
    TransposedProblem,
)
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import target_of

RESULTS = tuple(
    Path(__file__).parent / "results" / f"{name}-h200.json"
    for name in (
        "candidates",
        "candidates_later",
        "candidates_norms",
        "candidates_survey",
        "candidates_slow",
        "candidates_issue",
    )
)
NEAR = 1.25
"""Ratio of predicted to measured time, or its inverse, up to which a prediction is near."""

FEWEST_RANKED = 5
"""Candidates of a program from which on their ranks are compared."""

MOST = 14
"""Candidates of a program in the reduced form, at most."""

FIELDS = {field.name for field in fields(Problem)}
WAYS = ("vector", "lanes", "warps", "repeats", "blocks", "inner", "run", "shift_to", "realigned")


@dataclass(frozen=True)
class Measured:
    """A candidate that was measured.

    Attributes:
        file: the stem of the file that has it.
        program: its program's text.
        family: which family proposed it.
        problem: the kernel's, with the extents of the call.
        schedule: the candidate.
        us: microseconds.
        registers: of a thread of the first kernel.
        stack: bytes of a thread's stack, which holds what is spilled.
    """

    file: str
    program: str
    family: str
    problem: Problem
    schedule: Schedule
    us: float
    registers: int
    stack: int


@dataclass(frozen=True)
class Figures:
    """How good predictions are.

    Attributes:
        count: candidates.
        near: share of them that are within `NEAR`.
        error: root of the mean square of the logarithm of predicted to measured time.
        rank: mean over programs of the rank correlation of their candidates.
        choice: geometric mean over programs of the time of the candidate that is predicted to be the fastest, to that
            of the fastest.
    """

    count: int
    near: float
    error: float
    rank: float
    choice: float

    def __str__(self) -> str:
        return (
            f"{self.count:5} candidates: {self.near:4.0%} within {NEAR - 1:.0%}, error {self.error:.3f}, "
            f"rank correlation {self.rank:.2f}, choice {self.choice:.3f}"
        )


def main() -> int:
    """Prints the figures of a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, default=RESULTS, help="measured candidates")
    parser.add_argument("--registers", action="store_true", help="predict with the registers that the assembler used")
    parser.add_argument("--choose", action="store_true", help="compare what the compiler chooses of all candidates")
    parser.add_argument("--worst", type=int, default=5, metavar="N", help="worst predictions and choices to print")
    parser.add_argument("--plot", type=Path, metavar="PNG", help="file of a scatter plot")
    parser.add_argument("--reduce", type=Path, metavar="FILE", help="write the reduced form and end")
    options = parser.parse_args()
    measured = [m for path in options.files for m in read(path)]
    if options.reduce:
        options.reduce.write_text(reduced(measured))
        return 0
    machine = machine_of("sm_90a")
    kept = [m for m in measured if not m.stack]
    times = predicted(kept, machine, registers=options.registers)
    print(f"all          {figures(kept, times)}; {len(measured) - len(kept)} more spill")
    for name in dict.fromkeys(m.file for m in kept):
        print(f"{name:12} {figures(*_part(kept, times, 'file', name))}")
    for family in dict.fromkeys(m.family for m in kept):
        part = _part(kept, times, "family", family)
        print(f"{family:12} {figures(*part)}")
        worst = sorted(zip(*part, strict=True), key=lambda pair: -abs(log(pair[1].microseconds / pair[0].us)))
        for m, t in worst[: options.worst]:
            print(f"    {_line(m, t)}")
    print("choice")
    for ratio, chosen, best in sorted(choices(kept, times), key=lambda each: -each[0])[: options.worst]:
        print(f"    {ratio:.2f} {_line(*chosen)}\n         {_line(*best)}")
    if options.choose:
        print(f"of all candidates {_chosen(kept, machine)}")
    if options.plot:
        plot(kept, times, options.plot)
    return 0


def predicted(measured: Iterable[Measured], machine: MachineModel, *, registers: bool) -> list[Prediction]:
    """The prediction of each candidate, with the assembler's registers or without."""
    return [predict(m.schedule, m.problem, machine, registers=m.registers if registers else None) for m in measured]


def figures(measured: Sequence[Measured], times: Sequence[Prediction]) -> Figures:
    """How near predictions are, how they rank each program's candidates, and what they choose."""
    pairs = [(m, t.microseconds) for m, t in zip(measured, times, strict=True)]
    errors = [log(t / m.us) for m, t in pairs]
    programs = _programs(pairs)
    ranks = [_rank_correlation([(t, m.us) for m, t in each]) for each in programs if len(each) >= FEWEST_RANKED]
    regrets = [log(ratio) for ratio, *_ in choices(measured, times)]
    return Figures(
        count=len(pairs),
        near=sum(abs(e) <= log(NEAR) for e in errors) / len(errors),
        error=sqrt(sum(e * e for e in errors) / len(errors)),
        rank=sum(ranks) / len(ranks) if ranks else 1.0,
        choice=exp(sum(regrets) / len(regrets)),
    )


Timed = tuple[Measured, Prediction]


def choices(measured: Sequence[Measured], times: Sequence[Prediction]) -> list[tuple[float, Timed, Timed]]:
    """Of each program the time of the candidate that is predicted to be the fastest to that of the fastest; both."""
    found = []
    for each in _programs(list(zip(measured, times, strict=True))):
        chosen = min(each, key=lambda pair: pair[1].microseconds)
        best = min(each, key=lambda pair: pair[0].us)
        found.append((chosen[0].us / best[0].us, chosen, best))
    return found


def _programs(pairs: Iterable[tuple[Measured, Any]]) -> list[list[tuple[Measured, Any]]]:
    """The pairs of each program of each file."""
    programs = defaultdict(list)
    for m, t in pairs:
        programs[m.file, m.program].append((m, t))
    return list(programs.values())


def _part(
    measured: Sequence[Measured], times: Sequence[Prediction], field: str, value: str
) -> tuple[list[Measured], list[Prediction]]:
    """Those with a value of a field."""
    places = [i for i, m in enumerate(measured) if getattr(m, field) == value]
    return [measured[i] for i in places], [times[i] for i in places]


def _chosen(measured: Sequence[Measured], machine: MachineModel) -> str:
    """How the compiler's choice of all candidates compares with the fastest measured one, where it was measured."""
    target = target_of(machine.chip)
    ratios, programs = [], _programs((m, None) for m in measured)
    for each in programs:
        with suppress(ScheduleError):
            chosen = choose_schedule(each[0][0].problem, target, machine=machine)
            ratios += [m.us / min(m.us for m, _ in each) for m, _ in each if m.schedule == chosen]
    mean = exp(sum(map(log, ratios)) / max(1, len(ratios)))
    return f"choice {mean:.3f} in {len(ratios)} programs of {len(programs)} whose choice was measured"


def _rank_correlation(pairs: Sequence[tuple[float, float]]) -> float:
    """Spearman's correlation of the two numbers of each pair."""
    ranks = []
    for side in (0, 1):
        order = sorted(range(len(pairs)), key=lambda i: pairs[i][side])
        rank = [0] * len(pairs)
        for place, i in enumerate(order):
            rank[i] = place
        ranks.append(rank)
    n = len(pairs)
    return 1 - 6 * sum((a - b) ** 2 for a, b in zip(*ranks, strict=True)) / (n * (n * n - 1))


def _line(m: Measured, t: Prediction) -> str:
    layout, loop = m.schedule.layout, m.schedule.persistent_loop
    how = f"warps {layout.warps} repeats {layout.repeats} blocks {layout.blocks}"
    how += f" {loop.grid_reduction}" if loop else ""
    times = f"{t.microseconds:.1f} us predicted ({t.bound}), {m.us:.1f} measured"
    return f"{times}: {m.program[:60]}, tile {m.schedule.tile} {how}"


def plot(measured: Sequence[Measured], times: Sequence[Prediction], path: Path) -> None:
    """Writes a scatter plot of predicted and measured times; nothing where matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("matplotlib is missing: no plot", file=sys.stderr)
        return
    figure = Figure(figsize=(6, 6), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", xlabel="measured, us", ylabel="predicted, us")
    for family in dict.fromkeys(m.family for m in measured):
        part = [(m.us, t.microseconds) for m, t in zip(measured, times, strict=True) if m.family == family]
        axes.scatter(*zip(*part, strict=True), s=4, label=family, alpha=0.6, linewidths=0)
    ends = min(m.us for m in measured), max(m.us for m in measured)
    for ratio in (1 / NEAR, 1.0, NEAR):
        axes.plot(ends, [ratio * end for end in ends], color="black", linewidth=0.5)
    axes.legend(markerscale=3, frameon=False)
    figure.savefig(path, dpi=120)


def read(path: Path) -> list[Measured]:
    """The candidates of a file of `candidates.py`, or of its reduced form; without contractions and failures."""
    text = path.read_text()
    if path.suffix == ".jsonl":
        entries = (json.loads(line) for line in text.splitlines())
        return [m for entry in entries if (m := _measured(entry, path.stem)) is not None]
    plain = json.loads(text)
    layouts = [BlockedLayout(**dict(zip(WAYS, map(tuple, each), strict=False))) for each in plain["layouts"]]
    found = []
    for program in plain["programs"]:
        problem = _problem(program["problem"])
        for family, schedule, us, registers, stack in program["candidates"]:
            made = _schedule(schedule, layouts)
            found.append(Measured(path.stem, program["program"], family, problem, made, us, registers, stack))
    return found


def sample(measured: Sequence[Measured]) -> list[Measured]:
    """`MOST` candidates of each program at most, from the fastest to the slowest of them."""
    programs: dict[str, list[Measured]] = defaultdict(list)
    for m in measured:
        programs[m.program].append(m)
    found = []
    for each in programs.values():
        each.sort(key=lambda m: m.us)
        places = range(len(each)) if len(each) <= MOST else [i * (len(each) - 1) // (MOST - 1) for i in range(MOST)]
        found += [each[i] for i in places]
    return found


def reduced(measured: Sequence[Measured]) -> str:
    """The reduced form: each program's problem once, each layout once, and no field that has its default."""
    layouts: dict[BlockedLayout, int] = {}
    programs: dict[str, dict[str, Any]] = {}
    for m in sample(measured):
        entry = programs.setdefault(
            m.program, {"program": m.program, "problem": _short(m.problem, layouts), "candidates": []}
        )
        us = float(f"{m.us:.4g}")
        entry["candidates"].append([m.family, _short(m.schedule, layouts), us, m.registers, m.stack])
    ways = [[list(getattr(layout, way)) for way in WAYS] for layout in layouts]
    for way in ways:
        while not way[-1]:
            way.pop()
    body = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in programs.values())
    return f'{{"layouts":{json.dumps(ways, separators=(",", ":"))},\n"programs":[\n{body}\n]}}\n'


def _short(value: Any, layouts: dict[BlockedLayout, int]) -> Any:
    """A dataclass without the fields that have their defaults; a layout as its number."""
    if isinstance(value, BlockedLayout):
        return layouts.setdefault(value, len(layouts))
    if is_dataclass(value):
        each = ((f, getattr(value, f.name)) for f in fields(value))
        return {f.name: _short(v, layouts) for f, v in each if f.default is MISSING or v != f.default}
    if isinstance(value, tuple | frozenset):
        return [_short(v, layouts) for v in (sorted(value) if isinstance(value, frozenset) else value)]
    return value


def _measured(entry: dict[str, Any], file: str) -> Measured | None:
    """An entry of `candidates.py`; None for chosen schedules, contractions, failures, and unknown extents."""
    if entry.get("chosen") or "us" not in entry or entry["kind"] != "rows":
        return None
    problem = _with_shapes(_problem(entry["problem"]), entry["shapes"])
    if problem is None:
        return None
    schedule = _schedule(entry["schedule"], [])
    stack = max(entry["stack"], default=0)
    program, family, us, registers = (entry[name] for name in ("program", "family", "us", "registers"))
    return Measured(file, program, family, problem, schedule, us, registers[0], stack)


def _with_shapes(problem: Problem, shapes: Sequence[Sequence[int]]) -> Problem | None:
    """The problem with the extents that were expected, as those of the call are, or else with that of its dynamic
    dimension, which the largest argument has; None if it has several.
    """
    problem = replace(problem, extents=problem.expected, hints=())
    if None not in problem.extents:
        return problem
    if problem.extents.count(None) > 1:
        return None
    rest = max(prod(shape) for shape in shapes) // prod(extent for extent in problem.extents if extent is not None)
    return replace(problem, extents=tuple(rest if extent is None else extent for extent in problem.extents))


def _problem(plain: dict[str, Any]) -> Problem:
    """A problem; what problems of other versions of the compiler had besides is left out."""
    parts: dict[str, Any] = {name: _loop(plain[name]) for name in ("persistent_loop", "finer_loop") if plain.get(name)}
    if plain.get("transposed"):
        parts["transposed"] = TransposedProblem(**plain["transposed"])
    if grid := plain.get("grid_persistent"):
        parts["grid_persistent"] = GridPersistentProblem(**grid | {"dims": tuple(grid["dims"])})
    parts |= {name: _tuple(value) for name, value in plain.items() if isinstance(value, list)}
    parts["reduced"] = frozenset(plain["reduced"])
    parts["reductions"] = _reductions(plain.get("reductions", ()))
    parts["shared_instructions"] = tuple(
        SharedInstructions(
            frozenset(shared["dims"]), shared["instructions"], shared["special"], shared.get("double", 0.0)
        )
        for shared in plain.get("shared_instructions", ())
    )
    parts["arrays"] = tuple(_array(array) for array in plain.get("arrays", ()))
    parts.setdefault("repeated_early", parts.get("repeated", (0.0, 0.0, 0.0)))
    found = Problem(**{name: value for name, value in (plain | parts).items() if name in FIELDS})
    if "stores_last" in plain:
        return found
    # Earlier versions wrote all results last, in a pass of their own.
    is_written = found.full_bytes > found.read_bytes and not found.shares_reads
    return replace(found, stores_last=is_written or found.live_bytes > 0)


def _array(plain: dict[str, Any]) -> ArrayAccess:
    return ArrayAccess(**{name: _tuple(value) for name, value in plain.items()})


def _tuple(value: Any) -> Any:
    """A list of JSON as the tuple that it was, and those inside of it; a fraction of text."""
    if isinstance(value, str):
        return Fraction(value)
    return tuple(map(_tuple, value)) if isinstance(value, list) else value


def _loop(plain: dict[str, Any]) -> PersistentLoopProblem:
    parts = {name: _reductions(plain.get(name, ())) for name in ("inner_reductions", "outer_reductions")}
    return PersistentLoopProblem(**plain | parts | {"dims": tuple(plain["dims"]), "kept": frozenset(plain["kept"])})


def _reductions(plain: Iterable[dict[str, Any]]) -> tuple[RowReduction, ...]:
    return tuple(RowReduction(frozenset(p["dims"]), frozenset(p["kept"]), p["bytes"]) for p in plain)


def _schedule(plain: dict[str, Any], layouts: Sequence[BlockedLayout]) -> Schedule:
    """A schedule whose layouts are plain too, or numbers of `layouts`; what loops of other versions had is left out."""

    def layout(value: Any) -> BlockedLayout:
        if isinstance(value, int):
            return layouts[value]
        return BlockedLayout(**{name: tuple(each) for name, each in value.items()})

    parts: dict[str, Any] = {"tile": tuple(plain["tile"]), "layout": layout(plain["layout"])}
    if loop := plain.get("persistent_loop"):
        second = {"second_stage_layout": layout(loop["second_stage_layout"])}
        tuples = {name: tuple(loop[name]) for name in ("dims", "second_stage_tile")}
        known = {field.name for field in fields(PersistentLoop)}
        made = {name: value for name, value in (loop | second | tuples).items() if name in known}
        parts["persistent_loop"] = PersistentLoop(**made)
    if transposed := plain.get("transposed"):
        made = {"layout": layout(transposed["layout"]), "then": tuple(transposed.get("then", ()))}
        parts["transposed"] = TransposedTiles(**transposed | made)
    if grid := plain.get("grid_persistent"):
        parts["grid_persistent"] = GridPersistent(**{name: _tuple(value) for name, value in grid.items()})
    parts["grid_order"] = tuple(plain.get("grid_order", ()))
    return Schedule(**plain | parts)


if __name__ == "__main__":
    sys.exit(main())
