"""Random fusion graphs: the tensor, tile and gpu levels agree with each other and with float64, within rounding.

MLIRFUSE_FUZZ_GRAPHS sets how many (`make fuzz`); the number in a test's name is the graph's seed.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from compiling import module_at
from graphs import WIDE, graph_from_seed

import mlirfuse as mf
from mlirfuse import interpreter

GRAPHS = int(os.environ.get("MLIRFUSE_FUZZ_GRAPHS", "200"))


@pytest.mark.parametrize("seed", range(GRAPHS))
def test_levels_agree(seed: int) -> None:
    graph = graph_from_seed(seed)
    arrays = graph.arrays()
    order = {"order": "random", "seed": seed} if seed % 3 == 0 else {}
    try:
        results = {}
        for stage in ("linalg", "tile", "gpu"):
            module = module_at(stage, graph.function, graph.specs())
            results[stage] = interpreter.run(module, "graph", arrays, **order)
            graph.check(results[stage], arrays, f"{stage} level")
        graph.check_equal(results["linalg"], results["tile"], arrays, "linalg and tile level")
        graph.check_equal(results["tile"], results["gpu"], arrays, "tile and gpu level")
    except mf.MlirFuseError as error:
        pytest.fail(f"{error}{graph!r}")


@pytest.mark.parametrize("seed", range(10_000, 10_000 + GRAPHS // 10))
def test_calls_with_dynamic_rows(seed: int) -> None:
    """The signature that a call makes: leading extents dynamic, but for those that the graph needs as numbers."""
    graph = graph_from_seed(seed)
    arrays = graph.arrays()
    try:
        results = mf.fuse(graph.function, target="interpret")(*arrays)
    except mf.MlirFuseError as error:
        pytest.fail(f"{error}{graph!r}")
    graph.check([np.asarray(r) for r in results], arrays, "interpreted call")


@pytest.mark.parametrize("seed", range(20_000, 20_000 + GRAPHS // 20))
def test_calls_with_wide_rows(seed: int) -> None:
    graph = graph_from_seed(seed, WIDE)
    arrays = graph.arrays()
    try:
        results = mf.fuse(graph.function, target="interpret")(*arrays)
    except mf.MlirFuseError as error:
        pytest.fail(f"{error}{graph!r}")
    graph.check([np.asarray(r) for r in results], arrays, "interpreted call")
