"""What a survey found: rows on disk, what a program takes at least, and a summary."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from report import geomean
from rich.table import Table

MLIRFUSE, UNFUSED, EAGER, COMPILED = "mlirfuse", "fusion off", "eager", "torch.compile"
Row = dict[str, Any]

BYTES_PER_US = {"H200": 4.26e6, "H100": 3.0e6}
"""Of long copies, read and written, by a part of the GPU's name; measured (`results/`)."""

FLOPS_PER_US = {"float8_e4m3fn": 1979e6, "int8": 1979e6, "bfloat16": 989e6, "float16": 989e6, "float32": 67e6}
"""Dense products on Hopper, from its data sheet."""

LARGE_BYTES = 64e6
WORST = 10
NOISE = 1.05
"""How much longer a fused program may take than one of a kernel an operation."""


def read_rows(paths: Iterable[Path]) -> list[Row]:
    """The rows of several runs: of each program the last one that was measured, or else the last."""
    rows: dict[str, Row] = {}
    for path in paths:
        for line in path.read_text().splitlines():
            row = json.loads(line)
            if speed(row) is not None or speed(rows.get(row["name"], {})) is None:
                rows[row["name"]] = row
    return list(rows.values())


def append_row(path: Path, row: Row) -> None:
    """Adds a row, which is then on disk whatever happens next."""
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


def add_roofline(row: Row, gpu: str) -> None:
    """Adds the microseconds that bytes and products take at least, where the GPU is known."""
    rate = next((rate for name, rate in BYTES_PER_US.items() if name in gpu), None)
    if rate is None or "bytes" not in row:
        return
    moving, flops = row["bytes"] / rate, row.get("flops", 0.0)
    computing = flops / FLOPS_PER_US.get(row["product_dtype"], FLOPS_PER_US["float32"]) if flops else 0.0
    row["roofline_us"], row["bound"] = max(moving, computing), "bytes" if moving >= computing else "products"


def speed(row: Row) -> float | None:
    """How fast mlirfuse is relative to the faster of eager PyTorch and `torch.compile`; None where one has no time."""
    peers = [row.get("speed", {}).get(name) for name in (EAGER, COMPILED)]
    found = [peer for peer in peers if peer is not None]
    return min(found) if found else None


def share(row: Row) -> float | None:
    """The part of the roofline's rate that mlirfuse reaches."""
    own = row.get("microseconds", {}).get(MLIRFUSE)
    return row["roofline_us"] / own if own and "roofline_us" in row else None


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Figures of the whole and of each domain, as the results' file has them."""
    domains = dict.fromkeys(row["domain"] for row in rows if "domain" in row)
    return {
        "all": _figures(rows),
        "domains": {domain: _figures([r for r in rows if r.get("domain") == domain]) for domain in domains},
        "worst": [{"name": r["name"], "speed": speed(r)} for r in worst(rows)],
        "fused_slower": {
            r["name"]: r["speed"][UNFUSED] for r in rows if r.get("speed", {}).get(UNFUSED, 1.0) < 1 / 1.05
        },
        "wrong": [r["name"] for r in rows if r.get("wrong")],
        "failed": {r["name"]: r["failures"] for r in rows if speed(r) is None},
    }


def _figures(rows: Sequence[Row]) -> dict[str, Any]:
    speeds = [s for row in rows if (s := speed(row)) is not None]
    large = [s for r in rows if r.get("bound") == "bytes" and r["bytes"] >= LARGE_BYTES and (s := share(r)) is not None]
    unfused = [s for row in rows if (s := row.get("speed", {}).get(UNFUSED)) is not None]
    first = [s for row in rows if (s := row.get("first_call_seconds", {}).get(MLIRFUSE)) is not None]
    predicted = [
        row["predicted_us"] / row["microseconds"][MLIRFUSE]
        for row in rows
        if row.get("predicted_us") and MLIRFUSE in row.get("microseconds", {})
    ]
    return {
        "programs": len(rows),
        "measured": len(speeds),
        "geomean": geomean(speeds),
        "at_least_1": _part(speeds, lambda s: s >= 1.0),
        "least": min(speeds, default=None),
        "large_bytes_bound": len(large),
        "share_of_roofline": geomean(large),
        "share_at_least_0.85": _part(large, lambda s: s >= 0.85),
        "over_fusion_off": geomean(unfused) if unfused else None,
        "first_call_geomean": geomean(first),
        "first_call_most": max(first, default=None),
        "spilling": sum(bool(row.get("stack_bytes")) for row in rows),
        "predicted_within_25_percent": _part(predicted, lambda p: 0.75 <= p <= 1.25) if predicted else None,
    }


def _part(values: Sequence[float], holds: Any) -> float | None:
    return sum(map(holds, values)) / len(values) if values else None


def worst(rows: Sequence[Row]) -> list[Row]:
    """The slowest relative to PyTorch."""
    return sorted((row for row in rows if speed(row) is not None), key=lambda row: speed(row) or 0.0)[:WORST]


def domain_table(found: dict[str, Any]) -> Table:
    """One row a domain, and one of all."""
    table = Table(title="speed: the faster of eager PyTorch and torch.compile over mlirfuse", title_justify="left")
    columns = {
        "measured": "measured",
        "geomean": "speed",
        "at_least_1": ">= 1.0",
        "least": "least",
        "share_of_roofline": "of roofline",
        "over_fusion_off": "over fusion off",
        "first_call_geomean": "first call, s",
        "first_call_most": "most, s",
        "spilling": "spilling",
        "predicted_within_25_percent": "predicted",
    }
    table.add_column("domain")
    for title in columns.values():
        table.add_column(title, justify="right")
    for domain, figures in (*found["domains"].items(), ("all", found["all"])):
        table.add_row(domain, *(_number(figures[key]) for key in columns))
    return table


def program_table(title: str, rows: Sequence[Row]) -> Table:
    """Times of programs."""
    table = Table(title=title, title_justify="left")
    contestants = (MLIRFUSE, EAGER, COMPILED, UNFUSED)
    for column in ("program", *contestants, "speed", "of roofline", "kernels", "stack", "first, s"):
        table.add_column(column, justify="left" if column == "program" else "right")
    for row in rows:
        times = [_number(row.get("microseconds", {}).get(name), 1) for name in contestants]
        ratios = [_number(speed(row)), _number(share(row))]
        first = _number(row.get("first_call_seconds", {}).get(MLIRFUSE))
        table.add_row(
            row["name"], *times, *ratios, str(row.get("kernels", "-")), str(row.get("stack_bytes", "-")), first
        )
    return table


def _number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else str(value) if isinstance(value, int) else f"{value:.{digits}f}"
