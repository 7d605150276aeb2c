"""A machine model from what benchmarks measured, and a comparison with the shipped one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import median

from mlirfuse.errors import TargetError
from mlirfuse.machine.files import in_range
from mlirfuse.machine.model import QUANTITIES, MachineModel, Quantity
from mlirfuse.target import Target
from mlirfuse.tools.calibration.benchmark import Microbenchmark
from mlirfuse.tools.calibration.fitting import spread
from mlirfuse.tools.calibration.runner import Outcome


@dataclass(frozen=True)
class Measured:
    """A quantity that was to be measured.

    Attributes:
        quantity: the quantity.
        expected_spread: of its benchmark.
        values: of each run; empty where there is none.
        error: why there is none; empty where there is one.
    """

    quantity: Quantity
    expected_spread: float
    values: tuple[float, ...] = ()
    error: str = ""

    @property
    def value(self) -> float:
        """The median of its runs."""
        return median(self.values)

    @property
    def spread(self) -> float:
        """How far its runs lie apart, to their median."""
        return spread(self.values)

    @property
    def is_noisy(self) -> bool:
        """Whether its runs lie further apart than expected."""
        return self.spread > self.expected_spread


def measured(benchmarks: Sequence[Microbenchmark], outcomes: Mapping[str, Outcome]) -> Iterator[Measured]:
    """The quantities of benchmarks, each with its values or with why there are none.

    Args:
        benchmarks: the benchmarks.
        outcomes: what came of each, by its name.
    """
    for benchmark in benchmarks:
        outcome = outcomes.get(benchmark.name, Outcome(benchmark.name, error="it was not run"))
        for name in benchmark.measures:
            yield _measured(QUANTITIES[name], benchmark.spread, outcome)


def _measured(quantity: Quantity, expected_spread: float, outcome: Outcome) -> Measured:
    values = tuple(outcome.values.get(quantity.name, ()))
    if not values:
        return Measured(quantity, expected_spread, error=outcome.error or "it has no result")
    try:
        in_range(quantity, median(values), outcome.name)
    except TargetError as error:
        return Measured(quantity, expected_spread, error=f"{error.message}; {error.hint}")
    return Measured(quantity, expected_spread, values)


def model_of(name: str, target: Target, found: Sequence[Measured], base: MachineModel) -> MachineModel:
    """The model of a device.

    Args:
        name: the device's, as CUDA reports it.
        target: its architecture, with its SMs.
        found: what was measured.
        base: the model that has what was not.
    """
    source = f"measured {datetime.now(UTC):%Y-%m-%d} {name}"
    values = {each.quantity.name: each.value for each in found if each.values}
    sources = {**base.sources, **dict.fromkeys(values, source)}
    return replace(base, name=name, chip=target.chip, sms=target.sms, sources=sources, **dict[str, float](values))


_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"))


def shown(value: float, unit: str) -> str:
    """A value with its unit and the unit's prefix: `4.26 TB/s`, `360 ns`, `132 SM`."""
    if unit == "SM":
        return f"{value:g} SM"
    for factor, prefix in _PREFIXES:
        if value >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"
