"""PTX of loads of windows that may leave an image."""

from __future__ import annotations

import re
from typing import Any

import mlirfuse as mf


def depthwise(x: Any, w: Any) -> Any:
    return mf.conv2d(x, w, padding=1, groups=32)


def test_loads_of_windows_are_predicated_at_offsets_of_one_address() -> None:
    specs = [mf.TensorSpec((8, 56, 56, 32), "float16"), mf.TensorSpec((32, 3, 3, 1), "float16")]
    ptx = mf.fuse(depthwise, target="sm_90a").lower(*specs).compile().as_text("ptx")
    loads = re.findall(r"@%p\d+ ld\.global\.(?:v[24]\.)?b32 .*\[(%rd\d+)\]", ptx)
    bases = dict(re.findall(r"add\.s64 \t(%rd\d+), (%rd\d+), -?\d+;", ptx))
    assert len(loads) == len(set(loads)) > 8
    assert len({bases.get(address, address) for address in loads}) < len(loads) / 2
    assert "selp" not in ptx
