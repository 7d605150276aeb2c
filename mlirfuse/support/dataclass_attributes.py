"""Frozen dataclasses as MLIR attributes, and back.

A dataclass is a dictionary attribute with one entry a field: int is `i64`, str a string, bool a `bool`, a tuple of ints
`array<i64: ...>`, and a nested dataclass a dictionary again. None and empty tuples, the defaults, are left out. So a
schedule can be read and edited in the IR's text.
"""

from __future__ import annotations

import dataclasses
from functools import cache, lru_cache
from types import UnionType
from typing import Any, TypeVar, get_args

from mlir import ir

from mlirfuse.errors import ScheduleError
from mlirfuse.support.renamed_names import renamed
from mlirfuse.support.type_hints import type_hints

T = TypeVar("T")


def to_attribute(value: Any) -> ir.Attribute:
    """The attribute form of a dataclass, int, bool, str or tuple of ints, in the current context.

    Raises:
        ScheduleError: a value is none of these, or has more than 64 bits.
    """
    if dataclasses.is_dataclass(value):
        entries = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return ir.DictAttr.get(
            {name: to_attribute(entry) for name, entry in entries.items() if entry not in (None, ())}
        )
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    try:
        if isinstance(value, int):
            return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
        return ir.DenseI64ArrayAttr.get(list(value))
    except TypeError:  # of the bindings, and of what is no sequence
        raise ScheduleError(f"a schedule holds integers, texts and tuples of integers, not {value!r}") from None


def from_attribute(cls: type[T], attribute: ir.Attribute) -> T:
    """The dataclass of an attribute: the inverse of `to_attribute`.

    Raises:
        ScheduleError: an entry is missing, unknown or of another kind.
    """
    return _dataclass(cls, attribute)  # type: ignore[arg-type]  # which mypy takes for no hashable


@lru_cache(maxsize=16)  # every pass reads the schedule of its kernels; an attribute keeps its context alive
def _dataclass(cls: type, attribute: ir.Attribute) -> Any:
    if not isinstance(attribute, ir.DictAttr):
        raise ScheduleError(f"{cls.__name__} must be a dictionary attribute, not {attribute}")
    hints, (fields, required) = type_hints(cls), _fields(cls)
    names = {attribute[i].name for i in range(len(attribute))}
    if unknown := names.difference(fields):
        hint = next(filter(None, (renamed("field", name) for name in sorted(unknown))), f"fields: {', '.join(fields)}")
        raise ScheduleError(f"{cls.__name__} has no field {min(unknown)!r}", hint=hint)
    if missing := required - names:
        raise ScheduleError(f"{cls.__name__} lacks the field {min(missing)!r}")
    return cls(**{name: _decode(hints[name], attribute[name], f"{cls.__name__}.{name}") for name in sorted(names)})


@cache
def _fields(cls: type) -> tuple[tuple[str, ...], frozenset[str]]:
    """The names of a dataclass's fields, in order, and of its fields without a default."""
    fields = dataclasses.fields(cls)
    return tuple(f.name for f in fields), frozenset(f.name for f in fields if f.default is dataclasses.MISSING)


def _decode(hint: Any, attribute: ir.Attribute, field: str) -> Any:
    if isinstance(hint, UnionType):  # `Something | None`, where None has no attribute
        hint = next(kind for kind in get_args(hint) if kind is not type(None))
    if dataclasses.is_dataclass(hint):
        return from_attribute(hint, attribute)  # type: ignore[arg-type]
    if hint is int and isinstance(attribute, ir.IntegerAttr):
        return attribute.value
    if hint is bool and isinstance(attribute, ir.BoolAttr):
        return attribute.value
    if hint is str and isinstance(attribute, ir.StringAttr):
        return attribute.value
    if hint == tuple[int, ...] and isinstance(attribute, ir.DenseI64ArrayAttr):
        return tuple(attribute)
    kind = hint.__name__ if hint in (int, bool, str) else hint
    raise ScheduleError(f"{field} is {attribute}, not a {kind}")
