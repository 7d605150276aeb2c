"""Errors and remarks name the user's place as people write it, whatever MLIR's location looks like."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from mlir import ir

import mlirfuse as mf
from mlirfuse.errors import PassError, ScheduleError, errors_at
from mlirfuse.passmanager.base import Pass, Remark, Remarks
from mlirfuse.source_locations import shown, source_location

PACKAGE = Path(mf.__file__).parent


def test_a_place_is_the_innermost_file_that_is_known(context: ir.Context) -> None:
    unknown = ir.Location.unknown(context)
    file = ir.Location.file("dir/model.py", 3, 9, context=context)
    named = ir.Location.name("norm", file, context)
    caller = ir.Location.file("caller.py", 7, 1, context=context)
    for location in (
        file,
        named,
        ir.Location.file("dir/model.py", 3, 9, 4, 2, context=context),
        ir.Location.name("outer", named, context),
        ir.Location.callsite(named, [caller], context),
        ir.Location.fused([unknown, file, caller], context=context),
    ):
        assert source_location(location) == "dir/model.py:3:9", str(location)
    assert source_location(ir.Location.file("dir/model.py", 3, 0, context=context)) == "dir/model.py:3"
    assert source_location(ir.Location.name("norm", unknown, context)) == "norm"
    assert source_location(ir.Location.fused([unknown, unknown], context=context)) is None
    assert source_location(unknown) is None
    inside, outside = os.path.abspath("dir/model.py"), "/elsewhere/model.py"
    assert (shown(inside), shown(outside), shown("dir/model.py")) == ("dir/model.py", outside, "dir/model.py")


def test_an_error_at_an_op_or_a_value_names_its_place(context: ir.Context) -> None:
    with context, ir.Location.name("norm", ir.Location.file("model.py", 3, 9)):
        module = ir.Module.parse("func.func @f(%x: i32) { return }")
        op = ir.Operation.create("builtin.unrealized_conversion_cast", results=[ir.IntegerType.get_signless(32)])
        error = PassError("no rule for it", where=op, hint="remove it")
        assert error.where == "model.py:3:9"
        assert str(error) == "model.py:3:9: no rule for it\n  hint: remove it"
        for place in (op.results[0], op.location, ir.Location.current):
            assert PassError("no rule for it", where=place).where == "model.py:3:9"
        assert PassError("no rule for it", where=module.body.operations[0]).where == "-:1:1"
    with context, ir.Location.unknown():
        lost = ir.Operation.create("builtin.unrealized_conversion_cast")
        assert str(PassError("no rule for it", where=lost)) == "no rule for it"


def test_a_schedule_that_is_illegal_is_an_error_at_the_users_line() -> None:
    layout = mf.BlockedLayout((1, 1), (1, 32), (1, 1), (1, 1), (1, 1))
    with pytest.raises(ScheduleError) as caught:
        mf.fuse(lambda x: x + 1.0, schedule=mf.Schedule((1, 64), layout), target="sm_90a").lower(
            mf.TensorSpec((8, 128), mf.float32)
        ).compile()
    assert caught.value.where is not None
    assert re.fullmatch(re.escape(shown(__file__)) + r":\d+", caught.value.where)  # a function's own line has no column


def test_errors_of_functions_that_know_no_ir_are_about_the_op_at_hand(context: ir.Context) -> None:
    with context, ir.Location.file("model.py", 3, 9):
        op = ir.Operation.create("builtin.unrealized_conversion_cast")
    with (
        pytest.raises(ScheduleError, match="^model.py:3:9: too wide\n  hint: make it narrow$") as caught,
        errors_at(op),
    ):
        raise ScheduleError("too wide", hint="make it narrow")
    assert caught.value.where == "model.py:3:9"
    with pytest.raises(ScheduleError, match="^records.json: broken$"), errors_at(op):
        raise ScheduleError("broken", where="records.json")


def test_remarks_name_places_in_the_same_way(context: ir.Context) -> None:
    remarks = Remarks()
    with context, ir.Location.name("norm", ir.Location.file("model.py", 3, 9)):
        op = ir.Operation.create("builtin.unrealized_conversion_cast")
    remarks.declined(_Any(), "nothing to do", op)
    remarks.applied(_Any(), "done")
    assert [str(remark) for remark in remarks.entries] == [
        "any: declined: nothing to do (model.py:3:9)",
        "any: applied: done",
    ]
    assert remarks.entries[1] == Remark("any", "applied", "done")


class _Any(Pass):
    name = "any"


def test_no_error_is_given_the_text_of_a_location() -> None:
    """`where=op` names the place; text of a location made by hand would look different from all others."""
    spelled = re.compile(r"str\([^()]*\blocation\b|str\([^()]*\bLocation\b|\{[^{}]*\blocation\}|\"loc\(")
    found = [
        f"{path.relative_to(PACKAGE)}:{number}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if spelled.search(line) and "site.location" not in line  # text already, by `source_location`
    ]
    assert found == []
