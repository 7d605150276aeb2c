"""Frozen dataclasses as plain dictionaries, lists and numbers, for files; the inverse checks everything it reads."""

from __future__ import annotations

import dataclasses
from types import UnionType
from typing import Any, TypeVar, get_args

from mlirfuse.errors import ScheduleError
from mlirfuse.support.type_hints import type_hints

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """The plain form of a dataclass, int, bool, str, None or tuple of ints, for JSON."""
    if dataclasses.is_dataclass(value):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return list(value) if isinstance(value, tuple) else value


def from_plain(cls: type[T], plain: Any) -> T:
    """The dataclass of a plain form: the inverse of `to_plain`; raises `ScheduleError` for anything else."""
    hints = type_hints(cls)
    if not isinstance(plain, dict) or set(plain) != set(hints):
        raise ScheduleError(f"{plain!r} is no {cls.__name__}", hint=f"fields: {', '.join(hints)}")
    return cls(**{name: _decode(hint, plain[name], f"{cls.__name__}.{name}") for name, hint in hints.items()})


def fields_of(cls: type) -> str:
    """The text of all fields, nested ones included, that `from_plain` requires of a class's plain form."""
    fields = [
        f"{name}:{fields_of(part) if (part := _dataclass(hint)) else hint}" for name, hint in type_hints(cls).items()
    ]
    return f"{cls.__name__}({', '.join(fields)})"


def _dataclass(hint: Any) -> type | None:
    """The dataclass that a hint, or one of its alternatives, is."""
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    return next((kind for kind in kinds if dataclasses.is_dataclass(kind) and isinstance(kind, type)), None)


def _decode(hint: Any, plain: Any, field: str) -> Any:
    if isinstance(hint, UnionType):  # `Something | None`
        if plain is None:
            return None
        hint = next(kind for kind in get_args(hint) if kind is not type(None))
    if dataclasses.is_dataclass(hint):
        return from_plain(hint, plain)  # type: ignore[arg-type]
    if hint == tuple[int, ...] and isinstance(plain, list) and all(type(n) is int for n in plain):
        return tuple(plain)
    if hint in (int, bool, str) and type(plain) is hint:
        return plain
    kind = hint.__name__ if hint in (int, bool, str) else hint
    raise ScheduleError(f"{field} is {plain!r}, not a {kind}")
