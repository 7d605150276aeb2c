"""Calls that are recognised without a key: only those whose key would be the same."""

from __future__ import annotations

import pytest

from mlirfuse.runtime import dispatch
from mlirfuse.runtime.arrays.arrays import signature
from mlirfuse.runtime.recognition import recogniser, unknown
from tests.support.fakes.fake_driver import dispatcher, ndarray

ALIGNED = 1 << 20

COPY = """
gpu.module @copy {
  gpu.func @copy(%x: memref<?x128xf32>, %y: memref<?x128xf32>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>, fuse.grid = affine_map<()[s0] -> (s0)>,
                         fuse.grid_operands = array<i64: 0, 0>} {
    %t = gpu.thread_id x
    %row = gpu.block_id x
    %v = memref.load %x[%row, %t] : memref<?x128xf32>
    memref.store %v, %y[%row, %t] : memref<?x128xf32>
    gpu.return
  }
}
func.func @f(%x: tensor<?x128xf32>) -> tensor<?x128xf32> {
  %0 = call @f_0(%x) : (tensor<?x128xf32>) -> tensor<?x128xf32>
  return %0 : tensor<?x128xf32>
}
func.func private @f_0(tensor<?x128xf32>) -> tensor<?x128xf32>
    attributes {fuse.launch = @copy, fuse.result_extents = array<i64: 0, 0>}
"""


def pair(**changes):
    """Two arrays, of which the second may be another than at first."""
    given = {"shape": (2, 4), "pointer": ALIGNED + 256} | changes
    return ndarray((2, 4), ALIGNED), ndarray(**given)


class Derived(ndarray):
    """A subclass, whose calls are recognised after their like."""


def test_pointers_of_arrays_like_the_first():
    recognise = recogniser(pair())
    assert recognise(pair(), None) == [ALIGNED, ALIGNED + 256]
    assert recognise(pair(pointer=ALIGNED + 512), None) == [ALIGNED, ALIGNED + 512]


@pytest.mark.parametrize(
    "change",
    [
        {"shape": (4, 2)},
        {"shape": (2, 4, 1)},
        {"dtype": "float16"},
        {"dtype": "int32"},
        {"strides": (4, 8)},
        {"device": 1},
        {"pointer": ALIGNED + 4},
    ],
)
def test_what_has_another_key_is_not_recognised(change):
    assert signature(pair())[0] != signature(pair(**change))[0]
    assert recogniser(pair())(pair(**change), None) is None


SHAPES = [(), (1,), (8,), (2, 4), (4, 2), (1, 8), (0, 8), (0, 4), (4, 0), (0,), (2, 4, 1), (2, 2, 2), (0, 2, 4)]


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_are_told_apart(shape):
    recognise = recogniser((ndarray(shape, ALIGNED),))
    assert [s for s in SHAPES if recognise((ndarray(s, ALIGNED),), None)] == [shape]


def test_fewer_arrays_more_arrays_and_other_arguments_are_not_recognised():
    first, second = pair()
    recognise = recogniser((first, second))
    for arrays in (
        (),
        (first,),
        (first, second, second),
        (first, Derived((2, 4), ALIGNED)),
        (first, 1.0),
        (None, first),
    ):
        assert recognise(arrays, None) is None


def test_outputs_are_recognised_apart_from_arguments():
    """An array alone is another way to give outputs than a tuple, and may itself be unpacked."""
    x, y = pair()
    ways = [((x, y), None), ((x,), y), ((x,), (y,)), ((), (x, y))]
    for args, out in ways:
        recognise = recogniser(args, out)
        assert [recognise(*way) for way in ways] == [
            [ALIGNED, ALIGNED + 256] if way == (args, out) else None for way in ways
        ]
    assert recogniser((x,), (y, y))((x,), ndarray((2, 2, 4), ALIGNED)) is None


def test_subclasses_are_recognised_after_their_like():
    derived = (Derived((2, 4), ALIGNED),)
    assert recogniser(derived)(derived, None) == [ALIGNED]


