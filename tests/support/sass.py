"""What ptxas makes of PTX: instructions of sm_90a, and which of them wait for which loads.

The fields that order instructions are in the upper half of each, from bit 41 on: 4 bits of cycles to stall, 1 to yield,
3 each of the counter that its result and its operands count, 6 of counters that must be zero before it is issued
(Jia et al., Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking, 2018; the same on Hopper).
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

from mlirfuse.lowering.ptx.ptxas import find_ptxas

_BESIDE_PYTHON = Path(sysconfig.get_paths()["purelib"]) / "nvidia" / "cu13" / "bin" / "nvdisasm"
NVDISASM = shutil.which("nvdisasm") or (str(_BESIDE_PYTHON) if _BESIDE_PYTHON.exists() else None)

needs_sass = pytest.mark.skipif(find_ptxas() is None or NVDISASM is None, reason="needs ptxas and nvdisasm")

COUNTERS = 6
_NO_COUNTER = 7

_LABEL = re.compile(r"^(\.L_x_\d+):")
_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)(.*);\s+/\* 0x[0-9a-f]{16} \*/")
_UPPER = re.compile(r"^\s+/\* 0x([0-9a-f]{16}) \*/")


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    Attributes:
        opcode: with its modifiers, such as `LDG.E.64`.
        operands: as nvdisasm writes them.
        counts: the counter that is zero when its result has arrived; None where nothing counts it.
        waits: counters that are zero before it is issued.
        target: of a branch, the number of the instruction that it goes to.
    """

    opcode: str
    operands: str
    counts: int | None
    waits: frozenset[int]
    target: int | None = None


def sass_of(ptx: str, folder: Path) -> list[Instruction]:
    """The only kernel of a PTX module."""
    (folder / "k.ptx").write_text(ptx)
    subprocess.run([find_ptxas() or "", "-arch=sm_90a", folder / "k.ptx", "-o", folder / "k.cubin"], check=True)
    command = [NVDISASM or "", "-c", "-hex", folder / "k.cubin"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    labels: dict[str, int] = {}
    found: list[tuple[str, str, int]] = []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if label := _LABEL.match(line):
            labels[label[1]] = len(found)
        elif instruction := _INSTRUCTION.match(line):
            upper = _UPPER.match(following)
            assert upper is not None, following
            found.append((instruction[1], instruction[2].strip(), int(upper[1], 16) >> 41))
    return [_instruction(*each, labels) for each in found]


def _instruction(opcode: str, operands: str, control: int, labels: dict[str, int]) -> Instruction:
    counter = control >> 5 & 7
    waits = frozenset(n for n in range(COUNTERS) if control >> 11 + n & 1)
    label = re.search(r"\.L_x_\d+", operands) if opcode.startswith("BRA") else None
    return Instruction(
        opcode, operands, None if counter == _NO_COUNTER else counter, waits, labels[label[0]] if label else None
    )


def loops(instructions: list[Instruction]) -> list[list[Instruction]]:
    """The instructions between each branch backwards and where it goes."""
    branches = [(at, i.target) for at, i in enumerate(instructions) if i.target is not None and i.target <= at]
    return [instructions[target : at + 1] for at, target in branches]
