"""Arguments as text on the command line."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from mlirfuse.builder.spec import ScalarSpec, TensorSpec
from mlirfuse.errors import ArgumentError, DTypeError
from mlirfuse.support import dtypes
from mlirfuse.tools.commands.specs import parse_input, parse_spec


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("f16[?,4096]", TensorSpec((None, 4096), dtypes.float16)),
        (" bfloat16 [ rows , 8 ] ", TensorSpec(("rows", 8), dtypes.bfloat16)),
        ("i8[?,?]", TensorSpec(("?", "?"), dtypes.int8)),
        ("i1[4]", TensorSpec((4,), dtypes.bool_)),
        ("f32[]", TensorSpec((), dtypes.float32)),
        ("float", ScalarSpec("float")),
        ("bool", ScalarSpec("bool")),
    ],
)
def test_specs(text: str, spec: TensorSpec | ScalarSpec) -> None:
    assert parse_spec(text) == spec


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("f16[?,4096", ArgumentError, "cannot read 'f16"),
        ("f16", ArgumentError, r"'f16' is neither a tensor nor a number\n.*write f16\[\]"),
        ("f17[4]", DTypeError, "dtype 'f17' is not supported\n.*bfloat16.* or short: i1, i8"),
        ("f8[4]", DTypeError, "'f8' has its size in bytes.*(?s:.*)write f8E4M3FN or f8E5M2 or f64"),
        ("i4[4]", DTypeError, "(?s)'i4' .*write i32"),
        ("f16[4,-1]", ArgumentError, r"'-1' in 'f16\[4,-1\]' is not an extent"),
        ("f16[4,,1]", ArgumentError, "'' in"),
        ("", ArgumentError, "cannot read ''"),
    ],
)
def test_refused_specs(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        parse_spec(text)


def test_fills_have_shape_dtype_and_a_seed() -> None:
    x = parse_input("random:bf16[3,5]", seed=1)
    assert isinstance(x, np.ndarray)
    assert (x.shape, x.dtype) == ((3, 5), ml_dtypes.bfloat16)
    assert np.array_equal(x, parse_input("random:bf16[3,5]", seed=1))
    assert not np.array_equal(x, parse_input("random:bf16[3,5]", seed=2))
    assert np.array_equal(parse_input("arange:i32[2,2]", seed=0), [[0, 1], [2, 3]])
    assert np.array_equal(parse_input("ones:f16[2]", seed=0), [1, 1])
    assert np.array_equal(parse_input("zeros:f16[0,2]", seed=0), np.zeros((0, 2)))


def test_numbers() -> None:
    assert parse_input("3", seed=0) == 3
    assert isinstance(parse_input("3", seed=0), int)
    assert parse_input("-1e-5", seed=0) == -1e-5


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.int8])
def test_files_keep_their_dtype(tmp_path: Path, dtype: type) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype)
    np.save(tmp_path / "x.npy", array)
    read = parse_input(str(tmp_path / "x.npy"), seed=0)
    assert isinstance(read, np.ndarray)
    assert read.dtype == array.dtype
    assert np.array_equal(read, array)


def test_refused_inputs(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"'random:f16\[\?,2\]' needs a static shape"):
        parse_input("random:f16[?,2]", seed=0)
    with pytest.raises(ArgumentError, match=r"cannot read 'x\.txt' as an input\n.*FILE\.npy"):
        parse_input("x.txt", seed=0)
    with pytest.raises(FileNotFoundError):
        parse_input(str(tmp_path / "absent.npy"), seed=0)
    (tmp_path / "text.npy").write_text("not an array")
    with pytest.raises(ArgumentError, match="not a .npy file"):
        parse_input(str(tmp_path / "text.npy"), seed=0)
