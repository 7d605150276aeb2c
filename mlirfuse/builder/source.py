"""Finds the user's source line, for the locations of ops and for errors."""

from __future__ import annotations

import inspect
import linecache
import os
import sys
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from types import CodeType, FrameType, TracebackType
from typing import TypeVar

from mlir import ir

from mlirfuse.errors import MlirFuseError
from mlirfuse.source_locations import shown

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_DEMOS = _PACKAGE + "tools" + os.sep  # functions that the command line traces are user code

ErrorT = TypeVar("ErrorT", bound=MlirFuseError)


@dataclass(frozen=True)
class Position:
    """A place in the user's code.

    Attributes:
        file: path as Python knows it.
        line: counted from 1.
        columns: (first, last) columns of the expression, counted from 0; None if Python has not recorded the columns.
        function: name of the function that the line is in.
    """

    file: str
    line: int
    columns: tuple[int, int] | None
    function: str

    @property
    def where(self) -> str:
        """`file:line`."""
        return f"{shown(self.file)}:{self.line}"

    @property
    def excerpt(self) -> str:
        """The source line with the expression underlined; empty where the source is not at hand."""
        text = linecache.getline(self.file, self.line).rstrip("\n")
        if not text.strip():
            return ""
        indent = len(text) - len(text.lstrip())
        excerpt = f"\n    {text[indent:]}"
        if self.columns is not None and self.columns[0] >= indent:
            excerpt += f"\n    {' ' * (self.columns[0] - indent)}{'^' * (self.columns[1] - self.columns[0])}"
        return excerpt

    def location(self, context: ir.Context) -> ir.Location:
        """The MLIR location `"function"("file":line:column)`."""
        column = 0 if self.columns is None else self.columns[0] + 1
        place = ir.Location.file(self.file, self.line, column, context=context)
        return ir.Location.name(self.function, place, context=context)


def user_frame() -> FrameType | None:
    """The innermost frame on the stack whose code is not part of mlirfuse."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_internal(frame.f_code):
        frame = frame.f_back
    return frame


def outermost_call() -> FrameType | None:
    """The frame of mlirfuse that the innermost user code called; None where user code runs."""
    frame: FrameType | None = sys._getframe(1)
    called = None
    while frame is not None and _is_internal(frame.f_code):
        frame, called = frame.f_back, frame
    return called


def position_of(frame: FrameType) -> Position:
    """The position that the frame executes."""
    return _position(frame.f_code, frame.f_lasti, frame.f_lineno)


def position_of_traceback(raised: TracebackType) -> Position:
    """The innermost position outside of mlirfuse that an error passed."""
    found = raised
    while (inner := raised.tb_next) is not None:
        found = found if _is_internal(inner.tb_frame.f_code) else inner
        raised = inner
    return _position(found.tb_frame.f_code, found.tb_lasti, found.tb_lineno)


def at_user_line(error: ErrorT) -> ErrorT:
    """Adds the user's `file:line` and source line to an error without a location; returns the error."""
    frame = user_frame()
    if error.where is not None or frame is None:
        return error
    position = position_of(frame)
    error.where = position.where
    error.message += position.excerpt
    error.args = (str(error),)
    return error


def position_of_function(fn: object) -> Position:
    """Where the function is defined; a callable without Python code gets the position of its caller."""
    code = getattr(inspect.unwrap(fn) if callable(fn) else fn, "__code__", None)
    if code is not None:
        return Position(code.co_filename, code.co_firstlineno, None, code.co_name)
    frame = user_frame()
    return Position("<unknown>", 0, None, "") if frame is None else position_of(frame)


@lru_cache(maxsize=1024)
def _is_internal(code: CodeType) -> bool:
    file = os.path.abspath(code.co_filename)
    return file.startswith(_PACKAGE) and not file.startswith(_DEMOS)


@lru_cache(maxsize=4096)
def _position(code: CodeType, instruction: int, line: int) -> Position:
    _, last_line, first, last = next(islice(code.co_positions(), instruction // 2, None), (None,) * 4)
    columns = (first, last) if first is not None and last is not None and last_line == line else None
    return Position(code.co_filename, line, columns, code.co_name)
