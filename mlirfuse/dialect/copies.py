"""The attributes of copies: where a view would do, but the memory has to be another."""

from __future__ import annotations

from mlirfuse.dialect.attribute import I64, INTEGERS, declare

COPIED = declare(
    "copied",
    I64,
    ("linalg.generic",),
    "On an elementwise op that yields its inputs: the result of the host function that it writes to memory of its own,"
    " or -1 for the source of a reshape and the parts of a joined result. Without it, the host would make a view.",
    set_by="passes/views/copies",
    read_by="analysis/memory/host_views",
)
COPIED_RESULTS = declare(
    "copied_results",
    INTEGERS,
    ("func.func",),
    "The results of the function that have to be arrays of their own, and no views.",
    set_by="compiler",
    read_by="fuse-copy-results",
)
