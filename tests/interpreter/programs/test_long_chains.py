"""Functions of many operations, each of which reads what the one before computes."""

from __future__ import annotations

import numpy as np

import mlirfuse as mf

STEPS = 250


def test_horner_scheme() -> None:
    """Longer than Python's stack is deep, with three levels an operation."""

    def polynomial(x):
        y = x * 0 + 1.0
        for step in range(STEPS):
            y = y * x + 1.0 / (step + 1)
        return y

    x = np.linspace(-0.9, 0.9, 64, dtype=np.float32)
    found = mf.fuse(polynomial, target="interpret")(x)
    np.testing.assert_allclose(np.asarray(found), polynomial(x.astype(np.float64)), rtol=1e-4)
