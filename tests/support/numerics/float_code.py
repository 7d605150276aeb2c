"""Executes straight-line code of a lowered kernel in NumPy, with the roundings that the GPU's instructions have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from mlir import ir

from mlirfuse.compiler.context import make_context
from mlirfuse.passmanager.manager import Pipeline
from mlirfuse.support.diagnostics import parse_module
from mlirfuse.support.rewriting import defining_op, ops_named

Compute = Callable[..., Any]
"""What code computes of its float32 inputs, arrays or numbers."""

_LARGEST = np.finfo(np.float32).max


def fma(a: Any, b: Any, c: Any) -> Any:
    """`a b + c` of float32, rounded once: the sum of two float64 is rounded to odd before it is rounded to float32."""
    product, addend = a.astype(np.float64) * b, c.astype(np.float64)
    total = product + addend
    other = total - product
    rest = (product - (total - other)) + (addend - other)
    bits = total.view(np.int64)
    inexact = np.isfinite(total) & (rest != 0) & (bits % 2 == 0)
    towards = np.where((rest > 0) == (total > 0), bits + 1, bits - 1)
    return np.where(inexact, towards.view(np.float64), total).astype(np.float32)


def truncated_product(a: Any, b: Any) -> Any:
    """`mul.rz.f32`."""
    exact = a.astype(np.float64) * b
    nearest = exact.astype(np.float32)
    beyond = np.isfinite(exact) & (np.abs(nearest) > np.abs(exact))
    return np.where(beyond, np.nextafter(nearest, np.float32(0.0)), nearest)


def approximate_reciprocal(x: Any) -> Any:
    """`rcp.approx.ftz.f32`, a unit in the last place too small where it is a normal number."""
    flushed = np.where(np.abs(x) < np.float32(2.0**-126), np.copysign(np.float32(0.0), x), x)
    nearest = np.float32(1.0) / flushed
    is_normal = np.isfinite(nearest) & (nearest != 0)
    return np.where(is_normal, np.nextafter(nearest, np.float32(0.0)), nearest)


def approximate_inverse_root(x: Any) -> Any:
    """`rsqrt.approx.ftz.f32` of a normal number or infinity, two units in the last place too large."""
    nearest = (1.0 / np.sqrt(x.astype(np.float64))).astype(np.float32)
    return np.where(nearest == 0, nearest, nearest + 2 * np.spacing(nearest))


_INTRINSICS: dict[str, Callable[..., Any]] = {
    "llvm.nvvm.mul.rz.f": truncated_product,
    "llvm.nvvm.rcp.approx.ftz.f": approximate_reciprocal,
    "llvm.nvvm.rsqrt.approx.ftz.f": approximate_inverse_root,
}

_OPS: dict[str, Callable[..., Any]] = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.andi": np.bitwise_and,
    "arith.shrui": lambda a, b: (a.view(np.uint32) >> np.uint32(b)).view(np.int32),
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.mulf": np.multiply,
    "arith.addf": np.add,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.subf": np.subtract,
    "arith.negf": np.negative,
    "arith.minnumf": np.fmin,
    "arith.select": np.where,
    "math.absf": np.abs,
    "math.copysign": np.copysign,
    "math.fma": fma,
    "llvm.intr.fma": fma,
    "vector.broadcast": lambda x: x,
}
"""Vectors are their elements here, all of which are computed alike."""

_PREDICATES: dict[int, Callable[..., Any]] = {
    1: np.equal,
    2: np.greater,
    4: np.less,
    6: lambda a, b: (a < b) | (a > b),
    7: lambda a, b: ~(np.isnan(a) | np.isnan(b)),
}
"""Comparisons by the numbers of `arith.cmpf`: `oeq`, `ogt`, `olt`, `one` and `ord`."""


def evaluate(value: ir.Value, known: Mapping[ir.Value, Any]) -> Any:
    """The float32 array that a value is for arrays of what is known, elementwise.

    Raises:
        KeyError: an op is not known here.
    """
    found = dict(known)
    with np.errstate(all="ignore"):
        return _evaluate(value, found)


def _evaluate(value: ir.Value, found: dict[ir.Value, Any]) -> Any:
    if value not in found:
        op = defining_op(value)
        assert op is not None, "an argument that is not known"
        found[value] = _result(op, [_evaluate(operand, found) for operand in op.operands])
    return found[value]


def _result(op: ir.Operation, operands: list[Any]) -> Any:
    if op.name == "arith.constant":
        attribute = op.attributes["value"]
        if isinstance(attribute, ir.FloatAttr):
            return np.float32(attribute.value)
        return np.int32(ir.IntegerAttr(attribute).value)
    if op.name == "arith.bitcast":
        return operands[0].view(np.float32 if isinstance(op.results[0].type, ir.F32Type) else np.int32)
    if op.name == "arith.cmpf":
        return _PREDICATES[ir.IntegerAttr(op.attributes["predicate"]).value](*operands)
    if op.name == "llvm.call_intrinsic":
        return _INTRINSICS[ir.StringAttr(op.attributes["intrin"]).value](*operands)
    return _OPS[op.name](*operands)


def lowered(kernel: str, op: str, divisions: str) -> Compute:
    """What lowered code computes for a divisor, or for what a root is of, and for a dividend.

    Args:
        kernel: the text of a kernel of a dividend, a divisor, and the array that it stores the result of the op to.
        op: the text of the op, without its type.
        divisions: the pass that lowers divisions; `lower-math` lowers other ops.
    """
    module = parse_module(kernel, make_context())
    Pipeline.parse(f"builtin.module({'lower-math' if op.startswith('math') else divisions})").run(module)
    assert not ops_named(module.operation, op.split()[0])
    assert "llvm.sqrt" not in str(module)
    (func,) = ops_named(module.operation, "gpu.func")
    (store,) = ops_named(module.operation, "memref.store")
    x, s, _ = func.regions[0].blocks[0].arguments

    def compute(*values: Any, owner: Any = module) -> Any:
        return evaluate(store.operands[0], dict(zip((s, x), values, strict=False)))

    return compute
