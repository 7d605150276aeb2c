"""Tuned schedules: kept on disk, taken from there, and how `mlirfuse tune` finds them, but for the GPU."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pytest

import mlirfuse as mf
from mlirfuse.errors import ScheduleError
from mlirfuse.runtime import tuning
from mlirfuse.schedule.contractions.families.wgmma import wgmma_schedule
from mlirfuse.schedule.contractions.slices import with_slices
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.records import PACKAGES, Record, _format, lookup, record_key, records_path, store
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.support.serialization import fields_of, from_plain, to_plain
from mlirfuse.target import target_of
from mlirfuse.tools.cli import main

SM_90A = target_of("sm_90a")
PROBLEM = ContractionProblem((), 128, 128, 8192, mf.bfloat16, mf.float32, 16)
SCHEDULE = with_slices(wgmma_schedule(PROBLEM, 64, 64, split=8))
SOURCE = "SPECS = {'product': ['bf16[128,8192]', 'bf16[128,8192]']}\ndef product(x, w):\n    return x @ w.T\n"


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
    assert lookup(PROBLEM, SM_90A) is None
    store(PROBLEM, SM_90A, Record(SCHEDULE, 12.5))
    assert lookup(PROBLEM, SM_90A) == Record(SCHEDULE, 12.5)
    assert lookup(PROBLEM, target_of("sm_80")) is None
    assert lookup(PROBLEM, SM_90A.with_sms(114)) is None
    assert lookup(ContractionProblem((), 128, 128, 4096, mf.bfloat16, mf.float32, 16), SM_90A) is None
    store(PROBLEM, SM_90A, Record(SCHEDULE, 11.0))
    assert lookup(PROBLEM, SM_90A) == Record(SCHEDULE, 11.0)
    assert not list(records.parent.glob("*.part"))


def test_an_entry_is_for_one_version(records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store(PROBLEM, SM_90A, Record(SCHEDULE, 12.5))
    key = record_key(PROBLEM, SM_90A)
    assert f"mlir={version(PACKAGES['mlir'])} schedule=" in key
    assert " sm_90a sms=132 " in key
    monkeypatch.setattr("mlirfuse.schedule.records.version", lambda package: "99")
    assert key != record_key(PROBLEM, SM_90A)
    assert lookup(PROBLEM, SM_90A) is None


def test_an_entry_is_for_schedules_of_the_same_fields(records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkouts of one version have different ones; those of parts count."""

    @dataclass(frozen=True)
    class Wider(BlockedLayout):
        more: int = 0

    store(PROBLEM, SM_90A, Record(SCHEDULE, 12.5))
    assert fields_of(Wider) != fields_of(BlockedLayout)
    assert fields_of(BlockedLayout) in fields_of(Schedule)
    monkeypatch.setattr("mlirfuse.schedule.records.fields_of", lambda cls: fields_of(Wider))
    _format.cache_clear()
    assert lookup(PROBLEM, SM_90A) is None
    _format.cache_clear()


@pytest.mark.parametrize("text", ["{", "[]", "3"])
def test_a_broken_file_is_an_error_that_names_it(records: Path, text: str) -> None:
    records.parent.mkdir()
    records.write_text(text)
    with pytest.raises(ScheduleError, match=r"cannot be read(.|\n)*MLIRFUSE_RECORDS=off"):
        lookup(PROBLEM, SM_90A)


def test_an_entry_that_is_no_schedule_is_an_error_that_names_the_file(records: Path) -> None:
    """Such as one that was edited."""
    store(PROBLEM, SM_90A, Record(SCHEDULE, 12.5))
    records.write_text(records.read_text().replace('"tile"', '"tiles"'))
    with pytest.raises(ScheduleError, match=r"is no Schedule(.|\n)*MLIRFUSE_RECORDS=off"):
        lookup(PROBLEM, SM_90A)


def test_records_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRFUSE_RECORDS", "off")
    store(PROBLEM, SM_90A, Record(SCHEDULE, 1.0))
    assert records_path() is None
    assert lookup(PROBLEM, SM_90A) is None


def test_compiling_takes_the_tuned_schedule(records: Path) -> None:
    specs = [mf.TensorSpec((128, 8192), mf.bfloat16)] * 2
    fused = mf.fuse(lambda x, w: x @ w.T, target="sm_90a")
    tuned = wgmma_schedule(PROBLEM, 128, 32, split=1)
    assert "chosen tile" in fused.lower(*specs).compile().explain()
    store(PROBLEM, SM_90A, Record(tuned, 10.0))
    assert "tuned tile (128, 32)" in fused.lower(*specs).compile().explain()


def test_the_command_measures_survivors_and_keeps_the_fastest(
    records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "products.py"
    file.write_text(SOURCE)
    measured: list[Schedule] = []

    def measure(fused: mf.Fused, sets: object) -> float:
        (schedule,) = fused._schedules.values()
        measured.append(schedule)
        if len(measured) == 2:
            raise ScheduleError("no launch")
        return 20.0 - len(measured)

    monkeypatch.setattr(tuning, "random_arguments", lambda shapes, dtypes: [])
    monkeypatch.setattr(tuning, "measure", measure)
    assert main(["tune", f"{file}:product", "--target", "sm_90a", "--keep", "4"]) == 0
    printed = capsys.readouterr().out
    assert len(set(measured)) == 4
    assert lookup(PROBLEM, SM_90A) == Record(measured[3], 16.0)
    assert "128 x 128 x 8192 bfloat16" in printed
    assert "no launch" in printed
    assert "the cost model's" in printed


def test_a_function_without_contractions_has_nothing_to_tune(
    records: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "sums.py"
    file.write_text(
        "SPECS = {'total': ['f32[8,64]']}\nfrom mlirfuse import sum\ndef total(x):\n    return sum(x, axis=-1)\n"
    )
    assert main(["tune", f"{file}:total", "--target", "sm_90a"]) == 0
    assert "has no contraction" in capsys.readouterr().out
