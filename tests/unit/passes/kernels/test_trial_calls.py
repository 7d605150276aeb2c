"""Calls of kernels on trial, which are there for as long as these are compared."""

from __future__ import annotations

from mlir import ir

from mlirfuse.analysis.kernels import functions, symbol
from mlirfuse.analysis.memory.shared_arrays import passed_arrays
from mlirfuse.compiler.context import make_context
from mlirfuse.passes.kernels.host import calls, launched

MODULE = """
func.func @f(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = call @f_0(%x, %y) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
func.func private @f_0(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>) -> tensor<8x4xf32> attributes {fuse.kernel} {
  return %x : tensor<8x4xf32>
}
"""


def test_a_trial_is_called_with_what_there_is() -> None:
    """Of what no launch makes yet it is passed something of that type; nothing of it is left behind."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(MODULE).operation
        before = str(module)
        host, kernel = functions(module)
        (call,) = calls(host)
        trial = kernel.clone(ir.InsertionPoint(kernel)).operation
        trial.attributes["sym_name"] = ir.StringAttr.get("trial")
        with launched(trial, [call.operands[1], None], call) as found:
            assert symbol(found) == "trial"
            assert module.verify()
            ((passed, made),) = passed_arrays(module)["trial"]
            assert passed == call.operands[1]
            assert made.type == call.operands[1].type
        assert str(module) == before
