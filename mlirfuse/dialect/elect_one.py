"""`fuse.elect_one`: true in one thread of each warp.

```mlir
%chosen = "fuse.elect_one"() : () -> i1
```

All threads of a warp execute the op together. The elected thread is the same throughout the kernel.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import SINGLE, OpDefinition

DEFINITION = OpDefinition("elect_one", results=(("chosen", SINGLE),))


def elect_one() -> ir.Value:
    """Builds the op at the current insertion point."""
    return ir.Operation.create(DEFINITION.full_name, results=[ir.IntegerType.get_signless(1)]).results[0]
