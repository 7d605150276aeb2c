"""The fuzzer's reference where operands are not known exactly: cancellation, overflow, zeros, and steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from tests.fuzzing.bounds import Bounded, cast, exact
from tests.fuzzing.ops import elementwise as ops
from tests.fuzzing.ops.contraction import matmul
from tests.fuzzing.ops.reductions import mean_of, prod_of, std_of
from tests.fuzzing.running.check import WrongResult, check
from tests.fuzzing.types import FORMATS, numpy_dtype

MOST = float(np.finfo(np.float64).max)
TINY = 2.0**-1074


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def about(value: float, error: float, dtype: str = "float64") -> Bounded:
    return Bounded(np.array([value]), np.array([error]), dtype)


def sure(value: float, dtype: str = "float64") -> Bounded:
    return exact(np.array([value], numpy_dtype(dtype)), dtype)


def holds(bounded: Bounded, *values: float) -> None:
    """Whether a kernel may return each of some numbers."""
    for value in values:
        check([np.array([value], numpy_dtype(bounded.dtype))], [bounded], "here")


def refuses(bounded: Bounded, value: float) -> None:
    with pytest.raises(WrongResult):
        holds(bounded, value)


UNKNOWN = about(0.0, np.inf)


def test_small_quotients_may_be_one_unit_off() -> None:
    unit = 2.0**-149
    small = ops.divide(sure(3 * unit * 2**20, "float32"), sure(2.0**20, "float32"))
    holds(small, 2 * unit, 3 * unit, 4 * unit)
    refuses(small, 5 * unit)
    third = ops.divide(sure(2.0**-99, "float32"), sure(3.0, "float32"))
    right = float(np.float32(2.0**-99) / np.float32(3.0))
    holds(third, right)
    refuses(third, right + 2.0**-124)


def test_quotients_may_be_two_units_off_where_half_precision_is_left() -> None:
    """3 / 32130 lies between two float16 numbers, by less than a unit of float32 nearer to the upper one."""
    quotient = ops.divide(sure(3.0, "float32"), sure(32130.0, "float32"))
    half = cast(quotient, "float16")
    holds(half, 9.340047836303711e-05, 9.334087371826172e-05)
    holds(cast(ops.multiply(quotient, sure(0.5, "float32")), "float16"), 4.6670436859130859e-05)
    with pytest.raises(WrongResult):
        holds(half, 9.328126907348633e-05)
    with pytest.raises(WrongResult):
        holds(quotient, float(np.nextafter(np.float32(3 / 32130), np.float32(1))))


@pytest.mark.parametrize("rule", [ops.floor_divide, ops.remainder, ops.divide, ops.multiply, ops.power, ops.maximum])
@pytest.mark.parametrize("other", [0.0, np.nan, np.inf, 2.0])
def test_what_is_not_known_stays_so(rule: Callable[..., Bounded], other: float) -> None:
    """In float64, where the rounding of a NaN made a bound of NaN, which is none (seed 7006358)."""
    assert not rule(UNKNOWN, sure(other)).known.any()
    assert not rule(sure(other), UNKNOWN).known.any() or (rule is ops.power and other == 0)


@pytest.mark.parametrize(
    ("rule", "a", "b"),
    [
        (ops.add, about(MOST, MOST * 2.0**-50), sure(MOST * 2.0**-52)),
        (ops.multiply, about(MOST / 2, MOST * 2.0**-51), sure(2 + 2.0**-51)),
        (ops.divide, about(MOST / 2, MOST * 2.0**-51), sure(0.5 - 2.0**-53)),
    ],
)
def test_overflow_in_double_precision_may_be_a_number(rule: Callable[..., Bounded], a: Bounded, b: Bounded) -> None:
    assert np.isinf(rule(sure(a.value.item()), b).value)
    assert not rule(a, b).known.any()
    assert rule(about(np.inf, 0), b).known.all()


def test_overflow_in_single_precision_is_either() -> None:
    most = FORMATS["float32"].largest
    for near in (0.9999999, 1.0000001):
        assert not ops.multiply(about(most / 2 * near, 2.0**105, "float32"), sure(2.0, "float32")).known.any()
    assert np.isinf(ops.multiply(about(most, 2.0**100, "float32"), sure(2.0, "float32")).value).all()


def test_products_that_underflow_are_not_exact() -> None:
    small = about(1e-200, 1e-210)
    holds(ops.multiply(small, sure(1e-130)), 0.0, TINY)
    assert not ops.multiply(small, sure(0.0)).error.any()
    holds(ops.divide(about(1e-300, 1e-310), sure(1e30)), 0.0)
    assert ops.divide(about(1e-300, 1e-310), sure(1e30)).error.all()


def test_remainders_follow_the_sign_beside_infinity() -> None:
    """x % inf is x, or infinity where x is negative."""
    for rule in (ops.remainder, ops.floor_divide):
        assert not rule(about(1e-9, 1e-8), sure(np.inf)).known.any()
    holds(ops.remainder(about(3.0, 1e-8), sure(np.inf)), 3.0, 3 + 5e-9)
    holds(ops.floor_divide(about(3.0, 1e-8), sure(np.inf)), 0.0)


@pytest.mark.parametrize(
    ("x", "y", "known"),
    [
        (about(6.0, 1e-9), sure(2.0), False),
        (about(6.5, 1e-9), sure(2.0), True),
        (sure(6.0), about(2.0, 1e-9), False),
        (about(1e17, 0.4), sure(1.0), False),
        (about(7.0, 1e-9), about(0.0, 1e-9), False),
        (sure(6.0), sure(2.0), True),
    ],
)
def test_whole_quotients_near_a_step_are_not_known(x: Bounded, y: Bounded, known: bool) -> None:
    assert ops.floor_divide(x, y).known.all() == known
    assert ops.remainder(x, y).known.all() == known


def test_remainders_round_when_the_divisor_is_added() -> None:
    bounded = ops.remainder(about(-1e-9, 1e-20), sure(3.0))
    holds(bounded, 3 - 1e-9, np.nextafter(3 - 1e-9, 0), np.nextafter(3 - 1e-9, 4))


def test_steps_leave_the_sign_of_zero_open() -> None:
    up = ops.STEPS["ceil"](Bounded(np.array([-1e-9]), np.array([1e-9]), "float64", signed=True))
    assert up.value == 0
    assert up.error == 0
    assert not up.signed
    assert not ops.reciprocal(up).known.any()
    assert ops.STEPS["ceil"](sure(-0.5)).signed


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [("sqrt", 0.0, 1e-9), ("rsqrt", 0.0, 1e-9), ("log", 1e-9, 1e-9), ("log1p", -1 + 1e-9, 1e-8), ("exp", 709.7, 0.1)],
)
def test_functions_at_the_ends_of_their_domain_are_not_known(name: str, value: float, error: float) -> None:
    assert not ops.UNARY_MATH[name](about(value, error)).known.any()


@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log1p", "rsqrt", "sin", "tanh", "erf"])
@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_functions_err_by_their_largest_value(name: str, dtype: str) -> None:
    """Not by the middle of the interval, which may be a zero."""
    rule, x = ops.UNARY_MATH[name], about(1.0, 0.5, dtype)
    bounded = rule(x)
    for end in (x.low, x.high):
        at_end = rule(Bounded(end, np.zeros(1), dtype))
        assert (np.abs(at_end.value - bounded.value) + at_end.error <= bounded.error * (1 + 2.0**-9)).all()


def test_powers_of_what_cancelled_keep_its_error() -> None:
    x = about(1e-4, 1e-6, "float32")
    seventh = ops.power(x, exact(np.asarray(7), "int64", weak="int", constant=True))
    holds(seventh, np.float32(1.01e-4) ** 7, np.float32(0.99e-4) ** 7)
    assert seventh.error < 0.2 * seventh.value
    assert not ops.power(about(1e-7, 1e-6, "float32"), sure(0.3, "float32")).known.any()
    assert not ops.power(about(2.0, 1e-3), sure(1024.0)).known.any()


def test_products_of_what_may_vanish() -> None:
    """The bound was 0 times an infinite growth."""
    x = Bounded(np.array([[0.0, 3.0, 5.0]]), np.array([[1e-3, 0, 0]]), "float32")
    holds(prod_of(x, (1,)), 0.0, 1.4e-2, -1.4e-2)
    assert prod_of(x, (1,)).error < 2e-2
    assert not prod_of(exact(np.array([[0.0, 3.0]]), "float32"), (1,)).error.any()


def test_means_of_subnormals_are_merged() -> None:
    tiny = FORMATS["float32"].tiny
    bounded = mean_of(exact(np.array([[1, 3, 2, 5]]) * tiny, "float32"), (1,))
    holds(bounded, 2 * tiny, 3 * tiny)
    assert not mean_of(exact(np.zeros((1, 4)), "float32"), (1,)).error.any()


def test_casts_of_large_integers_may_round_twice() -> None:
    number = 2**62 + 2**54 + 1
    bounded = cast(exact(np.array([number]), "int64"), "bfloat16")
    holds(bounded, 2.0**62, 2.0**62 + 2.0**55)
    assert not cast(exact(np.array([2**62]), "int64"), "bfloat16").error.any()


def cut_off(a: np.ndarray, b: np.ndarray, bits: int, smallest: int) -> float:
    """A sum of products in a tensor core that keeps so many bits behind the largest term's first, for `a`'s format."""
    terms = a.astype(np.float64) * b.astype(np.float64)
    first = [np.where(x == 0, -126, np.maximum(np.frexp(x.astype(np.float64))[1] - 1, smallest)) for x in (a, b)]
    step = 2.0 ** (np.max(first[0] + first[1]) - bits)
    return float(np.sum(np.trunc(terms / step)) * step)


@pytest.mark.parametrize("bits", [23, 24, 25])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_tensor_cores_align_subnormal_operands_like_normal_ones(dtype: str, bits: int) -> None:
    """Seed 7006137: 2^-24 * -65504 is -2^-8, and costs the other terms of its sum ten bits."""
    rng, form = np.random.default_rng(0), FORMATS[dtype]
    special = np.array([form.tiny, -3 * form.tiny, 2.0**form.smallest, form.largest, -form.largest, 0, 1])
    cancelled = 0
    for _ in range(2000):
        a, b = (
            np.where(rng.random(4) < 0.5, rng.choice(special, 4), rng.normal(size=4)).astype(numpy_dtype(dtype))
            for _ in range(2)
        )
        bounded = matmul(exact(a[None], dtype), exact(b[:, None], dtype), dtype="float32")
        number = cut_off(a, b, bits, form.smallest)
        cancelled += number != bounded.value.item()
        check([np.array([[number]], np.float32)], [bounded], f"{a} {b}")
    assert cancelled > 20
    normal = matmul(exact(np.ones((1, 4)) * 0.1, dtype), exact(np.ones((4, 1)) * 0.3, dtype), dtype="float32")
    assert normal.error < 2.0**-18 * normal.value


def test_float32_without_tensor_cores_is_no_less_exact() -> None:
    a, b = np.array([[0.0, 1.0]], np.float32), np.array([[2.0**127], [2.0**-60]], np.float32)
    assert matmul(exact(a, "float32"), exact(b, "float32")).error.item() == 0
    assert matmul(exact(a, "float32"), exact(b, "float32"), precision="tf32").error.item() > 0


def test_sums_of_float8_lose_what_hopper_cuts_off() -> None:
    """Some 14 bits are kept of them; few enough terms of a size are exact."""
    rng = np.random.default_rng(0)
    a, b = ((rng.random((1, 128)) + 0.125).astype(numpy_dtype("float8_e4m3fn")) for _ in range(2))
    bounded = matmul(exact(a, "float8_e4m3fn"), exact(b.T, "float8_e4m3fn"))
    total = 0.0
    for k in range(0, 128, 32):
        terms = np.append((a * 1.0).astype(float)[0, k : k + 32] * b.astype(float)[0, k : k + 32], total)
        step = 2.0 ** (np.frexp(terms)[1].max() - 1 - 13)
        total = float(np.sum(np.trunc(terms / step)) * step)
    check([np.array([[total]], np.float32)], [bounded], "cut off")
    assert abs(total - bounded.value.item()) > 2.0**-16 * bounded.value.item()
    ones = exact(np.ones((1, 100)), "float8_e4m3fn")
    assert matmul(ones, exact(np.ones((100, 1)), "float8_e4m3fn")).error.item() == 0


def test_infinities_times_what_may_vanish_are_not_known_in_products_of_matrices() -> None:
    """A NaN where the scale is zero: the deviation of equal numbers is, or next to it (seed 51005440)."""
    deviation = std_of(exact(np.ones((3, 33, 31)), "float64"), keepdims=True, correction=1.0)
    others = np.array([[[np.inf, -np.inf, 2.0]]])
    for product in (matmul(deviation, exact(others, "float64")), matmul(exact(others.mT, "float64"), deviation)):
        assert list(product.known.ravel()) == [False, False, True]
    assert matmul(about(1.0, 0.5), exact(np.array([[np.inf]]), "float64")).known.all()
    assert not matmul(about(0.0, TINY), exact(np.array([[np.inf]]), "float64")).known.any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("value", [0.0, 1e-20, -1e-20])
@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
def test_what_may_vanish_beside_an_infinity_is_not_known(dtype: str, value: float, infinity: float) -> None:
    x, y = about(value, abs(value) or 1e-20, dtype), sure(infinity, dtype)
    assert not ops.multiply(x, y).known.any()
    assert not ops.multiply(y, x).known.any()
    assert not ops.add(ops.multiply(x, y), sure(1.0, dtype)).known.any()
    assert not ops.divide(y, x).known.any()
    assert not ops.divide(x, sure(0.0, dtype)).known.any()
    assert not ops.power(y, about(value, 2e-20, dtype)).known.any()
    pair = Bounded(np.array([value, infinity]), np.array([x.error.item(), 0.0]), dtype)
    assert not prod_of(pair).known.any()
