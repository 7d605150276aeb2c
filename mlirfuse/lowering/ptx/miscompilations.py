"""Known miscompilations of NVIDIA's assemblers: the pattern, the releases that are affected, and the workaround.

ptxas and the driver's compiler share their code, and so the releases. A workaround rewrites PTX, after LLVM: the
affected patterns may come from LLVM's optimizer, such as a negation from `x * -1`. Workarounds are applied for every
assembler, so that a kernel has one PTX text that is right for all; each entry states the cost. `mlirfuse selftest` runs
the patterns on the device, with and without their workarounds.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from mlirfuse.errors import MiscompilationWarning
from mlirfuse.lowering.ptx.ptx_ranges import always_true
from mlirfuse.target import Target


@dataclass(frozen=True)
class Miscompilation:
    """One known miscompilation.

    Attributes:
        name: a short identifier.
        description: the pattern and the wrong result.
        since: the first affected CUDA release, or the first that was checked.
        until: the first release that is right again; None where none is known.
        capabilities: compute capabilities (times ten), from the first to before the second, whose code is affected.
        workaround: maps a kernel's PTX to equivalent PTX that is compiled rightly; unaffected PTX is returned
            unchanged.
        cost: the workaround's cost for a kernel that it changes.
    """

    name: str
    description: str
    since: tuple[int, ...]
    until: tuple[int, ...] | None
    capabilities: tuple[int, int]
    workaround: Callable[[str], str]
    cost: str

    def affects(self, release: Sequence[int], target: Target) -> bool:
        """Whether an assembler of a CUDA release (empty: there is none) compiles the pattern wrongly for a target."""
        first, last = self.capabilities
        known = bool(release) and tuple(release) >= self.since and (self.until is None or tuple(release) < self.until)
        return known and first <= target.capability < last


_NEGATION = re.compile(r"^(?P<indent>\s*)neg\.s(?P<bits>16|32)\s+(?P<to>%\w+), (?P<of>%\w+);$", re.MULTILINE)
_SIGNED_EXTREME = re.compile(r"\b(?:max|min)\.s(?:16|32|16x2)\b")


def without_negations(ptx: str) -> str:
    """PTX whose integer negations are `~x + 1`, where it has signed maxima or minima; else as it is.

    No ptxas from 12.3 to 13.5 turns `~x + 1` back into a negation: it adds within the maximum.
    """
    if "neg.s" not in ptx or not _SIGNED_EXTREME.search(ptx):
        return ptx
    return _NEGATION.sub(
        r"\g<indent>not.b\g<bits> \t\g<to>, \g<of>;\n\g<indent>add.s\g<bits> \t\g<to>, \g<to>, 1;", ptx
    )


_COMPARISON = re.compile(r"setp\.(?:gt|ge|lt|le)(?P<rest>\S*\s+)(?P<to>%\w+)(?P<of>,.*)$")
_INVERSES = {"gt": "leu", "ge": "ltu", "lt": "geu", "le": "gtu"}
"""The inverse of each comparison, which is true for NaN."""


def with_inverted_comparisons(ptx: str) -> str:
    """PTX whose comparisons that only NaN makes false are negations of the inverse ones; else as it is.

    No ptxas from 12.3 to 13.5 folds the inverse comparisons, which are true for NaN.
    """
    always = list(always_true(ptx))
    if not always:
        return ptx
    lines = ptx.splitlines(keepends=True)
    for number, kind in always:
        lines[number] = _COMPARISON.sub(
            rf"setp.{_INVERSES[kind]}\g<rest>\g<to>\g<of>\n\tnot.pred \t\g<to>, \g<to>;", lines[number]
        )
    return "".join(lines)


KNOWN = (
    Miscompilation(
        name="negated-extremes",
        description=(
            "a signed maximum or minimum of three values of 16 or 32 bits (VIMNMX3), the second of which is a negation:"
            " it is taken without its sign"
        ),
        since=(12, 6),  # 12.5 is right, 12.6 wrong
        until=(13, 4),  # 13.3 is wrong, 13.4 right
        capabilities=(90, 120),  # the architectures with the VIMNMX3 instruction
        workaround=without_negations,
        cost="an instruction more a negation, in kernels that have signed maxima or minima",
    ),
    Miscompilation(
        name="comparisons-of-nan",
        description=(
            "an ordered comparison of float32 (greater, greater or equal, less) that is true of every number in its"
            " operands' ranges, such as |x| >= 0, x * x + 1 > 0 or exp2(x) > -1: it is taken for true of NaN"
        ),
        since=(12, 3),  # no earlier release was checked
        until=None,  # 13.5 is wrong
        capabilities=(0, 1000),  # checked on 8.0, 9.0, 10.0 and 12.0
        workaround=with_inverted_comparisons,
        cost="none: predicates are negated where they are read",
    ),
)
"""All known miscompilations."""


def worked_around(ptx: str) -> str:
    """PTX with all workarounds applied."""
    for entry in KNOWN:
        ptx = entry.workaround(ptx)
    return ptx


def warn_of_driver(release: tuple[int, ...], target: Target) -> None:
    """Warns, once a process, where only the driver's compiler is available and has a miscompilation that newer ones do
    not.
    """
    mended = [entry for entry in KNOWN if entry.until is not None]
    wrong = tuple(entry.description for entry in mended if entry.affects(release, target))
    if wrong:
        _warn(release, wrong)


@cache
def _warn(release: tuple[int, ...], wrong: tuple[str, ...]) -> None:
    known = "; ".join(wrong)
    warnings.warn(
        f"the driver compiles this kernel, and its compiler (CUDA {'.'.join(map(str, release))}) is known to miscompile"
        f" {known}. mlirfuse emits other instructions there; what is not yet known may be wrong. A newer assembler is"
        " used once one is installed: pip install nvidia-cuda-nvcc",
        MiscompilationWarning,
        stacklevel=2,
    )
