"""MLIR's diagnostics as plain data, and modules parsed with mlirfuse's own errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from mlir import ir

from mlirfuse.errors import IRError, MlirFuseError
from mlirfuse.source_locations import source_location
from mlirfuse.support.renamed_names import renamed

_OP = re.compile(r"fuse\.\w+")
_PLACE = re.compile(r"(.+?):(\d+)(?::(\d+))?", re.DOTALL)


@dataclass(frozen=True)
class Diagnostic:
    """One message about one place.

    Attributes:
        severity: `error`, `warning`, `remark` or `note`.
        message: the text; more than one line where MLIR prints IR with it.
        file: name of the file, `-` for text that has none; None where the location is unknown.
        line: counted from 1; 0 where the location is unknown.
        column: counted from 1; 0 where it is unknown.
        notes: the notes attached to it.
    """

    severity: str
    message: str
    file: str | None = None
    line: int = 0
    column: int = 0
    notes: tuple[Diagnostic, ...] = ()

    @property
    def place(self) -> str:
        """`file:line:column`, `file:line` where the column is not known, or `unknown location`."""
        if self.file is None:
            return "unknown location"
        return f"{self.file}:{self.line}:{self.column}" if self.column else f"{self.file}:{self.line}"

    def __str__(self) -> str:
        return "\n".join([f"{self.place}: {self.severity}: {self.message}", *map(str, self.notes)])


def at_place(severity: str, message: str, where: str | None, notes: tuple[Diagnostic, ...] = ()) -> Diagnostic:
    """A diagnostic at `file:line:column` or `file:line`; at an unknown location where the text is no place, or None."""
    match = _PLACE.fullmatch(where or "")
    if match is None:
        return Diagnostic(severity, message, notes=notes)
    return Diagnostic(severity, message, match[1], int(match[2]), int(match[3] or 0), notes)


def from_mlir(info: ir.Diagnostic | ir.DiagnosticInfo) -> Diagnostic:
    """The plain form of MLIR's diagnostic, which is only valid in its handler's call."""
    notes = tuple(from_mlir(note) for note in info.notes)
    return at_place(info.severity.name.lower(), info.message, source_location(info.location), notes)


def from_error(error: MlirFuseError) -> tuple[Diagnostic, ...]:
    """The diagnostics of an error: MLIR's own where MLIR caused it, else one diagnostic at the error's `where`."""
    cause = error.__cause__
    if isinstance(cause, ir.MLIRError) and cause.error_diagnostics:
        return tuple(from_mlir(info) for info in cause.error_diagnostics)
    found = at_place("error", error.message, error.where)
    if found.file is None and error.where:
        found = replace(found, message=f"{error.where}: {error.message}")
    return (found,)


def describe(error: ir.MLIRError) -> tuple[str, str | None]:
    """(message, place or None) of MLIR's exception, from its first diagnostic."""
    if not error.error_diagnostics:
        return error.message, None
    first = from_mlir(error.error_diagnostics[0])
    return first.message, None if first.file is None else first.place


def parse_module(text: str, context: ir.Context) -> ir.Module:
    """Parses and verifies a module; locations call the text `-`.

    Raises:
        IRError: the text does not parse or the module does not verify; `where` is `-:line:column`.
    """
    return _parse(lambda: ir.Module.parse(text), context)


def parse_file(path: str, context: ir.Context) -> ir.Module:
    """Parses and verifies the module in a file.

    Raises:
        IRError: the text does not parse or the module does not verify; `where` is `path:line:column`.
    """
    return _parse(lambda: ir.Module.parseFile(path), context)


def _parse(parse: Callable[[], ir.Module], context: ir.Context) -> ir.Module:
    try:
        with context:
            return parse()
    except ir.MLIRError as error:
        message, place = describe(error)
        hints = (renamed("op", name) for name in _OP.findall(message))
        raise IRError(message, where=place, hint=next(filter(None, hints), None)) from error
