"""Slices of computed values and of arguments, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.pairwise import some
from tests.support.views.sliced import random_flipped, random_reduced, random_sliced


@pytest.mark.parametrize("seed", some(range(400), 60))
def test_same_as_numpy(seed: int) -> None:
    case = random_sliced(seed)
    found = mf.fuse(case.function, target="interpret")(*case.arrays())
    for value, exact in zip(found, case.expected(), strict=True):
        np.testing.assert_array_equal(np.asarray(value, np.float64), exact)


@pytest.mark.parametrize("seed", some(range(200), 30))
def test_reductions_over_parts(seed: int) -> None:
    case = random_reduced(seed)
    found = mf.fuse(case.function, target="interpret")(*case.arrays())
    for value, exact in zip(found, case.expected(), strict=True):
        np.testing.assert_array_equal(np.asarray(value, np.float64), exact)


def test_rows_whose_halves_are_used_are_one_kernel() -> None:
    """A root mean square over whole rows, and a rotation of their halves, in the space of a half."""

    def rotated(x: mf.Tensor, c: mf.Tensor) -> tuple[mf.Tensor, mf.Tensor]:
        y = x * mf.rsqrt(mf.mean(mf.square(x), axis=-1, keepdims=True) + 1e-6)
        a, b = y[:, :64], y[:, 64:]
        return a * c - b, b * c + a

    specs = mf.TensorSpec((1024, 128), mf.float32), mf.TensorSpec((64,), mf.float32)
    lowered = mf.fuse(rotated, target="sm_90a").lower(*specs)
    assert lowered.as_text("tile").count("scf.forall") == 1


def test_diagonals_are_left_alone() -> None:
    """An op that reads one is no projection of its loops."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((3,), (3, 2, 2)))
    found = mf.fuse(lambda a, b: mf.einsum("a,abb", a, b), target="interpret")(a, b)
    np.testing.assert_array_equal(np.asarray(found), np.einsum("a,abb", a, b))


@pytest.mark.parametrize("seed", some(range(200), 40))
def test_what_is_computed_is_read_backwards(seed: int) -> None:
    case = random_flipped(seed)
    found = mf.fuse(case.function, target="interpret")(*case.arrays())
    for value, exact in zip(found, case.expected(), strict=True):
        np.testing.assert_array_equal(np.asarray(value).astype(np.float64), exact)


def test_reversed_batches_of_a_run_time_size_are_computed_where_they_are_read() -> None:
    """One kernel for all sizes, which reads images from both ends."""

    def mixed(x: Any) -> Any:
        v = mf.permute_dims((x - 0.5) * 2, (0, 2, 1))
        return 0.75 * v + 0.25 * v[::-1, :, ::-1]

    specs = [mf.TensorSpec((None, 8, 16), mf.float32)]
    assert mf.fuse(mixed, target="sm_90a").lower(*specs).as_text("tile").count("scf.forall") == 1


def _neighbours(x: mf.Tensor) -> mf.Tensor:
    return x[:, 1:] - x[:, :-1]


def _halves(x: mf.Tensor) -> mf.Tensor:
    return x[:, :4] - x[:, 4:]


def _even_and_odd(x: mf.Tensor) -> mf.Tensor:
    return x[:, ::2] - x[:, 1::2]


@pytest.mark.parametrize(("function", "rows"), [(_neighbours, 2), (_halves, 1), (_even_and_odd, 1)])
def test_neighbours_are_compiled_for_their_extents(function: Any, rows: int) -> None:
    """As windows of one array, whose shape is static; other slices only need the sliced extent as a number."""
    fused = mf.fuse(function, target="interpret")
    for n in (3, 5):
        x = np.random.default_rng(n).integers(-3, 4, (n, 8, 16)).astype(np.float32)
        np.testing.assert_array_equal(np.asarray(fused(x)), function(x))
    assert len(fused._compiled) == rows
    lowered = mf.fuse(function, target="sm_90a").lower(mf.TensorSpec((None, 8, 16), mf.float32))
    assert "tensor<?x8x16xf32>" in lowered.as_text("linalg")


def test_indices_that_are_computed_from_extents() -> None:
    """The last row, the middle one, and the second half: the extent is a number of the compilation."""

    def rows(x: Any) -> Any:
        n = x.shape[0]
        return x[n - 1] * x[n // 2] + x[n // 2 :].sum(axis=0)

    fused = mf.fuse(rows, target="interpret")
    for n in (2, 5):
        x = np.random.default_rng(n).integers(-3, 4, (n, 8)).astype(np.float32)
        np.testing.assert_array_equal(np.asarray(fused(x)), rows(x))
    with pytest.raises(mf.MlirFuseError, match="is not supported"):
        mf.fuse(lambda x, i: x[i], target="interpret")(x, 1)


def test_heads_of_run_time_rows() -> None:
    """Reshapes are followed along dimensions that are sliced, whatever is known of the others."""
    rng = np.random.default_rng(0)
    x, b = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((10, 96), (96,)))

    def heads(x: Any, b: Any, xp: Any = mf) -> Any:
        h = xp.abs(x + b).reshape((x.shape[0], 3, 4, 8))
        return xp.maximum(h[:, 0] * 2, h[:, 1]) + h[:, 2]

    np.testing.assert_array_equal(np.asarray(mf.fuse(heads, target="interpret")(x, b)), heads(x, b, np))
    specs = mf.TensorSpec((None, 96), mf.float32), mf.TensorSpec((96,), mf.float32)
    assert mf.fuse(heads, target="sm_90a").lower(*specs).as_text("tile").count("scf.forall") == 1


def test_groups_of_run_time_rows() -> None:
    """What is computed in front of a reshape runs over its dimensions; rows, as many as run time says, are one."""

    def packed(xp: Any, x: Any) -> Any:
        low = xp.min(x, axis=1, keepdims=True)
        groups = (x - low).reshape((x.shape[0], 8, 6))
        word = groups[:, :, 0]
        for n in range(1, 6):
            word = word | (groups[:, :, n] << (5 * n))
        return word, low[:, 0]

    x = np.random.default_rng(0).integers(0, 16, (9, 48)).astype(np.int32)
    for one, right in zip(mf.fuse(lambda x: packed(mf, x), target="interpret")(x), packed(np, x), strict=True):
        np.testing.assert_array_equal(np.asarray(one), right)
    compiled = mf.fuse(lambda x: packed(mf, x), target="sm_90a").lower(mf.TensorSpec((None, 48), "int32")).compile()
    assert len(compiled.program.buffers) == 2  # the results


def test_pairs_of_what_is_read_often() -> None:
    """Each value is read three times to compute the next one: in the shape of pairs each is computed once too."""

    def pairs(xp: Any, x: Any) -> Any:
        y = x
        for _ in range(12):
            y = y * 0.5 + xp.tanh(y) * y
        halves = y.reshape((50, 2))
        return halves[:, 0] - halves[:, 1]

    x = np.random.default_rng(0).standard_normal(100).astype(np.float32)
    found = mf.fuse(lambda x: pairs(mf, x), target="interpret")(x)
    np.testing.assert_allclose(np.asarray(found), pairs(np, x.astype(np.float64)), rtol=1e-4, atol=1e-5)
