"""Which comparisons of PTX only NaN makes false."""

from __future__ import annotations

import pytest

from mlirfuse.lowering.ptx.ptx_ranges import always_true


def _kinds(text: str, comparison: str) -> list[str]:
    lines = (f"\t{line.strip()};" for line in f"{text}; {comparison}".split(";"))
    return [kind for _, kind in always_true("\n".join(lines))]


ZERO, HALF, ONE, MINUS_HALF = "0f00000000", "0f3F000000", "0f3F800000", "0fBF000000"


@pytest.mark.parametrize(
    ("text", "comparison", "kinds"),
    [
        ("abs.f32 %r1, %r0", f"setp.ge.f32 %p0, %r1, {ZERO}", ["ge"]),
        ("abs.f32 %r1, %r0", f"setp.le.f32 %p0, {ZERO}, %r1", ["le"]),
        ("abs.f32 %r1, %r0", f"setp.gt.f32 %p0, %r1, {ZERO}", []),
        ("abs.f32 %r1, %r0", f"setp.lt.f32 %p0, %r1, {ZERO}", []),  # false, of NaN too
        ("abs.f32 %r1, %r0", f"setp.geu.f32 %p0, %r1, {ZERO}", []),
        ("abs.f32 %r1, %r0", f"setp.ge.f64 %p0, %r1, {ZERO}", []),
        ("abs.f32 %r1, %r0; neg.f32 %r2, %r1", f"setp.lt.f32 %p0, %r2, {HALF}", ["lt"]),
        ("abs.f32 %r1, %r0; sub.f32 %r2, 0f3F800000, %r1", "setp.lt.f32 %p0, %r2, 0f40000000", ["lt"]),
        ("mul.f32 %r1, %r0, %r0", f"setp.ge.ftz.f32 %p0, %r1, {ZERO}", ["ge"]),
        ("mul.f32 %r1, %r0, %r9", f"setp.ge.f32 %p0, %r1, {ZERO}", []),
        (f"fma.rn.f32 %r1, %r0, %r0, {HALF}", f"setp.gt.f32 %p0, %r1, {ZERO}", ["gt"]),
        ("abs.f32 %r1, %r0; abs.f32 %r2, %r9; mul.f32 %r3, %r1, %r2", f"setp.ge.f32 %p0, %r3, {ZERO}", ["ge"]),
        ("abs.f32 %r1, %r0; add.f32 %r2, %r1, %r9", f"setp.ge.f32 %p0, %r2, {ZERO}", []),
        ("abs.f32 %r1, %r0; fma.rn.f32 %r2, %r1, %r1, %r1", f"setp.ge.f32 %p0, %r2, {ZERO}", ["ge"]),
        ("cos.approx.f32 %r1, %r0; add.f32 %r2, %r1, 0f40000000", f"setp.gt.f32 %p0, %r2, {ZERO}", ["gt"]),
        ("cvt.sat.f32.f32 %r1, %r9; abs.f32 %r2, %r0; add.f32 %r3, %r1, %r2", f"setp.ge.f32 %p0, %r3, {ZERO}", ["ge"]),
        ("cvt.rni.f32.f32 %r1, %r9", f"setp.ge.f32 %p0, %r1, {ZERO}", []),
        ("abs.f32 %r1, %r0; selp.f32 %r2, %r1, 0f3F000000, %p1", f"setp.ge.f32 %p0, %r2, {ZERO}", ["ge"]),
        ("abs.f32 %r1, %r0; selp.f32 %r2, %r1, %r9, %p1", f"setp.ge.f32 %p0, %r2, {ZERO}", []),
        (f"max.NaN.f32 %r1, %r0, {MINUS_HALF}; min.NaN.f32 %r2, %r1, {ONE}", f"setp.lt.f32 %p0, {MINUS_HALF}, %r2", []),
        (
            f"max.NaN.f32 %r1, %r0, {MINUS_HALF}; min.NaN.f32 %r2, %r1, {ONE}",
            "setp.lt.f32 %p0, %r2, 0f40000000",
            ["lt"],
        ),
        ("abs.f32 %r1, %r0; neg.f32 %r2, %r1", "setp.ge.f32 %p0, %r1, %r2", ["ge"]),
        ("mov.b32 %r1, 0f7FC00000", f"setp.gt.f32 %p0, %r1, {ZERO}", []),
        ("add.f32 %r1, %r0, %r9", "setp.gt.f32 %p0, %r1, %r0", []),
    ],
)
def test_comparisons(text, comparison, kinds):
    assert _kinds(text, comparison) == kinds


def test_what_a_loop_carries():
    """A sum of absolute values is not negative; a value that is loaded may be anything."""
    sums = f"mov.b32 %r1, {ZERO}; abs.f32 %r2, %r0; add.f32 %r3, %r1, %r2; mov.b32 %r1, %r3"
    assert _kinds(sums, f"setp.ge.f32 %p0, %r1, {ZERO}") == ["ge"]
    assert _kinds(sums, f"setp.gt.f32 %p0, %r1, {ZERO}") == []
    assert _kinds(f"mov.b32 %r1, {ZERO}; mov.b32 %r1, %r9", f"setp.ge.f32 %p0, %r1, {ZERO}") == []


def test_blocks_may_stand_before_those_that_go_to_them():
    text = f"mov.b32 %r2, %r1; setp.ge.f32 %p0, %r2, {ZERO}; abs.f32 %r1, %r0"
    assert _kinds(text, "ret") == ["ge"]


def test_the_line_is_that_of_the_comparison():
    assert list(always_true(f"\tabs.f32 \t%r1, %r0;\n\n\tsetp.ge.f32 \t%p0, %r1, {ZERO};")) == [(2, "ge")]
