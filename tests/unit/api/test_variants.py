"""When a call with other run-time extents is compiled again, without a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.api import compilations as variants
from mlirfuse.api.argument_specs import numpy_specs
from mlirfuse.api.variants import MOST_VARIANTS, OWN, Pool
from mlirfuse.target import target_of

HOPPER = target_of("sm_90a")
COLUMNS = 512


def column_sum(x: Any) -> Any:
    return mf.sum(x, axis=0)


def rms_norm(x: Any) -> Any:
    return x * mf.rsqrt(mf.mean(x * x, axis=-1, keepdims=True))


def called(fused: Any, rows: int) -> Any:
    """What a call with so many rows runs."""
    array = np.lib.stride_tricks.as_strided(np.zeros(8, np.float32), (rows, COLUMNS), (4 * COLUMNS, 4), writeable=False)
    return fused._compile(lambda extents: numpy_specs([array], extents, "x"), HOPPER)


def test_another_magnitude_is_compiled_where_that_is_predicted_to_be_faster() -> None:
    """A warm-up with few rows makes no cliff."""
    fused = mf.fuse(column_sum, target="sm_90a")
    few, many = called(fused, 2), called(fused, 1 << 16)
    assert few is not many
    shapes = [(1 << 16, COLUMNS)]
    assert few.predicted(shapes).microseconds > OWN * many.predicted(shapes).microseconds
    assert "kernels for other extents are predicted to take" in many.lowered.notes[-1]
    assert called(fused, 2) is few
    assert called(fused, 70_000) is many
    assert fused._compilations.count == len(fused._compiled) == 2


def test_a_row_at_a_time_is_one_kernel_for_any_number() -> None:
    fused = mf.fuse(rms_norm, target="sm_90a")
    assert len({id(called(fused, rows)) for rows in (2, 100, 3000, 1 << 17, 40)}) == 1
    assert fused._compilations.count == 1


def test_magnitudes_between_need_no_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    fused = mf.fuse(column_sum, target="sm_90a")
    many = called(fused, 1 << 18)
    assert called(fused, 1 << 13) is many
    monkeypatch.setattr(Pool, "trial", lambda *_: pytest.fail("a trial"))
    assert {id(called(fused, rows)) for rows in (1 << 14, 100_000, (1 << 18) - 1)} == {id(many)}


def test_variants_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pool, "trial", lambda *_: (None, "a test asks for it"))
    fused = mf.fuse(column_sum, target="sm_90a")
    for bits in range(1, 14):
        called(fused, 1 << bits)
    assert fused._compilations.count <= MOST_VARIANTS


@pytest.mark.parametrize("options", [{"dynamic_products": True}, {"schedule": {}}], ids=str)
def test_what_is_asked_for_is_one_kernel(options: Any) -> None:
    fused = mf.fuse(column_sum, target="sm_90a", **options)
    several = options == {"schedule": {}}  # which gives no schedule
    assert (called(fused, 2) is called(fused, 1 << 16)) != several


def test_the_interpreter_runs_the_kernels_that_large_arrays_get() -> None:
    fused = mf.fuse(column_sum, target="interpret")
    assert called(fused, 2) is called(fused, 5000)
    assert "extent_hints" not in called(fused, 2).as_text("linalg")


@pytest.mark.parametrize("fn", [column_sum, rms_norm])
def test_the_first_call_decides_the_schedules(fn: Callable[..., Any]) -> None:
    """The same program with the same first call has the same kernels."""
    found = [called(mf.fuse(fn, target="sm_90a"), 777).schedules for _ in range(2)]
    assert found[0] == found[1]


def deviation(x: Any) -> Any:
    """Columns less their mean distance from the mean: each tile needs two reductions over the rows."""
    d = mf.mean(mf.abs(x - mf.mean(x, axis=0, keepdims=True)), axis=0, keepdims=True)
    return x - d


def test_what_takes_a_second_pass_is_compiled_for_numbers_where_that_is_predicted_to_be_faster() -> None:
    """Few rows fit the chip whole; of many, one kernel for any number serves as well."""
    fused = mf.fuse(deviation, target="sm_90a")
    wide = np.lib.stride_tricks.as_strided(np.zeros(8, np.float32), (122, 16384), (4 * 16384, 4), writeable=False)
    few = fused._compile(lambda extents: numpy_specs([wide], extents, "x"), HOPPER)
    assert len(few.schedules) == 1
    assert "kernels for run-time extents are predicted to take" in few.lowered.notes[-1]
    assert fused._compile(lambda extents: numpy_specs([wide], extents, "x"), HOPPER) is few
    assert fused._compilations.count == 1


def test_numbers_are_few() -> None:
    fused = mf.fuse(deviation, target="sm_90a")
    found = {}
    for rows in range(100, 100 + 2 * MOST_VARIANTS):
        array = np.lib.stride_tricks.as_strided(np.zeros(8, np.float32), (rows, 16384), (4 * 16384, 4), writeable=False)
        found[rows] = fused._compile(lambda extents, array=array: numpy_specs([array], extents, "x"), HOPPER)
    assert len({id(compiled) for compiled in found.values()}) == MOST_VARIANTS + 1
    assert fused._compilations.count == MOST_VARIANTS + 1


def test_sums_that_nothing_needs_again_stay_dynamic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "faster_by_numbers", lambda *_: pytest.fail("a trial"))
    called(mf.fuse(column_sum, target="sm_90a"), 122)
    called(mf.fuse(rms_norm, target="sm_90a"), 122)


def scale_channels(x: Any, scale: Any) -> Any:
    """A number for each channel of images with channels first, whose rows are no whole accesses."""
    return mf.maximum(x * scale[:, None, None], 0).astype(x.dtype)


def images(fused: Any, *shape: int) -> Any:
    """What a call with images of that shape compiles the function to."""
    x = np.zeros(shape, np.float16)
    scale = np.ones(shape[1], np.float32)
    return fused._compile(lambda extents: numpy_specs([x, scale], extents, ["x", "scale"]), HOPPER)


def test_short_rows_are_merged_where_that_is_predicted_to_be_faster() -> None:
    """Images of few elements are rows of whole accesses with numbers for their sides, and any number of them."""
    fused = mf.fuse(scale_channels, target="sm_90a")
    found = images(fused, 128, 2048, 7, 7)
    assert "kernels for run-time extents are predicted to take" in found.lowered.notes[-1]
    assert "tensor<?x100352xf16>" in found.as_text("tile")
    assert images(fused, 96, 2048, 7, 7) is found
    assert images(fused, 64, 2048, 14, 14) is not found
    assert fused._compilations.count == 2


def test_images_of_many_sizes_share_a_kernel_for_any() -> None:
    fused = mf.fuse(scale_channels, target="sm_90a")
    found = [images(fused, 128, 2048, side, 7) for side in range(5, 7 + MOST_VARIANTS)]
    assert len({id(compiled) for compiled in found}) == MOST_VARIANTS + 1
    assert found[-1] is found[-2]


def test_rows_of_whole_sectors_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "faster_by_numbers", lambda *_: pytest.fail("a trial"))
    images(mf.fuse(scale_channels, target="sm_90a"), 64, 64, 48, 48)


def turned(fused: Any, *shape: int) -> Any:
    """What a call compiles the function to."""
    arrays = [np.zeros(shape, np.float16), np.zeros(shape, np.float32)]
    return fused._compile(lambda extents: numpy_specs(arrays, extents, ["x", "y"]), HOPPER)


def test_a_short_extent_that_becomes_the_last_is_a_number_where_that_is_predicted_to_be_faster() -> None:
    fused = mf.fuse(lambda x, y: mf.maximum(mf.permute_dims(x * 2 - y, (2, 1, 3, 0)), 0), target="sm_90a")
    found = turned(fused, 8, 12, 1960, 200)
    assert "kernels for run-time extents are predicted to take" in found.lowered.notes[-1]
    assert turned(fused, 8, 12, 1960, 200) is found
    assert turned(fused, 16, 12, 1960, 200) is not found


def test_a_long_extent_that_becomes_the_last_is_known_at_run_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "faster_by_numbers", lambda *_: pytest.fail("a trial"))
    fused = mf.fuse(lambda x, y: (x * 2 - y).T, target="sm_90a")
    assert turned(fused, 4096, 512) is turned(fused, 5000, 512)


def test_the_interpreter_has_no_kernels_for_numbers() -> None:
    fused = mf.fuse(scale_channels, target="interpret")
    assert images(fused, 128, 2048, 7, 7) is images(fused, 128, 2048, 9, 7)
