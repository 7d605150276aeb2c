"""The fuzzer itself: programs, bounds, the comparison, workers and shrinking."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import FunctionType, SimpleNamespace

import numpy as np
import pytest

import mlirfuse as mf
from tests.fuzzing.bounds import Bounded, cast, exact, nearest, product, total
from tests.fuzzing.generation.generator import program_from_seed
from tests.fuzzing.inputs import Input
from tests.fuzzing.ops.contraction import matmul
from tests.fuzzing.ops.elementwise import (
    COMPARISONS,
    add,
    divide,
    floor_divide,
    minimum,
    multiply,
    power,
    remainder,
    sigmoid,
)
from tests.fuzzing.ops.reductions import max_of, std_of, sum_of, var_of
from tests.fuzzing.program import Program, Statement
from tests.fuzzing.running.assembled import MOST_COMPILATIONS, MadeUpReports
from tests.fuzzing.running.backends import BACKENDS
from tests.fuzzing.running.check import CRASH, RIGHT, TIMEOUT, WRONG, WrongResult, check, outcome_of, signature
from tests.fuzzing.running.pool import Pool
from tests.fuzzing.shrink import shrink
from tests.fuzzing.types import DTYPES, FORMATS, numpy_dtype


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def array(values: object, dtype: str = "float32") -> Bounded:
    return exact(np.asarray(values, numpy_dtype(dtype)), dtype)


def test_sigmoid_is_subnormal_before_it_is_zero() -> None:
    result = sigmoid(array([-800.0, -721.6, -30.0, 0.0, 800.0, np.nan], "float64"))
    truth = np.array([0.0, math.exp(-721.6), 1 / (1 + math.exp(30)), 0.5, 1.0, np.nan])
    np.testing.assert_allclose(result.value, truth, rtol=1e-15)
    assert 0 < result.error[1] < 1e-15 * truth[1] + 1e-322


def test_a_zero_of_unknown_sign_divides_to_some_infinity() -> None:
    zero = minimum(array([0.0, -0.0, 2.0]), array([-0.0, 0.0, 4.0]))
    np.testing.assert_array_equal(np.isinf(floor_divide(array([1000.0, 1000.0, 7.0]), zero).error), [True, True, False])


def test_equal_seeds_give_equal_programs() -> None:
    assert [program_from_seed(s, "small") for s in range(20)] == [program_from_seed(s, "small") for s in range(20)]


def test_every_public_function_occurs() -> None:
    sources = "".join(program_from_seed(seed, "small").source for seed in range(700))
    functions = [n for n in mf.__all__ if isinstance(getattr(mf, n), FunctionType) and n != "fuse"]
    functions = [n for n in functions if not n.startswith("conv")]  # their cases are in tests/support/convolutions.py
    operators = {"add": " + ", "subtract": " - ", "negative": "= -"}
    missing = [n for n in functions if f"mf.{n}(" not in sources and operators.get(n, "mf.?") not in sources]
    assert not missing
    assert all(f"mf.{dtype}" in sources for dtype in DTYPES)


def test_programs_are_as_varied_as_promised() -> None:
    programs = [program_from_seed(seed, "middle") for seed in range(250)]
    sizes = [len(p.statements) for p in programs]
    assert max(sizes) >= 20
    assert np.mean([n >= 3 for n in sizes]) > 0.98
    inputs = [x for p in programs for x in p.inputs]
    assert {len(x.shape) for x in inputs} == {0, 1, 2, 3, 4}
    assert {x.layout for x in inputs} >= {"strided", "transposed", "offset", "reversed", "broadcast", "padded"}
    assert {p.out for p in programs} == {"none", "given", "overlap"}
    assert any(p.rows for p in programs)
    assert {p.dynamic for p in programs} == {True, False}
    assert any(p.numbers for p in programs)
    assert any(len(set(p.outputs)) < len(p.outputs) for p in programs)


def test_printed_programs_run() -> None:
    program = program_from_seed(2, "small")
    namespace: dict[str, object] = {}
    exec(program.text, namespace)
    results = namespace["results"]
    check(list(results) if isinstance(results, tuple | list) else [results], program.results(), "printed")


@pytest.mark.parametrize("dtype", list(FORMATS))
def test_rounding_is_that_of_the_dtype(dtype: str) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=20_000) * 2.0 ** rng.integers(-30, 20, 20_000)
    wide = values.astype(np.float32).astype(np.float64)
    with np.errstate(all="ignore"):
        inside = (
            wide if not FORMATS[dtype].saturates else np.clip(wide, -FORMATS[dtype].largest, FORMATS[dtype].largest)
        )
        wanted = inside.astype(np.float32).astype(numpy_dtype(dtype)).astype(np.float64)
    np.testing.assert_array_equal(nearest(wide, dtype), wanted)


def test_exact_operands_allow_one_number() -> None:
    a, b = array([0.1, 3, 1e30], "float16"), array([0.2, 4, 1], "float16")
    for rule in (add, multiply, divide):
        assert not rule(a, b).error[1].any()
    assert not total(array([0.1]), array([0.7]), "float32").error.any()
    assert not product(array([0.1]), array([0.7]), "float32").error.any()


def test_small_whole_numbers_stay_exact() -> None:
    x = array(np.arange(-500, 500).reshape(10, 100))
    assert not sum_of(x, (1,)).error.any()
    assert not matmul(x, array(np.arange(200).reshape(100, 2) % 9)).error.any()
    assert sum_of(array(np.linspace(0, 1, 1000))).error > 0


def program_of(*lines: str, outputs: tuple[str, ...]) -> Program:
    """`v0 = multiply x0 x1` and the like, of float64."""
    statements = tuple(Statement(name, op, tuple(args)) for name, _, op, *args in map(str.split, lines))
    inputs = tuple(Input(name, (64,), "float64") for name in ("x0", "x1"))
    return Program(3, inputs, {}, statements, outputs)


def test_products_slip_where_nothing_else_reads_them() -> None:
    lines = ("v0 = multiply x0 x1", "v1 = add v0 x0")
    (once,) = program_of(*lines, outputs=("v1",)).results()
    assert (once.error > 0).any()
    for more, outputs in (((), ("v1", "v0")), (("v2 = exp v1", "v3 = subtract v1 v2"), ("v3",))):
        program = program_of(*lines, *more, outputs=outputs)
        assert not program.evaluate()["v1"].error.any()
    (rounded,) = program_of("v0 = multiply x0 x1", "v1 = negative v0", "v2 = add v1 x0", outputs=("v2",)).results()
    assert not rounded.error.any()
    (dead,) = program_of(*lines, "v2 = exp v0", "v3 = multiply x0 x1", outputs=("v1",)).results()
    np.testing.assert_array_equal(dead.error, once.error)


def test_contracted_products_are_within_their_bounds() -> None:
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, 1000)).astype(np.float32)
    bounded = total(product(array(a), array(b), "float32"), array(c), "float32")
    contracted = (a.astype(np.float64) * b + c).astype(np.float32)
    separate = a * b + c
    assert (contracted != separate).any()
    check([contracted], [bounded], "contracted")
    check([separate], [bounded], "rounded")
    exactly = total(product(array([3]), array([0.5]), "float32"), array([0.1]), "float32")
    assert not exactly.error.any()
    assert not total(product(array([3e38]), array([2]), "float32"), array([-3e38]), "float32").known


@pytest.mark.parametrize("axis", [0, 1])
def test_sums_in_double_precision_have_bits_to_spare(axis: int) -> None:
    """NumPy adds rows one by one, and drifts; a kernel that adds one by one is honest too."""
    x = np.full((40_000, 2), 1 / 3)
    bounded = sum_of(exact(x if axis == 0 else x.T, "float64"), (axis,))
    exactly = math.fsum(x[:, 0])
    np.testing.assert_allclose(bounded.value, exactly, rtol=2.0**-51)
    check([np.full(2, np.cumsum(x[:, 0])[-1])], [bounded], "one by one")


def test_nan_of_an_overflow_is_not_known() -> None:
    most = np.finfo(np.float64).max
    x = exact(np.array([[most, most, -np.inf], [np.inf, -np.inf, 1], [np.nan, most, most], [np.inf, 1, 2]]), "float64")
    ones = exact(np.array([1.0, 1, 1]), "float64")
    for bounded in (sum_of(x, (1,)), matmul(x, ones)):
        np.testing.assert_array_equal(bounded.known, [False, True, True, True])
        np.testing.assert_array_equal(np.isnan(bounded.value[1:]), [True, True, False])


def test_products_of_matrices_underflow_as_their_dtype() -> None:
    a = array(np.full((3, 1), 2.0**-100))
    for other in (2.0**-100, 1.1 * 2.0**-45):
        check([np.full((3, 1), np.float32(2.0**-100) * np.float32(other))], [matmul(a, array([[other]]))], "product")


def test_what_tf32_has_no_number_for_is_not_known() -> None:
    x = array([[float(np.finfo(np.float32).max)], [2.0**127]])
    zero = array([[0.0]])
    for precision in ("tf32", "3xtf32"):
        np.testing.assert_array_equal(matmul(x, zero, precision=precision).known, [[False], [True]])
    assert matmul(x, zero).known.all()


def test_decisions_near_a_boundary_are_not_known() -> None:
    near = Bounded(np.array([1.0, 1.0]), np.array([1e-7, 0]), "float32")
    known = COMPARISONS["less"](near, array([1, 1])).known
    np.testing.assert_array_equal(known, [False, True])
    np.testing.assert_array_equal(cast(near, "int32").known, [False, True])


def test_a_power_of_what_may_have_either_sign_is_not_known() -> None:
    base = Bounded(np.array([-1e290, 1e290]), np.array([2e292, 2e292]), "float64")
    number = exact(np.asarray(1.5), "float64", constant=True, weak="float")
    assert not power(base, number).known.any()


def test_a_remainder_that_is_not_exact_may_be_rounded_either_way() -> None:
    near = Bounded(np.array([-0.46195079430980907]), np.array([2.2e-7]), "float32")
    divisor = array([15.115746])
    check([np.array([14.653795242], np.float32)], [remainder(near, divisor)], "remainder")
    assert not remainder(array([-0.5]), divisor).error


def test_what_is_not_finite_is_exact() -> None:
    x = array([np.nan, np.inf, 1.0])
    assert np.isnan(max_of(x).value)
    assert not max_of(x).error
    assert not max_of(array([np.inf, 1])).error
    assert not sum_of(array([np.inf, 1])).error
    assert not sum_of(array([3e38, 3e38])).known


def test_deviations_are_within_their_bounds() -> None:
    x = np.random.default_rng(0).normal(1e-4, 1e-4, (50, 999)).astype(np.float16)
    bounded = exact(x, "float16")
    exactly = np.var(x.astype(np.float64), axis=1)
    np.testing.assert_array_less(np.abs(var_of(bounded, (1,)).value - exactly), 2.0**-24)
    assert std_of(bounded, (1,)).error.max() < 1e-6


def test_wrong_elements_are_seen() -> None:
    want = Bounded(np.array([1.0, np.nan, np.inf, 5.0]), np.array([1e-6, 0, 0, np.inf]), "float32")
    check([np.array([1 + 5e-7, np.nan, np.inf, -7], np.float32)], [want], "here")
    for wrong in ([1.001, np.nan, np.inf, 0], [1, 0, np.inf, 0], [1, np.nan, -np.inf, 0], [np.nan, np.nan, np.inf, 0]):
        with pytest.raises(WrongResult, match="here"):
            check([np.array(wrong, np.float32)], [want], "here")
    with pytest.raises(WrongResult, match="dtype float64, not float32"):
        check([np.array([1, np.nan, np.inf, 0])], [want], "here")


def test_errors_are_sorted() -> None:
    assert outcome_of(mf.MlirFuseError("no")).kind == "refused"
    assert outcome_of(KeyError(3)).kind == CRASH
    assert outcome_of(WrongResult("x: off\n1 of 2")).kind == WRONG
    assert signature("@f_3 never wrote element (4, 0) of v12") == signature("@g_0 never wrote element (1, 27) of v3")


@pytest.mark.parametrize(("backend", "bad"), [("aborts", CRASH), ("hangs", TIMEOUT)])
def test_workers_survive(backend: str, bad: str) -> None:
    with Pool(2, limit=20 if bad == CRASH else 8) as pool:
        tasks = [(n, (n, f"tests.support.fakes.doomed_backends:{backend}", "small")) for n in range(5)]
        kinds = {number: outcome for number, outcome, _ in pool.run(tasks)}
    assert {n: o.kind for n, o in kinds.items()} == {n: bad if n % 2 else RIGHT for n in range(5)}
    if bad == CRASH:
        assert "Assertion" in kinds[1].signature


def test_a_worker_that_ends_is_given_no_other_program() -> None:
    with Pool(1, limit=20) as pool:
        tasks = [(n, (n, "tests.support.fakes.doomed_backends:ends", "small")) for n in range(5)]
        found = {number: outcome for number, outcome, _ in pool.run(tasks)}
    assert {n: o.kind for n, o in found.items()} == {n: CRASH if n % 2 else RIGHT for n in range(5)}
    assert all("KeyError" in o.signature for o in found.values() if o.kind == CRASH)


def test_a_worker_that_ended_between_programs_is_replaced() -> None:
    with Pool(1, limit=20) as pool:
        for n in range(4):
            ((_, outcome, _),) = pool.run([(n, (n, "tests.support.fakes.doomed_backends:disappears", "small"))])
            assert outcome.kind == RIGHT
            if n % 2:
                pool._workers[0].process.join()
                pool._workers[0].process.is_alive = lambda: True  # as one that is about to end


def test_failures_shrink() -> None:
    programs = (program_from_seed(seed, "small") for seed in range(200))
    program = next(p for p in programs if any(s.op == "exp" for s in p.statements))
    backend = "tests.support.fakes.doomed_backends:dislikes_exp"
    with Pool(1, limit=20) as pool:
        ((_, outcome, _),) = pool.run([(0, (program, backend, ""))])
        assert outcome.kind == WRONG
        reduced, found = shrink(pool, program, backend, outcome, 60)
    assert [s.op for s in reduced.statements] == ["exp"]
    assert found.signature == outcome.signature
    assert all(n <= 3 for x in reduced.inputs for n in x.shape)


def test_products_below_the_normal_numbers_are_rounded() -> None:
    """One term of 1.35e-45 is the smallest number or, in a bound that knows no better, off by all of it."""
    term = matmul(array([[2.0**-75 * 0.96875]]), array([[2.0**-74]]))
    assert term.error.item() == pytest.approx(FORMATS["float32"].tiny, rel=1e-4)
    many = matmul(array(np.full((1, 8), 2.0**-75)), array(np.full((8, 1), 2.0**-75)))
    assert many.error.item() >= many.value.item()  # all eight may become 0
    assert matmul(array([[2.0**-75]]), array([[2.0**-70]])).error.item() == 0
    assert matmul(array([[0.0]]), array([[1.0]])).error.item() == 0


def test_what_is_scheduled_again_is_interpreted() -> None:
    program = program_from_seed(91100000, "small")
    outcome = BACKENDS["crowded"](program)
    assert outcome.kind == RIGHT
    assert outcome.kernels == outcome.again > 0


def test_reports_of_spills_are_made_up_by_the_seed() -> None:
    def reported(seed: int) -> list[int]:
        assemble = MadeUpReports(seed).fresh()
        kernel = SimpleNamespace(name="f_0_kernel")
        return [sum(r.spill_store_bytes for r in assemble([kernel])) for _ in range(MOST_COMPILATIONS)]

    assert reported(3) == reported(3)
    found = [reported(seed) for seed in range(50)]
    assert all(spilled[0] and not spilled[-1] for spilled in found)
    assert {sum(map(bool, spilled)) for spilled in found} == set(range(1, MOST_COMPILATIONS))
