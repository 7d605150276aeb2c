"""Pass options as text: `fuse-x{block-size=256 dims=0,1}`, both ways.

A pass's options are its dataclass fields: field `block_size` is option `block-size`. Types: `int`, `bool`, `float`,
`str`, `Literal[...]` of strings, `tuple[int, ...]`, and any of these `| None`. Printing leaves out options at their
default; parsing what was printed gives an equal pass.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import types
import typing
from collections.abc import Iterator

from mlirfuse.errors import MlirFuseError, PipelineError
from mlirfuse.passmanager.base import Pass
from mlirfuse.passmanager.syntax import at, closing, closing_quote
from mlirfuse.support.renamed_names import renamed
from mlirfuse.support.type_hints import type_hints

_NONE = "none"
_BARE = re.compile(r"[\w.+\-]+")  # strings that need no quotes


@dataclasses.dataclass(frozen=True)
class Option:
    """One option of a pass.

    Attributes:
        name: as written in a pipeline, with dashes.
        field: name of the dataclass field.
        type: the field's type, without `| None`.
        optional: whether `none` is a value.
        default: the field's default; `dataclasses.MISSING` where the option must be given.
    """

    name: str
    field: str
    type: object
    optional: bool
    default: object

    @property
    def type_name(self) -> str:
        """The type as documentation shows it, such as `int` or `auto|shared`."""
        if typing.get_origin(self.type) is typing.Literal:
            text = "|".join(typing.get_args(self.type))
        else:
            text = self.type.__name__ if isinstance(self.type, type) else str(self.type)
        return f"{text}|{_NONE}" if self.optional else text


def options_of(cls: type[Pass]) -> tuple[Option, ...]:
    """The options of a pass class, in field order."""
    hints = type_hints(cls)
    options = []
    for field in dataclasses.fields(cls):
        hint, optional = hints[field.name], False
        if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
            members = [member for member in typing.get_args(hint) if member is not type(None)]
            if len(members) != 1 or len(typing.get_args(hint)) != 2:
                raise TypeError(f"{cls.__name__}.{field.name}: the only union an option may have is `T | None`")
            hint, optional = members[0], True
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        options.append(Option(field.name.replace("_", "-"), field.name, hint, optional, default))
    return tuple(options)


def parse_options(cls: type[Pass], text: str | None, position: int = 0) -> Pass:
    """The pass of that class with the options of `text` (the text between the braces).

    Args:
        cls: the pass class.
        text: such as `block-size=256 dims=0,1`; a bare name sets a bool.
        position: where `text` starts in the pipeline; errors name their column from it.

    Raises:
        PipelineError: an option is unknown, given twice, missing, or its value is not of its type.
    """
    options = {option.name: option for option in options_of(cls)}
    values: dict[str, object] = {}
    for name, value, start in _split(text or "", position):
        where = at(start)
        if name not in options:
            close = difflib.get_close_matches(name, options, n=1)
            known = f"options: {', '.join(options)}" if options else f"{cls.name} takes no options"
            hint = renamed("pass option", name) or (f"did you mean {close[0]!r}? {known}" if close else known)
            raise PipelineError(f"{cls.name} has no option {name!r}", where=where, hint=hint)
        option = options[name]
        if option.field in values:
            raise PipelineError(f"option {name!r} of {cls.name} is given twice", where=where)
        try:
            values[option.field] = _parse_value(option, value)
        except ValueError:
            problem = "needs a value" if value is None else f"cannot be {value!r}"
            hint = renamed("value", value) or f"it is {option.type_name}"
            raise PipelineError(f"option {name!r} of {cls.name} {problem}", where=where, hint=hint) from None
    for option in options.values():
        if option.default is dataclasses.MISSING and option.field not in values:
            raise PipelineError(
                f"{cls.name} needs option {option.name!r}", where=at(position), hint=f"it is {option.type_name}"
            )
    try:
        return cls(**values)
    except (ValueError, MlirFuseError) as error:  # from the class's own __post_init__
        raise PipelineError(f"{cls.name} does not take these options: {error}", where=at(position)) from error


def print_options(pass_: Pass) -> str:
    """The options of a pass that are not at their default, as `parse_options` reads them."""
    pairs = ((option, getattr(pass_, option.field)) for option in options_of(type(pass_)))
    return " ".join(f"{option.name}={_print_value(value)}" for option, value in pairs if value != option.default)


def print_pass(pass_: Pass) -> str:
    """The pass as it stands in a pipeline: `name` or `name{options}`."""
    options = print_options(pass_)
    return f"{pass_.name}{{{options}}}" if options else pass_.name


def _split(text: str, offset: int) -> Iterator[tuple[str, str | None, int]]:
    """(name, value or None, position in the pipeline) of each option; values keep their quotes."""
    position = 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        start = position
        while position < len(text) and not text[position].isspace():
            if text[position] in "\"'":
                position = closing_quote(text, position)
            elif text[position] == "{":
                position = closing(text, position, "{}")
            position += 1
        name, equals, value = text[start:position].partition("=")
        yield name, value if equals else None, offset + start


def _parse_value(option: Option, text: str | None) -> object:
    """The value of an option; raises ValueError where the text is not of its type."""
    if text is None:
        if option.type is bool:
            return True
        raise ValueError("no value")
    if option.optional and text == _NONE:
        return None
    origin, arguments = typing.get_origin(option.type), typing.get_args(option.type)
    if origin is tuple and arguments == (int, ...):
        items = text[1:-1] if text.startswith("{") else text
        return () if text.startswith("{") and not items.strip() else tuple(map(int, items.split(",")))
    if origin is typing.Literal:
        return arguments[arguments.index(_unquote(text))]
    if option.type is bool:
        return bool(("false", "true").index(text.lower()))
    if option.type is str:
        return _unquote(text)
    if option.type is int:
        return int(text)
    if option.type is float:
        return float(text)
    raise TypeError(f"option {option.name!r} has type {option.type_name}, which has no text form")


def _print_value(value: object) -> str:
    match value:
        case None:
            return _NONE
        case bool():
            return str(value).lower()
        case tuple():
            return ",".join(map(str, value)) or "{}"
        case str():
            return value if _BARE.fullmatch(value) and value != _NONE else _quote(value)
    return repr(value)


def _quote(text: str) -> str:
    return '"' + text.replace("\\", r"\\").replace('"', r"\"") + '"'


def _unquote(text: str) -> str:
    quoted = text[:1] in ("'", '"') and len(text) > 1
    return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL) if quoted else text
