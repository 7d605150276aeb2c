"""`fuse.convert_layout`: moves tiles between the threads of a block, from the layouts of their producers to another
layout.

```mlir
%1 = "fuse.convert_layout"(%0) {fuse.layout = {lanes = array<i64: 4, 8>, vector = array<i64: 1, 8>, ...}}
    : (vector<64x64xbf16>) -> vector<64x64xbf16>
```

Result i is operand i in the layout of the op; all operands have one type, and all results. The tiles go through shared
memory, with one barrier for all of them, so all threads of the block must reach the op. Both layouts cover the tile
exactly and have the same number of threads. Results may have another shape of as many elements, which are taken in
row-major order; then a layout may reach past the end of the last dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir import ir

from mlirfuse.dialect.base import VARIADIC, OpDefinition


def _verify(op: ir.Operation) -> str | None:
    sources, results = ([value.type for value in values] for values in (op.operands, op.results))
    if not sources or len(sources) != len(results) or len({*sources}) > 1 or len({*results}) > 1:
        return "all operands must have one type, and so must as many results, of which there must be at least one"
    if scalar := [type_ for type_ in (*sources, *results) if not isinstance(type_, ir.VectorType)]:
        return f"{scalar[0]} must be a tile vector"
    source, result = ir.VectorType(sources[0]), ir.VectorType(results[0])
    if source.element_type != result.element_type or prod(source.shape) != prod(result.shape):
        return f"{result} must have the elements of {source}"
    return f"{result} must have the rank of {source}" if source.rank != result.rank else None


DEFINITION = OpDefinition(
    "convert_layout",
    operands=(("sources", VARIADIC),),
    results=(("results", VARIADIC),),
    verify=_verify,
    needs_layout=True,
)


def convert_layout(tiles: Sequence[ir.Value], shape: Sequence[int] | None = None) -> ir.Operation:
    """Builds the op at the current insertion point; results have a shape of their own if one is given."""
    types = [tile.type for tile in tiles]
    if shape is not None:
        types = [ir.VectorType.get(list(shape), ir.VectorType(type_).element_type) for type_ in types]
    return ir.Operation.create(DEFINITION.full_name, results=types, operands=list(tiles))
