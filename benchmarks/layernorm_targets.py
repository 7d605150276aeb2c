"""The targets of the row-wise kernels against copies and peers."""

from __future__ import annotations

from report import MLIRFUSE, Check, Results, at_least, at_most, geomean

RIVALS = ("torch.compile", "quack")
"""Those that mlirfuse must be faster than, at every size."""


def checks(results: Results) -> list[Check]:
    """The targets that this run can speak to."""
    found: list[Check] = []
    norms = results.of("layernorm")
    ratios = {m.columns: r for m in norms if (r := m.ratio(MLIRFUSE)) is not None}
    if ratios:
        found.append(at_least("LayerNorm: geomean of memcpy", geomean(ratios.values()), 0.95))
        found += [at_least(f"LayerNorm {n}: share of memcpy", ratio, 0.90) for n, ratio in ratios.items()]
        found += [at_least(f"LayerNorm {n}: against its neighbours", c, 0.95) for n, c in _cliffs(ratios).items()]
    for m in norms:
        for rival in RIVALS:
            if rival in m.microseconds and MLIRFUSE in m.microseconds:
                speedup = m.microseconds[rival] / m.microseconds[MLIRFUSE]
                found.append(Check(f"LayerNorm {m.columns}: against {rival}", speedup, "> 1", speedup > 1))
    for m in results.of("rms_norm", "softmax", "log_softmax"):
        ratio = m.ratio(MLIRFUSE)
        if ratio is not None:
            found.append(at_least(f"{m.kernel} {m.columns}: share of memcpy", ratio, 0.85))
    first = [m.first_call_seconds for m in results.measurements if m.first_call_seconds is not None]
    if first:
        found.append(at_most("slowest first call, s", max(first), 0.5))
    found += [
        at_most(f"{name}: host time, us", value, 8.0)
        for name, value in results.host_microseconds.items()
        if name.startswith("mlirfuse, out=")
    ]
    found += [
        at_most(f"{a.kernel} {a.columns}: error, of torch's", a.error / a.torch_error, 2.0)
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
