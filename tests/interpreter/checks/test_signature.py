"""What a tool learns about a module before it runs anything."""

from __future__ import annotations

import numpy as np
import pytest

from mlirfuse.errors import InterpreterError
from mlirfuse.interpreter import Parameter, signature, signatures
from tests.support.kernels import parse


def test_host_function_and_kernel(load):
    module = load("layer_norm")
    assert [(s.name, s.kernel) for s in signatures(module)] == [("layer_norm", False), ("layer_norm_kernel", True)]
    host = signature(module, "layer_norm")
    half = np.dtype(np.float16)
    assert host.arguments == (Parameter("x", half, (None, 1000)), Parameter("w", half, (1000,)))
    assert host.results == (Parameter("result 0", half, (None, 1000)),)


def test_scalars_and_unnamed_arguments():
    module = parse("func.func @f(%a: f64, %b: index) -> f64 { return %a : f64 }")
    assert signature(module, "f").arguments == (
        Parameter("argument 0", np.dtype(np.float64), None),
        Parameter("argument 1", np.dtype(np.int64), None),
    )


def test_a_declaration_is_nothing_that_runs(load):
    with pytest.raises(InterpreterError, match=r"no function @layer_norm_0 with a body\n.*: layer_norm, "):
        signature(load("layer_norm"), "layer_norm_0")
