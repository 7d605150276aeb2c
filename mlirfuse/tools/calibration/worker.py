"""The process that runs microbenchmarks, whose end, by a crash or a timeout, ends no other; see `runner`.

`python -m mlirfuse.tools.calibration.worker DEVICE NAME...` writes a line of JSON when it begins a benchmark and one
when it has its values, or the error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence

from mlirfuse.tools.calibration.benchmark import Gpu, Microbenchmark
from mlirfuse.tools.calibration.table import BY_NAME

Write = Callable[[dict[str, object]], None]


def run(gpu: Gpu, benchmarks: Sequence[Microbenchmark], write: Write) -> None:
    """Runs benchmarks, and writes what comes of each.

    Args:
        gpu: the device.
        benchmarks: the benchmarks.
        write: takes `{"begins": name}`, then `{"name": name, "values": {quantity: [value, ...]}}` or
            `{"name": name, "error": text}`.
    """
    for benchmark in benchmarks:
        write({"begins": benchmark.name})
        try:
            runs = [benchmark.run(gpu) for _ in range(benchmark.repeats)]
        except Exception as error:  # noqa: BLE001 (one benchmark's failure must not end the others)
            write({"name": benchmark.name, "error": f"{type(error).__name__}: {error}".partition("\n")[0]})
        else:
            write({"name": benchmark.name, "values": {name: [run[name] for run in runs] for name in runs[0]}})


def main(arguments: Sequence[str]) -> None:
    """Runs the benchmarks that are named on the device that comes first."""
    from mlirfuse.tools.calibration.cuda_gpu import CudaGpu

    device, *names = arguments
    run(CudaGpu(int(device)), [BY_NAME[name] for name in names], _print)


def _print(message: dict[str, object]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
