"""`ub.poison`: a value that must not be used, set to the bits of uninitialised memory so that uses are visible."""

from __future__ import annotations

import numpy as np

from mlirfuse.interpreter.registry import rule
from mlirfuse.interpreter.rules.tensor_ops import poison
from mlirfuse.interpreter.site import Site
from mlirfuse.interpreter.state.types import element_dtype, vector_shape


@rule("ub.poison")
def _poison(site: Site) -> None:
    type_ = site.op.results[0].type
    value: np.ndarray = poison((1, *vector_shape(type_)), element_dtype(type_))
    site.compiler.preset(site.results[0], value)
