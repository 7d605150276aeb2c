"""The attribute by which kernels are chosen for the extents of a call, though they serve any."""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.attribute import Type, declare

EXTENT_HINTS = declare(
    "extent_hints",
    Type(
        "an array<i64> of extents, 0 where none is expected",
        lambda a: isinstance(a, ir.DenseI64ArrayAttr) and all(extent >= 0 for extent in a),
    ),
    (),
    "For each dimension of an array argument the extent that it is expected to have at run time; 0 where nobody says"
    " so, and where the type has a number. Schedules and fusion are chosen for these extents, and are right for all.",
    set_by="builder, fuse-hint-extents, fuse-collapse-dims",
    read_by="fuse-hint-extents, fuse-collapse-dims, compiler/problems",
    holders=("func.func", "gpu.func", "llvm.func"),
)


def hints_of(argument: dict[str, ir.Attribute], rank: int) -> list[int | None]:
    """The expected extents of an argument with these attributes; None where nobody expects one."""
    if EXTENT_HINTS not in argument:
        return [None] * rank
    known = [extent or None for extent in ir.DenseI64ArrayAttr(argument[EXTENT_HINTS])]
    return [*known, *[None] * rank][:rank]


def hints_attribute(extents: list[int | None]) -> ir.Attribute:
    """The attribute that says of an argument's dimensions what they are expected to be, in the current context."""
    return ir.DenseI64ArrayAttr.get([extent or 0 for extent in extents])
