"""Instructions of an element of a kernel's space: by what divides it, and by the passes that compute it again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import pytest

import mlirfuse as mf
from mlirfuse.builder.spec import ScalarSpec
from mlirfuse.machine import machine_of
from mlirfuse.schedule.choice.proposals import proposals
from mlirfuse.schedule.predict import predict, work_of
from mlirfuse.schedule.predict.work import INSTRUCTION_BYTES, INSTRUCTION_CACHE, price
from mlirfuse.target import target_of
from tests.support.forms import problem

ROWS = mf.TensorSpec(("n", 5120), mf.float32, hints=(8192, None))
COUNTED: dict[str, tuple[Callable[..., Any], float]] = {
    "exact": (lambda x: x / 4.0, 1.0),
    "constant": (lambda x: x / 3.0, 5.0),
    "shared": (lambda x: x / mf.sum(x, axis=-1, keepdims=True), 6.0),  # and a sum
    "own": (lambda x: x / (x + 1.0), 15.0),
    "one by its own": (lambda x: 1.0 / (x + 1.0), 9.0),
    "not tiny": (lambda x: x / (x * x + 1.0), 13.0),
    "one by what is not tiny": (lambda x: 1.0 / (x * x + 1.0), 7.0),
}


def gated_peak(x: Any) -> Any:
    """The peak of a gate is needed before its elements: where rows are read again, the gate is computed again."""
    h = x * mf.sigmoid(x)
    return h / mf.max(h, axis=-1, keepdims=True)


@pytest.mark.parametrize("name", COUNTED)
def test_quotients_count_by_their_divisors(name: str) -> None:
    fn, expected = COUNTED[name]
    assert problem(fn, [ROWS]).instructions == expected


DOUBLES = mf.TensorSpec((512, 5120), mf.float64)


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (lambda x: x**0.3, 95.0),
        (lambda x: mf.log(x), 40.0),
        (lambda x: x / 4.0, 1.0),
        (lambda x: x / (x + 1.0), 11.0),
        (lambda x: mf.sin(x), 25.0),
    ],
)
def test_functions_of_doubles_count_by_what_they_take_there(fn: Callable[..., Any], expected: float) -> None:
    found = problem(fn, [DOUBLES])
    assert (found.double, found.special) == (expected, 0.0)


def test_doubles_that_vary_along_some_dimensions_count_too() -> None:
    """A function of a pixel is computed once for all layers, by the double-precision units."""
    layers = mf.TensorSpec((3, 512, 5120), mf.float64)
    found = problem(lambda x, r: x * r**0.3, [layers, DOUBLES])
    assert (found.double, [shared.double for shared in found.shared_instructions]) == (1.0, [95.0])


@pytest.mark.parametrize(("divisor", "plain"), [(8, 1.0), (10, 7.0), (-6, 7.0)])
def test_integers_count_by_what_divides_them(divisor: int, plain: float) -> None:
    """A quotient by a constant takes no division; beside it, none is special."""
    rows = mf.TensorSpec(("n", 5120), mf.int32, hints=(8192, None))
    found, other = (problem(fn, [rows]) for fn in (lambda x: x // divisor, lambda x: x // (x + 1)))
    assert found.instructions == plain < other.instructions
    assert found.special == 0 < other.special


def test_quotients_by_a_number_of_the_call_share_it() -> None:
    """However many arguments the op has that divides: a number is the function's argument, not the op's."""
    found = problem(lambda x, y, s: (x / s, y != x), [ROWS, ROWS, -2.25])
    assert found.instructions == problem(lambda x, y: (x / 3.0, y != x), [ROWS, ROWS]).instructions


def test_exponentials_count_by_what_hides_their_errors() -> None:
    """In half precision they are a product and the special unit's power of two, also behind a row's quotient."""

    def softmax(x: Any) -> Any:
        e = mf.exp(x - mf.max(x, axis=-1, keepdims=True))
        return e / mf.sum(e, axis=-1, keepdims=True)

    exact, rounded = (problem(fn, [ROWS]) for fn in (softmax, lambda x: mf.astype(softmax(x), mf.bfloat16)))
    assert exact.special == rounded.special == 2
    assert exact.instructions - rounded.instructions == 7.0 - 2.0 - 0.5


def test_what_a_second_pass_computes_again_is_counted() -> None:
    assert problem(lambda x: x + 1.0, [ROWS]).repeated == (0.0, 0.0, 0.0)
    given = problem(gated_peak, [ROWS])
    gate = problem(lambda x: x * mf.sigmoid(x), [ROWS])
    assert given.repeated == (gate.instructions, gate.special, 0.0)


def test_a_mean_and_a_variance_take_two_passes_apart() -> None:
    spread = problem(lambda x: mf.var(mf.exp(x), axis=-1), [ROWS])
    assert spread.repeated[1] == problem(mf.exp, [ROWS]).special


def test_rows_in_chunks_take_the_instructions_of_all_passes() -> None:
    target, machine = target_of("sm_90a"), machine_of("sm_90a")
    given = replace(problem(gated_peak, [ROWS]), extents=(8192, 5120), hints=())
    once = replace(given, repeated=(0.0, 0.0, 0.0), repeated_early=(0.0, 0.0, 0.0))
    seen = set()
    for schedule in (each.schedule for each in proposals(given, target)):
        more = work_of(schedule, given, machine).instructions - work_of(schedule, once, machine).instructions
        chunked = schedule.persistence in ("shared", "multi_pass")
        assert (more >= 8192 * 5120 * given.repeated[0]) if chunked else more == 0
        assert predict(schedule, given, machine).microseconds >= predict(schedule, once, machine).microseconds
        seen.add(chunked)
    assert seen == {False, True}


def test_loops_compute_what_rows_share_in_each_step() -> None:
    """The root of a row's sum of squares: once for each row that a thread has an element of."""
    machine = machine_of("sm_90a")

    def columns(x: Any) -> Any:
        return mf.sum(x / mf.sqrt(mf.sum(x * x, axis=-1, keepdims=True)), axis=0)

    found = problem(columns, [mf.TensorSpec((8192, 1024), mf.float32)])
    schedule = next(p.schedule for p in proposals(found, target_of("sm_90a")) if p.family == "loop")
    (shared,) = found.shared_instructions
    with_root, without = (work_of(schedule, p, machine) for p in (found, replace(found, shared_instructions=())))
    layout = schedule.layout
    rows = 8192 // schedule.tile[0] * layout.cluster * layout.threads * layout.held([0])
    assert with_root.instructions - without.instructions == pytest.approx(rows * shared.instructions, rel=0.02)
    assert with_root.special - without.special == pytest.approx(rows * shared.special, rel=0.02)


