"""Arguments that lie in memory as transposed arrays do, on the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.interpreter import run


@pytest.mark.parametrize(("rows", "columns"), [(136, 200), (137, 75)])
def test_an_array_and_a_transposed_view(rows: int, columns: int) -> None:
    specs = (
        mf.TensorSpec((None, columns), mf.float32),
        mf.TensorSpec((None, columns), mf.float32, strides=(1, None), align=4 if rows % 4 else 16),
    )
    compiled = mf.fuse(lambda x, y: x - 2 * y, target="sm_90a").lower(*specs).compile()
    assert "1 read(s) and 0 write(s) through shared memory" in compiled.explain(verbose=True)
    rng = np.random.default_rng(1)
    x, y = (rng.integers(-9, 10, shape).astype(np.float32) for shape in ((rows, columns), (columns, rows)))
    (result,) = run(compiled.module_at("gpu"), compiled.program.name, [x, y.T])
    np.testing.assert_array_equal(result, x - 2 * y.T)
