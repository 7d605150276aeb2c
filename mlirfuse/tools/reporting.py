"""Helpers of all commands: errors on standard error, exit codes, and atomic writes of files."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from mlirfuse.errors import ArgumentError, IRError, MlirFuseError

TRACEBACK_VARIABLE = "MLIRFUSE_TRACEBACK"
"""Set this environment variable to see where in mlirfuse an error came from."""

STREAM = "-"
"""The file name of standard input and output."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are `ArgumentError`, so that every bad input exits with 1."""

    def error(self, message: str) -> NoReturn:
        raise ArgumentError(message, hint=f"{self.prog} --help lists all options")


def run_tool(tool: str, body: Callable[[], int]) -> int:
    """Runs a command and returns its exit code: 1 where it raises, after the error is reported."""
    try:
        return body()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (the outermost frame of a command)
        if os.environ.get(TRACEBACK_VARIABLE):
            traceback.print_exc()
        with contextlib.suppress(BrokenPipeError):
            print(f"{tool}: {_described(error)}", file=sys.stderr)
        return 1


def _described(error: BaseException) -> str:
    """The text of an error that ends a command."""
    match error:
        case MlirFuseError():
            return f"error: {error}"
        case OSError():
            where = f"{error.filename}: " if error.filename else ""
            return f"error: {where}{error.strerror or error}"
        case MemoryError():
            return f"error: there is not enough memory: {error}"
        case KeyboardInterrupt():
            return "interrupted"
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    bug = f"  hint: this is a bug in mlirfuse; {TRACEBACK_VARIABLE}=1 shows where"
    return f"internal error: {type(error).__name__}: {error}{notes}\n{bug}"


def read_text(path: str) -> str:
    """The text of a file, or of standard input for `-`; raises `OSError`, or `IRError` where it is not UTF-8."""
    try:
        data = sys.stdin.buffer.read() if path == STREAM else Path(path).read_bytes()
        return data.decode()
    except UnicodeDecodeError as error:
        raise IRError(f"not a text file: byte {error.start} is not UTF-8", where=path) from None


def write_text(path: str, text: str) -> None:
    """Writes a file whole or not at all, or standard output for `-`; raises `OSError`."""
    if path == STREAM:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_bytes(Path(path), text.encode())


def write_bytes(target: Path, data: bytes) -> None:
    """Writes a file whole or not at all; raises `OSError`."""
    if target.exists() and not target.is_file():  # /dev/null and pipes cannot be replaced
        target.write_bytes(data)
        return
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        error.filename = str(target)  # names the file asked for, not the temporary one
        raise
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)  # mkstemp's files are private
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
