"""Hints for names of NumPy and PyTorch that mlirfuse spells differently or does not have."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from types import FunctionType

_LOG_SOFTMAX = "with d = x - mf.max(x, axis=-1, keepdims=True): d - mf.log(mf.sum(mf.exp(d), axis=-1, keepdims=True))"
_SOFTMAX = "with e = mf.exp(x - mf.max(x, axis=-1, keepdims=True)): e / mf.sum(e, axis=-1, keepdims=True)"
_LOGSUMEXP = "with m = mf.max(x, axis=-1, keepdims=True): m + mf.log(mf.sum(mf.exp(x - m), axis=-1, keepdims=True))"
_GELU = "0.5 * x * (1 + mf.erf(x * 0.5**0.5)), or by tanh 0.5 * x * (1 + mf.tanh(0.79788456 * (x + 0.044715 * x**3)))"
_JOIN = "use mf.concat(arrays, axis=...), of arrays of 2 dimensions at least"
_PAD = "pass an array of zeros, and use mf.concat([x, zeros], axis=...)"
_SPLIT = "take slices, such as x[..., :n] and x[..., n:], or make the pieces a dimension: x.reshape(..., pieces, -1)"
_CUMSUM = "a product with a triangular matrix: pass np.triu(np.ones((n, n))) as an argument t, and write x @ t"
_POSITIONS = "pass the positions as an argument, such as np.arange(n)"
_INDICES = "indices of elements are not computed; compare with the result of mf.max, or do it outside of the function"
_ORDER = "sorting and gathering by values are not supported; do it outside of the function"
_CUMPROD = "a sum with a triangular matrix of logarithms, mf.exp(mf.log(x) @ t), of positive numbers"
_NORM = "mf.sqrt(mf.sum(x * x, axis=-1))"
_SOLVE = "systems of equations and decompositions are not supported; solve them outside of the function"
_UNSIGNED = "unsigned integers are not supported; pass arrays of int16 or int32"
_INVERSE = "inverse trigonometric functions are not supported; compute them outside of the function"
_MASK = "pass the mask as an argument, and use mf.where(mask, x, 0)"
_ARRAY = "pass the array as an argument; Python numbers broadcast as they are"
_PERMUTE = "use mf.permute_dims(x, axes) with all dimensions in their new order"
_ARGUMENT = "traced tensors have no data and no device; leave it out"

FUNCTIONS: Mapping[str, str] = {
    **dict.fromkeys(("argmax", "argmin", "argsort", "topk", "searchsorted", "nonzero"), _INDICES),
    **dict.fromkeys(("sort", "take", "gather", "take_along_axis", "index_select", "scatter"), _ORDER),
    **dict.fromkeys(("median", "quantile", "percentile", "unique", "kthvalue"), _ORDER),
    **dict.fromkeys(("cumsum", "cumulative_sum"), _CUMSUM),
    **dict.fromkeys(("cumprod", "cumulative_prod"), _CUMPROD),
    **dict.fromkeys(("inv", "solve", "det", "cholesky", "qr", "svd", "eig", "eigh", "pinv", "lstsq"), _SOLVE),
    **dict.fromkeys(("uint8", "uint16", "uint32", "uint64"), _UNSIGNED),
    "diff": "x[..., 1:] - x[..., :-1]",
    "repeat": "mf.reshape(mf.broadcast_to(x[..., None], (*x.shape, n)), (*x.shape[:-1], -1))",
    "tile": "mf.concat([x] * n, axis=-1)",
    "lerp": "x + t * (y - x)",
    "heaviside": "mf.where(x > 0, 1.0, 0.0)",
    "copysign": "mf.where(y < 0, -mf.abs(x), mf.abs(x))",
    "cbrt": "mf.sign(x) * mf.abs(x) ** (1 / 3)",
    **dict.fromkeys(("arange", "linspace", "iota"), _POSITIONS),
    **dict.fromkeys(("hstack", "vstack"), _JOIN),
    "pad": _PAD,
    "flip": "use mf.flip(x, axis)",
    "roll": "mf.concat([x[..., -n:], x[..., :-n]], axis=-1)",
    **dict.fromkeys(("split", "chunk", "unbind", "array_split"), _SPLIT),
    **dict.fromkeys(("tril", "triu"), _MASK),
    **dict.fromkeys(("array", "asarray", "zeros", "ones", "full", "empty", "eye"), _ARRAY),
    **dict.fromkeys(("swapaxes", "moveaxis"), _PERMUTE),
    "transpose": "use mf.permute_dims(x, axes), or x.T of a matrix",
    "softmax": _SOFTMAX,
    "log_softmax": _LOG_SOFTMAX,
    "logsumexp": _LOGSUMEXP,
    **dict.fromkeys(("silu", "swish"), "x * mf.sigmoid(x)"),
    "gelu": _GELU,
    "relu": "mf.maximum(x, 0)",
    "leaky_relu": "mf.where(x > 0, x, 0.01 * x)",
    "softplus": "mf.maximum(x, 0) + mf.log1p(mf.exp(-mf.abs(x)))",
    **dict.fromkeys(("norm", "vector_norm"), _NORM),
    "matrix_norm": "mf.sqrt(mf.sum(x * x, axis=(-2, -1)))",
    "tan": "mf.sin(x) / mf.cos(x)",
    "sinh": "(mf.exp(x) - mf.exp(-x)) / 2",
    "cosh": "(mf.exp(x) + mf.exp(-x)) / 2",
    **dict.fromkeys(("asin", "acos", "atan", "atan2", "arcsin", "arccos", "arctan", "arctan2"), _INVERSE),
    "logaddexp": "mf.maximum(x, y) + mf.log1p(mf.exp(-mf.abs(x - y)))",
    "log10": "mf.log2(x) * 0.30102999566",
    "hypot": "mf.sqrt(x * x + y * y)",
    "nan_to_num": "mf.where(mf.isnan(x), 0, x)",
    "count_nonzero": "mf.sum(x != 0)",
    "average": "mf.sum(x * weights) / mf.sum(weights)",
    **dict.fromkeys(("flatten", "ravel"), "use mf.reshape(x, -1)"),
}
"""What to write in place of functions that mlirfuse does not have."""

RENAMED: Mapping[str, str] = {
    **dict.fromkeys(("absolute", "fabs"), "abs"),
    **{"amax": "max", "amin": "min", "fmax": "maximum", "fmin": "minimum", "clamp": "clip"},
    **{"mul": "multiply", "sub": "subtract", "div": "divide", "true_divide": "divide", "neg": "negative"},
    **{"power": "pow", "mod": "remainder", "rint": "round", "around": "round", "fix": "trunc"},
    **{"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"},
    **{"invert": "bitwise_invert", "bitwise_not": "bitwise_invert", "unsqueeze": "expand_dims"},
    **{"left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift"},
    **dict.fromkeys(("concatenate", "cat"), "concat"),
    **dict.fromkeys(("dot", "mm", "bmm", "inner"), "matmul"),
    **dict.fromkeys(("expand", "broadcast"), "broadcast_to"),
}
"""mlirfuse's names of functions that other libraries spell differently."""

