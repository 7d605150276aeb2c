"""What a user can get wrong with matrix products: one clear error, or for a choice of the cost model never chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import mlirfuse as mf
from mlirfuse.errors import DTypeError, PassError, ScheduleError, ShapeError
from mlirfuse.target import Target, target_of
from tests.support.contractions.products import Product, pinned_schedule

SMALL = target_of("sm_90a").with_sms(16)
"""As many SMs as the smallest part of an H200 has."""


def _product(target: str | Target = "sm_90a", instruction: str = "wgmma", split: int = 1, **fields: Any) -> mf.Schedule:
    """Compiles x @ w.T of (256, 512) and (256, 512) with a schedule that has some fields changed; returns that."""
    reduction = fields.pop("reduction", "last_block")
    general = {name: fields.pop(name) for name in ("blocks_per_sm", "persistence") if name in fields}
    schedule = pinned_schedule(Product(256, 256, 512, "nt", "float16"), 128, 128, split, reduction, instruction)
    assert schedule.contraction is not None
    schedule = replace(schedule, **general, contraction=replace(schedule.contraction, **fields))
    specs = [mf.TensorSpec((256, 512), mf.float16)] * 2
    mf.fuse(lambda x, w: x @ w.T, target=target, schedule=schedule).lower(*specs).compile()
    return schedule


def _types(left: str, right: str) -> None:
    mf.fuse(lambda x, w: x @ w).lower(mf.TensorSpec((8, 16), left), mf.TensorSpec((16, 8), right))


WRONG: dict[str, tuple[type[Exception], str, Callable[[], Any]]] = {
    "contracted extents": (
        ShapeError,
        r"matmul of shapes \(8, 16\) and \(8, 16\): 16 columns do not match 8 rows",
        lambda: mf.fuse(lambda x, w: x @ w).lower(*[mf.TensorSpec((8, 16), mf.float16)] * 2),
    ),
    "bools": (DTypeError, "matmul does not take bool", lambda: _types("bool", "bool")),
    "a pair of types": (DTypeError, "cannot mix int8 with float8_e4m3fn", lambda: _types("int8", "float8_e4m3fn")),
    "another pair": (DTypeError, "cannot mix bool with float16", lambda: _types("bool", "float16")),
    "no such type": (DTypeError, "'complex64'", lambda: _types("complex64", "complex64")),
    "splits": (ScheduleError, "lambda_0 is illegal: 9 splits of 8 steps along k leave", lambda: _product(split=9)),
    "shared memory": (
        ScheduleError,
        "its ring needs 524288 bytes of shared memory, sm_90a has 232448 a block: choose smaller tiles",
        lambda: _product(stages=16),
    ),
    "shared memory of sm_80": (
        ScheduleError,
        "needs 262144 bytes of shared memory, sm_80 has 166912 a block",
        lambda: _product("sm_80", "mma", stages=16),
    ),
    "a long step": (ScheduleError, "its ring needs", lambda: _product(k=2**40)),
    "many stages": (ScheduleError, "its ring needs", lambda: _product(stages=2**40)),
    "cluster": (ScheduleError, "a cluster of 16 exceeds the 8 of sm_90a", lambda: _product(cluster=16)),
    "rows in a cluster": (PassError, "3 blocks cannot share a tile of 128 rows", lambda: _product(cluster=3)),
    "columns in a cluster": (PassError, "4 neighbouring blocks do not have the same", lambda: _product(cluster=4)),
    "no clusters": (
        ScheduleError,
        "a cluster of 2 exceeds the 1 of sm_80",
        lambda: _product("sm_80", "mma", split=2, reduction="cluster"),
    ),
    "blocks that wait": (
        ScheduleError,
        r"its 32 blocks wait for each other \('grid_sync'\), and 16 SMs hold 16 of them at once at most: "
        "choose a smaller split or larger tiles, or the reduction 'last_block'",
        lambda: _product(SMALL, split=8, reduction="grid_sync"),
    ),
    "blocks that wait for mail": (
        ScheduleError,
        r"its 32 blocks wait for each other \('flagged'\)",
        lambda: _product(SMALL, split=8, reduction="flagged"),
    ),
    "blocks": (ScheduleError, "9 blocks of 384 threads exceed the 2048 threads", lambda: _product(blocks_per_sm=9)),
    "persistence": (ScheduleError, "stay in registers, not 'multi_pass'", lambda: _product(persistence="multi_pass")),
    "instruction": (ScheduleError, "sm_80 has no wgmma", lambda: _product("sm_80")),
}


@pytest.mark.parametrize("case", WRONG)
def test_products(case: str) -> None:
    error, message, wrong = WRONG[case]
    with pytest.raises(error, match=message):
        wrong()


def test_a_schedule_is_for_the_only_kernel_whatever_its_name() -> None:
    """A lambda's name is not a symbol's."""
    assert _product(split=2).contraction is not None


@pytest.mark.parametrize(("split", "reduction"), [(4, "grid_sync"), (4, "flagged"), (8, "last_block"), (8, "serial")])
def test_blocks_that_fit_at_once_or_need_not(split: int, reduction: str) -> None:
    """16 of these fill a device of as many SMs."""
    assert _product(SMALL, split=split, reduction=reduction).contraction is not None
