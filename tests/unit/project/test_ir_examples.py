"""The IR of docs/architecture.md and docs/contractions.md is what the compiler prints, but for what is left out."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mlirfuse as mf
from mlirfuse.compiler.compile import Compiled
from mlirfuse.compiler.context import make_context
from mlirfuse.compiler.pipeline import named
from mlirfuse.passmanager.manager import Pipeline
from mlirfuse.support.diagnostics import parse_module

DOCS = Path(__file__).parents[3] / "docs"


def center(x: Any, w: Any) -> Any:
    return (x - mf.mean(x, axis=-1, keepdims=True)) * w


def linear(x: Any, w: Any, b: Any) -> Any:
    return x @ w.T + b


CASES = [
    ("architecture.md", center, [mf.TensorSpec((None, 1024), mf.float32), mf.TensorSpec((1024,), mf.float32)]),
    ("contractions.md", linear, [mf.TensorSpec(s, mf.bfloat16) for s in ((4096, 1024), (512, 1024), (512,))]),
]


OP = re.compile(r"(%[\w:]+(, %\w+)* = |\"fuse\.|vector\.|gpu\.|nvvm\.|memref\.)")
"""How a line begins that is an op, and not the rest of one."""


@pytest.mark.parametrize(("page", "function", "specs"), CASES, ids=["architecture", "contractions"])
def test_ops_are_printed_so(page: str, function: Callable[..., Any], specs: list[mf.TensorSpec]) -> None:
    compiled = mf.fuse(function, target="sm_90a").lower(*specs).compile()
    printed = {_unnamed(line) for stage in stages(compiled) for line in stage.splitlines()}
    shown = ops_of((DOCS / page).read_text())
    assert len(shown) > 10
    assert not {line for line in shown if not any(op.startswith(_unnamed(line)) for op in printed)}


def stages(compiled: Compiled) -> list[str]:
    texts = [compiled.as_text(stage) for stage in ("linalg", "tile", "gpu")]
    context = make_context()
    with context:
        module = parse_module(texts[0], context)
        Pipeline.parse(named("fuse-tile-pipeline"), stop_after="fuse-tile-contraction").run(module)
        return [*texts, str(module)]


def ops_of(page: str) -> list[str]:
    """Ops in the page's IR that stand on one line, up to what is left out of them."""
    blocks = re.findall(r"```mlir\n(.*?)```", page, re.DOTALL)
    lines = [line.partition("//")[0].strip() for block in blocks for line in block.splitlines()]
    ops = [re.split(r"\{?\.\.\.| \{permutation_map", line)[0].strip(" :") for line in lines]
    return [op for op in ops if OP.match(op) and "affine_map" not in op]


def _unnamed(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"%\w+", "%", text)).strip()
