"""`fuse.resident_blocks`: the number of iterations of a tile program's loop over blocks that the device holds at once.

```mlir
%resident = "fuse.resident_blocks"() {per_sm = 2 : i64} : () -> index
%blocks = affine.min affine_map<()[s0, s1] -> (s0 ceildiv 4, s1)>()[%rows, %resident]
scf.forall (%block) in (%blocks) { ... scf.for %tile = %block to %tiles step %blocks ... }
```

The number of SMs times `per_sm`, or less where the kernel's registers or shared memory limit residency; if an iteration
is a cluster, the number counts whole clusters. The op bounds the grid of a persistent kernel. Its value is known only
at launch, so its one legal use is the bound of the `scf.forall`, directly or in an `affine.max` with the fewest blocks
that the kernel can do with: where the device holds fewer, the launch fails. The bound may be used inside the loop,
where it becomes the size of the grid.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import SINGLE, OpDefinition


def _verify(op: ir.Operation) -> str | None:
    per_sm = op.attributes["per_sm"]
    if not isinstance(per_sm, ir.IntegerAttr) or ir.IntegerAttr(per_sm).value < 1:
        return f"per_sm {per_sm} must be a positive integer"
    result = op.results[0].type
    return None if isinstance(result, ir.IndexType) else f"result {result} must be an index"


DEFINITION = OpDefinition("resident_blocks", results=(("blocks", SINGLE),), attributes=("per_sm",), verify=_verify)


def resident_blocks(per_sm: int) -> ir.Value:
    """Builds the op at the current insertion point."""
    attributes = {"per_sm": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), per_sm)}
    return ir.Operation.create(DEFINITION.full_name, results=[ir.IndexType.get()], attributes=attributes).results[0]
