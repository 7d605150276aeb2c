"""Errors for calls of mlirfuse's functions with arguments that they do not take."""

from __future__ import annotations

import inspect
import re
from types import TracebackType

from mlirfuse.builder.source import position_of_traceback
from mlirfuse.builder.state import TensorBase
from mlirfuse.errors import ArgumentError

_MESSAGE = re.compile(r"(?P<method>Tensor\.)?(?P<name>\w+)\(\) (?P<what>(got|missing|takes) .*)", re.DOTALL)
_KEYWORDS = {"dim": "axis", "dims": "axis", "axes": "axis", "keepdim": "keepdims", "ddof": "correction"}
"""Parameters of NumPy and PyTorch that mlirfuse spells differently."""


def wrong_call(error: TypeError, tensor: type[TensorBase]) -> ArgumentError | None:
    """The error to raise for Python's, at the user's line; None where another function than mlirfuse's was called.

    Args:
        error: that tracing raised.
        tensor: the class of traced tensors.
    """
    import mlirfuse  # imported here, as the imported module imports this one

    match = _MESSAGE.fullmatch(str(error))
    if match is None or not isinstance(error.__traceback__, TracebackType):
        return None
    name = match["name"]
    function = getattr(tensor, name, None) if match["method"] else getattr(mlirfuse, name, None)
    if not inspect.isfunction(function) or (not match["method"] and name not in mlirfuse.__all__):
        return None
    position = position_of_traceback(error.__traceback__)
    given = re.search(r"keyword argument '(\w+)'", match["what"])
    other = _KEYWORDS.get(given[1]) if given else None
    signature = inspect.signature(function)
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values() if p.name != "self"]
    shown = str(signature.replace(parameters=parameters, return_annotation=signature.empty))
    called = f"x.{name}" if match["method"] else f"mf.{name}"
    use = f"use {other}=; " if other in signature.parameters else ""
    return ArgumentError(
        f"{called} {match['what']}{position.excerpt}", where=position.where, hint=f"{use}it is {called}{shown}"
    )
