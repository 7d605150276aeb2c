"""The base class of passes, and their remarks.

A pass is a frozen dataclass. Its fields are its options; `name` is its name in a pipeline; the part
after the first dash names its file and its lit test. Its docstring says what it does, what it requires, and shows the
IR before and after. `run` gets the `builtin.module` operation and changes it in place.

A pass that does not apply reports why through `Remarks`, and leaves the IR alone. It raises `PassError` only where an
option or a schedule asks for something illegal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from mlir import ir

from mlirfuse.source_locations import source_location


@dataclass(frozen=True)
class Remark:
    """A message of a pass to the user.

    Attributes:
        pass_name: the pass that reports.
        kind: `applied` or `declined`.
        message: one sentence.
        place: `file:line:column` of the code concerned (a user's line, where the builder made the op); None if not
            known.
        function: the symbol of the function that the op concerned is in, such as a kernel's; None outside of functions.
    """

    pass_name: str
    kind: str
    message: str
    place: str | None = None
    function: str | None = None

    def __str__(self) -> str:
        where = f" ({self.place})" if self.place else ""
        return f"{self.pass_name}: {self.kind}: {self.message}{where}"


@dataclass
class Remarks:
    """Collects remarks over one run of a pipeline; `explain` prints them."""

    entries: list[Remark] = field(default_factory=list)

    def applied(self, pass_: Pass, message: str, op: ir.Operation | ir.OpView | None = None) -> None:
        """Records that the pass changed something."""
        self._add(pass_, "applied", message, op)

    def declined(self, pass_: Pass, message: str, op: ir.Operation | ir.OpView | None = None) -> None:
        """Records that the pass left something alone, and why."""
        self._add(pass_, "declined", message, op)

    def _add(self, pass_: Pass, kind: str, message: str, op: ir.Operation | ir.OpView | None) -> None:
        place, function = (None, None) if op is None else (source_location(op.location), _function_of(op.operation))
        self.entries.append(Remark(pass_.name, kind, message, place, function))


def _function_of(op: ir.Operation) -> str | None:
    """The symbol of the function that an op is, or is in."""
    around: ir.Operation | None = op
    while around is not None and around.name not in ("func.func", "gpu.func", "llvm.func"):
        parent = around.parent if around.attached else None
        around = None if parent is None else parent.operation
    return None if around is None else ir.StringAttr(around.attributes["sym_name"]).value


@dataclass(frozen=True)
class Pass:
    """Base of all passes; see the module's docstring for the conventions."""

    name: ClassVar[str]

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        raise NotImplementedError
