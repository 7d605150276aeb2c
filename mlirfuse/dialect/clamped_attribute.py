"""`fuse.clamped`, declared apart: loads whose indices are clamped where nothing asks for what is read."""

from __future__ import annotations

from mlirfuse.dialect.attribute import UNIT, declare

CLAMPED = declare(
    "clamped",
    UNIT,
    ("memref.load", "vector.load"),
    "Where an index is clamped to its array, any element of that will do.",
    set_by="fuse-resolve-gathers",
    read_by="fuse-merge-loads",
)
