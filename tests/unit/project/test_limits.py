"""docs/limits.md: each message is one that the source has, and what it says of some refusals is so."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.errors import ArgumentError
from tests.fuzzing.limits import is_documented, messages

SOURCES = sorted(Path(mf.__file__).parent.rglob("*.py"))


def texts(path: Path) -> list[str]:
    """String literals, `...` for what f-strings fill in."""
    tree = ast.parse(path.read_text())
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    shown = ["".join(p.value if isinstance(p, ast.Constant) else "..." for p in node.values) for node in joined]
    return shown + [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]


def test_messages_are_those_of_the_source() -> None:
    known = [text for path in SOURCES for text in texts(path)]
    missing = [m for m in messages() if not any(_holds(text, m) for text in known)]
    assert len(messages()) > 50
    assert not missing


def _holds(text: str, message: str) -> bool:
    at = 0
    for piece in message.split("..."):
        found = text.find(piece.strip(), at)
        if found < 0:
            return False
        at = found + len(piece.strip())
    return True


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (lambda x: x if x > 0 else -x, [np.ones(3)]),
        (lambda x: x[[0]], [np.ones(3)]),
        (lambda x: len(x) * x, [np.ones(3)]),
        (lambda x: x + 300, [np.ones(3, np.int8)]),
        (lambda x: x**x, [np.ones(3, np.int32)]),
        (lambda x: x**-1, [np.ones(3, np.int32)]),
        (lambda x: mf.matmul(x, x, precision="tf32"), [np.ones((2, 2))]),
        (lambda x: mf.max(x), [np.ones(0)]),
        (lambda x: x + x, [np.ones(3, np.uint8)]),
        (lambda x: x.astype(mf.bool_) + x, [np.ones(3)]),
        (lambda x: x + True, [np.ones(3)]),
        (lambda x: x @ x.astype(mf.float8_e5m2), [np.ones(3, np.int32)]),
        (lambda x: mf.argsort(x), [np.ones(3)]),
        (lambda x: mf.einsum("ij", x), [np.ones(3)]),
        (lambda x: mf.einsum("i,i->j", x, x), [np.ones(3)]),
        (lambda x: mf.einsum("i.", x), [np.ones(3)]),
        (lambda x: mf.diagonal(x), [np.ones(3)]),
        (lambda x: mf.tensordot(x, x), [np.ones(3)]),
        (lambda x: mf.squeeze(x, 0), [np.ones(3)]),
        (lambda x, n: x + n, [np.ones(3), 1 << 70]),
        (lambda x: x.astype(mf.float8_e5m2) * 2, [np.ones(3)]),
        (lambda x: mf.sum(x, dtype=mf.bool_), [np.ones(3)]),
        (lambda x: mf.floor(x), [np.ones(3, bool)]),
        (lambda x: mf.where(x, x, 0), [np.ones(3)]),
        (lambda x: mf.reshape(x, (2, 2)), [np.ones(3)]),
        (lambda x: mf.broadcast_to(x, (1 << 62,)), [np.ones(1)]),
        (lambda x, y: x + y, [np.ones(3), np.ones(4)]),
        (lambda x: 3, [np.ones(3)]),
        (lambda x: divmod(x, 2), [np.ones(3, np.int32)]),
        (lambda x: np.fft.fft(x), [np.ones(3)]),
        (lambda x: x + np.ones(3), [np.ones(3)]),
        (lambda n: n + 1, [3]),
    ],
)
def test_refusals_are_documented(function: object, arguments: list[object]) -> None:
    with pytest.raises(mf.MlirFuseError) as raised:
        mf.fuse(function, target="interpret")(*arguments)
    assert is_documented(str(raised.value)), str(raised.value)


def test_refused_options_are_documented() -> None:
    x = np.ones((64, 8), np.float64)

    def both(x: Any) -> Any:
        return mf.sum(x, axis=0), mf.sum(x, axis=1) * mf.sum(x)

    cases: list[tuple[Any, dict[str, Any]]] = [
        (lambda x: x * 2, {"grid_reduction": "grid_sync"}),
        (lambda x: mf.sum(x, axis=0), {"grid_reduction": "atomics"}),
        (both, {"target": "sm_1"}),
        (both, {"speed": 2}),
    ]
    for function, options in cases:
        plain = mf.fuse(function, target="interpret")
        with pytest.raises(mf.MlirFuseError) as raised:
            plain.with_options(**options)(x)
        assert is_documented(str(raised.value)), str(raised.value)


def test_out_is_refused_as_documented() -> None:
    x = np.ones((4, 8), np.float32)
    fused = mf.fuse(lambda x: x * 2, target="interpret")
    frozen = np.empty_like(x)
    frozen.flags.writeable = False
    for out in (x, [np.empty_like(x)], np.empty((8, 4), np.float32), frozen):
        with pytest.raises(ArgumentError) as raised:
            fused(x, out=out)
        assert is_documented(str(raised.value)), str(raised.value)