METHODS: Mapping[str, str] = {
    **dict.fromkeys(("to", "type"), "use x.astype(dtype); tensors stay on their device"),
    "type_as": "use x.astype(y.dtype)",
    **dict.fromkeys(("view", "flatten", "ravel", "view_as", "reshape_as"), "use x.reshape(...)"),
    **dict.fromkeys(("detach", "clone", "copy", "contiguous", "cpu", "cuda"), _ARGUMENT),
    **dict.fromkeys(("item", "tolist", "numpy"), "return the tensor, and read it outside of the function"),
    **dict.fromkeys(("device", "data", "grad", "requires_grad"), _ARGUMENT),
    **dict.fromkeys(("numel", "nelement"), "multiply the extents of x.shape"),
    **{"size": "use x.shape", "dim": "use x.ndim", "t": "use x.T", "permute": "use x.transpose(...)"},
    **{"pow": "use x ** y", "add": "use x + y", "sub": "use x - y", "mul": "use x * y", "div": "use x / y"},
    **dict.fromkeys(("matmul", "mm", "bmm", "dot"), "use x @ y"),
    **dict.fromkeys(("unsqueeze", "expand_dims"), "use x[:, None], or mf.expand_dims(x, axis)"),
    **{"expand_as": "use mf.broadcast_to(x, y.shape)", "masked_fill": "use mf.where(mask, value, x)"},
    **{"amax": "use x.max(axis)", "amin": "use x.min(axis)"},
}
"""What to write in place of attributes that traced tensors do not have; casts are `_CASTS`."""

_CASTS = {"float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16"}
_CASTS |= {"int": "int32", "long": "int64", "short": "int16", "char": "int8", "bool": "bool_"}


def instead_of_function(name: str) -> str | None:
    """A hint for a function's name in another library: mlirfuse's name, or an expression; None for an unknown name."""
    if (own := RENAMED.get(name, name)) in _own():
        return f"use mf.{own}"
    return FUNCTIONS.get(name)


def closest_function(name: str) -> str:
    """A hint for a function name that mlirfuse does not have: its counterpart, or the closest name."""
    close = get_close_matches(name, _own(), n=1, cutoff=0.65)  # softmin is not meant to be min
    return instead_of_function(name) or (
        f"did you mean mf.{close[0]}?" if close else "dir(mlirfuse) lists all functions"
    )


def instead_of_attribute(name: str) -> str:
    """A hint for an attribute that traced tensors do not have."""
    plain = name.rstrip("_")  # PyTorch's methods in place
    if plain in _CASTS:
        return f"use x.astype(mf.{_CASTS[plain]})"
    if plain in METHODS:
        return METHODS[plain]
    own = RENAMED.get(plain, plain)
    if own in _own():
        return f"use mf.{own}(x)"
    return FUNCTIONS.get(plain, "use mlirfuse's functions, such as mf.sum")


def _own() -> list[str]:
    """The names of the functions that mlirfuse has."""
    import mlirfuse  # imported here, as the imported module imports this one

    return [name for name in mlirfuse.__all__ if isinstance(getattr(mlirfuse, name), FunctionType) and name != "fuse"]
