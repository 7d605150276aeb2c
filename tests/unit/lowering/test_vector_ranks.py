"""What is lowered number by number, in vectors of every rank, down to PTX."""

from __future__ import annotations

from math import prod

import pytest

from mlirfuse.compiler.context import make_context
from mlirfuse.dialect.module_target import set_target
from mlirfuse.lowering.ptx.to_ptx import ptx, to_nvvm
from mlirfuse.passmanager.manager import Pipeline
from mlirfuse.support.diagnostics import parse_module
from mlirfuse.support.rewriting import ops_named
from mlirfuse.target import target_of

KERNEL = """
gpu.module @k {{
  gpu.func @k(%x: memref<64xf32>, %s: f32, %out: memref<64x{kind}>)
      kernel attributes {{known_block_size = array<i32: 32, 1, 1>}} {{
    %c0 = arith.constant 0 : index
    %flat = vector.load %x[%c0] : memref<64xf32>, vector<{count}xf32>
    %v = vector.shape_cast %flat : vector<{count}xf32> to vector<{dims}f32>
    %b = vector.broadcast %s : f32 to vector<{dims}f32>
    {ops}
    %e = vector.shape_cast %q : vector<{dims}{kind}> to vector<{count}x{kind}>
    vector.store %e, %out[%c0] : memref<64x{kind}>, vector<{count}x{kind}>
    gpu.return
  }}
}}
"""
DIVISIONS = "%p = arith.divf %v, %b : {0} \n %q = arith.divf %p, %b : {0}"
ROUNDED = {
    "div.full.f32": "%r = arith.divf %b, %v : {0}",
    "ex2.approx.ftz.f32": "%r = math.exp %v : {0}",
    "rcp.approx.ftz.f32": (
        "%one = arith.constant dense<1.0> : {0} %t = math.tanh %v : {0} "
        "%u = arith.addf %one, %t : {0} %r = arith.mulf %u, %v : {0}"
    ),
}
PASSES = "lower-tanh,lower-exponentials,lower-shared-divisions,lower-rounded-divisions"
SHAPES = [(), (1,), (4,), (1, 4), (4, 1), (2, 4), (2, 2, 2)]


def ptx_of(shape: tuple[int, ...], kind: str, ops: str, chip: str) -> str:
    """PTX of a kernel whose vectors have that shape, and whose result has elements of that kind."""
    text = KERNEL.format(dims="".join(f"{extent}x" for extent in shape), count=prod(shape), ops=ops, kind=kind)
    module = parse_module(text, make_context())
    set_target(module.operation, target_of(chip))
    Pipeline.parse(f"builtin.module(lower-attach-target,{PASSES},lower-kernel-abi)").run(module)
    assert not ops_named(module.operation, "arith.divf", "math.exp")
    to_nvvm(module.operation)
    return ptx(module.operation, target_of(chip))["k"].ptx


def vector_of(shape: tuple[int, ...], kind: str) -> str:
    return f"vector<{''.join(f'{extent}x' for extent in shape)}{kind}>"


@pytest.mark.parametrize("chip", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shared_divisions(shape: tuple[int, ...], chip: str) -> None:
    code = ptx_of(shape, "f32", DIVISIONS.format(vector_of(shape, "f32")), chip)
    assert code.count("mul.rz.f32") == 2 * prod(shape)


@pytest.mark.parametrize("instruction", ROUNDED)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_what_is_rounded_to_half_precision(shape: tuple[int, ...], instruction: str) -> None:
    wide, half = vector_of(shape, "f32"), vector_of(shape, "f16")
    ops = f"{ROUNDED[instruction].format(wide)} %q = arith.truncf %r : {wide} to {half}"
    assert ptx_of(shape, "f16", ops, "sm_90a").count(instruction) == prod(shape)
