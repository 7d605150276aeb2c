"""One thread's products of `toy_fma`: those of `fma`."""

from __future__ import annotations

from mlirfuse.distribution.mma.contract import Multiply
from mlirfuse.distribution.mma.families.fma import product_by_fma

STRATEGY: Multiply = product_by_fma
