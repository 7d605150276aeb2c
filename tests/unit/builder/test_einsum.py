"""Einsum has NumPy's meaning at the tensor level, and points at what is wrong in an equation."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from mlirfuse import builder as mf
from mlirfuse.builder import linalg
from mlirfuse.builder.functions.diagonals import trace
from mlirfuse.errors import ArgumentError, DTypeError, ShapeError, TraceError
from tests.support.equations import Einsum, einsums
from tests.support.harnesses.builder_harness import ops, run, spec_of, traced

EQUATIONS = [
    ("ij,jk", (2, 3), (3, 4)),
    ("ij,jk->ki", (2, 3), (3, 4)),
    ("ba,cb", (2, 3), (4, 2)),
    ("bijk,bklj->bli", (2, 3, 4, 5), (2, 5, 3, 4)),
    ("ij,jk", (2, 1), (3, 4)),
    ("ij,jk->ik", (1, 3), (3, 4)),
    ("...ij,...jk", (5, 1, 2, 3), (7, 3, 4)),
    ("i...,...->...i", (2, 3), (4, 1)),
    ("...j,j->...", (3,), (3,)),
    (" i j , j k -> i k ", (2, 3), (3, 4)),
    ("ii", (3, 3)),
    ("iij", (3, 3, 1)),
    ("iji->ij", (3, 2, 3)),
    ("iijj->ij", (2, 2, 3, 3)),
    ("ii,ij->j", (3, 3), (3, 2)),
    ("i,j,k->kij", (2,), (3,), (4,)),
    ("ij,j,jk->ik", (2, 3), (3,), (3, 4)),
    ("i,ij,jk,k->ik", (2,), (2, 3), (3, 4), (4,)),
    ("ij,jk,kl,lm->im", (2, 3), (3, 4), (4, 5), (5, 2)),
    ("ij,kl->il", (3, 2), (4, 5)),
    ("ij,kl->", (3, 2), (4, 5)),
    ("ij,jk", (2, 0), (0, 3)),
    ("ij,jk->ik", (0, 2), (2, 3)),
    ("ij->", (0, 2)),
    ("->", ()),
    (",ij", (), (2, 3)),
    ("...", (2, 3)),
    ("i->i...", (2,)),
]


def integers(shape: tuple[int, ...], dtype: object, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.int64, np.bool_])
@pytest.mark.parametrize(("equation", "shapes"), [(e, s) for e, *s in EQUATIONS])
def test_equations_are_numpys(equation, shapes, dtype) -> None:
    arrays = [integers(shape, dtype, seed) for seed, shape in enumerate(shapes)]
    actual, expected = run(lambda *xs: mf.einsum(equation, *xs), *arrays), np.einsum(equation, *arrays)
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    np.testing.assert_array_equal(actual, expected)


@settings(max_examples=500, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(einsums())
def test_random_equations_are_numpys(example: Einsum) -> None:
    arrays = example.arrays()
    actual, expected = run(lambda *xs: example.call(mf, xs), *arrays), example.expected(arrays)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(actual, expected)


def test_lists_of_ints_in_place_of_letters() -> None:
    x, y = integers((2, 3), np.float32, 1), integers((3, 4), np.float32, 2)
    for lists in [([0, 1], [1, 2], [0, 2]), ([5, 1], [1, 2]), ([..., 1], [1, ...], [...])]:
        fn = lambda f, x, y, lists=lists: f(x, lists[0], y, lists[1], *lists[2:])  # noqa: E731
        if lists[-1] == [...]:
            x = integers((4, 3), np.float32, 1)
        np.testing.assert_array_equal(run(lambda x, y, fn=fn: fn(mf.einsum, x, y), x, y), fn(np.einsum, x, y))


def test_a_pair_of_operands_is_one_op_with_its_permutations_in_the_maps() -> None:
    x, y = integers((2, 3, 4, 5), np.float32, 1), integers((2, 5, 3, 4), np.float32, 2)
    module = traced(lambda x, y: mf.einsum("bijk,bklj->bli", x, y), spec_of(x), spec_of(y))
    assert len(ops(module, "linalg.generic")) == 1
    assert not ops(module, "linalg.transpose")


def test_sums_over_one_operand_come_before_the_product() -> None:
    x, y = integers((2, 3), np.float32, 1), integers((4, 5), np.float32, 2)
    module = traced(lambda x, y: mf.einsum("ij,kl->il", x, y), spec_of(x), spec_of(y))
    assert [str(op.attributes["iterator_types"]).count("reduction") for op in ops(module, "linalg.generic")] == [
        1,
        1,
        0,
    ]


def test_numbers_are_operands_without_indices() -> None:
    x = integers((2, 3), np.float32, 1)
    np.testing.assert_array_equal(run(lambda x, s: mf.einsum(",ij,->ji", s, x, 2), x, 1.5), 3 * x.T)


@pytest.mark.parametrize("number", [True, False, np.bool_(True)])
def test_bools_are_numbers_among_operands_of_bools(number) -> None:
    x = np.array([True, False, True])
    for equation, expected in ((",i->i", x & number), (",i->", number)):
        actual = run(lambda x, equation=equation: mf.einsum(equation, number, x), x)
        np.testing.assert_array_equal(actual, expected)
        actual = run(lambda n, x, equation=equation: mf.einsum(equation, n, x), number, x)
        np.testing.assert_array_equal(actual, expected)
    with pytest.raises(DTypeError, match="cannot mix a Python bool with float32"):
        run(lambda x: mf.einsum(",i->i", True, x), x.astype(np.float32))


def test_half_precision_sums_in_float32_and_rounds_once() -> None:
    x, w = np.full((1, 4096), 1, np.float16), np.ones((4096, 1), np.float16)
    x[0, 0] = 2048  # from here on float16 cannot count by ones
    assert run(lambda x, w: mf.einsum("ij,jk", x, w), x, w) == np.float16(2048 + 4095)
    assert run(lambda x, w: mf.einsum("ij,jk", x, w, dtype=np.float32), x, w) == 2048 + 4095
    assert run(lambda x: mf.einsum("ij->i", x), x) == np.float16(2048 + 4095)


def test_float8_is_summed_in_float32() -> None:
    x = np.array([[1, 2], [3, 4]], ml_dtypes.float8_e4m3fn)
    for equation in ("ij,jk", "ij,jk,kl", "ij->i", "ij,ij->ij"):
        operands = equation.count(",") + 1
        actual = run(lambda x, e=equation, n=operands: mf.einsum(e, *[x] * n), x)
        assert actual.dtype == np.float32
        np.testing.assert_array_equal(actual, np.einsum(equation, *[x.astype(np.float32)] * operands))


@pytest.mark.parametrize("optimize", [True, False, "greedy", "optimal", [(1, 2), (0, 1)], ["einsum_path", (0, 1, 2)]])
def test_orders_of_contractions(optimize) -> None:
    xs = [integers(shape, np.float64, 1) for shape in ((2, 3), (3, 4), (4, 5))]
    actual = run(lambda *xs: mf.einsum("ij,jk,kl", *xs, optimize=optimize), *xs)
    np.testing.assert_array_equal(actual, xs[0] @ xs[1] @ xs[2])


def test_extents_of_run_time() -> None:
    x, z = integers((2, 3, 4), np.float32, 1), integers((2, 5, 4), np.float32, 3)
    actual = run(lambda x: mf.einsum("bij,bij->bi", x, x), x, dynamic=(0,))
    np.testing.assert_array_equal(actual, np.einsum("bij,bij->bi", x, x))
    with pytest.raises(mf.NeedsStatic, match="einsum over index 'j'"):
        run(lambda x, z: mf.einsum("bij,bkj->bik", x, z), x, z, dynamic=(2,))
    with pytest.raises(mf.NeedsStatic, match="einsum with the index 'b'"):
        run(lambda x, z: mf.einsum("bij,bkj->bik", x, z), x, z, dynamic=(0,))


@pytest.mark.parametrize(
    ("equation", "shapes", "error", "message"),
    [
        (
            "ij,jk->iz",
            [(2, 3), (3, 4)],
            ArgumentError,
            r"index 'z' of the result is in no operand\n +ij,jk->iz\n {12}\^",
        ),
        ("ij,jk->ii", [(2, 3), (3, 4)], ArgumentError, r"the result has index 'i' twice\n +ij,jk->ii\n {12}\^"),
        ("i.j", [(2, 3)], ArgumentError, r"this is no ellipsis\n +i\.j\n {5}\^"),
        ("i..j", [(2, 3)], ArgumentError, r"this is no ellipsis\n +i\.\.j\n {5}\^\^"),
        ("...i...", [(2, 3)], ArgumentError, r"two ellipses\n +\.\.\.i\.\.\.\n {8}\^\^\^"),
        ("ij>k", [(2, 3)], ArgumentError, r"'>' is no index"),
        ("i1", [(2, 3)], ArgumentError, r"'1' is no index"),
        ("ij->->i", [(2, 3)], ArgumentError, r"'-' is no index"),
        ("i,j", [(2,)], ArgumentError, r"the equation has 2 operand\(s\), and 1 were given"),
        ("i", [(2,), (2,)], ArgumentError, r"the equation has 1 operand\(s\), and 2 were given"),
        ("...i->i", [(2, 3)], ArgumentError, r"the result has no ellipsis for the 1 dimension"),
        ("i", [(2, 3)], ShapeError, r"operand 0 has 2 dimension\(s\), and 1 indices\n +i\n {4}\^"),
        (
            "ij,jkl",
            [(2, 3), (3, 4)],
            ShapeError,
            r"operand 1 has 2 dimension\(s\), and 3 indices\n +ij,jkl\n {7}\^\^\^",
        ),
        (
            "ij,jk",
            [(2, 3), (4, 5)],
            ShapeError,
            r"index 'j' has extent 3 in operand 0, \(2, 3\), and 4 in operand 1, \(4, 5\)\n +ij,jk\n {7}\^",
        ),
        ("ii", [(2, 3)], ShapeError, r"index 'i' has extents 2 and 3 in operand 0, \(2, 3\)\n +ii\n {5}\^"),
        ("ii", [(1, 3)], ShapeError, r"index 'i' has extents 1 and 3"),
        ("...,...", [(2, 3), (4,)], ShapeError, r"a dimension of the ellipsis has extent 3 in operand 0"),
    ],
)
def test_errors_quote_the_equation_and_the_users_line(equation, shapes, error, message) -> None:
    with pytest.raises(error, match=message) as found:
        run(lambda *xs: mf.einsum(equation, *xs), *(integers(shape, np.float32, 1) for shape in shapes))
    assert "mf.einsum(equation, *xs)" in str(found.value)
    assert "test_einsum.py" in str(found.value)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: mf.einsum(x), ArgumentError, "an operand without its indices"),
        (lambda x: mf.einsum(x, [0, 52]), ArgumentError, "index 52 is not from 0 to 51"),
        (lambda x: mf.einsum(x, [0, 1], [7]), ArgumentError, "the operands have the indices A, B"),
        (lambda x: mf.einsum("ij,jk", x, x, optimize=7), ArgumentError, "optimize is 7"),
        (lambda x: mf.einsum("ij,jk", x, x, optimize=[0, 1]), ArgumentError, r"optimize is \[0, 1\]"),
        (lambda x: mf.einsum(x, 3), ArgumentError, "the indices of an operand are 3"),
        (lambda x: mf.einsum(",", 1.0, 2.0), TraceError, "has no tensor"),
        (
            lambda x: mf.einsum("ij,jk", x, x, precision="fast_accum"),
            ArgumentError,
            "einsum of float32 has no precision",
        ),
        (lambda x: mf.einsum("ij,jk,kl", x, x, x, optimize="best"), ArgumentError, "no algorithm 'best'"),
        (lambda x: mf.einsum("ij,jk,kl", x, x, x, optimize=[(0, 5)]), ArgumentError, r"the step \(0, 5\)"),
        (lambda x: mf.einsum("ij,jk,kl", x, x, x, optimize=[(0, 1)]), ArgumentError, "leaves 2 operands"),
        (lambda x: mf.tensordot(x, x, axes=3), ShapeError, "over 3 axes"),
        (lambda x: mf.tensordot(x, x, axes=([0], [0, 1])), ShapeError, "different lengths"),
        (lambda x: mf.tensordot(x, x[:, :, None], axes=1), ShapeError, None),
        (lambda x: mf.vecdot(x, mf.sum(x)), ShapeError, "vecdot"),
        (lambda x: mf.diagonal(x, axis1=0, axis2=0), ShapeError, "names a dimension twice"),
        (lambda x: mf.diagonal(mf.sum(x)), ShapeError, "needs 2 dimensions"),
    ],
)
def test_errors_of_arguments(call, error, message) -> None:
    if message is None:
        run(call, integers((3, 3), np.float32, 1))
        return
    with pytest.raises(error, match=message):
        run(call, integers((3, 3), np.float32, 1))


def test_mixed_dtypes() -> None:
    x, y = integers((2, 3), np.float32, 1), integers((3, 2), np.int8, 2)
    assert run(lambda x, y: mf.einsum("ij,jk", x, y), x, y).dtype == np.float32
    with pytest.raises(DTypeError, match="cannot mix"):
        run(lambda x, y: mf.einsum("ij,jk", x, y), x.astype(ml_dtypes.float8_e4m3fn), y)


def test_tensordot_vecdot_outer_diagonal_and_trace() -> None:
    x, y = integers((2, 3, 4), np.float32, 1), integers((3, 4, 5), np.float32, 2)
    np.testing.assert_array_equal(run(lambda x, y: mf.tensordot(x, y), x, y), np.tensordot(x, y))
    np.testing.assert_array_equal(run(lambda x, y: mf.tensordot(x, y, axes=0), x, y), np.tensordot(x, y, 0))
    np.testing.assert_array_equal(run(lambda x, y: mf.tensordot(x, y, 2), x, y), np.tensordot(x, y, 2))
    axes = ([2, 1], [1, 0])
    np.testing.assert_array_equal(run(lambda x, y: linalg.tensordot(x, y, axes=axes), x, y), np.tensordot(x, y, axes))
    z = integers((5, 1, 3, 4), np.float32, 3)
    np.testing.assert_array_equal(run(lambda x, z: mf.vecdot(x, z), x, z), np.sum(x * z, axis=-1))
    np.testing.assert_array_equal(run(lambda x, z: mf.vecdot(x, z, axis=-2), x, z), np.sum(x * z, axis=-2))
    np.testing.assert_array_equal(run(lambda x, z: mf.vecdot(x, z, -2), x, z), np.sum(x * z, axis=-2))
    np.testing.assert_array_equal(run(lambda x, y: mf.outer(x, y), x, y), np.outer(x, y))
    s = integers((2, 3, 3), np.int32, 4)
    np.testing.assert_array_equal(run(lambda s: mf.diagonal(s), s), np.diagonal(s, axis1=-2, axis2=-1))
    total = run(lambda s: trace(s), s)
    assert total.dtype == np.int64
    np.testing.assert_array_equal(total, np.trace(s, axis1=-2, axis2=-1))


@pytest.mark.parametrize("offset", [-4, -1, 0, 2, 3])
def test_other_diagonals(offset) -> None:
    x = integers((2, 3, 4), np.float32, 1)
    np.testing.assert_array_equal(run(lambda x: mf.diagonal(x, offset, 0, 2), x), np.diagonal(x, offset, 0, 2))
    np.testing.assert_array_equal(run(lambda x: trace(x, offset, 2, 0), x), np.trace(x, offset, 2, 0))
