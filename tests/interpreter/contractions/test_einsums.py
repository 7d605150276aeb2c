"""Einsums through kernels: random equations, and forms that no matrix product has, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import mlirfuse as mf
from tests.support.equations import Einsum, einsums
from tests.support.pairwise import combined

FORMS = [
    ("bijk,bklj->bli", (2, 3, 4, 8), (2, 8, 5, 4)),  # two summed dimensions in either order
    ("abcd,dbec->ae", (20, 4, 5, 16), (16, 4, 17, 5)),
    ("ibj,bjk->ikb", (9, 3, 5), (3, 5, 7)),  # a batch dimension that is the innermost of the result
    ("iak,kbj->jaib", (3, 4, 5), (5, 6, 7)),
    ("bqhd,bkhd->bhqk", (2, 16, 2, 8), (2, 24, 2, 8)),
    ("bse,bshd->ehd", (2, 12, 8), (2, 12, 3, 8)),
    ("ki,kj->ij", (300, 3), (300, 5)),
    ("ij,j->i", (33, 65), (65,)),
    ("i,ij->j", (33,), (33, 65)),
    ("bij,bji->b", (3, 8, 9), (3, 9, 8)),
    ("i,j,k->kij", (3,), (4,), (5,)),
    ("ij,j,jk->ik", (16, 32), (32,), (32, 24)),
    ("i,ij,jk,k->ik", (16,), (16, 32), (32, 24), (24,)),
    ("ij,jk,kl->il", (12, 16), (16, 20), (20, 8)),
    ("xyi,jyx->ij", (4, 5, 6), (6, 5, 4)),  # a thread has several j, and all x of each
    ("bij,jk->bik", (2, 16, 1), (16, 16)),  # a factor's own sum, in the kernel of the product
    ("bij,jk->bik", (2, 16, 16), (1, 16)),
    ("bijk,bklj->bli", (2, 3, 4, 1), (2, 8, 5, 4)),
    ("bijk,bklj->bli", (2, 3, 1, 8), (2, 8, 5, 4)),
    ("ij,kl->li", (3, 8), (5, 4)),
    ("ij,jk->k", (6, 8), (8, 5)),
]


@combined({"equation, shapes": [(e, s) for e, *s in FORMS]}, turns={"dtype": [np.float32, np.float16, np.int32]})
def test_forms(equation, shapes, dtype) -> None:
    rng = np.random.default_rng(1)
    arrays = [rng.integers(-1, 2, shape).astype(dtype) for shape in shapes]
    actual = np.asarray(mf.fuse(lambda *xs: mf.einsum(equation, *xs), target="interpret")(*arrays))
    np.testing.assert_array_equal(actual, np.einsum(equation, *(x.astype(np.float64) for x in arrays)))
    assert actual.dtype == dtype


@settings(max_examples=500, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(einsums(most_operands=3, largest=5))
def test_random_equations_in_kernels(example: Einsum) -> None:
    arrays = example.arrays()
    actual = np.asarray(mf.fuse(lambda *xs: example.call(mf, xs), target="interpret")(*arrays))
    expected = example.expected(arrays)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(actual, expected)


def test_operands_that_no_tile_can_read_are_copied_to_another_order() -> None:
    x, y = np.ones((1, 8, 64, 64), np.float16), np.ones((1, 64, 8, 64), np.float16)
    fused = mf.fuse(lambda x, y: mf.einsum("bijk,bklj->bli", x, y), target="interpret")
    np.testing.assert_array_equal(np.asarray(fused(x, y)), np.full((1, 8, 8), 4096))
    lowered = mf.fuse(lambda x, y: mf.einsum("bijk,bklj->bli", x, y)).lower(
        mf.TensorSpec((4, 64, 256, 256), mf.float16), mf.TensorSpec((4, 256, 64, 256), mf.float16)
    )
    assert "fuse-permute-operands: applied: operand 1" in lowered.compile().explain(verbose=True)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("sizes", [(4, 8, 64, 64, 8), (3, 5, 48, 40, 7), (1, 4, 100, 96, 16)])
def test_few_rows_are_read_in_two_orders_at_once(sizes: tuple[int, int, int, int, int], dtype: type) -> None:
    """A thread has all rows of both, and lanes lie along one summed dimension, vectors along the other."""
    b, i, j, k, m = sizes
    rng = np.random.default_rng(b)
    x = rng.integers(-4, 5, (b, i, j, k)).astype(dtype)
    y = rng.integers(-4, 5, (b, k, m, j)).astype(dtype)
    fused = mf.fuse(lambda x, y: mf.einsum("bijk,bklj->bli", x, y), target="interpret")
    expected = np.einsum("bijk,bklj->bli", x.astype(np.float64), y.astype(np.float64))
    np.testing.assert_array_equal(np.asarray(fused(x, y)), expected.astype(dtype))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("bijk,bklj->bli", ((4, 8, 128, 128), (4, 128, 8, 128))),
        ("ijk,klj->il", ((8, 256, 256), (256, 8, 256))),
        ("ik,jk->ij", ((8, 32768), (8, 32768))),
    ],
)
def test_threads_have_tiles_of_what_is_summed(equation: str, shapes: tuple[tuple[int, ...], ...], dtype: type) -> None:
    """Each array is read by vectors along its own contiguous dimension, and threads add up what they read."""
    rng = np.random.default_rng(len(equation))
    arrays = [rng.integers(-2, 3, shape).astype(dtype) for shape in shapes]
    expected = np.einsum(equation, *(x.astype(np.float64) for x in arrays))
    fused = mf.fuse(lambda x, y: mf.einsum(equation, x, y), target="interpret")
    np.testing.assert_array_equal(np.asarray(fused(*arrays)), expected.astype(dtype))
    specs = [mf.TensorSpec(shape, np.dtype(dtype).name) for shape in shapes]
    tiles = mf.fuse(lambda x, y: mf.einsum(equation, x, y), target="sm_90a").lower(*specs).as_text("tile")
    assert "fuse.thread_reduce" in tiles


def test_few_rows_need_no_copy() -> None:
    large = mf.TensorSpec((4, 8, 512, 512), mf.float16), mf.TensorSpec((4, 512, 8, 512), mf.float16)
    text = mf.fuse(lambda x, y: mf.einsum("bijk,bklj->bli", x, y)).lower(*large).compile().explain(verbose=True)
    assert text.startswith("1 kernel")
    assert "fuse-tile-grid-reduction: applied" in text


def test_products_of_strided_arrays_read_them_in_place() -> None:
    x, y = np.arange(96, dtype=np.float32).reshape(8, 12), np.arange(80, dtype=np.float32).reshape(10, 8)
    fused = mf.fuse(lambda x, y: mf.einsum("ji,kj->ik", x, y), target="interpret")
    np.testing.assert_array_equal(np.asarray(fused(x[:, ::2], y[::-1])), np.einsum("ji,kj->ik", x[:, ::2], y[::-1]))


DIAGONALS = {
    "trace": (mf.trace, np.trace, 2),
    "of a matrix": (lambda x: mf.diagonal(x) + 1, lambda x: np.diagonal(x) + 1, 2),
    "of a transposed value": (lambda x: mf.diagonal((x * 2).mT) + 1, lambda x: np.diagonal(x) * 2 + 1, 2),
    "reshaped": (lambda x: mf.diagonal(x).reshape((2, 2)), lambda x: np.diagonal(x).reshape(2, 2), 2),
    "of a diagonal": (lambda x: mf.diagonal(mf.diagonal(x)), lambda x: np.einsum("iii->i", x), 3),
    "of constants": (lambda x: mf.diagonal(mf.zeros_like(x)), lambda x: np.zeros(4), 2),
    "that scales its matrix": (lambda x: mf.diagonal(x)[:, None] * x, lambda x: np.diagonal(x)[:, None] * x, 2),
    "transposed": (lambda x: mf.einsum("iji->ji", x), lambda x: np.einsum("iji->ji", x), 3),
    "in a product": (
        lambda x: mf.einsum("iij,kj->ik", x, mf.einsum("aba->ab", x)),
        lambda x: np.einsum("iij,kj->ik", x, np.einsum("aba->ab", x)),
        3,
    ),
}
"""mlirfuse's function, NumPy's, and the number of dimensions."""


@pytest.mark.parametrize("name", DIAGONALS)
@pytest.mark.parametrize("layout", ["contiguous", "strided"])
def test_diagonals(name, layout) -> None:
    fn, expected, rank = DIAGONALS[name]
    x = np.random.default_rng(1).integers(-3, 4, (8,) * rank).astype(np.float32)[(slice(None, None, 2),) * rank]
    x = np.ascontiguousarray(x) if layout == "contiguous" else x
    np.testing.assert_array_equal(np.asarray(mf.fuse(fn, target="interpret")(x)), expected(x))
