"""All microbenchmarks, in the order in which they run."""

from __future__ import annotations

from collections.abc import Sequence

from mlirfuse.errors import ArgumentError
from mlirfuse.target import Target
from mlirfuse.tools.calibration import arithmetic, latencies, launches, on_chip, streams, tensor_cores
from mlirfuse.tools.calibration.benchmark import Microbenchmark

BENCHMARKS = (
    *streams.BENCHMARKS,
    *latencies.BENCHMARKS,
    *on_chip.BENCHMARKS,
    *arithmetic.BENCHMARKS,
    *launches.BENCHMARKS,
    *tensor_cores.BENCHMARKS,  # last, as they heat the device
)

BY_NAME = {benchmark.name: benchmark for benchmark in BENCHMARKS}


def chosen(target: Target, only: Sequence[str] = ()) -> list[Microbenchmark]:
    """The benchmarks that an architecture has something for.

    Args:
        target: the architecture.
        only: quantities that are wanted; all by default.

    Raises:
        ArgumentError: a quantity that none measures there.
    """
    found = [benchmark for benchmark in BENCHMARKS if benchmark.exists_on(target)]
    known = {name for benchmark in found for name in benchmark.measures}
    if unknown := [name for name in only if name not in known]:
        hint = f"measured on {target.chip}: {', '.join(sorted(known))}"
        raise ArgumentError(f"{unknown[0]} is measured by no benchmark", where="--only", hint=hint)
    return [benchmark for benchmark in found if not only or set(only) & set(benchmark.measures)]
