"""Random fusion graphs on the GPU against float64; a failure prints the program and its seed."""

from __future__ import annotations

import numpy as np
import pytest
from gpu.torch_arrays import to_numpy, to_torch
from graphs import Graph, graphs
from hypothesis import HealthCheck, given, settings

import mlirfuse as mf

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@given(graph=graphs())
@settings(max_examples=400, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_graphs(graph: Graph) -> None:
    arrays = graph.arrays()
    try:
        results = mf.fuse(graph.function)(*map(to_torch, arrays))
    except mf.MlirFuseError as error:
        pytest.fail(f"{error}{graph!r}")
    graph.check([np.asarray(to_numpy(r)) for r in results], arrays, "GPU")
