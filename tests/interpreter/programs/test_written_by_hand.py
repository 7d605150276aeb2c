"""Legal IR that no trace makes means the same at every stage; its arguments promise no alignment of their own."""

from __future__ import annotations

import numpy as np
import pytest

from mlirfuse import interpreter
from mlirfuse.compiler import pipeline
from mlirfuse.passmanager.manager import run_pipeline
from tests.support.kernels import parse

MAPS = """
#id = affine_map<(d0, d1) -> (d0, d1)>
#across = affine_map<(d0, d1) -> (d1, d0)>
#row = affine_map<(d0, d1) -> (d0)>
"""
ELEMENTWISE = 'iterator_types = ["parallel", "parallel"]'
ROWS = 'iterator_types = ["parallel", "reduction"]'

CASES = {
    "two results, one of them transposed": f"""
func.func @f(%x: tensor<8x64xf32>, %y: tensor<8xf32>) -> (tensor<8x64xf32>, tensor<64x8xf32>) {{
  %e = tensor.empty() : tensor<8x64xf32>
  %t = tensor.empty() : tensor<64x8xf32>
  %0:2 = linalg.generic {{indexing_maps = [#id, #id, #across], {ELEMENTWISE}}}
         ins(%x : tensor<8x64xf32>) outs(%e, %t : tensor<8x64xf32>, tensor<64x8xf32>) {{
  ^bb0(%a: f32, %o: f32, %p: f32):
    %v = arith.addf %a, %a : f32
    %w = arith.mulf %a, %a : f32
    linalg.yield %v, %w : f32, f32
  }} -> (tensor<8x64xf32>, tensor<64x8xf32>)
  return %0#0, %0#1 : tensor<8x64xf32>, tensor<64x8xf32>
}}""",
    "a sum that starts from an argument": f"""
func.func @f(%x: tensor<8x64xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {{
  %0 = linalg.generic {{indexing_maps = [#id, #row], {ROWS}}}
       ins(%x : tensor<8x64xf32>) outs(%y : tensor<8xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %a, %o : f32
    linalg.yield %v : f32
  }} -> tensor<8xf32>
  return %0 : tensor<8xf32>
}}""",
    "a sum of numbers that vary along no column": f"""
func.func @f(%x: tensor<8x64xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %0 = linalg.generic {{indexing_maps = [#id, #row, #row], {ROWS}}}
       ins(%x, %y : tensor<8x64xf32>, tensor<8xf32>) outs(%init : tensor<8xf32>) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.addf %b, %o : f32
    linalg.yield %v : f32
  }} -> tensor<8xf32>
  return %0 : tensor<8xf32>
}}""",
    "results that are inits": f"""
func.func @f(%x: tensor<8x64xf32>, %y: tensor<8xf32>) -> (tensor<8x64xf32>, tensor<8x64xf32>) {{
  %0:2 = linalg.generic {{indexing_maps = [#id, #id], {ELEMENTWISE}}}
         outs(%x, %x : tensor<8x64xf32>, tensor<8x64xf32>) {{
  ^bb0(%a: f32, %b: f32):
    %v = arith.addf %a, %b : f32
    linalg.yield %a, %v : f32, f32
  }} -> (tensor<8x64xf32>, tensor<8x64xf32>)
  %e = tensor.empty() : tensor<8x64xf32>
  %1 = linalg.generic {{indexing_maps = [#id, #id], {ELEMENTWISE}}}
       ins(%0#1 : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %v = arith.negf %a : f32
    linalg.yield %v : f32
  }} -> tensor<8x64xf32>
  return %0#0, %1 : tensor<8x64xf32>, tensor<8x64xf32>
}}""",
}


@pytest.mark.parametrize("stage", ["tile", "gpu"])
@pytest.mark.parametrize("name", CASES)
def test_stages_agree(name: str, stage: str) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in ((8, 64), (8,))]
    expected = interpreter.run(parse(MAPS + CASES[name]), "f", arrays)
    module = parse(MAPS + CASES[name])
    with module.context:
        run_pipeline(module, pipeline.named(f"fuse-{stage}-pipeline"))
    for got, want in zip(interpreter.run(module, "f", arrays), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
