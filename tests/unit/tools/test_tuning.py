"""Tuned schedules, kept on disk and taken from there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import pytest

import mlirfuse as mf
from mlirfuse.errors import ScheduleError
from mlirfuse.schedule.choice.records import PACKAGES, Record, RecordKey, _format, lookup, records_path, store
from mlirfuse.schedule.contractions.families.wgmma import wgmma_schedule
from mlirfuse.schedule.contractions.thread_layouts import with_slices
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.problem import Problem, RowReduction
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.support.serialization import fields_of, from_plain, to_plain
from mlirfuse.target import target_of

SM_90A = target_of("sm_90a")
PROBLEM = ContractionProblem((), 128, 128, 8192, mf.bfloat16, mf.float32, 16)
KEY = RecordKey(PROBLEM, SM_90A)
SCHEDULE = with_slices(wgmma_schedule(PROBLEM, 64, 64, split=8))


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cache" / "schedules.json"
    monkeypatch.setenv("MLIRFUSE_RECORDS", str(path))
    return path


def test_schedules_go_through_plain_data() -> None:
    assert from_plain(Schedule, to_plain(SCHEDULE)) == SCHEDULE


@pytest.mark.parametrize(
    "change", [{"tile": [1.5, 2]}, {"tile": "64"}, {"order": 3}, {"layout": None}, {"blocks_per_sm": True}]
)
def test_plain_data_of_another_kind_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ScheduleError):
        from_plain(Schedule, {**to_plain(SCHEDULE), **change})
    with pytest.raises(ScheduleError, match="is no Schedule"):
        from_plain(Schedule, {"tile": [64, 64]})


def test_an_entry_is_for_one_problem_and_one_target(records: Path) -> None:
    assert lookup(KEY) is None
    store(KEY, Record(SCHEDULE, 12.5))
    assert lookup(KEY) == Record(SCHEDULE, 12.5)
    assert lookup(RecordKey(PROBLEM, target_of("sm_80"))) is None
    assert lookup(RecordKey(PROBLEM, SM_90A.with_sms(114))) is None
    assert lookup(RecordKey(PROBLEM, SM_90A, "NVIDIA H200")) is None
    assert lookup(RecordKey(PROBLEM, SM_90A, grid_reduction="last_block")) is None
    assert lookup(RecordKey(ContractionProblem((), 128, 128, 4096, mf.bfloat16, mf.float32, 16), SM_90A)) is None
    store(KEY, Record(SCHEDULE, 11.0))
    assert lookup(KEY) == Record(SCHEDULE, 11.0)
    assert not list(records.parent.glob("*.part"))


def test_an_entry_is_for_one_version(records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store(KEY, Record(SCHEDULE, 12.5))
    key = KEY.text
    assert f"mlir={version(PACKAGES['mlir'])} schedule=" in key
    assert " sm_90a sms=132 device=unknown grid_reduction=auto " in key
    monkeypatch.setattr("mlirfuse.schedule.choice.records.version", lambda package: "99")
    assert key != KEY.text
    assert lookup(KEY) is None


def test_a_key_has_every_field_of_a_problem() -> None:
    """Sets in order, as text in a file is compared with that of other processes."""
    rows = Problem((None, 4096), frozenset({9, 0, 1}), 1, 8, 4, 2)
    assert RecordKey(rows, SM_90A).text == RecordKey(replace(rows, reduced=frozenset({1, 9, 0})), SM_90A).text
    assert "Problem(extents=(None, 4096), reduced={0, 1, 9}, " in RecordKey(rows, SM_90A).text
    for change in ({"special": 1.0}, {"extents": (8, 4096)}, {"reductions": (RowReduction(*[frozenset({1})] * 2, 4),)}):
        assert RecordKey(rows, SM_90A).text != RecordKey(replace(rows, **change), SM_90A).text


def test_an_entry_is_for_schedules_of_the_same_fields(records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkouts of one version have different ones; those of parts count."""

    @dataclass(frozen=True)
    class Wider(BlockedLayout):
        more: int = 0

    store(KEY, Record(SCHEDULE, 12.5))
    assert fields_of(Wider) != fields_of(BlockedLayout)
    assert fields_of(BlockedLayout) in fields_of(Schedule)
    monkeypatch.setattr("mlirfuse.schedule.choice.records.fields_of", lambda cls: fields_of(Wider))
    _format.cache_clear()
    assert lookup(KEY) is None
    _format.cache_clear()


@pytest.mark.parametrize("text", ["{", "[]", "3"])
def test_a_broken_file_is_an_error_that_names_it(records: Path, text: str) -> None:
    records.parent.mkdir()
    records.write_text(text)
    with pytest.raises(ScheduleError, match=r"cannot be read(.|\n)*MLIRFUSE_RECORDS=off"):
        lookup(KEY)


def test_an_entry_that_is_no_schedule_is_an_error_that_names_the_file(records: Path) -> None:
    """Such as one that was edited."""
    store(KEY, Record(SCHEDULE, 12.5))
    records.write_text(records.read_text().replace('"tile"', '"tiles"'))
    with pytest.raises(ScheduleError, match=r"is no Schedule(.|\n)*MLIRFUSE_RECORDS=off"):
        lookup(KEY)


def test_records_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRFUSE_RECORDS", "off")
    store(KEY, Record(SCHEDULE, 1.0))
    assert records_path() is None
    assert lookup(KEY) is None


def test_compiling_takes_the_tuned_schedule(records: Path) -> None:
    specs = [mf.TensorSpec((128, 8192), mf.bfloat16)] * 2
    fused = mf.fuse(lambda x, w: x @ w.T, target="sm_90a")
    tuned = wgmma_schedule(PROBLEM, 128, 32, split=1)
    assert "chosen tile" in fused.lower(*specs).compile().explain(verbose=True)
    store(KEY, Record(tuned, 10.0))
    assert "tuned tile (128, 32)" in fused.lower(*specs).compile().explain(verbose=True)
