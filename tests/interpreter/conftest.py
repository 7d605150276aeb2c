"""Fixtures: IR files, and one-block kernels written as the body of a thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mlir import ir

from mlirfuse import interpreter
from tests.support.kernels import memref_type, parse

IR_DIRECTORY = Path(__file__).parent / "ir"


@pytest.fixture
def load() -> Callable[[str], ir.Module]:
    """Reads `ir/<name>.mlir`."""
    return lambda name: parse((IR_DIRECTORY / f"{name}.mlir").read_text())


@pytest.fixture
def run_threads() -> Callable[..., None]:
    """Runs a kernel given as the body of one thread.

    Inputs are `%in0`, `%in1`, ..., outputs `%out0`, ...; `%t` is the thread, `%b` the block, `%c0` to `%c4`, `%c8` and
    `%c32` are index constants. `workgroup` declares shared memory, `align` the alignment of every argument.
    """

    def run(
        body: str,
        inputs: Sequence[np.ndarray],
        outputs: Sequence[np.ndarray],
        *,
        threads: int = 32,
        blocks: int = 1,
        cluster: int = 0,
        workgroup: str = "",
        align: int = 16,
        **options: Any,
    ) -> None:
        named = [(f"%in{k}", a) for k, a in enumerate(inputs)] + [(f"%out{k}", a) for k, a in enumerate(outputs)]
        arguments = ", ".join(f"{name}: {memref_type(a)} {{fuse.align = {align} : i64}}" for name, a in named)
        constants = "\n".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 2, 3, 4, 8, 32))
        clusters = f"known_cluster_size = array<i32: {cluster}, 1, 1>," if cluster else ""
        shared = f"workgroup({workgroup})" if workgroup else ""
        module = parse(f"""
          gpu.module @k {{
            gpu.func @k({arguments}) {shared}
                kernel attributes {{known_block_size = array<i32: {threads}, 1, 1>, {clusters}
                                    fuse.grid = affine_map<() -> ({blocks})>, fuse.grid_operands = array<i64>}} {{
              %t = gpu.thread_id x
              %b = gpu.block_id x
              {constants}
              {body}
              gpu.return
            }}
          }}""")
        interpreter.run_kernel(module, "k", inputs, outputs, **options)

    return run
