"""`arith` constants, casts and select."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mlir import ir

from mlirfuse.analysis.arithmetic.casts import rounds_ties_away
from mlirfuse.interpreter.registry import pure, rule
from mlirfuse.interpreter.rules.arith_int import as_signed, as_unsigned
from mlirfuse.interpreter.site import Site
from mlirfuse.interpreter.state.lanes import expand
from mlirfuse.interpreter.state.types import constant_array, element_dtype
from mlirfuse.support.dtypes import rounded
from mlirfuse.support.precision import to_tf32

Function = Callable[..., np.ndarray]


@rule("arith.constant")
def _constant(site: Site) -> None:
    """Sets the slot of a constant when the function is compiled; a tensor constant has no thread axis."""
    array = constant_array(site.op.attributes["value"])
    tensor = isinstance(site.op.results[0].type, ir.RankedTensorType)
    site.compiler.preset(site.results[0], array if tensor else array[None])


@pure("arith.truncf")
def _narrow(site: Site) -> Function:
    target = site.op.results[0].type
    element = ir.VectorType(target).element_type if isinstance(target, ir.VectorType) else target
    if isinstance(element, ir.FloatTF32Type):
        if not rounds_ties_away(site.op):
            raise site.error("a truncf to tf32 must round to_nearest_away, as the hardware does")
        return to_tf32
    dtype = element_dtype(target)
    return lambda a: rounded(a, dtype)


@pure("arith.extf", "arith.sitofp")
def _to_float(site: Site) -> Function:
    dtype = element_dtype(site.op.results[0].type)
    return lambda a: rounded(as_signed(a), dtype)


@pure("arith.uitofp")
def _unsigned_to_float(site: Site) -> Function:
    dtype = element_dtype(site.op.results[0].type)
    return lambda a: rounded(as_unsigned(a), dtype)


@pure("arith.extsi", "arith.index_cast")
def _sign_extend(site: Site) -> Function:
    dtype = element_dtype(site.op.results[0].type)
    return lambda a: as_signed(a).astype(dtype)


@pure("arith.extui", "arith.index_castui")
def _zero_extend(site: Site) -> Function:
    dtype = element_dtype(site.op.results[0].type)
    return lambda a: as_unsigned(a).astype(dtype)


@pure("arith.trunci")
def _truncate(site: Site) -> Function:
    dtype = element_dtype(site.op.results[0].type)
    if dtype == np.bool_:
        return lambda a: (a & 1).astype(np.bool_)
    return lambda a: a.astype(dtype)


@pure("arith.fptosi", "arith.fptoui")
def _float_to_int(site: Site) -> Function:
    """Rounds towards zero and saturates, with 0 for NaN, as the device's `cvt` does."""
    dtype = element_dtype(site.op.results[0].type)
    target = np.dtype(f"u{dtype.itemsize}") if site.name == "arith.fptoui" else dtype
    limits = np.iinfo(target)

    def apply(a: np.ndarray) -> np.ndarray:
        wide = np.trunc(a.astype(np.float64))
        inside = np.where(np.isnan(wide), 0.0, np.clip(wide, float(limits.min), float(limits.max)))
        # The largest integer of 64 bits, as a float, is one too large to be converted back.
        top = inside >= float(limits.max)
        return np.where(top, limits.max, np.where(top, 0.0, inside).astype(target)).astype(target).view(dtype)

    return apply


@pure("arith.bitcast")
def _bitcast(site: Site) -> Function:
    dtype = element_dtype(site.op.results[0].type)
    return lambda a: a.view(dtype)


@pure("arith.select")
def _select(site: Site) -> Function:
    """Selects by one condition, or by one for each element; memrefs only by a condition that all threads agree on."""

    def apply(condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if not isinstance(a, np.ndarray):
            if not (condition == condition[0]).all():
                raise site.error("threads select different memrefs, which the interpreter does not support")
            return a if condition[0] else b
        return np.where(expand(condition, max(a.ndim, b.ndim)), a, b)

    return apply
