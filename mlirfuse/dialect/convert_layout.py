"""`fuse.convert_layout`: moves tiles between the threads of a block, from the layouts of their producers to another
layout.

```mlir
%1 = "fuse.convert_layout"(%0) {fuse.layout = {lanes = array<i64: 4, 8>, vector = array<i64: 1, 8>, ...}}
    : (vector<64x64xbf16>) -> vector<64x64xbf16>
```

Result i is operand i in the layout of the op; all operands and results have one type. The tiles go through shared
memory, with one barrier for all of them, so all threads of the block must reach the op. Both layouts cover the tile
exactly and have the same number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.dialect.base import VARIADIC, OpDefinition


def _verify(op: ir.Operation) -> str | None:
    sources, results = ([value.type for value in values] for values in (op.operands, op.results))
    if not sources or sources != results:
        return "results must have the types of the operands, of which there must be at least one"
    scalar = [type_ for type_ in sources if not isinstance(type_, ir.VectorType)]
    return f"{scalar[0]} must be a tile vector" if scalar else None


DEFINITION = OpDefinition(
    "convert_layout",
    operands=(("sources", VARIADIC),),
    results=(("results", VARIADIC),),
    verify=_verify,
    needs_layout=True,
)


def convert_layout(tiles: Sequence[ir.Value]) -> ir.Operation:
    """Builds the op at the current insertion point."""
    return ir.Operation.create(DEFINITION.full_name, results=[tile.type for tile in tiles], operands=list(tiles))
