"""How kernels are launched, as plain data under names of this package's own.

The one module that reads attributes of what `compile()` returns; where they are renamed, rename them here.
"""

from __future__ import annotations

from typing import Any


def launches(compiled: Any) -> list[dict[str, Any]]:
    """For each kernel, in the order of the PTX: its grid as a text, threads, clusters, shared bytes, and arguments."""
    return [_launch(compiled.infos[name]) for name in compiled.binaries]


def _launch(info: Any) -> dict[str, Any]:
    return {
        "threads": info.block,
        "cluster": info.cluster,
        "grid": _text(info.grid, info.grid_operands),
        "dynamic_shared_bytes": info.dynamic_shared_bytes,
        "cooperative": info.cooperative,
        "dependent": info.dependent,
        "parameters": [_parameter(p) for p in info.parameters],
        "workspaces": [
            [w.arg, w.element_bytes, *(_text(extent, w.operands) for extent in w.shape)] for w in info.workspaces
        ],
    }


def _parameter(parameter: Any) -> str:
    text = f"{parameter.code} {parameter.arg}.{parameter.dim}"
    if not parameter.box:
        return text
    return f"{text} dims {parameter.dims} box {parameter.box}{' tf32' if parameter.tf32 else ''}"


def _text(expression: Any, operands: Any) -> str:
    """An expression over extents (`arg0.dim1`) and the blocks that a device holds (`resident2`: at 2 on each SM)."""
    if hasattr(expression, "value"):
        return str(expression.value)
    if hasattr(expression, "position"):
        argument, dim = operands[expression.position]
        return f"resident{dim}" if argument < 0 else f"arg{argument}.dim{dim}"
    return f"{expression.operator}({_text(expression.left, operands)}, {_text(expression.right, operands)})"
