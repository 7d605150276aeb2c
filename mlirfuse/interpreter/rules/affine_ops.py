"""`affine.apply`, `affine.min` and `affine.max`."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
from mlir import ir

from mlirfuse.interpreter.registry import pure
from mlirfuse.interpreter.site import Site
from mlirfuse.interpreter.state.affine import compile_map


@pure("affine.apply", "affine.min", "affine.max")
def _affine(site: Site) -> Callable[..., np.ndarray]:
    evaluate = compile_map(ir.AffineMapAttr(site.op.attributes["map"]).value)
    combine = np.maximum if site.name == "affine.max" else np.minimum

    def apply(*operands: np.ndarray) -> np.ndarray:
        return np.atleast_1d(reduce(combine, evaluate(operands)))

    return apply
