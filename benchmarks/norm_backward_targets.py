"""The targets of the norms' backward passes against torch.add of the same size and against peers."""

from __future__ import annotations

from backward_peers import LIGER, MIX_ON, QUACK
from report import MLIRFUSE, Check, Measurement, Results, at_least, at_most, geomean

Shape = tuple[int, int]

TABLE: tuple[Shape, ...] = (
    (576000, 384),
    (131072, 768),
    (65536, 1024),
    (32768, 2048),
    (32768, 4096),
    (16384, 8192),
    (8192, 16384),
)
"""The sizes at which every peer has to be beaten."""

EXTRA: tuple[Shape, ...] = (
    (4096, 20480),
    (8192, 32768),
    (2048, 65536),
    (131072, 1600),
    (65536, 5140),
    (1024, 4096),
)
"""Large, odd and small sizes, measured against the ceiling only."""

CEILING, SPLIT = "torch.add", "mlirfuse mix-order off"
RIVALS = (MIX_ON, QUACK, LIGER)
SPLIT_SHAPE: Shape = (576000, 384)
"""Where one pass has to beat split kernels by the most."""


def checks(results: Results) -> list[Check]:
    """The targets that this run can speak to."""
    shares = [(m, r) for m in results.measurements if (r := m.ratio(MLIRFUSE)) is not None]
    found = []
    table = [r for m, r in shares if (m.rows, m.columns) in TABLE]
    if table:
        found.append(at_least("geomean of torch.add", geomean(table), 0.92))
    for m, ratio in shares:
        bound = 0.85 if (m.rows, m.columns) in TABLE else 0.75
        found.append(at_least(f"{_name(m)}: share of torch.add", ratio, bound))
        found += [_faster(m, rival) for rival in RIVALS if rival in m.microseconds]
        if SPLIT in m.microseconds and (m.rows, m.columns) == SPLIT_SHAPE:
            speedup = m.microseconds[SPLIT] / m.microseconds[MLIRFUSE]
            found.append(at_least(f"{_name(m)}: speedup over split kernels", speedup, 1.7))
        if m.stack_bytes is not None:
            found.append(at_most(f"{_name(m)}: bytes of stack", m.stack_bytes, 0))
        if m.repeatable is not None:
            found.append(at_least(f"{_name(m)}: equal bits in many runs", float(m.repeatable), 1))
    first = [m.first_call_seconds for m in results.measurements if m.first_call_seconds is not None]
    if first:
        found.append(at_most("slowest first call, s", max(first), 0.6))
    found += [
        at_most(f"{a.kernel} {a.columns}: error, of torch's", a.error / a.torch_error, 2.0)
        for a in results.accuracy
        if a.torch_error > 0
    ]
    return found


def _name(m: Measurement) -> str:
    return f"{m.kernel} {m.rows} x {m.columns}"


def _faster(m: Measurement, rival: str) -> Check:
    speedup = m.microseconds[rival] / m.microseconds[MLIRFUSE]
    return Check(f"{_name(m)}: against {rival}", speedup, "> 1", speedup > 1)
