"""`fuse.flat`, declared apart: the attribute of transfers of tiles that are runs of memory."""

from __future__ import annotations

from mlirfuse.dialect.attribute import UNIT, declare

FLAT = declare(
    "flat",
    UNIT,
    ("vector.transfer_read", "vector.transfer_write"),
    "The tile is a run of memory, and goes through shared memory as one.",
    set_by="fuse-flatten-tiles",
    read_by="distribution/memory/flat_tiles",
)
