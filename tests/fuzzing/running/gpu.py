"""Runs a program on the GPU: arrays as they lie in memory, results in poisoned memory, the second call to the bit."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.fuzzing.bounds import Bounded
from tests.fuzzing.program import Program
from tests.fuzzing.running.backends import (
    _overlapping,
    as_list,
    calls_of,
    declined_of,
    expected_of,
    is_documented,
    spills_of,
)
from tests.fuzzing.running.check import RIGHT, Outcome, WrongResult, check
from tests.fuzzing.types import FLOAT8, numpy_dtype

CHECK_RESULTS = "MLIRFUSE_CHECK_RESULTS"

PATTERN = 0xA5
MARGIN = 4096
"""Bytes around an array that a caller gives."""

_TORCH_BITS = {"bfloat16": np.int16, **dict.fromkeys(FLOAT8, np.uint8)}


def run(program: Program) -> Outcome:
    """Calls a program; says what its kernels spill. In three programs of four, results are checked to be written.

    That check waits and launches again over another poison, so that the way of plain calls needs programs of its own.
    """
    os.environ[CHECK_RESULTS] = "0" if program.seed % 4 == 0 else "1"  # read when a function meets a new signature
    calls = calls_of(program)
    expected = [expected_of(call) for call in calls]
    framework = Torch() if _needs_torch(program, expected[0]) else Cupy()
    fused = program.fused()
    declined = []
    for number, (call, wanted) in enumerate(zip(calls, expected, strict=True)):
        where = f"call {number}" if number else f"GPU, {framework.name}"
        arguments = [framework.put(a) if isinstance(a, np.ndarray) else a for a in call.arguments()]
        first = _fetched(framework, fused(*arguments))
        second = _fetched(framework, fused(*arguments))
        check(first, wanted, where)
        for a, b in zip(first, second, strict=True):
            if a.tobytes() != b.tobytes() and program.options.get("grid_reduction") != "atomics":
                raise WrongResult(f"{where}: a second call differs")
        for host, device in zip(call.arguments(), arguments, strict=True):
            if isinstance(host, np.ndarray) and framework.get(device).tobytes() != host.tobytes():
                raise WrongResult(f"{where}: an argument was changed")
        if number == 0 and program.out != "none":
            declined = _run_into(framework, fused, program, arguments, wanted)
    kernels, spills = _spills(fused)
    return Outcome(RIGHT, kernels=kernels, spills=spills, declined=declined)


def _spills(fused: Any) -> tuple[int, list[tuple[str, int]]]:
    """How many kernels were compiled, of all signatures; (kernel, bytes) of those that spill, where ptxas says it."""
    from mlirfuse.lowering.ptx.spills import resources_of

    found = [
        (chip.chip, r) for (_, chip, *_), c in fused._compiled.items() for r in resources_of(list(c.binaries.values()))
    ]
    return len(found), spills_of(found)


def _needs_torch(program: Program, results: Sequence[Bounded]) -> bool:
    """float8 is PyTorch's alone, negative strides are CuPy's; else one or the other."""
    if any(x.dtype in FLOAT8 for x in (*program.inputs, *results)):
        return True
    return program.seed % 2 == 1 and not any(x.layout == "reversed" for x in program.inputs)


def _fetched(framework: Any, results: Any) -> list[np.ndarray]:
    return [framework.get(r) for r in as_list(results)]


def _run_into(framework: Any, fused: Any, program: Program, arguments: list[Any], expected: list[Bounded]) -> list[str]:
    """Into memory with a pattern before and behind; or one that overlaps an argument, which is refused.

    Returns what was refused for a reason that is documented.
    """
    import mlirfuse as mf

    guards = [framework.guarded(e.shape, numpy_dtype(e.dtype)) for e in expected]
    out = [array for array, _ in guards]
    host = program.arguments()
    overlaps = False
    if program.out == "overlap":
        stand = [np.zeros(e.shape, numpy_dtype(e.dtype)) for e in expected]
        overlaps = _overlapping(stand, host)
        out = [
            next((d for h, d in zip(host, arguments, strict=True) if h is s), o)
            for s, o in zip(stand, out, strict=True)
        ]
    try:
        fused(*arguments, out=out[0] if program.structure == "single" else tuple(out))
    except mf.MlirFuseError as error:
        text = str(error)
        if not (is_documented(error) or ("are not" in text and overlaps)):  # a strided argument fits no result
            raise
        return [declined_of(error)]
    if overlaps:
        raise WrongResult("an output that overlaps an argument is taken")
    check([framework.get(o) for o in out], expected, "out=")
    for _, intact in guards:
        if not intact():
            raise WrongResult("memory around an output was written")
    return []


def _memory(array: np.ndarray) -> tuple[np.ndarray, int]:
    """The bytes that an array lies in, and where in them its first element is."""
    base = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    offset = array.ctypes.data - base.ctypes.data
    plain = np.ascontiguousarray(base).reshape(-1).view(np.uint8) if base.size else np.zeros(0, np.uint8)
    return plain, offset


class Cupy:
    """Arrays of CuPy."""

    name = "CuPy"

    def put(self, array: np.ndarray) -> Any:
        import cupy

        if not array.size:
            return cupy.empty(array.shape, array.dtype)
        data, offset = _memory(array)
        if not _spans(array, data.size, offset):
            data, offset, array = np.ascontiguousarray(array).reshape(-1).view(np.uint8), 0, np.ascontiguousarray(array)
        memory = cupy.asarray(data)
        return cupy.ndarray(array.shape, array.dtype, memory.data + offset, array.strides)

    def get(self, array: Any) -> np.ndarray:
        import cupy

        plain = cupy.ascontiguousarray(array.view(_bits(array.dtype)) if array.size else array)
        return np.ascontiguousarray(plain.get()).view(array.dtype).reshape(array.shape)

    def guarded(self, shape: tuple[int, ...], dtype: np.dtype) -> tuple[Any, Any]:
        import cupy

        nbytes = int(np.prod(shape)) * dtype.itemsize
        memory = cupy.full(nbytes + 2 * MARGIN, PATTERN, cupy.uint8)
        array = cupy.ndarray(shape, dtype, memory.data + MARGIN)
        return array, lambda: bool((memory[:MARGIN] == PATTERN).all() and (memory[MARGIN + nbytes :] == PATTERN).all())


class Torch:
    """Tensors of PyTorch."""

    name = "PyTorch"

    def put(self, array: np.ndarray) -> Any:
        import torch

        kind = getattr(torch, array.dtype.name)
        if not array.size:
            return torch.empty(array.shape, dtype=kind, device="cuda")
        data, offset = _memory(array)
        if not _spans(array, data.size, offset) or any(s < 0 for s in array.strides):
            array = np.array(array, order="C")  # a new one: `ascontiguousarray` keeps strides of extents of 1
            data, offset = array.reshape(-1).view(np.uint8), 0
        size = array.itemsize
        memory = torch.from_numpy(data.copy()).cuda().view(kind)
        strides = [s // size for s in array.strides]
        return torch.as_strided(memory, array.shape, strides, offset // size)

    def get(self, tensor: Any) -> np.ndarray:
        import torch

        name = str(tensor.dtype).removeprefix("torch.")
        plain = tensor.detach().contiguous()
        if name in _TORCH_BITS:
            plain = plain.view(getattr(torch, np.dtype(_TORCH_BITS[name]).name))
        return plain.cpu().numpy().view(numpy_dtype(name)).reshape(tuple(tensor.shape))

    def guarded(self, shape: tuple[int, ...], dtype: np.dtype) -> tuple[Any, Any]:
        import torch

        nbytes = int(np.prod(shape)) * dtype.itemsize
        memory = torch.full((nbytes + 2 * MARGIN,), PATTERN, dtype=torch.uint8, device="cuda")
        array = memory[MARGIN : MARGIN + nbytes].view(getattr(torch, dtype.name)).view(shape)
        return array, lambda: bool((memory[:MARGIN] == PATTERN).all() and (memory[MARGIN + nbytes :] == PATTERN).all())


def _spans(array: np.ndarray, size: int, offset: int) -> bool:
    """Whether all elements lie within the bytes of its memory in C order, from which strides were taken."""
    low = sum(min(0, (n - 1) * s) for n, s in zip(array.shape, array.strides, strict=True))
    high = sum(max(0, (n - 1) * s) for n, s in zip(array.shape, array.strides, strict=True)) + array.itemsize
    return offset + low >= 0 and offset + high <= size


def _bits(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"u{dtype.itemsize}")
