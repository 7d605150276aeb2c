"""What the survey is to show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from report import Check, at_least, at_most, geomean
from survey_results import LARGE_BYTES, MLIRFUSE, NOISE, UNFUSED, Row, share, speed

RANDOM, PRODUCTS = "random", "products"
SHARE = 0.85
"""Of the bandwidth of a long copy, from `LARGE_BYTES` on."""


def checks(rows: Sequence[Row]) -> list[Check]:
    """The targets of what was measured."""
    table = [row for row in rows if row.get("domain") != RANDOM]
    found = [
        *_of_speeds("table", _speeds(table), 1.2, 0.9),
        *_of_speeds(PRODUCTS, _speeds(r for r in rows if r.get("domain") == PRODUCTS), 1.05, 0.93),
        *_of_speeds(RANDOM, _speeds(r for r in rows if r.get("domain") == RANDOM), 1.2, 0.8),
    ]
    if speeds := _speeds(table):
        found.append(at_least("table: part at 1.0 or better", sum(s >= 1.0 for s in speeds) / len(speeds), 0.95))
    for row in rows:
        reached = share(row)
        if reached is not None and row["bound"] == "bytes" and row["bytes"] >= LARGE_BYTES:
            found.append(at_least(f"{row['name']}: of the bandwidth", reached, SHARE))
        unfused = row.get("speed", {}).get(UNFUSED)
        if unfused is not None:
            found.append(at_least(f"{row['name']}: over fusion off", unfused, 1 / NOISE))
        if "stack_bytes" in row:
            found.append(at_most(f"{row['name']}: bytes of stack", row["stack_bytes"], 0))
    first = [s for row in table if (s := row.get("first_call_seconds", {}).get(MLIRFUSE)) is not None]
    if first:
        found += [at_most("first call, most, s", max(first), 0.7), at_most("first call, s", geomean(first), 0.25)]
    predicted = [
        row["predicted_us"] / own
        for row in table
        if row.get("predicted_us") and (own := row.get("microseconds", {}).get(MLIRFUSE))
    ]
    if predicted:
        part = sum(0.75 <= p <= 1.25 for p in predicted) / len(predicted)
        found.append(at_least("predicted within 25 %", part, 0.8))
    return found


def _of_speeds(name: str, speeds: Sequence[float], mean: float, least: float) -> list[Check]:
    if not speeds:
        return []
    return [at_least(f"{name}: speed", geomean(speeds), mean), at_least(f"{name}: least", min(speeds), least)]


def _speeds(rows: Iterable[Row]) -> list[float]:
    return [s for row in rows if (s := speed(row)) is not None]
