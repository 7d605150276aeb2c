"""Declaration of an op of the `fuse` dialect: one frozen `OpDefinition` a file, registered through IRDL.

IRDL checks names, counts and required attributes. The definition's `verify` checks relations between types and ranges
of values, which IRDL cannot express; the `fuse-verify` pass calls it on every op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import irdl

SINGLE, OPTIONAL, VARIADIC = irdl.Variadicity.single, irdl.Variadicity.optional, irdl.Variadicity.variadic

Field = tuple[str, irdl.Variadicity]

INDICES = frozenset({"index", "stage", "rank", "row", "number", "offsets", "indices"})
"""Names of operands of type `index`."""


@dataclass(frozen=True)
class OpDefinition:
    """Names and counts of an op's operands, results and attributes.

    Attributes:
        name: the op's name without the dialect's prefix.
        operands: (name, variadicity) pairs, in order.
        results: (name, variadicity) pairs, in order.
        attributes: names of the required attributes.
        regions: names of the regions, in order; each ends with `vector.yield`, which is valid in any parent op.
        verify: returns what is wrong with an op, or None.
        needs_layout: whether the op touches memory or other threads on tiles, so that `fuse-assign-layouts` decides on
            a layout for it.
    """

    name: str
    operands: Sequence[Field] = ()
    results: Sequence[Field] = ()
    attributes: Sequence[str] = ()
    regions: Sequence[str] = ()
    verify: Callable[[ir.Operation], str | None] = lambda op: None
    needs_layout: bool = False

    @property
    def full_name(self) -> str:
        return f"fuse.{self.name}"

    def problem(self, op: ir.Operation) -> str | None:
        """What is wrong with an op that IRDL has checked, or None."""
        names = [name for name, _ in self.operands]
        names += names[-1:] * (len(op.operands) - len(names))  # only the last operand may be variadic
        for name, operand in zip(names, op.operands, strict=False):
            if name in INDICES and not isinstance(operand.type, ir.IndexType):
                return f"{name} must be an index, not {operand.type}"
        try:
            return self.verify(op)
        except ValueError as error:  # the bindings raise it for a type or an attribute of another kind
            return f"needs another kind of operand or attribute: {error}"

    def declare(self) -> None:
        """Emits the `irdl.operation` at the current insertion point."""
        op = irdl.operation_(self.name)
        with ir.InsertionPoint(op.body):
            # A constraint used twice would mean "the same type", so each field has its own constraint.
            if self.operands:
                names, counts = zip(*self.operands, strict=True)
                irdl.operands_([irdl.any() for _ in names], list(names), list(counts))
            if self.results:
                names, counts = zip(*self.results, strict=True)
                irdl.results_([irdl.any() for _ in names], list(names), list(counts))
            if self.attributes:
                names_attr = ir.ArrayAttr.get([ir.StringAttr.get(n) for n in self.attributes])
                irdl.attributes_([irdl.any() for _ in self.attributes], names_attr)
            if self.regions:
                irdl.regions_([irdl.region([]) for _ in self.regions], list(self.regions))
