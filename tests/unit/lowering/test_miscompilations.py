"""What assemblers are known to miscompile is not emitted."""

from __future__ import annotations

import re
import warnings

import pytest

import mlirfuse as mf
from mlirfuse.errors import MiscompilationWarning
from mlirfuse.lowering.ptx.miscompilation_probes import ComparisonProbe, ExtremeProbe, probes
from mlirfuse.lowering.ptx.miscompilations import (
    KNOWN,
    _warn,
    warn_of_driver,
    with_inverted_comparisons,
    without_negations,
)
from mlirfuse.target import target_of
from tests.support.sass import needs_sass, sass_of

HOPPER = target_of("sm_90a")
NEGATION = re.compile(r"\bneg\.s(16|32)\b")

FUNCTIONS = {
    "negated": lambda x: mf.max(-x, axis=0),
    "least": lambda x: mf.min(-x, axis=-1),
    "times -1": lambda x: mf.max(x * -1, axis=0),
    "inverted plus 1": lambda x: mf.max(~x + 1, axis=0),
    "0 minus": lambda x: mf.max(0 - x, axis=0),
    "elementwise": lambda x: mf.maximum(mf.maximum(x, -x), 3),
    "of a sum": lambda x: mf.min(-(x + 3), axis=0),
    "of an absolute value": lambda x: mf.max(-abs(x), axis=0),
    "chosen": lambda x: mf.max(mf.where(x > 3, -x, x), axis=0),
}


def _ptx(fn, dtype: str) -> str:
    compiled = mf.fuse(fn, target="sm_90a").lower(mf.TensorSpec((257, 2), dtype)).compile()
    return compiled.as_text("ptx")


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_extreme_is_taken_of_a_negation(name, dtype):
    """Also negations that only LLVM introduces."""
    ptx = _ptx(FUNCTIONS[name], dtype)
    assert re.search(r"\b(max|min)\.s(16|32|16x2)\b", ptx)
    assert not NEGATION.search(ptx)


def test_other_negations_stay():
    assert NEGATION.search(_ptx(lambda x: -x, "int32"))
    assert NEGATION.search(_ptx(lambda x: mf.sum(x * x, axis=0) - x, "int32")) is None


EXTREMES = [probe for probe in probes() if isinstance(probe, ExtremeProbe)]
COMPARISONS = [probe for probe in probes() if isinstance(probe, ComparisonProbe)]


@pytest.mark.parametrize("probe", EXTREMES, ids=str)
def test_a_workaround_changes_negations_alone(probe):
    before = probe.binary(HOPPER, workaround=False).ptx
    after = probe.binary(HOPPER, workaround=True).ptx
    bits, lines = probe.bits, before.splitlines()
    assert len(after.splitlines()) == len(lines) + sum(probe.negated)
    assert (
        re.sub(rf"not\.b{bits} (\t%v\d, %v\d;)\n\tadd\.s{bits} \t(%v\d), \2, 1;", rf"neg.s{bits} \1", after) == before
    )
    assert without_negations(after) == after


@needs_sass
@pytest.mark.parametrize("negated", [(False, True, False), (True, True, True)])
def test_no_operand_of_a_threefold_extreme_is_negated(negated, tmp_path):
    """No assembler makes the negation again: nothing is negated in what it made, and so no sign can be lost."""
    made = sass_of(ExtremeProbe("negated-extremes", "max", 32, negated).binary(HOPPER, workaround=True).ptx, tmp_path)
    assert not [instruction for instruction in made if re.search(r"-R\d", str(instruction))]
    assert [i.opcode for i in made if i.opcode.startswith("LOP3")] == ["LOP3.LUT"] * sum(negated)


@pytest.mark.parametrize("probe", COMPARISONS, ids=str)
def test_a_comparison_that_only_nan_makes_false_is_inverted(probe):
    before = probe.binary(HOPPER, workaround=False).ptx
    after = probe.binary(HOPPER, workaround=True).ptx
    inverse = {"gt": "leu", "ge": "ltu", "lt": "geu"}[probe.comparison]
    restored = re.sub(rf"setp\.{inverse}(.*)\n\tnot\.pred \t%p0, %p0;", rf"setp.{probe.comparison}\1", after)
    assert after != before
    assert restored == before
    assert with_inverted_comparisons(after) == after


@needs_sass
@pytest.mark.parametrize("probe", COMPARISONS, ids=str)
def test_no_assembler_decides_an_inverted_comparison(probe, tmp_path):
    made = sass_of(probe.binary(HOPPER, workaround=True).ptx, tmp_path)
    assert [instruction for instruction in made if instruction.opcode.startswith("FSETP")]


COMPARED = {
    "absolute value": lambda x: mf.where(mf.abs(x) >= 0, x, 1),
    "square": lambda x: mf.where(x * x + 0.5 > 0, x, 1),
    "clipped": lambda x: mf.where(mf.abs(mf.clip(x, min=-0.5, max=1.5)) + 0.5 > 0, x, 1),
    "exponential": lambda x: mf.where(mf.exp2(mf.abs(x)) * 0.5 + mf.abs(x) >= 0, x, 1),
    "less": lambda x: mf.where(-mf.abs(x) < 1, x, 1),
    "sum of squares": lambda x: mf.where(x * x + mf.abs(x) + 1e-5 > 0, x, 1),
}
ORDERED = re.compile(r"setp\.(gt|ge|lt|le)\.f32")


@pytest.mark.parametrize("name", COMPARED)
def test_what_only_nan_makes_false_is_emitted_inverted(name):
    ptx = _ptx(COMPARED[name], "float32")
    assert re.search(r"setp\.(gtu|geu|ltu|leu)\.f32", ptx)
    assert not ORDERED.search(ptx)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: mf.where(x > 0, x, 1),
        lambda x: mf.where(mf.abs(x) > 0, x, 1),
        lambda x: mf.where(mf.abs(x) > 1.5, x, 1),
        lambda x: mf.where(x + 0.5 > 0, x, 1),
        lambda x: mf.where(x < mf.abs(x), x, 1),
        lambda x: mf.where(1 - mf.abs(x) > 0, x, 1),
    ],
)
def test_comparisons_that_numbers_decide_stay(fn):
    assert ORDERED.search(_ptx(fn, "float32"))


def test_releases_and_architectures():
    entry = KNOWN[0]
    affected = [(12, 6, 85), (12, 9), (13, 0), (13, 0, 88), (13, 3, 73)]
    assert all(entry.affects(release, HOPPER) for release in affected)
    assert not any(entry.affects(release, HOPPER) for release in ((), (12, 5, 82), (13, 4, 59), (13, 5)))
    assert not any(entry.affects((13, 0), target_of(chip)) for chip in ("sm_80", "sm_89", "sm_120"))
    assert entry.affects((13, 0), target_of("sm_100a"))


def test_comparisons_are_affected_in_every_release_that_was_looked_at():
    entry = KNOWN[1]
    assert all(entry.affects(release, target_of(c)) for release in ((12, 3), (13, 5)) for c in ("sm_80", "sm_120"))


def test_the_driver_s_compiler_is_warned_of_once():
    _warn.cache_clear()
    with pytest.warns(
        MiscompilationWarning, match=r"CUDA 13\.0\) is known to miscompile .* pip install nvidia-cuda-nvcc"
    ):
        warn_of_driver((13, 0), HOPPER)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_driver((13, 0), HOPPER)
        warn_of_driver((13, 4), HOPPER)  # what no newer assembler mends either is not warned of
        warn_of_driver((), HOPPER)
