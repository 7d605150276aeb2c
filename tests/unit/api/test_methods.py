"""Fused functions as methods, and as objects that are copied and pickled."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf

X = np.arange(24, dtype=np.float32).reshape(4, 6)


class Scaled:
    """Multiplies rows."""

    def __init__(self, factor: float):
        self.factor = factor
        self.traces = 0

    @mf.fuse(target="interpret")
    def rows(self, x: Any, shift: float = 0.0) -> Any:
        """Documented."""
        self.traces += 1
        return x * self.factor + shift

    @staticmethod
    @mf.fuse(target="interpret")
    def twice(x: Any) -> Any:
        return x * 2

    @mf.fuse(target="interpret")
    @staticmethod
    def thrice(x: Any) -> Any:
        return x * 3


class Shifted(Scaled):
    """Has the code of the method that it overrides in its own."""

    @mf.fuse(target="interpret")
    def rows(self, x: Any, shift: float = 0.0) -> Any:
        return super().rows.__wrapped__(x, shift) + 1


class Doubled(Scaled):
    """Calls the fused method that it overrides."""

    def rows(self, x: Any, shift: float = 0.0) -> Any:
        return super().rows(super().rows(x, shift), shift)


@mf.fuse(target="interpret")
def plus_one(x: Any) -> Any:
    return x + 1


def test_a_method_is_compiled_once_an_object() -> None:
    two, three = Scaled(2), Scaled(3)
    for _ in range(2):
        np.testing.assert_array_equal(two.rows(X), X * 2)
        np.testing.assert_array_equal(three.rows(x=X, shift=1.0), X * 3 + 1)
    assert (two.traces, three.traces) == (1, 1)
    assert two.rows is two.rows
    assert two.rows.__doc__ == "Documented."
    assert "arith.mulf" in two.rows.lower(mf.TensorSpec((None, 6), mf.float32)).as_text()


def test_static_methods() -> None:
    for owner in (Scaled, Scaled(2)):
        np.testing.assert_array_equal(owner.twice(X), X * 2)
        np.testing.assert_array_equal(owner.thrice(X), X * 3)


def test_what_is_no_plain_function_is_not_bound() -> None:
    class Holder:
        power = mf.fuse(partial(pow, exp=2), target="interpret")
        rows = mf.fuse(Scaled(5).rows.__wrapped__, target="interpret")

    np.testing.assert_array_equal(Holder().power(X), X**2)
    np.testing.assert_array_equal(Holder().rows(X), X * 5)


def test_overridden_methods_do_not_take_each_others_place() -> None:
    np.testing.assert_array_equal(Shifted(2).rows(X), X * 2 + 1)
    doubled = Doubled(2)
    for _ in range(2):
        np.testing.assert_array_equal(doubled.rows(X), X * 4)
    assert doubled.traces == 1


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_copy_of_an_object_has_methods_of_its_own(duplicate: Any) -> None:
    two = Scaled(2)
    two.rows(X)
    other = duplicate(two)
    other.factor = 7
    np.testing.assert_array_equal(other.rows(X), X * 7)
    np.testing.assert_array_equal(two.rows(X), X * 2)
    np.testing.assert_array_equal(duplicate(other.rows)(X), X * 7)


def test_an_object_is_collected_with_its_methods() -> None:
    two = Scaled(2)
    two.rows(X)
    gone = weakref.ref(two)
    del two
    gc.collect()
    assert gone() is None


def test_a_frozen_dataclass_has_methods_and_an_object_with_slots_does_not() -> None:
    @dataclass(frozen=True)
    class Frozen:
        factor: float

        @mf.fuse(target="interpret")
        def rows(self, x: Any) -> Any:
            return x * self.factor

    @dataclass(frozen=True, slots=True)
    class Slotted:
        factor: float
        rows = Frozen.rows

    np.testing.assert_array_equal(Frozen(4).rows(X), X * 4)
    assert Frozen(4) == Frozen(4)
    with pytest.raises(
        mf.errors.ArgumentError, match=r"rows: a method of .*Slotted\(factor=4\), which has no __dict__"
    ):
        Slotted(4).rows(X)


def test_a_function_is_copied_and_pickled_by_its_name() -> None:
    for made in (copy.copy(plus_one), copy.deepcopy(plus_one), pickle.loads(pickle.dumps(plus_one))):
        assert made is plus_one
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(mf.fuse(lambda x: x))
    assert repr(plus_one) == "<fused plus_one>"