def test_reciprocals_of_what_elements_share_count_once_for_each_that_a_thread_has() -> None:
    def scaled(x: Any, w: Any) -> Any:
        return x / w

    found = problem(scaled, [ROWS, mf.TensorSpec((5120,), mf.float32)])
    assert [(s.dims, s.instructions, s.special) for s in found.shared_instructions] == [(frozenset({1}), 18.0, 1.0)]
    bounded = problem(lambda x, w: x / (1.0 + mf.abs(w)), [ROWS, mf.TensorSpec((5120,), mf.float32)])
    assert [s.instructions for s in bounded.shared_instructions] == [2.0 + 5.0]


def test_numbers_from_outside_are_no_operands_of_a_division() -> None:
    found = problem(lambda x, a, b, c: (x + a) * b // c, [ROWS, *[ScalarSpec("float")] * 3])
    assert not found.shared_instructions


def test_grid_persistent_tiles_compute_what_columns_share_in_each_visit() -> None:
    """A function of the columns, for each column of each tile: the tiles of a block have others."""
    machine = machine_of("sm_90a")

    def spread(x: Any, w: Any) -> Any:
        y = x * mf.tanh(w)
        return y - mf.mean(y)

    found = problem(spread, [mf.TensorSpec((8192, 1024), mf.float32), mf.TensorSpec((1, 1024), mf.float32)])
    schedule = next(p.schedule for p in proposals(found, target_of("sm_90a")) if p.family == "grid_persistent")
    (shared,) = found.shared_instructions
    with_tanh, without = (work_of(schedule, p, machine) for p in (found, replace(found, shared_instructions=())))
    tiles = 8192 * 1024 // prod(schedule.tile)
    columns = tiles * schedule.layout.threads * schedule.layout.held([1])
    assert with_tanh.instructions - without.instructions == pytest.approx(2 * columns * shared.instructions, rel=0.05)
    assert with_tanh.special - without.special == pytest.approx(2 * columns * shared.special, rel=0.05)


def test_code_beyond_the_instruction_cache_is_fetched_again() -> None:
    machine = machine_of("sm_90a")
    found = replace(problem(mf.tanh, [ROWS]), extents=(8192, 5120), hints=())
    schedule = next(p.schedule for p in proposals(found, target_of("sm_90a")) if p.schedule.layout.threads == 256)
    work = work_of(schedule, found, machine)
    each = work.instructions / work.blocks / work.threads
    long = replace(work, instructions=work.instructions * 2 * INSTRUCTION_CACHE / INSTRUCTION_BYTES / each)
    looped = replace(long, iterations=2.0)
    assert price(long, machine).issue > 1.05 * price(looped, machine).issue
    assert price(looped, machine).issue == pytest.approx(
        price(work, machine).issue * long.instructions / work.instructions
    )


@pytest.mark.parametrize(
    ("fn", "early", "last"),
    [
        (lambda x: mf.sum(x, axis=-1), False, False),
        (lambda x: (x * 2.0, mf.sum(x, axis=-1)), True, False),
        (lambda x: x - mf.sum(x, axis=-1, keepdims=True), False, True),
        (lambda x: (x * 2.0, x - mf.sum(x, axis=-1, keepdims=True)), True, True),
    ],
)
def test_passes_that_write(fn: Callable[..., Any], early: bool, last: bool) -> None:
    """What needs no reduction is written while one is made; what needs it has a pass of its own."""
    found = problem(fn, [ROWS])
    assert (found.stores_early, found.stores_last) == (early, last)
