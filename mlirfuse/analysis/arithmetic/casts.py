"""Pairs of consecutive casts that one cast replaces."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

CASTS = frozenset(
    {
        "arith.extf",
        "arith.truncf",
        "arith.extsi",
        "arith.extui",
        "arith.trunci",
        "arith.sitofp",
        "arith.uitofp",
    }
)
"""The casts that `joined` knows."""

HALF = 16
"""Bits of the types in half precision."""

SAME = "same"
"""The name of the cast that changes nothing."""


def joined(first: ir.Operation, second: ir.Operation, *, through_rounding: bool = False) -> str | None:
    """The single cast with the same result as `first` followed by `second`; None if there is none.

    Widening is exact, so a later cast can start from the narrow type. Roundings stay, unless `through_rounding` allows
    that a rounding to half precision is omitted; roundings to float8 and to single precision always stay.

    Args:
        first: a cast of scalars or vectors.
        second: a cast of the result of `first`.
        through_rounding: whether a rounding to half precision may be omitted.

    Returns:
        The name of an op, or `SAME` where the second result is the first operand.
    """
    source, target = element_type(first.operands[0].type), element_type(second.results[0].type)
    if first.name == "arith.extf" and second.name in ("arith.extf", "arith.truncf"):
        return _float_cast(source, target)
    if first.name == "arith.truncf" and second.name in ("arith.extf", "arith.truncf"):
        by_the_way = through_rounding and element_type(first.results[0].type).width == HALF
        return _float_cast(source, target) if by_the_way else None
    if first.name in ("arith.extsi", "arith.extui"):
        return _after_extension(first.name, second.name, source, target)
    if first.name == second.name == "arith.trunci":
        return "arith.trunci"
    return None


def element_type(type_: ir.Type) -> ir.Type:
    """The element type of a vector type; any other type itself."""
    return type_.element_type if isinstance(type_, ir.VectorType) else type_


def _float_cast(source: ir.Type, target: ir.Type) -> str | None:
    if source == target:
        return SAME
    if source.width == target.width:  # f16 and bf16: neither holds the other
        return None
    return "arith.extf" if target.width > source.width else "arith.truncf"


def _after_extension(extension: str, second: str, source: ir.Type, target: ir.Type) -> str | None:
    """The cast of the narrow integer that replaces `second` after an extension; None if there is none."""
    if second == "arith.trunci":
        if source == target:
            return SAME
        return extension if target.width > source.width else "arith.trunci"
    if second == extension or (extension == "arith.extui" and second == "arith.extsi"):
        return extension
    if second == "arith.sitofp":
        return "arith.sitofp" if extension == "arith.extsi" else "arith.uitofp"
    return "arith.uitofp" if (extension, second) == ("arith.extui", "arith.uitofp") else None


def rounds_ties_away(cast: ir.Operation) -> bool:
    """Whether an `arith.truncf` rounds to nearest with ties away from zero, as roundings to tf32 do."""
    mode = cast.attributes.get("roundingmode")
    return mode is not None and ir.IntegerAttr(mode).value == arith.RoundingMode.to_nearest_away