def test_strided_arrays_are_recognised_by_their_strides():
    like = recogniser((pair(strides=(4, 8))[1],))
    assert like((pair(strides=(4, 8))[1],), None) is not None
    assert like((pair(strides=(8, 4))[1],), None) is None
    assert like((pair()[1],), None) is None


def test_numbers_and_constants_are_recognised_by_their_types():
    x = pair()[0]
    assert recogniser((x, 1.0, None, "ij"))((x, 2.5, None, "ij"), None) == [ALIGNED, 2.5]
    for other in ((x, 1, None, "ij"), (x, 1.0, 1, "ij"), (x, 1.0, None, "ji"), (x, True, None, "ij")):
        assert recogniser((x, 1.0, None, "ij"))(other, None) is None


@pytest.mark.parametrize("other", [(1, 2), pair(pointer=ALIGNED + 8)[1]])
def test_nothing_is_learnt_of_tuples_and_of_unaligned_pointers(other):
    assert recogniser((pair()[0], other)) is unknown
    assert unknown(pair(), None) is None


def test_a_key_is_made_until_a_call_is_known(driver, monkeypatch):
    run, keys = dispatcher(driver, COPY), []

    def counted(arguments):
        keys.append(arguments)
        return signature(arguments)

    monkeypatch.setattr(dispatch, "signature", counted)
    x, out = ndarray((6, 128), 1 << 24), ndarray((6, 128), 1 << 25)
    calls = [(x, None), (x, None), (x, None), (ndarray((6, 128), 1 << 26), None)]
    made = []
    for argument, given in calls:
        run((argument,), out=given)
        made.append(len(keys))
    assert made == [1, 2, 2, 2]
    assert driver.launches[-1][5][0] == 1 << 26
    run((x,), out=out)  # a call with outputs is another one than a call with as many more arguments
    assert len(keys) > 2
    run((x,), out=out)
    made = len(keys)
    assert run((x,), out=out) is out
    assert len(keys) == made
    assert driver.launches[-1][5] == [1 << 24, 6, 1 << 25, 6]


def test_alternating_kinds_of_calls_get_recognisers_ever_less_often(driver, monkeypatch):
    run, learnt = dispatcher(driver, COPY), []

    def counted(args, out):
        learnt.append(args[0].shape[0])
        return recogniser(args, out)

    monkeypatch.setattr(dispatch, "recogniser", counted)
    for _ in range(30):
        for rows in (6, 7):
            run((ndarray((rows, 128), 1 << 24),))
    assert learnt == [6, 7] * 4  # at the 2nd, 4th, 8th and 16th


def test_arrays_of_another_class_are_learnt_of_again(driver, monkeypatch):
    run, keys = dispatcher(driver, COPY), []
    for _ in range(2):
        run((ndarray((6, 128), 1 << 24),))
    monkeypatch.setattr(dispatch, "signature", lambda arguments: keys.append(arguments) or signature(arguments))
    for _ in range(5):
        run((Derived((6, 128), 1 << 24),))
    assert len(keys) == 2


def test_another_number_of_rows_is_no_call_that_is_known(driver):
    run = dispatcher(driver, COPY)
    for rows in (6, 6, 6, 7, 7, 7, 6):
        (result,) = run((ndarray((rows, 128), 1 << 24),))
        assert result.shape == (rows, 128)
        assert driver.launches[-1][1] == rows
    assert len(run.prepared) == 2


def test_out_that_overlaps_is_refused_when_the_call_is_known(driver):
    run = dispatcher(driver, COPY)
    x, out = ndarray((6, 128), 1 << 24), ndarray((6, 128), 1 << 25)
    for _ in range(3):
        run((x,), out=out)
    with pytest.raises(dispatch.MlirFuseError, match="overlaps"):
        run((x,), out=ndarray((6, 128), (1 << 24) + 256))
