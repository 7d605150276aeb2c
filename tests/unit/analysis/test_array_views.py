"""Arguments of a kernel that are components of one array are one access."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mlir import ir

import mlirfuse as mf
from mlirfuse.analysis.scheduling.array_views import is_component
from mlirfuse.compiler.context import make_context
from mlirfuse.compiler.problems import problems_of
from mlirfuse.dialect.attributes import STRIDES
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.parts.array_access import ArrayAccess
from mlirfuse.schedule.predict.counts.accesses import held_elements, thread_access
from mlirfuse.support.strides import NEGATIVE, PACKED, RUN_TIME, attribute_of
from tests.support.forms import problem as problem_of


def reads(fn: Callable[..., Any], *specs: mf.TensorSpec) -> list[ArrayAccess]:
    """What the only kernel of a function reads."""
    (problem,) = problems_of(mf.fuse(fn, target="sm_90a").lower(*specs)).values()
    return [array for array in problem.arrays if not array.written]


def rotated(x: mf.Tensor) -> tuple[mf.Tensor, mf.Tensor]:
    a, b = x[..., 0::2], x[..., 1::2]
    return a * b, a - b


def luminance(x: mf.Tensor) -> mf.Tensor:
    return x[..., 0] * 0.3 + x[..., 1] * 0.6 + x[..., 2] * 0.1


def test_pairs_are_one_access() -> None:
    """A thread of eight pairs loads sixteen elements side by side, whether extents are known or not."""
    for batch in (None, 4):
        (array,) = reads(rotated, mf.TensorSpec((batch, 32, 128), "bfloat16"))
        assert array.windows[-1] == (2, (0, 1))
        assert array.taps == array.growth((None,) * len(array.dims)) == 2
        rank = len(array.dims)
        layout = BlockedLayout(*((1,) * (rank - 1) + (n,) for n in (8, 8, 1, 1, 1)))
        extents = (128, 64) if rank == 2 else (4, 32, 64)
        assert held_elements(array, layout) == 16
        assert thread_access(array, layout, extents) == 8


STRIDES_OF_PAIRS = {
    (128, 2): True,
    (RUN_TIME, 2): True,
    (PACKED, 2): True,
    (NEGATIVE, 2): False,
    (-128, 2): False,
    (128, -2): False,
}


@pytest.mark.parametrize(("strides", "expected"), STRIDES_OF_PAIRS.items())
def test_components_have_no_reversed_axis(strides: tuple[int, ...], expected: bool) -> None:
    """Rows may be any number of elements apart, as run time says, but in no opposite order."""
    with make_context():
        module = ir.Module.parse("func.func @rows(%x: tensor<?x64xf32>) { return }")
        argument = module.body.operations[0].regions[0].blocks[0].arguments[0]
        assert is_component(argument, {STRIDES: attribute_of(strides)}) == expected


def test_pixels_of_three_channels_are_loaded_one_by_one() -> None:
    """Their rows are 12 bytes apart, and all that is said of an address is that it is a float's."""
    (array,) = reads(luminance, mf.TensorSpec((8, 64, 3), "float32"))
    assert array.windows == ((3, (0, 1, 2)),)
    assert array.alignment == 4
    layout = BlockedLayout((4,), (32,), (1,), (1,), (1,))
    assert thread_access(array, layout, (512,)) == 1
    assert array.run((128,), (512,)) == 384


def test_corners_of_boxes_are_one_access() -> None:
    """A thread that has both of a box loads it whole; of overlapping parts each is an access."""
    (array,) = reads(lambda x: x[:, 2:] - x[:, :2], mf.TensorSpec((None, 4), "float32"))
    assert array.windows == ((1, (0,)), (1, (0, 2)))
    assert array.growth((None, 2)) == 2
    whole = BlockedLayout((1, 2), (32, 1), (4, 1), (1, 1), (1, 1))
    assert held_elements(array, whole) == thread_access(array, whole, (512, 2)) == 4
    assert array.run((128, 2), (512, 2)) == 512
    apart = BlockedLayout((1, 1), (16, 2), (4, 1), (1, 1), (1, 1))
    assert held_elements(array, apart) == 2
    assert thread_access(array, apart, (512, 2)) == 1
    overlapping = reads(lambda x: x[:, 1:] - x[:, :3], mf.TensorSpec((None, 4), "float32"))
    assert [each.windows for each in overlapping] == [(), ()]


def crossed(a: mf.Tensor, b: mf.Tensor) -> mf.Tensor:
    pairs = ((1, 2), (2, 0), (0, 1))
    return mf.stack([a[..., i] * b[..., j] - a[..., j] * b[..., i] for i, j in pairs], axis=-1)


