"""Fixtures of the unit tests."""

from __future__ import annotations

import pytest

from tests.support.fakes.fake_driver import Driver, install


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    """A driver in CuPy's place that notes launches and allocations."""
    return install(monkeypatch)
