"""Old names are errors that say the new ones, wherever users may write them."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.api.options import Options
from mlirfuse.compiler.context import make_context
from mlirfuse.dialect import OPS
from mlirfuse.errors import ArgumentError, IRError, MlirFuseError, PipelineError, ScheduleError
from mlirfuse.passmanager import registry
from mlirfuse.passmanager.manager import Pipeline
from mlirfuse.passmanager.spec import options_of
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.parts.contraction import ContractionSchedule
from mlirfuse.schedule.parts.persistent_loop import PersistentLoop
from mlirfuse.schedule.parts.transposed_tiles import TransposedTiles
from mlirfuse.schedule.schedule import Schedule, check_schedule
from mlirfuse.support import renamed_names
from mlirfuse.support.dataclass_attributes import from_attribute
from mlirfuse.support.diagnostics import parse_module
from mlirfuse.support.renamed_names import RENAMED
from mlirfuse.target import TARGETS
from mlirfuse.tools.attributes import verify_attributes
from mlirfuse.tools.opt_arguments import parse_arguments

LAYOUT = BlockedLayout((1, 1), (1, 1), (1, 32), (1, 1), (1, 4))

OLD = {
    "option": {"contraction_mode": "fast_math"},
    "value": {"merged": "fused", "older": "shared"},
    "field": {"cells": "tile"},
    "pass": {"fuse-older": "fuse-verify"},
    "pass option": {"older": "tuned"},
    "op": {"fuse.older": "fuse.moments"},
    "attribute": {"fuse.older": "fuse.schedule"},
}
"""Names that there never were, so that these tests stay when a table's rows go."""


