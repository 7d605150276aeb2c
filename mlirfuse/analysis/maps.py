"""Reading affine maps that select loops."""

from __future__ import annotations

from functools import lru_cache

from mlir import ir

from mlirfuse.errors import IRError


def projected_axes(attribute: ir.AffineMapAttr) -> tuple[int | None, ...]:
    """For each result of a map, the loop it selects; None for the constant 0.

    Raises:
        IRError: a result is neither a loop nor 0; such an access is not a projection.
    """
    return _parse(str(attribute))


@lru_cache(maxsize=4096)
def _parse(text: str) -> tuple[int | None, ...]:
    # The bindings give no access to the map inside an AffineMapAttr; its text is `affine_map<(d0, d1) -> (d1, 0)>`.
    dims, results = text.removeprefix("affine_map<").removesuffix(">").split(" -> ")
    names = {name.strip(): i for i, name in enumerate(dims.strip("()").split(","))}
    axes: list[int | None] = []
    for result in results.strip()[1:-1].split(","):
        expr = result.strip()
        if expr == "":
            continue
        if expr in names:
            axes.append(names[expr])
        elif expr == "0":
            axes.append(None)
        else:
            raise IRError(
                f"indexing map {text} is not a projection of its loops",
                hint="use maps whose results are single loops or 0",
            )
    return tuple(axes)