def test_components_that_parts_of_a_result_read_are_one_access() -> None:
    """They are gathered views, as the parts are joined: a single index is of the axis before it."""
    vectors = mf.TensorSpec((4096, 3), "float32")
    first, second = reads(crossed, vectors, vectors)
    for array in (first, second):
        assert (array.dims, array.strides, array.windows) == ((0,), (3,), ((3, (0, 1, 2)),))


def test_components_of_shifted_arrays_are_windows() -> None:
    def normals(p: mf.Tensor) -> mf.Tensor:
        n = crossed(p[1:-1, 2:] - p[1:-1, :-2], p[2:, 1:-1] - p[:-2, 1:-1])
        return n / mf.sqrt(mf.sum(n * n, axis=-1, keepdims=True))

    (image,) = reads(normals, mf.TensorSpec((4096, 4096, 3), "float32"))
    assert image.strides == (3 * 4096, 3)
    assert image.windows == ((1, (0, 1, 2)), (3, tuple(range(9))))


def test_components_of_two_arrays_stay_apart() -> None:
    """One of each, or both of each of two arrays."""
    spec = mf.TensorSpec((32, 128), "float32")
    assert [array.windows for array in reads(lambda x, y: x[:, 0::2] * y[:, 1::2], spec, spec)] == [(), ()]
    two = reads(lambda x, y: (x[:, 0::2] + x[:, 1::2]) * (y[:, 1::2] - y[:, 0::2]), spec, spec)
    assert [array.windows[-1] for array in two] == [(2, (0, 1)), (2, (0, 1))]


def test_what_all_elements_of_a_view_share_is_read_once() -> None:
    def scaled(x: Any, s: Any, r: Any) -> Any:
        return mf.astype(x * s[:, None, None] + r, mf.float16)

    specs = [((128, 2048, 7, 7), mf.float16), ((2048,), mf.float32), ((7, 7), mf.float32)]
    found = problem_of(scaled, [mf.TensorSpec(shape, dtype) for shape, dtype in specs])
    assert found.extents == (128 * 2048 * 49,)
    assert (found.full_bytes, found.read_bytes) == (4, 2)
    accesses = {a.most: (a.dims, a.strides) for a in found.arrays if a.most is not None}
    assert accesses == {2048: ((0,), (0,)), 49: ((0,), (1,))}


def test_shifted_blocks_of_one_array_are_one_access() -> None:
    """Windows that move by blocks and along them: device memory is read once for all, by threads once for each."""

    def roughness(x: mf.Tensor) -> mf.Tensor:
        e = mf.abs(x)
        e = e[:, 1:] - e[:, :-1]
        return mf.sum(mf.abs(mf.reshape(e[:, 1:] - e[:, :-1], (1000, 16, 256))), axis=2)

    (array,) = reads(roughness, mf.TensorSpec((1000, 4098), "float32"))
    assert (array.strides, array.windows) == ((4098, 256), ((1, (0,)), (256, (0, 1, 2))))
    assert array.slides == (None, (2, 1))
    assert array.growth((1000, 16, 256)) == 1
    assert array.elements((1, 16, 256)) == 4098
    assert array.elements((1, 1, 8)) == 10


def test_parts_of_joined_arrays_are_read_where_they_lie() -> None:
    """Two levels of a wavelet: half of the places read every second element, a quarter each what is stored."""

    def packet(x: mf.Tensor) -> mf.Tensor:
        parts, low = [], x
        for _ in range(2):
            parts.append(low[:, ::2] - low[:, 1::2])
            low = low[:, ::2] + low[:, 1::2]
        return mf.concat([low, *parts[::-1]], axis=1)

    lowered = mf.fuse(packet, target="sm_90a").lower(mf.TensorSpec((1000, 1024), "float32"))
    joined = next(found for found in problems_of(lowered).values() if found.extents == (1000, 1024))
    assert sorted(array.inside for array in joined.arrays if not array.written) == [0.25, 0.25, 0.5, 0.5]
    assert joined.read_bytes == 6


def test_views_that_are_moved_against_each_other_share_sectors() -> None:
    """Of rows of another length, at places that are divided: threads access each, and the sectors are the same."""

    def shifted(x: mf.Tensor, w: mf.Tensor) -> mf.Tensor:
        z = mf.reshape(x[:, 1:] - 2.0 * x[:, :-1], (1024, 1000))
        return mf.concat([z[1:] + z[:-1], w], axis=0)

    rows, beside = reads(shifted, mf.TensorSpec((1000, 1025), "float32"), mf.TensorSpec((512, 1000), "float32"))
    assert (rows.times, beside.times) == (4, 1)
    layout = BlockedLayout((1, 2), (1, 32), (4, 1), (1, 1), (1, 1))
    assert held_elements(rows, layout) == 4 * held_elements(beside, layout)
    assert rows.elements((4, 64)) == beside.elements((4, 64))
