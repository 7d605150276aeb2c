"""Processes whose sets and dictionaries of strings are in other orders generate the same code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

PROGRAM = """
import hashlib
import mlirfuse as mf

def again(x):
    return mf.sum(x, axis=0)

def rows(x):
    y = x - mf.mean(x, axis=-1, keepdims=True)
    return y * mf.rsqrt(mf.mean(y * y, axis=-1, keepdims=True) + 1e-5), mf.sum(x, axis=0)

def product(x):
    return mf.maximum(mf.einsum("ij,kj->ik", x, x), 0.0), mf.max(x, axis=1)

from mlirfuse.compiler.feedback import without_spills
from mlirfuse.lowering.ptx.resources import KernelResources

def crowded(binaries):
    return [KernelResources(b.name, 168, 0, 0, 0, 0, 0, 128, 1) for b in binaries]

for fn in (again, rows, product):
    lowered = mf.fuse(fn, target="sm_90a").lower(mf.TensorSpec((512, 4096), mf.bfloat16))
    for name, binary in without_spills(lowered._compile, crowded).binaries.items():
        print(name, hashlib.sha256(binary.ptx.encode()).hexdigest())
"""


def _digests(seed: int) -> str:
    environment = os.environ | {"PYTHONHASHSEED": str(seed)}
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_every_process_generates_the_same_code() -> None:
    first, second = _digests(1), _digests(2)
    assert first.count("\n") >= 4
    assert first == second
