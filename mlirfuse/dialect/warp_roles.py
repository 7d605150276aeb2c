"""`fuse.warp_roles`: runs different programs in different warpgroups of a block (warp specialisation). Tile level only.

```mlir
"fuse.warp_roles"() ({
  ... what the consumers do: tiles spread over them by their layout ...
  vector.yield
}, {
  ... what the producer does: scalars, waits and asynchronous copies ...
  vector.yield
}) {warpgroups = array<i64: 2, 1>, registers = array<i64: 232, 40>} : () -> ()
```

The block's first `warpgroups[0]` warpgroups run the first region, the consumers'; the layout of the kernel's tiles
covers exactly these. One thread of the next `warpgroups[1]` warpgroups runs the second region, the producer's.
`registers` is the number of registers of a thread of each role, a multiple of 8 from 24 to 240. The regions synchronise
only through mbarriers. Only the end of the block's program, or a barrier of the cluster before that end, may follow the
op.

With `consumer_groups = t`, t groups of `warpgroups[0]` warpgroups run the first region concurrently, each on its own
tiles. The region then has the group's number as its argument, and its barriers are for one group.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.dialect.base import OpDefinition

CONSUMER_GROUPS = "consumer_groups"
"""The attribute; one consumer group without it."""


def consumer_groups_of(op: ir.Operation) -> int:
    """Number of consumer groups that run the consumers' region."""
    return ir.IntegerAttr(op.attributes[CONSUMER_GROUPS]).value if CONSUMER_GROUPS in op.attributes else 1


def _verify(op: ir.Operation) -> str | None:
    warpgroups = list(ir.DenseI64ArrayAttr(op.attributes["warpgroups"]))
    registers = list(ir.DenseI64ArrayAttr(op.attributes["registers"]))
    if len(warpgroups) != 2 or min(warpgroups) < 1:
        return f"warpgroups {warpgroups} must be two counts of at least 1"
    if len(registers) != 2 or any(count % 8 or not 24 <= count <= 240 for count in registers):
        return f"registers {registers} must be two multiples of 8 from 24 to 240"
    arguments = [value.type for value in op.regions[0].blocks[0].arguments]
    if consumer_groups_of(op) < 1 or arguments != ([ir.IndexType.get()] if CONSUMER_GROUPS in op.attributes else []):
        return (
            f"{consumer_groups_of(op)} consumer groups, and arguments of types {[str(t) for t in arguments]} for a "
            f"consumer group's number"
        )
    return None


DEFINITION = OpDefinition(
    "warp_roles",
    attributes=("warpgroups", "registers"),
    regions=("consumers", "producer"),
    verify=_verify,
)


def warp_roles(
    warpgroups: Sequence[int], registers: Sequence[int], consumer_groups: int = 1
) -> tuple[ir.Block, ir.Block]:
    """Builds the op at the current insertion point; returns its empty blocks, which end with `vector.yield`."""
    attributes: dict[str, ir.Attribute] = {
        "warpgroups": ir.DenseI64ArrayAttr.get(list(warpgroups)),
        "registers": ir.DenseI64ArrayAttr.get(list(registers)),
    }
    if consumer_groups > 1:
        attributes[CONSUMER_GROUPS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), consumer_groups)
    op = ir.Operation.create(DEFINITION.full_name, attributes=attributes, regions=2)
    consumers = ir.Block.create_at_start(op.regions[0], [ir.IndexType.get()] if consumer_groups > 1 else [])
    return consumers, ir.Block.create_at_start(op.regions[1], [])