@pytest.fixture
def old(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, rows in OLD.items():
        monkeypatch.setitem(renamed_names.RENAMED, kind, {**RENAMED[kind], **rows})


def refuses(kind: type[MlirFuseError], name: str, new: str) -> pytest.RaisesExc:
    return pytest.raises(kind, match=rf"hint: {name} was renamed to {new} in mlirfuse 0\.2")


def shift(x: mf.Tensor) -> mf.Tensor:
    return x + 1


@pytest.mark.usefixtures("old")
def test_options() -> None:
    with refuses(ArgumentError, "contraction_mode", "fast_math"):
        mf.fuse(shift, contraction_mode=True)
    with refuses(ArgumentError, "contraction_mode", "fast_math"):
        mf.fuse(contraction_mode=True)
    with refuses(ArgumentError, "contraction_mode", "fast_math"):
        mf.fuse(shift).with_options(contraction_mode=True)
    with refuses(ArgumentError, "merged", "fused"):
        mf.fuse(shift, mix_order="merged")


@pytest.mark.usefixtures("old")
def test_fields_of_schedules() -> None:
    with refuses(ScheduleError, "cells", "tile"):
        Schedule(cells=(1, 128), layout=LAYOUT)
    with pytest.raises(AttributeError, match="cells was renamed to tile"):
        _ = Schedule((1, 128), LAYOUT).cells
    with pytest.raises(TypeError, match="unexpected keyword argument 'none'"):
        Schedule((1, 128), LAYOUT, none=1)
    with pytest.raises(AttributeError, match="'Schedule' object has no attribute 'none'"):
        _ = Schedule((1, 128), LAYOUT).none
    with make_context():
        text = Schedule((1, 128), LAYOUT).attribute()
        with refuses(ScheduleError, "cells", "tile"):
            from_attribute(Schedule, type(text).parse(str(text).replace("tile", "cells")))


@pytest.mark.usefixtures("old")
def test_values_of_fields() -> None:
    with pytest.raises(AssertionError, match=r"'older' is not one of registers, .* \(older was renamed to shared in"):
        assert not check_schedule(Schedule((1, 128), LAYOUT, "older"), (1, 128), frozenset(), TARGETS["sm_90a"])


@pytest.mark.usefixtures("old")
def test_passes_and_their_options() -> None:
    with make_context(), refuses(PipelineError, "fuse-older", "fuse-verify"):
        module = parse_module("module {}", make_context())
        Pipeline.parse("builtin.module(fuse-older)").run(module)
    with refuses(PipelineError, "fuse-older", "fuse-verify"):
        Pipeline.parse("builtin.module(fuse-verify)", stop_after="fuse-older")
    with refuses(ArgumentError, "fuse-older", "fuse-verify"):
        parse_arguments(["--fuse-older"])
    with refuses(PipelineError, "older", "tuned"):
        Pipeline.parse("builtin.module(fuse-assign-schedule{older=sm_90a})")


@pytest.mark.usefixtures("old")
def test_ops_and_attributes() -> None:
    context = make_context()
    with refuses(IRError, "fuse.older", "fuse.moments"):
        parse_module('func.func @f() { "fuse.older"() : () -> () return }', context)
    for text in (
        "func.func @f() attributes {fuse.older} { return }",
        "func.func @f(%a: i32 {fuse.older}) { return }",
        "func.func @f() { %0 = arith.constant {fuse.older} 0 : i32 return }",
    ):
        with refuses(IRError, "fuse.older", "fuse.schedule"):
            verify_attributes(parse_module(text, context).operation)


def test_the_tables_new_names_are_there_and_the_old_ones_are_not() -> None:
    classes = (BlockedLayout, ContractionSchedule, TransposedTiles, PersistentLoop, Schedule)
    passes = [registry.lookup(name) for name in registry.names()]
    source = "\n".join(path.read_text() for path in Path(mf.__file__).parent.rglob("*.py"))
    known = {
        "option": set(Options.__annotations__),
        "field": {field.name for cls in classes for field in fields(cls)},
        "pass": set(registry.names()),
        "pass option": {option.name for cls in passes for option in options_of(cls)},
        "op": set(OPS),
    }
    for kind, rows in RENAMED.items():
        for old_name, new in rows.items():
            if kind in known:
                assert new in known[kind], (kind, new)
                assert old_name not in known[kind], (kind, old_name)
            else:
                assert f'"{new}"' in source, (kind, new)


@pytest.mark.parametrize("name", RENAMED["option"])
def test_old_options(name: str) -> None:
    with refuses(ArgumentError, name, RENAMED["option"][name]):
        mf.fuse(shift, target="interpret", **{name: "auto"})


@pytest.mark.parametrize("name", RENAMED["pass"])
def test_old_passes(name: str) -> None:
    with refuses(ArgumentError, name, RENAMED["pass"][name]):
        parse_arguments([f"--{name}"])


@pytest.mark.parametrize("name", RENAMED["op"])
def test_old_ops(name: str) -> None:
    with refuses(IRError, name, RENAMED["op"][name]):
        parse_module(f'func.func @f() {{ "{name}"() : () -> () return }}', make_context())


def test_functions_still_run() -> None:
    assert (mf.fuse(shift, target="interpret")(np.zeros((2, 4), np.float32)) == 1).all()


@pytest.mark.parametrize("name", RENAMED["value"])
def test_an_old_value_of_an_option_says_the_new_one_where_the_option_has_it(name: str) -> None:
    new = RENAMED["value"][name]
    with pytest.raises(ArgumentError) as caught:
        mf.fuse(shift, grid_reduction=name)
    if new in ("grid_sync", "last_block"):
        assert f"{name} was renamed to {new} in mlirfuse 0.2" in str(caught.value)
    else:
        assert "hint: one of auto, " in str(caught.value)


@pytest.mark.parametrize("name", sorted(RENAMED["value"].keys() - {"reread"}))
def test_an_old_reduction_of_a_product_says_the_new_one(name: str) -> None:
    specs = [mf.TensorSpec((64, 64), mf.float16)] * 2
    layout = BlockedLayout(repeats=(4, 4), warps=(2, 2), lanes=(8, 4), blocks=(1, 1), vector=(1, 2))
    contraction = ContractionSchedule(instruction="mma", k=32, stages=2, split=2, reduction=name)
    schedule = Schedule((64, 64), layout, contraction=contraction)
    new = f"{name} was renamed to {RENAMED['value'][name]} in mlirfuse 0.2"
    with pytest.raises(ScheduleError, match=f"reduction '{name}' is not one of serial, .*{new}"):
        mf.fuse(lambda a, b: a @ b.T, schedule=schedule).lower(*specs).compile()
