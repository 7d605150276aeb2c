"""Results of interpreted calls in the caller's arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirfuse.errors import ArgumentError


def write_results(out: Any, results: Sequence[np.ndarray], arguments: Sequence[np.ndarray]) -> None:
    """Copies results into the arrays of `out`.

    Args:
        out: an array, or a tuple of as many as there are results.
        results: what the function returned.
        arguments: the call's arrays, none of which may share memory with `out`.

    Raises:
        ArgumentError: an array of `out` does not fit its result, is read-only, or overlaps another array.
    """
    if isinstance(out, list):
        raise ArgumentError("a list is no array", where="out", hint="give a tuple of arrays")
    given = out if isinstance(out, tuple) else (out,)
    if [(np.shape(a), getattr(a, "dtype", None)) for a in given] != [(r.shape, r.dtype) for r in results]:
        wanted = ", ".join(f"{r.dtype}{list(r.shape)}" for r in results)
        raise ArgumentError("the arrays do not fit the results", where="out", hint=f"give {wanted}")
    if not all(array.flags.writeable for array in given):
        raise ArgumentError("an array is read-only", where="out", hint="give one that may be written")
    for number, array in enumerate(given):
        if any(np.shares_memory(array, other) for other in (*arguments, *given[:number])):
            hint = "give memory of its own, as on a GPU: a block may write what another has yet to read"
            raise ArgumentError("overlaps an argument or another output", where="out", hint=hint)
    for array, result in zip(given, results, strict=True):
        array[...] = result
