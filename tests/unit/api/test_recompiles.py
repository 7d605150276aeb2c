"""The log of new signatures: what it says is different."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.api.recompiles import Signatures, differences
from mlirfuse.runtime.arrays.arrays import ArrayInfo, ScalarInfo, StaticInfo
from mlirfuse.support import log
from mlirfuse.support.dtypes import float16, float32

X = ArrayInfo(1 << 20, (4, 8), (8, 1), float32, 0, "cupy")


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (replace(X, shape=(5, 8)), ["dimension 0 is 5, was 4"]),
        (replace(X, dtype=float16), ["dtype float16, was float32"]),
        (replace(X, strides=(1, 4)), ["strides (1, 4), was contiguous"]),
        (replace(X, pointer=(1 << 20) + 4), ["aligned to 4 bytes, was 16"]),
        (replace(X, device=1, framework="torch"), ["device 1, was 0", "framework torch, was cupy"]),
        (replace(X, shape=(4, 8, 1), strides=(8, 1, 1)), ["dimensions: 3, was 2"]),
        (replace(X, pointer=1 << 22), []),
        (ScalarInfo("int"), ["int, was an array"]),
        (StaticInfo("relu"), ["'relu', was an array"]),
    ],
)
def test_differences(new, said):
    assert list(differences(new, X)) == said


def test_strides_are_compared_one_by_one():
    one = replace(X, strides=(16, 1))
    assert list(differences(replace(X, strides=(32, 1)), one)) == ["stride 0 is 32, was 16"]


def test_the_nearest_signature_is_compared(caplog):
    known = Signatures("f", ("x", "n"))
    with caplog.at_level(logging.INFO, "mlirfuse.recompiles"):
        known.note((X, ScalarInfo("float")), compiled=True)
        known.note((replace(X, dtype=float16), ScalarInfo("int")), compiled=True)
        known.note((replace(X, shape=(9, 8), dtype=float16), ScalarInfo("int")), compiled=False, reasons=["because"])
    assert caplog.messages == [
        "f is compiled: the first call",
        "f is compiled: x: dtype float16, was float32; n: int, was float",
        "f runs known code: x: dimension 0 is 9, was 4; because",
    ]


def test_functions_say_why_they_are_compiled(caplog):
    fused = mf.fuse(lambda x, scale: x * scale if x.shape[0] > 1 else x, target="interpret")
    with caplog.at_level(logging.INFO, "mlirfuse.recompiles"):
        for rows in (4, 5, 5):
            fused(np.ones((rows, 8), np.float32), 2.0)
    first, second = caplog.messages
    assert first.startswith("<lambda> is compiled: the first call; dimension 0 of x is static")
    assert second.startswith("<lambda> is compiled: x: dimension 0 is 5, was 4; dimension 0 of x is static")


def test_the_variable_shows_logs_by_name(monkeypatch, capsys, caplog):
    monkeypatch.setattr(log, "LOGS", {"recompiles": logging.getLogger("mlirfuse.test")})
    log.show("recompiles, others")
    logging.getLogger("mlirfuse.test").info("said")
    assert "mlirfuse.test: said" in capsys.readouterr().err
    assert "there is no log 'others'; logs: recompiles" in caplog.text
