"""`fuse.operation`, `fuse.stored`, `fuse.viewed` and `fuse.deferred`, declared apart: of ops that share no kernel with
others, or leave results in memory for them.
"""

from __future__ import annotations

from mlirfuse.dialect.attribute import I64, UNIT, declare

OPERATION = declare(
    "operation",
    I64,
    None,
    'With `fusion="off"`, the number of the user\'s call that made a tensor op: ops of unequal ones share no kernel.',
    set_by="builder",
    read_by="analysis/segments/operations, passes/kernels/permuted_arrays",
)

STORED = declare(
    "stored",
    UNIT,
    None,
    "On a tensor op: its result is stored, by a kernel without the ops that read it.",
    set_by="fuse-store-operands",
    read_by="analysis/segments/operations",
)

VIEWED = declare(
    "viewed",
    UNIT,
    None,
    "On a tensor op: gathered views of its result are read from memory. `fuse-compose-together` takes it away.",
    set_by="fuse-store-viewed",
    read_by="passes/gathers",
)

DEFERRED = declare(
    "deferred",
    UNIT,
    None,
    "On a tensor op: it is in no kernel with a product, but in one that reads the product's result.",
    set_by="fuse-defer-epilogues",
    read_by="analysis/contractions/epilogues",
)
