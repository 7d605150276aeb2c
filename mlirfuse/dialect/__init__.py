"""The `fuse` dialect: ops and attributes that upstream MLIR lacks. Each op has a file, whose docstring is its
reference.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from io import BytesIO
from pkgutil import iter_modules

from mlir import ir
from mlir.dialects import irdl
from mlir.dialects._ods_common import _cext

from mlirfuse.dialect.base import OpDefinition

_cext.globals.append_dialect_search_prefix(__name__)  # the package of `fuse.py`

OPS: dict[str, OpDefinition] = {}
"""Every op of the dialect, by its full name: each module of this package that has a `DEFINITION` is one."""

for _module in iter_modules(__path__):
    _found = getattr(import_module(f"{__name__}.{_module.name}"), "DEFINITION", None)
    if isinstance(_found, OpDefinition):
        OPS[_found.full_name] = _found


def load(context: ir.Context) -> None:
    """Registers the dialect in a context, unless it is registered already.

    IRDL may load a dialect only once: a second load into the same context would abort the process.
    """
    with context, ir.Location.unknown():
        irdl.load_dialects(ir.Module.parse(_definition(), context))


@cache
def _definition() -> bytes:
    """The dialect's definition as bytecode, which is read in half of the time that it takes to build it."""
    with ir.Context(load_on_create_dialects=["irdl"]), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            dialect = irdl.dialect("fuse")
            with ir.InsertionPoint(dialect.body):
                for definition in OPS.values():
                    definition.declare()
        written = BytesIO()
        module.operation.write_bytecode(written)
        return written.getvalue()
