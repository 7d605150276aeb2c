"""The array API's `linalg` namespace, as far as it is supported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirfuse.builder.counterparts import instead_of_function
from mlirfuse.builder.errors import MissingAttributeError
from mlirfuse.builder.functions.diagonals import diagonal, trace
from mlirfuse.builder.functions.manipulation import matrix_transpose
from mlirfuse.builder.functions.products.contraction import matmul
from mlirfuse.builder.functions.products.tensor_products import outer, tensordot, vecdot
from mlirfuse.builder.source import at_user_line

__all__ = ["diagonal", "matmul", "matrix_transpose", "outer", "tensordot", "trace", "vecdot"]

if not TYPE_CHECKING:  # type checkers know what there is

    def __getattr__(name: str) -> object:
        """Functions that the namespace does not have are errors at the user's line."""
        if name.startswith("__"):  # a protocol of Python's
            raise AttributeError(name)
        hint = instead_of_function(name) or f"it has {', '.join(__all__)}"
        raise at_user_line(MissingAttributeError(f"mlirfuse.linalg has no {name!r}", hint=hint))


def __dir__() -> list[str]:
    return __all__
