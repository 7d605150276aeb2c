"""A machine model for another number of SMs, clock or architecture: what a model without figures of its own takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mlirfuse.machine.model import QUANTITIES, MachineModel
from mlirfuse.target import TARGETS, Target


def scaled(base: MachineModel, name: str, target: Target, clock: float | None = None) -> MachineModel:
    """The model of a device that is like another one save in its SMs, clock and instructions.

    Quantities of the whole device grow with the SMs, rates of an SM with the clock; latencies and costs stay. What the
    target has no instructions for becomes 0.

    Args:
        base: the model of the other device.
        name: of the device.
        target: its architecture, and its SMs.
        clock: its SM clock in Hz; by default the other one's.
    """
    clock = base.clock if clock is None else clock
    factors = {"device": target.sms / base.sms, "sm": clock / base.clock, "fixed": 1.0}
    values = {name: getattr(base, name) * factors[quantity.scope] for name, quantity in QUANTITIES.items()}
    values["clock"] = clock
    values |= {
        name: _whole(values[name], int(name[-1]), target.sms) for name in QUANTITIES if name[:-1] == "cluster_sms_"
    }
    values |= dict.fromkeys(absent(target), 0.0)
    sources = {name: _source(base, name, factors[QUANTITIES[name].scope]) for name in values}
    sources |= dict.fromkeys(absent(target), f"{target.chip} has none")
    return replace(base, name=name, chip=target.chip, sms=target.sms, sources=sources, **values)


def _whole(sms: float, cluster: int, most: int) -> float:
    """So many SMs as whole clusters hold: at least one where the device has the SMs."""
    return float(max(sms // cluster, most >= cluster) * cluster)


def _source(base: MachineModel, name: str, factor: float) -> str:
    prefix = f"{factor:.3g} x " if factor != 1 else "as "
    source = base.sources.get(name, "")
    return source if source.startswith(("as ", "data sheet")) and factor == 1 else f"{prefix}{base.name}: {source}"


def absent(target: Target) -> Iterator[str]:
    """The quantities that are 0 on an architecture, whose instructions they are of."""
    variants = [known for known in TARGETS.values() if known.architecture == target.architecture]
    missing = {
        "tma_": not any(known.has_tma for known in variants),
        "wgmma_": not any(known.has_wgmma for known in variants),
        "cluster_": not any(known.has_clusters for known in variants),
        "dsmem_": not any(known.has_clusters for known in variants),
        "dependent_launch": not any(known.has_dependent_launch for known in variants),
        "convert_f8": not any(known.has_float8_conversions for known in variants),
        "mma_f8": not any(known.has_float8_conversions for known in variants),
    }
    prefixes = tuple(prefix for prefix, is_missing in missing.items() if is_missing)
    return (name for name in QUANTITIES if name.startswith(prefixes or ("\0",)))
