"""Reductions of vectors: within a thread's fragment, over a tile's dimensions, and contractions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce

import numpy as np
from mlir import ir

from mlirfuse.dialect.attributes import PRECISION
from mlirfuse.dialect.contraction_family import family_of
from mlirfuse.interpreter.registry import pure
from mlirfuse.interpreter.rules.arith_float import BINARY as FLOAT
from mlirfuse.interpreter.rules.arith_int import BINARY as INT
from mlirfuse.interpreter.site import Site
from mlirfuse.interpreter.state.affine import plain_dims
from mlirfuse.interpreter.state.types import element_dtype, keyword
from mlirfuse.support.precision import TF32, to_tf32
from mlirfuse.target.instructions import DEFAULT_FAMILY, FAMILIES

Function = Callable[..., np.ndarray]


def combiner(kind: str, dtype: np.dtype) -> Function:
    """The elementwise function of a `vector.kind`."""
    if kind in ("add", "mul"):
        return FLOAT[f"{kind}f"] if np.dtype(dtype).kind not in "iub" else INT[f"{kind}i"]
    return {**INT, **FLOAT}[f"{kind}i" if kind in ("and", "or", "xor") else kind]


def reduce_axes(function: Function, source: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Combines a tile over axes, in the order of a NumPy reduction if there is one, otherwise in index order."""
    if isinstance(function, np.ufunc):
        return function.reduce(source, axis=axes, dtype=source.dtype)
    moved = np.moveaxis(source, axes, range(len(axes)))
    flat = moved.reshape(-1, *moved.shape[len(axes) :])
    return reduce(function, flat)


@pure("vector.reduction")
def _reduction(site: Site) -> Function:
    """Combines elements in index order, starting from the accumulator if there is one."""
    function = combiner(keyword(site.op.attributes["kind"]), element_dtype(site.op.operands[0].type))

    def apply(source: np.ndarray, *accumulator: np.ndarray) -> np.ndarray:
        elements = [source[:, position] for position in range(source.shape[1])]
        return reduce(function, [*accumulator, *elements])

    return apply


@pure("vector.multi_reduction")
def _multi_reduction(site: Site) -> Function:
    function = combiner(keyword(site.op.attributes["kind"]), element_dtype(site.op.operands[0].type))
    axes = tuple(1 + d for d in site.ints("reduction_dims"))

    def apply(source: np.ndarray, accumulator: np.ndarray) -> np.ndarray:
        return function(reduce_axes(function, source, axes), accumulator) if axes else function(source, accumulator)

    return apply


@pure("vector.contract")
def _contract(site: Site) -> Function:
    """Sums products in the accumulator's type, to which operands are widened first, as the tensor cores do.

    In tf32, operands are rounded as by the conversions for `mma.sync`, or by the TMA for `wgmma`.
    """
    if keyword(site.op.attributes["kind"]) != "add":
        raise site.error(f"kind {site.op.attributes['kind']}: only add is supported")
    maps = [plain_dims(ir.AffineMapAttr(m).value) for m in ir.ArrayAttr(site.op.attributes["indexing_maps"])]
    letters = ["".join("abcdefghijklm"[d] for d in dims if d is not None) for dims in maps]
    equation = f"z{letters[0]},z{letters[1]}->z{letters[2]}"
    dtype = element_dtype(site.op.results[0].type)
    narrow = _operand_rounding(site)

    def apply(a: np.ndarray, b: np.ndarray, accumulator: np.ndarray) -> np.ndarray:
        lanes = max(a.shape[0], b.shape[0])
        a, b = (np.broadcast_to(narrow(x.astype(dtype)), (lanes, *x.shape[1:])) for x in (a, b))
        return accumulator + np.einsum(equation, a, b, optimize=True)

    return apply


def _operand_rounding(site: Site) -> Function:
    """The rounding of a contraction's operands in its precision."""
    precision = site.op.attributes.get(PRECISION)
    if precision is None or ir.StringAttr(precision).value != TF32:
        return lambda a: a
    family = FAMILIES.get(family_of(site.op), FAMILIES[DEFAULT_FAMILY])
    return partial(to_tf32, ties=family.tf32_ties)
