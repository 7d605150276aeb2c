"""`fuse.operand_tile`: elements of the tile of a contraction's operand, as a tile of values.

```mlir
%t = "fuse.operand_tile"(%a) {first = 16 : i64, transposed} : (vector<64x128xf16>) -> vector<128x16xf16>
```

The operand is what a `vector.transfer_read` in the loop along k reads for `vector.contract`, in the order of memory.
The result has the accumulators' rank, with extent 1 in all but the last two dimensions: the operand's m (or n), then
its elements along k from `first` on. With `transposed` these dimensions are exchanged in the operand. The passes that
put the operand's tile into shared memory replace the op by a read of it: `fuse-pipeline-contraction` by
`fuse.staged_tile`, `fuse-stage-operands` by a `vector.transfer_read` of the slot.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.dialect.base import SINGLE, OpDefinition
from mlirfuse.dialect.stage_tile import TRANSPOSED, is_transposed


def _verify(op: ir.Operation) -> str | None:
    if not all(isinstance(value.type, ir.VectorType) for value in (op.operands[0], op.results[0])):
        return "operand and result must be tile vectors"
    source, result = (ir.VectorType(value.type) for value in (op.operands[0], op.results[0]))
    if source.element_type != result.element_type:
        return f"elements of {source} and {result} differ"
    extents, first = list(source.shape)[-2:], first_of(op)
    if is_transposed(op):
        extents.reverse()
    lead = [*list(source.shape)[:-2], *list(result.shape)[:-2]]
    rows, columns = list(result.shape)[-2:]
    fits = len(extents) == 2 and rows == extents[0] and 0 <= first <= extents[1] - columns
    fits = fits and all(extent == 1 for extent in lead)
    return None if fits else f"{result} from element {first} on is no part of {source} with its two longest dimensions"


def first_of(op: ir.Operation) -> int:
    """The first element along k."""
    return ir.IntegerAttr(op.attributes["first"]).value


DEFINITION = OpDefinition(
    "operand_tile", operands=(("source", SINGLE),), results=(("result", SINGLE),), attributes=("first",), verify=_verify
)


def operand_tile(source: ir.Value, extents: Sequence[int], first: int, *, transposed: bool) -> ir.Value:
    """Builds the op at the current insertion point; returns the tile of the given extents."""
    element = ir.VectorType(source.type).element_type
    attributes: dict[str, ir.Attribute] = {"first": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), first)}
    attributes |= {TRANSPOSED: ir.UnitAttr.get()} if transposed else {}
    op = ir.Operation.create(
        DEFINITION.full_name,
        results=[ir.VectorType.get(list(extents), element)],
        operands=[source],
        attributes=attributes,
    )
    return op.results[0]
