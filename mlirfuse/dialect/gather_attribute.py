"""`fuse.gather`, declared apart: the attribute of arguments that are gathered views."""

from __future__ import annotations

from mlirfuse.dialect.attribute import DICTIONARY, declare

GATHER = declare(
    "gather",
    DICTIONARY,
    (),
    "On a tensor kernel's argument that is a gathered view: the op's attributes, the `source`'s type, and the source's"
    " `strides` where it is not C-contiguous.",
    set_by="dialect/gathered_view",
    read_by="tiling/program, analysis/contractions/problem",
    holders=("func.func",),
)
