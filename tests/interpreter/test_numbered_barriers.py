"""Barriers with a number and a count: who meets there, what that orders, and what is undefined."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from interpreter.kernels import SHARED

from mlirfuse.errors import InterpreterError
from mlirfuse.interpreter.machine import Cluster, ThreadBlock
from mlirfuse.interpreter.shadow import Shadow

TYPE = f"memref<128xi32, {SHARED}>"
SETUP = """
  %warp = arith.divui %t, %c32 : index
  %team = arith.divui %warp, %c2 : index
  %number = arith.addi %team, %c1 : index
  %id = arith.index_cast %number : index to i32
  %first = arith.cmpi ult, %warp, %c2 : index
  %v = arith.index_cast %t : index to i32
  %i1 = arith.constant 1 : i32
  %i2 = arith.constant 2 : i32
  %i3 = arith.constant 3 : i32
  %i16 = arith.constant 16 : i32
  %n64 = arith.constant 64 : i32
  %n96 = arith.constant 96 : i32
  %n128 = arith.constant 128 : i32
  %c64 = arith.constant 64 : index
  %mate = arith.xori %t, %c32 : index
  %other = arith.xori %t, %c64 : index
"""
"""Four warps: the first two are a team, the others another. `%mate` is a thread of the same team, `%other` is not."""


def meet(number: str, count: str) -> str:
    return f"nvvm.barrier id = {number} number_of_threads = {count}\n"


def store(index: str) -> str:
    return f"memref.store %v, %s[{index}] : {TYPE}\n"


def load(index: str, name: str = "r") -> str:
    return f"%{name} = memref.load %s[{index}] : {TYPE}\n"


def roles(first: str, second: str) -> str:
    """What the first team does, and what the other one does beside it."""
    return f"scf.if %first {{ {first} }} else {{ {second} }}\n"


def one(body: str) -> str:
    """What only the block's first thread does."""
    return f"%is = arith.cmpi eq, %t, %c0 : index\nscf.if %is {{ {body} }}\n"


OWN, ALL = meet("%id", "%n64"), meet("%i3", "%n128")
WRITTEN = store("%t") + "gpu.barrier\n"
ORDERED = {
    "a team": store("%t") + OWN + load("%mate"),
    "a team, again and again": store("%t") + OWN + load("%mate") + OWN + store("%t"),
    "all": store("%t") + ALL + load("%other"),
    "teams beside each other": roles(store("%t") + OWN + load("%mate"), store("%t") + OWN + load("%mate")),
    "teams that meet from different places": roles(store("%t") + ALL, ALL + load("%other")),
    "what a team knows, it passes on": roles(store("%t") + OWN + ALL, OWN + ALL + load("%other")),
    "what all read at once": WRITTEN + load("%c0") + ALL + one(store("%c0")),
    "a read of one's own, behind those of others": WRITTEN + load("%c0") + ALL + one(load("%c0", "q") + store("%c0")),
}
RACES = {
    "teams that do not meet": store("%t") + OWN + load("%other"),
    "teams beside each other": roles(store("%t") + OWN, store("%t") + OWN + load("%other")),
    "a read that a team does not wait for": WRITTEN + load("%other") + OWN + store("%t"),
    "what all read at once": WRITTEN + load("%c0") + OWN + one(store("%c0")),
    "behind the barrier": store("%t") + OWN + load("%mate") + store("%t"),
    "in a team's next step": store("%t") + ALL + OWN + store("%t") + OWN + load("%other"),
}
UNDEFINED = {
    "no barrier 16": meet("%i16", "%n128"),
    "barrier 1 waits for (64|128) threads and for (64|128) in one phase": roles(
        meet("%i1", "%n128"), meet("%i1", "%n64")
    ),
    "128 threads meet at barrier 1, which waits for 96": roles(meet("%i1", "%n96"), meet("%i1", "%n96")),
    # Each team fills a phase by itself, where warps of both may as well meet.
    "warp [02] may reach barrier 1 in the phase before": roles(meet("%i1", "%n64"), meet("%i1", "%n64")),
    "deadlock": roles(meet("%i1", "%n128"), meet("%i2", "%n128")),
}


@pytest.fixture
def run(run_threads) -> Callable[[str], None]:
    """Runs a body in three blocks, whose roles begin in different orders."""
    return lambda body: run_threads(SETUP + body, [], [], threads=128, blocks=3, workgroup=f"%s : {TYPE}")


@pytest.mark.parametrize("case", ORDERED)
def test_who_meets_is_ordered(run, case: str) -> None:
    run(ORDERED[case])


@pytest.mark.parametrize("case", RACES)
def test_others_are_not(run, case: str) -> None:
    with pytest.raises(InterpreterError, match="shared-memory race"):
        run(RACES[case])


@pytest.mark.parametrize("problem", UNDEFINED)
def test_what_is_undefined(run, problem: str) -> None:
    with pytest.raises(InterpreterError, match=problem):
        run(UNDEFINED[problem])


def test_a_barrier_is_used_again_by_others_that_know_it_is_free(run) -> None:
    run(roles(meet("%i1", "%n64") + ALL, ALL + meet("%i1", "%n64")))


def divided(count: int, warps: int) -> list[ThreadBlock]:
    return [
        ThreadBlock(index, count, (32 * warps, 1, 1), Cluster(1), 0, checks=True, divided=True)
        for index in range(count)
    ]


def test_readers_tell_a_writer_one_after_the_other() -> None:
    """What counts is when each of them has read last before, not when any has."""
    (block,) = divided(1, 3)
    shadow = Shadow(16, written=True)
    place = np.array([1])
    shadow.read(place, 4, 0, block)
    block.meet(np.array([0, 2]))
    shadow.read(place, 4, 32, block)
    assert shadow.write(place, 4, 64, block) is not None
    shadow = Shadow(16, written=True)
    shadow.read(place, 4, 0, block)
    block.meet(np.array([0, 2]))
    shadow.read(place, 4, 32, block)
    block.meet(np.array([1, 2]))
    assert shadow.write(place, 4, 64, block) is None


def test_updates_by_warps_that_did_not_meet() -> None:
    (block,) = divided(1, 3)
    shadow = Shadow(16, written=True)
    place = np.array([1])
    shadow.update(place, 4, 0, block)
    block.meet(np.array([1, 2]))
    shadow.update(place, 4, 32, block)
    block.meet(np.array([1, 2]))
    assert shadow.read(place, 4, 64, block) is not None


def test_a_thread_releases_what_its_warp_has_met() -> None:
    """And of the block that acquires, the warps know that meet the thread."""
    first, second = divided(2, 3)
    shadow = Shadow(16, written=True)
    here, there = np.array([0]), np.array([1])
    shadow.write(here, 4, 40, first)
    shadow.write(there, 4, 70, first)
    first.meet(np.array([0, 1]))
    second.acquire_by(5, first.release_by(0))
    assert shadow.read(here, 4, 5, second) is None
    assert shadow.read(there, 4, 5, second) is not None
    assert shadow.read(here, 4, 33, second) is not None
    second.meet(np.array([0, 1]))
    assert shadow.read(here, 4, 33, second) is None
    assert shadow.read(here, 4, 65, second) is not None
