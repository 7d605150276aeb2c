"""Finds the function that `FILE.py:function` names, and the specs to compile it for."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeGuard, get_args

import mlirfuse as mf
from mlirfuse.api.options import Fusion
from mlirfuse.builder.spec import ScalarSpec, TensorSpec
from mlirfuse.errors import ArgumentError, MlirFuseError
from mlirfuse.target import DEFAULT, TARGETS, target_of
from mlirfuse.tools.commands.specs import parse_arguments, parse_spec

SPECS = "SPECS"
"""Name of a module-level dict from function names to lists of specs, which a file may have in place of `--arg`."""

PACKAGE = Path(mf.__file__).resolve().parent

Spec = TensorSpec | ScalarSpec


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that name the function, its argument types and the target."""
    parser.add_argument("function", metavar="FILE.py:FUNCTION", help="the function; decorated with mf.fuse or plain")
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="SPEC",
        help="an argument's type, in order: f16[?,4096], float. Default: SPECS[FUNCTION] of the file",
    )
    parser.add_argument("--target", metavar="CHIP", help=f"one of {', '.join(TARGETS)}; {DEFAULT} by default")
    parser.add_argument("--fusion", choices=get_args(Fusion), help="off: a kernel an operation; auto by default")


def compile_function(options: argparse.Namespace) -> Any:
    """Compiles the function that the arguments name.

    Raises:
        MlirFuseError: no such function, no specs, or what compiling raises.
    """
    target = None if options.target is None else target_of(options.target).chip
    module, name, function = load_function(options.function)
    specs = specs_for(options, module, name)
    fused: Any = function if hasattr(function, "lower") else mf.fuse(function, target=DEFAULT)
    if isinstance(function, mf.Fused):
        fused = fused.with_options(tune=False)  # nothing is called here; what was kept is taken all the same
    if target is not None:
        fused = fused.with_options(target=target)
    if options.fusion is not None:
        fused = fused.with_options(fusion=options.fusion)
    try:
        return fused.lower(*specs).compile()
    except MlirFuseError:
        raise
    except Exception as error:
        line = _line_of(error, Path(options.function.rpartition(":")[0]), and_no_deeper=True)
        if line is None:
            raise
        raise ArgumentError(f"{name} raises {type(error).__name__}: {error}", where=line) from error


def specs_for(options: argparse.Namespace, module: ModuleType, name: str) -> Sequence[Spec]:
    """The specs that the arguments give, or the file; raises `ArgumentError` where neither does."""
    return parse_arguments(options.arg) or _specs_of(module, name)


def load_function(text: str) -> tuple[ModuleType, str, Callable[..., Any]]:
    """(module, name, function) of `FILE.py:function`.

    Raises:
        ArgumentError: the text has another form, the file fails to run, or has no such function.
        OSError: the file cannot be read.
    """
    file, colon, name = text.rpartition(":")
    if not colon or not file or not name.isidentifier():
        raise ArgumentError(f"{text!r} does not name a function", hint="write FILE.py:FUNCTION")
    module = _load_module(Path(file))
    function = getattr(module, name, None)
    if not _is_function(function):
        names = [key for key, value in vars(module).items() if _is_function(value) and not key.startswith("_")]
        hint = f"it has {', '.join(names)}" if names else "it defines no functions"
        raise ArgumentError(f"there is no function {name!r}", where=file, hint=hint)
    return module, name, function


def _is_function(value: object) -> TypeGuard[Callable[..., Any]]:
    return callable(value) and not isinstance(value, type)


def _load_module(path: Path) -> ModuleType:
    path.read_bytes()  # a missing file is an OSError with its name
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ArgumentError("not a Python file", where=str(path), hint="its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses and pickles of the file look themselves up here
    sys.path.insert(0, str(path.parent.resolve()))  # so that it can import its neighbours, as under `python FILE.py`
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        where = str(path) if error.filename is None else f"{error.filename}:{error.lineno}"
        raise ArgumentError(f"SyntaxError: {error.msg}", where=where) from error
    except (Exception, SystemExit) as error:
        where = _line_of(error, path) or str(path)
        raise ArgumentError(f"the file raises {type(error).__name__}: {error}", where=where) from error
    finally:
        sys.path.pop(0)
    return module


def _line_of(error: BaseException, path: Path, *, and_no_deeper: bool = False) -> str | None:
    """`FILE:LINE` of the file's innermost line that an error passed; None where there is none.

    With `and_no_deeper` also None where that line called mlirfuse, and the error comes from there.
    """
    frames = traceback.extract_tb(error.__traceback__)
    files = [Path(frame.filename).resolve() for frame in frames]
    own = [number for number, file in enumerate(files) if file == path.resolve()]
    if not own or (and_no_deeper and any(PACKAGE in file.parents for file in files[own[-1] + 1 :])):
        return None
    return f"{path}:{frames[own[-1]].lineno}"


def _specs_of(module: ModuleType, name: str) -> Sequence[Spec]:
    specs = getattr(module, SPECS, {})
    if not isinstance(specs, dict):
        hint = f"{SPECS} = {{{name!r}: [mf.TensorSpec(...)]}}"
        raise ArgumentError(f"{SPECS} is {specs!r}", where=str(module.__file__), hint=hint)
    if name not in specs:
        raise ArgumentError(
            f"the types of the arguments of {name!r} are not given",
            where=str(module.__file__),
            hint=f"give --arg 'f16[?,4096]' for each argument, or define {SPECS} = {{{name!r}: [mf.TensorSpec(...)]}}",
        )
    return [parse_spec(spec) if isinstance(spec, str) else spec for spec in specs[name]]
