"""Fixtures shared by all tests, and test-only passes that need no compiler behind them."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from mlir import ir

from mlirfuse.compiler.context import make_context

# Two shared cores make wall-clock deadlines flaky; the seed is printed on failure.
settings.register_profile("ci", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci")

# JAX reserves three quarters of the device's memory when it is first used, which test processes beside it then lack.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def pytest_collection_finish() -> None:
    """Tells the garbage collector to leave alone what was imported and collected, which tests do not free."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture
def context() -> Iterator[ir.Context]:
    """A context with the fuse dialect, entered, with an unknown default location."""
    with make_context() as context, ir.Location.unknown():
        yield context
