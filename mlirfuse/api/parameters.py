"""Arguments in the order of a function's parameters."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from mlirfuse.builder.spec import LEFT_OUT
from mlirfuse.errors import ArgumentError


def in_order(
    signature: inspect.Signature, function: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Any, ...]:
    """The arguments in the order of the parameters, up to the last that is given.

    Raises `ArgumentError` where they do not fit, or stand beside `*args` or `**kwargs`; `function` is named in it.
    """
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        hint = f"parameters: {', '.join(signature.parameters)}"
        raise ArgumentError(str(error), where=function, hint=hint) from None
    given = [bound.arguments.get(name, LEFT_OUT) for name in signature.parameters]
    while given[-1] is LEFT_OUT:
        given.pop()
    kinds = {parameter.kind for parameter in list(signature.parameters.values())[: len(given)]}
    if kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
        hint = "give the function a parameter for each, or all arguments in order"
        raise ArgumentError("arguments by name cannot be mixed with *args or **kwargs", where=function, hint=hint)
    return tuple(given)
