"""Arguments as text on the command line: `f16[?,4096]` for a type, `random:f16[8,4096]` or a file for data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import ml_dtypes
import numpy as np

from mlirfuse.builder.spec import ScalarSpec, TensorSpec
from mlirfuse.errors import ArgumentError, DTypeError, MlirFuseError
from mlirfuse.support import dtypes
from mlirfuse.support.dtypes import DType, dtype_of

_SPEC = re.compile(r"\s*(?P<dtype>\w+)\s*(?:\[(?P<shape>[^\]]*)\])?\s*")
_NUMPY = re.compile(r"[fi]\d")
_SCALARS = {"float": ScalarSpec("float"), "int": ScalarSpec("int"), "bool": ScalarSpec("bool")}
_SHORT = {dtype.mlir_name: dtype for dtype in dtypes.ALL}
_FILLS = ("random", "zeros", "ones", "arange")


def parse_arguments(texts: Sequence[str]) -> list[TensorSpec | ScalarSpec]:
    """The specs of `--arg` options; raises the errors of `parse_spec`, with the wrong option as the place."""
    specs = []
    for text in texts:
        try:
            specs.append(parse_spec(text))
        except MlirFuseError as error:
            raise type(error)(error.message, where=f"--arg {text}", hint=error.hint) from None
    return specs


def parse_spec(text: str) -> TensorSpec | ScalarSpec:
    """The spec of `f16[?,4096]`, `float32[rows,128]`, `f32[]`, or of a run-time number: `float`, `int`, `bool`.

    A `?` is an extent known at run time, a name is one that other arguments may share.

    Raises:
        ArgumentError: the text is not of this form.
        DTypeError: the dtype is not known.
    """
    match = _SPEC.fullmatch(text)
    if match is None:
        raise ArgumentError(f"cannot read {text!r} as an argument", hint="write f16[?,4096], or float, int, bool")
    if match["shape"] is None:
        if match["dtype"] not in _SCALARS:
            hint = f"write {match['dtype']}[] for a tensor of rank 0, or float, int, bool for a number"
            raise ArgumentError(f"{text!r} is neither a tensor nor a number", hint=hint)
        return _SCALARS[match["dtype"]]
    extents = [part.strip() for part in match["shape"].split(",")] if match["shape"].strip() else []
    return TensorSpec([_extent(extent, text) for extent in extents], _dtype(match["dtype"]))


def parse_input(text: str, seed: int) -> np.ndarray | float | int:
    """The data of an input: a number, `path.npy`, or `random:`, `zeros:`, `ones:`, `arange:` with a static shape.

    Random floats are normal with variance 1, random integers lie in [-8, 8).

    Raises:
        ArgumentError: the text is not of this form, a shape is not static, or the file is no .npy.
        OSError: the file cannot be read.
    """
    fill, colon, spec_text = text.partition(":")
    if colon and fill in _FILLS:
        spec = parse_spec(spec_text)
        shape = static_shape(spec, repr(text))
        assert isinstance(spec, TensorSpec)
        return _filled(fill, shape, spec.dtype, seed)
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        pass
    if not text.endswith(".npy"):
        hint = f"write a number, FILE.npy, or one of {', '.join(f'{name}:f16[8,4096]' for name in _FILLS)}"
        raise ArgumentError(f"cannot read {text!r} as an input", hint=hint)
    return _load(Path(text))


def static_shape(spec: TensorSpec | ScalarSpec, what: str) -> tuple[int, ...]:
    """The shape of a spec; raises `ArgumentError`, which names `what`, for a dynamic extent."""
    if not isinstance(spec, TensorSpec) or not all(isinstance(extent, int) for extent in spec.shape):
        raise ArgumentError(f"{what} needs a static shape", hint="write f16[8,4096]")
    return tuple(extent for extent in spec.shape if isinstance(extent, int))


def _extent(text: str, spec: str) -> int | str | None:
    if text == "?":
        return None
    if text.isdecimal():
        return int(text)
    if text.isidentifier():
        return text
    raise ArgumentError(f"{text!r} in {spec!r} is not an extent", hint="use a number, ? for run time, or a name")


def _dtype(text: str) -> DType:
    try:
        found = _SHORT[text] if text in _SHORT else dtype_of(text)
    except DTypeError as error:
        raise DTypeError(error.message, hint=f"{error.hint}, or short: {', '.join(_SHORT)}") from None
    if text not in _SHORT and _NUMPY.fullmatch(text):
        close = [name for name in _SHORT if name.startswith(text)] + [found.mlir_name]
        what = f"dtype {text!r} has its size in bytes, as NumPy's names have, and here it is in bits"
        raise DTypeError(what, hint=f"write {' or '.join(close)}")
    return found


def _filled(fill: str, shape: tuple[int, ...], dtype: DType, seed: int) -> np.ndarray:
    if fill == "zeros":
        return np.zeros(shape, dtype.numpy)
    if fill == "ones":
        return np.ones(shape, dtype.numpy)
    if fill == "arange":
        return np.arange(int(np.prod(shape))).reshape(shape).astype(dtype.numpy)
    generator = np.random.default_rng(seed)
    if dtype.kind == "float":
        return generator.standard_normal(shape).astype(dtype.numpy)
    return generator.integers(-8, 8, shape).astype(dtype.numpy)


def _load(path: Path) -> np.ndarray:
    try:
        array: np.ndarray = np.load(path, allow_pickle=False)
    except ValueError as error:
        raise ArgumentError(f"not a .npy file: {error}", where=str(path)) from None
    # NumPy's format does not know bfloat16: such a file comes back as two opaque bytes an element.
    return array.view(ml_dtypes.bfloat16) if array.dtype == np.dtype("V2") else array
