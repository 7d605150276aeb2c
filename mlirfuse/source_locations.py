"""Source locations as text: `file:line:column`."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlir import ir


def shown(file: str) -> str:
    """A file as messages name it: relative to the working directory where it lies below it."""
    return _below(file, os.getcwd()) if os.path.isabs(file) else file


@lru_cache(maxsize=64)  # each remark of a pass names the user's file
def _below(file: str, folder: str) -> str:
    relative = os.path.relpath(file, folder)
    return file if relative.startswith("..") else relative


def source_location(location: ir.Location) -> str | None:
    """`file:line:column` of the innermost file location, which the builder sets to the user's line.

    Column 0 is one that is not known, and left out. A location that has a name and no file is its name; of several
    that were fused, the first that is known counts. None where nothing is known.
    """
    if location.is_a_file():
        column = f":{location.start_col}" if location.start_col else ""
        return f"{shown(location.filename)}:{location.start_line}{column}"
    if location.is_a_name():
        return source_location(location.child_loc) or location.name_str
    if location.is_a_callsite():
        return source_location(location.callee)
    if location.is_a_fused():
        return next((known for known in map(source_location, location.locations) if known is not None), None)
    return None
