"""On the GPU: a product that is used twice is one number, variances are not negative, subnormal numbers are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.gpu.torch_arrays import to_numpy, to_torch
from tests.support.numerics.quotients import SMALLEST_EXACT, misrounded, random_numbers
from tests.support.reductions.numerics import DTYPES
from tests.support.views.rounding import ROUNDED

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

SHAPES = [(1000, 1), (1000, 3), (64, 1024), (4096, 127), (3, 40000), (5000, 8)]


def run(fn: Any, *arrays: np.ndarray) -> Any:
    result = mf.fuse(fn)(*[to_torch(array) for array in arrays])
    return tuple(map(to_numpy, result)) if isinstance(result, tuple) else to_numpy(result)


def normal(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(DTYPES[dtype])


@pytest.mark.parametrize("shape", SHAPES)
def test_variances_are_numbers(shape: tuple[int, ...]) -> None:
    variance, deviation = run(ROUNDED["deviations"], normal(shape))
    assert (variance >= 0).all()
    assert (deviation >= 0).all()
    if shape[1] == 1:
        assert not variance.any()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("axis", [0, -1])
def test_nothing_is_above_its_maximum(axis: int, shape: tuple[int, ...]) -> None:
    below = run(ROUNDED["below the maximum" if axis else "below the maximum of columns"], normal(shape))
    assert (below.max(axis) == 0).all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["nothing", "commuted", "commuted constants", "written and used", "used twice"])
def test_elementwise_operations_round_as_those_of_numpy(name: str, shape: tuple[int, ...]) -> None:
    x = normal(shape)
    found, expected = run(ROUNDED[name], x), mf.fuse(ROUNDED[name], target="interpret")(x)
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for result, rounded in pairs:
        np.testing.assert_array_equal(result, rounded)


@pytest.mark.parametrize("dtype", DTYPES)
def test_subnormal_results_are_kept(dtype: str) -> None:
    """Of products, quotients, exponentials, roots and casts; each within a unit of the last place, and not 0."""
    info = np.finfo(np.float16) if dtype == "float16" else np.finfo(np.float32)
    tiny = float(info.tiny)
    x = (normal((64, 1024), dtype).astype(np.float64) * tiny * 0.25).astype(DTYPES[dtype])
    exact = x.astype(np.float64)
    functions: dict[str, Any] = {
        "product": (lambda x: x * 0.75, exact * 0.75),
        "quotient": (lambda x: x / 3, exact / 3),
        "sum": (lambda x: x + x, exact + exact),
        "shared quotient": (lambda x: x / (1 + mf.max(mf.abs(x), axis=-1, keepdims=True)), exact),
        "maximum": (lambda x: mf.maximum(x, -x), np.abs(exact)),
        "root": (lambda x: x * mf.rsqrt(mf.abs(x) * 0 + 1), exact),
        "row sums": (lambda x: mf.sum(x, axis=-1), exact.sum(-1)),
    }
    smallest = float(info.smallest_subnormal) * (1 if dtype != "bfloat16" else 2.0**16)
    for name, (fn, expected) in functions.items():
        found = run(fn, x).astype(np.float64)
        assert (np.abs(found - expected) <= 2 * smallest + 2.0**-8 * np.abs(expected)).all(), name


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_subnormal_exponentials_are_kept(dtype: str) -> None:
    x = np.linspace(-91.5, -80, 4096).reshape(4, 1024).astype(DTYPES[dtype])
    exact = np.exp(x.astype(np.float64))
    found = run(mf.exp, x).astype(np.float64)
    smallest = 2.0**-149 if dtype == "float32" else 2.0**-133
    relative = 2.0**-20 if dtype == "float32" else 2.0**-8
    assert (np.abs(found - exact) <= smallest + relative * exact).all()
    assert (found > 0).all()
    # What is scaled up again shows a subnormal number in every dtype.
    scaled = run(lambda x: (mf.exp(x.astype(mf.float32)) * 2.0**100).astype(x.dtype), x).astype(np.float64)
    assert (np.abs(scaled - exact * 2.0**100) <= 2.0**-7 * exact * 2.0**100).all()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_subnormal_sigmoids_are_kept(dtype: str) -> None:
    """Where exp(-x) is infinite, too: in bfloat16 by approximation, alone and as an operand of a product."""
    x = np.linspace(-91.5, -80, 4096).reshape(4, 1024).astype(DTYPES[dtype])
    exact = np.exp(x.astype(np.float64))
    smallest = 2.0**-149 if dtype == "float32" else 2.0**-133
    relative = 2.0**-20 if dtype == "float32" else 2.0**-8
    for fn, expected in ((mf.sigmoid, exact), (lambda x: x * mf.sigmoid(x), x.astype(np.float64) * exact)):
        found = run(fn, x).astype(np.float64)
        assert (np.abs(found - expected) <= 128 * smallest + 2 * relative * np.abs(expected)).all()
        assert (found != 0).all()
    far = np.array([[-np.inf, -3e38, -1000, -110, 0, 90, 3e38, np.inf]]).astype(DTYPES[dtype])
    np.testing.assert_array_equal(run(mf.sigmoid, far).astype(np.float32), [[0, 0, 0, 0, 0.5, 1, 1, 1]])


def test_roots_and_reciprocals_of_numbers_that_are_not_tiny_are_those_of_numpy() -> None:
    """All significands, with an even and an odd power of two."""
    x = np.arange(0x3F800000, 0x40800000, dtype=np.uint32).view(np.float32)
    root, reciprocal, quotient = run(
        lambda x: (mf.sqrt(mf.abs(x) + 0.0625), 1 / (1 + mf.abs(x)), x / (0.5 + mf.abs(x))), x
    )
    np.testing.assert_array_equal(root, np.sqrt(x + np.float32(0.0625)))
    np.testing.assert_array_equal(reciprocal, 1 / (1 + x))
    np.testing.assert_array_equal(quotient, x / (np.float32(0.5) + x))


@pytest.mark.parametrize("seed", range(4))
def test_roots_and_quotients_of_any_numbers_are_those_of_numpy(seed: int) -> None:
    """Random bits, with all exponents as frequent; quotients but of tiny dividends, or that are tiny."""
    x, y = (random_numbers(1 << 22, 2 * seed + n) for n in (0, 1))
    root, quotient = run(lambda x, y: (mf.sqrt(x), x / y), x, y)
    with np.errstate(invalid="ignore"):
        right = np.sqrt(x)
    np.testing.assert_array_equal(root, right)
    wrong = misrounded(quotient, x, y) & ~(np.abs(x) < 4 * SMALLEST_EXACT)
    assert not wrong.any(), [(a.hex(), b.hex(), c.hex()) for a, b, c in zip(x, y, quotient, strict=True)][
        wrong.argmax()
    ]


@pytest.mark.parametrize("divisor", [1.003, 3.0, -7.0, 0.1, 365.0])
def test_double_precision_divided_by_a_constant(divisor: float) -> None:
    """Zeros of both signs, infinities and NaN too."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(100_000) * 2.0 ** rng.integers(-900, 900, 100_000).astype(np.float64)
    x[:5] = 0.0, -0.0, np.inf, -np.inf, np.nan
    found, expected = run(lambda x: x / divisor, x), x / divisor
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found[:4]), np.signbit(expected[:4]))
