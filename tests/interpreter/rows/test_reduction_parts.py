"""Reductions in parts that a second kernel combines, over random axes."""

from __future__ import annotations

import numpy as np
import pytest

from mlirfuse import interpreter
from tests.support.pairwise import combined
from tests.support.reductions.parts import (
    PartsCase,
    largest_first,
    log_sum_exp,
    module_in_parts,
    random_parts_case,
    several,
    variance,
    with_gradient,
)


@combined({"seed": range(16)}, turns={"dynamic": [False, True]})
def test_same_as_numpy(seed: int, dynamic: bool) -> None:
    case = random_parts_case(seed)
    for parts in (2, 4):
        module, _ = module_in_parts(case, parts, dynamic=dynamic)
        x = case.array()
        for found, exact in zip(interpreter.run(module, "statistic", [x]), case.expected(x), strict=True):
            np.testing.assert_allclose(found, exact, rtol=2e-5, atol=1e-6, err_msg=str((case, parts)))


@pytest.mark.parametrize("form", [log_sum_exp, variance, several, largest_first, with_gradient])
def test_joint_reductions_are_split(form: object) -> None:
    """Over leading, trailing and non-neighbouring dimensions, of an array and of a slice."""
    for axes, sliced in (((0,), False), ((2,), True), ((0, 2), False), ((0, 1, 2), True)):
        case = PartsCase(form, (12, 8, 24), axes, form is log_sum_exp, sliced)
        module, is_split = module_in_parts(case, 4, dynamic=False)
        assert is_split, axes
        x = case.array()
        for found, exact in zip(interpreter.run(module, "statistic", [x]), case.expected(x), strict=True):
            np.testing.assert_allclose(found, exact, rtol=2e-5, atol=1e-6, err_msg=str(axes))


def test_all_parts_are_minus_infinity() -> None:
    """The result is no number, as NumPy's."""
    case = PartsCase(log_sum_exp, (16, 4), (0,), False)
    x = case.array()
    x[:, 1] = -np.inf
    x[3, 2] = np.nan
    module, is_split = module_in_parts(case, 4, dynamic=False)
    assert is_split
    (found,) = interpreter.run(module, "statistic", [x])
    (exact,) = case.expected(x)
    np.testing.assert_allclose(found, exact, rtol=1e-5)
    assert np.isnan(found[0, 1:3]).all()
