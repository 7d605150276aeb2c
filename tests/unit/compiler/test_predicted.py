"""What a compiled function says of its predicted time, and the summary of `explain`."""

from __future__ import annotations

import pytest

import mlirfuse as mf
from mlirfuse.compiler.explanation import PARTS
from mlirfuse.errors import ArgumentError
from mlirfuse.schedule.predict.prediction import NAMES


def _softmax(x):
    e = mf.exp(x - mf.max(x, axis=-1, keepdims=True))
    return e / mf.sum(e, axis=-1, keepdims=True)


def _gelu_of_product(x, w, b):
    y = mf.astype(x @ w.mT + b, mf.float32)
    return mf.astype(y * (1 + mf.erf(y)), mf.bfloat16)


def _two(x, s):
    return mf.sum(x, axis=0), x * s


def _compiled(fn, *specs):
    return mf.fuse(fn, target="sm_90a").lower(*specs).compile(choose_again=False)


ROWS = mf.TensorSpec((None, 4096), mf.float32)
PRODUCT = [mf.TensorSpec(shape, mf.bfloat16) for shape in ((4096, 1024), (2048, 1024), (2048,))]


def test_the_time_grows_with_the_shapes_of_a_call() -> None:
    compiled = _compiled(_softmax, ROWS)
    small, large = (compiled.predicted([(rows, 4096)]) for rows in (4096, 16384))
    assert not small.assumed
    assert compiled.predicted().assumed == ("x.shape[0] = 4096",)
    assert 3 < large.microseconds / small.microseconds < 5
    (kernel,) = large.kernels
    assert kernel.roofline_bound == "device memory"
    assert large.roofline_us == pytest.approx(4 * small.roofline_us)
    assert 0.5 < large.roofline_us / large.microseconds < 1


def test_the_roofline_counts_each_array_once_and_the_products() -> None:
    found = _compiled(_gelu_of_product, *PRODUCT).predicted([(4096, 1024), (2048, 1024), (2048,)])
    (kernel,) = found.kernels
    assert kernel.roofline_bound == "products"
    least = 2 * 4096 * 2048 * 1024 / (kernel.machine.sms * kernel.machine.wgmma_16bit_per_sm) * 1e6
    assert found.roofline_us == pytest.approx(least)
    moved = _compiled(_softmax, ROWS).predicted([(1000, 4096)])
    assert moved.roofline_us == pytest.approx(2 * 4000 * 4096 / kernel.machine.dram_bandwidth * 1e6)


@pytest.mark.parametrize(("second", "read"), [(2048, 4096), (1024, 4096), (0, 2048)])
def test_the_roofline_counts_what_slices_of_one_array_have_together(second: int, read: int) -> None:
    """Two halves are the array, and a slice that is read twice is one; slices that overlap are the array at most."""

    def product(x):
        return x[:, :2048] * x[:, second : second + 2048]

    found = _compiled(product, mf.TensorSpec((8192, 4096), mf.float32)).predicted()
    moved = 4 * 8192 * (read + 2048)
    assert found.roofline_us == pytest.approx(moved / found.kernels[0].machine.dram_bandwidth * 1e6)


def test_all_launches_count_and_numbers_have_no_shape() -> None:
    found = _compiled(_two, ROWS, 2.0).predicted([(8192, 4096), None])
    assert found.microseconds == sum(k.launches * k.prediction.microseconds for k in found.kernels)
    assert found.microseconds > found.roofline_us > 0


@pytest.mark.parametrize("shapes", [[], [None], [(4096,)]], ids=str)
def test_shapes_must_fit(shapes) -> None:
    with pytest.raises(ArgumentError, match="is not that of an array of 2 dimensions"):
        _compiled(_softmax, ROWS).predicted(shapes)


def test_candidates_are_ranked_and_the_chosen_one_is_marked() -> None:
    for compiled, shapes in (
        (_compiled(_softmax, ROWS), [(4096, 4096)]),
        (_compiled(_gelu_of_product, *PRODUCT), [s.shape for s in PRODUCT]),
    ):
        (kernel,) = compiled.predicted(shapes).kernels
        times = [candidate.prediction.microseconds for candidate in kernel.candidates]
        assert len(times) > 3
        assert times == sorted(times)
        text = compiled.explain(shapes=shapes)
        assert text.count("\n*") == 1
        assert all(part in text for part in PARTS)


def test_the_table_shows_every_part_of_a_prediction() -> None:
    assert sorted(name for names in PARTS.values() for name in names) == sorted(NAMES)


def test_a_summary_comes_first_and_remarks_when_asked_for() -> None:
    compiled = _compiled(_softmax, ROWS)
    short, long = compiled.explain(), compiled.explain(verbose=True)
    assert short.splitlines()[0].startswith("1 kernel, predicted ")
    assert "roofline" in short.splitlines()[0]
    assert "chosen and predicted for x.shape[0] = 4096, which run time may change: explain(shapes=[...])" in short
    assert "chosen and predicted for" not in compiled.explain(shapes=[(4096, 4096)])
    assert "fuse-segment: " not in short
    assert "explain(verbose=True)" in short
    assert "fuse-segment: " in long
    assert "assembled by" in short


def test_a_given_schedule_is_compared_with_the_candidates() -> None:
    schedule = next(iter(_compiled(_softmax, ROWS).schedules.values()))
    given = mf.fuse(_softmax, target="sm_90a", schedule=schedule).lower(ROWS).compile(choose_again=False)
    assert given.predicted([(4096, 4096)]).microseconds > 0


def test_a_split_is_explained() -> None:
    """With its tiles, the time without, and the memory of its partial results."""

    def gradient(x, dy):
        return dy.T @ x

    compiled = _compiled(gradient, *[mf.TensorSpec((65536, 128), mf.float16)] * 2)
    (kernel,) = compiled.predicted().kernels
    contraction = kernel.schedule.contraction
    assert contraction is not None
    assert contraction.split > 1
    text = compiled.explain()
    assert f"split {contraction.split} {contraction.reduction} of" in text
    assert "us without" in text
    partials = contraction.split * 128 * 128 * 4
    assert partials <= compiled.predicted().workspace_bytes < 1.1 * partials + 4096
    assert f"workspace {partials / 1e6:.1f} MB" in text


def test_no_split_is_explained() -> None:
    compiled = _compiled(_gelu_of_product, *PRODUCT)
    assert "no split of" in compiled.explain()
    assert compiled.predicted().workspace_bytes == 0
