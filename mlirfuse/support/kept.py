"""What frozen dataclasses keep once it is computed: hashes and properties of objects that are made by the thousand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

_Class = TypeVar("_Class", bound=type)
_Value = TypeVar("_Value")


def hashed_once(cls: _Class) -> _Class:
    """Class decorator: an object keeps its hash. Copies in other processes, where strings hash otherwise, do not."""
    changed: Any = cls
    made: Callable[[Any], int] = changed.__hash__

    def kept(self: Any) -> int:
        known: int | None = self.__dict__.get("_hash")
        if known is None:
            known = self.__dict__["_hash"] = made(self)
        return known

    def state(self: Any) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_hash"}

    changed.__hash__, changed.__getstate__ = kept, state
    return cls


class kept_property(Generic[_Value]):  # noqa: N801  # as `property`
    """A property that is computed once an object, as `functools.cached_property`, whose lock takes longer than that."""

    def __init__(self, compute: Callable[[Any], _Value]) -> None:
        self._compute, self._name, self.__doc__ = compute, compute.__name__, compute.__doc__

    @overload
    def __get__(self, owner: None, cls: type) -> kept_property[_Value]: ...

    @overload
    def __get__(self, owner: object, cls: type) -> _Value: ...

    def __get__(self, owner: object | None, cls: type) -> kept_property[_Value] | _Value:
        if owner is None:
            return self
        value = owner.__dict__[self._name] = self._compute(owner)
        return value
