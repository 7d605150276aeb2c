"""Tuning with times that are made up in place of a GPU's: what is measured, how long, and what is kept and taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import mlirfuse as mf
from mlirfuse.api import tuning as api_tuning
from mlirfuse.api.argument_specs import gpu_specs
from mlirfuse.api.tuning import tune
from mlirfuse.compiler.compile import Compiled
from mlirfuse.compiler.feedback import without_spills
from mlirfuse.compiler.problems import problems_of
from mlirfuse.errors import ArgumentError, MlirFuseError, RuntimeLaunchError, ScheduleError
from mlirfuse.lowering.ptx.resources import KernelResources
from mlirfuse.machine import machine_of
from mlirfuse.runtime import search, tuning
from mlirfuse.runtime.arrays.arrays import ArrayInfo
from mlirfuse.runtime.device import cuda
from mlirfuse.runtime.search import Tuned
from mlirfuse.schedule.choice.predicted import ranked
from mlirfuse.schedule.choice.records import Record, RecordKey, lookup, on_trial, store
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import target_of
from mlirfuse.tools.cli import main

TARGET, DEVICE = target_of("sm_90a").with_sms(132), "NVIDIA H200"
PRODUCT = "SPECS = {'product': ['bf16[128,8192]', 'bf16[128,8192]']}\ndef product(x, w):\n    return x @ w.T\n"
ROWS = (ArrayInfo(1 << 20, (512, 256), (256, 1), mf.float32, 0, "cupy"),)


def softmax(x: Any) -> Any:
    numerator = mf.exp(x - mf.max(x, axis=-1, keepdims=True))
    return numerator / mf.sum(numerator, axis=-1, keepdims=True)


def statistics(x: Any) -> Any:
    """Two kernels, if they are to be split: sums over rows and over columns."""
    return mf.sum(x * x, axis=-1), mf.sum(mf.exp(x), axis=0)


class Times:
    """Made-up microseconds of schedules, by the order in which they are measured; each takes a second."""

    def __init__(self, *microseconds: float | MlirFuseError):
        self.microseconds, self.measured, self.now = microseconds, list[dict[str, Schedule]](), 0.0

    def measure(self, fused: mf.Fused, sets: object) -> float:
        (compiled,) = fused._compiled.values()
        found = self.microseconds[min(len(self.measured), len(self.microseconds) - 1)]
        self.measured.append(dict(compiled.schedules))
        self.now += 1.0
        if isinstance(found, MlirFuseError):
            raise found
        return found


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "schedules.json"
    monkeypatch.setenv("MLIRFUSE_RECORDS", str(path))
    monkeypatch.setenv("MLIRFUSE_MACHINES", "off")
    return path


@pytest.fixture
def device(records: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Times]:
    """Has a device whose times are made up."""

    def with_times(*microseconds: float | MlirFuseError) -> Times:
        times = Times(*microseconds)
        monkeypatch.setattr(cuda, "device_target", lambda device: TARGET)
        monkeypatch.setattr(cuda, "device_name", lambda device: DEVICE)
        monkeypatch.setattr(tuning, "random_arguments", lambda arguments: [])
        monkeypatch.setattr(tuning, "measure", times.measure)
        monkeypatch.setattr(search, "monotonic", lambda: times.now)
        return times

    return with_times


def compiled_for(fn: Callable[..., Any], name: str | None = DEVICE, chip: str = "sm_90a", **options: Any) -> Compiled:
    """As a call on the device compiles a function."""
    fused = mf.fuse(fn, **options)
    target = target_of(chip).with_sms(132)
    return fused._compile(lambda extents: gpu_specs(ROWS, extents), target, name)


def tuned(fn: Callable[..., Any], seconds: float, *, again: bool = False, **options: Any) -> list[Tuned]:
    lowered = compiled_for(fn, **options).lowered
    return tune(mf.fuse(fn, **options), lowered, ROWS, seconds, Console(stderr=True), again=again)


def test_the_fastest_is_kept_and_later_compilations_take_it(device: Callable[..., Times]) -> None:
    times = device(9.0, RuntimeLaunchError("no launch"), 3.0, 7.0)
    (found,) = tuned(softmax, 4.0)
    assert [trial.microseconds for trial in found.trials] == [9.0, 3.0, 7.0]
    assert found.trials[0].schedule == compiled_for(softmax, name=None).schedules["softmax_0"]
    assert len(found.failures) == 1
    assert "no launch" in found.failures[0]

    best = times.measured[2]["softmax_0"]
    assert lookup(RecordKey(found.problem, TARGET, DEVICE)) == Record(best, 3.0)
    compiled = compiled_for(softmax)
    assert compiled.schedules == {"softmax_0": best}
    assert "tuned tile" in compiled.explain(verbose=True)


def test_another_machine_does_not_take_it(device: Callable[..., Times]) -> None:
    device(9.0, 3.0)
    tuned(softmax, 2.0)
    for name, chip in ((None, "sm_90a"), ("NVIDIA H100", "sm_90a"), (DEVICE, "sm_80")):
        assert "tuned tile" not in compiled_for(softmax, name, chip).explain(verbose=True)


def test_another_version_does_not_take_it(device: Callable[..., Times], monkeypatch: pytest.MonkeyPatch) -> None:
    device(9.0, 3.0)
    tuned(softmax, 2.0)
    monkeypatch.setattr("mlirfuse.schedule.choice.records.version", lambda package: "99")
    assert "tuned tile" not in compiled_for(softmax).explain(verbose=True)


def test_candidates_are_measured_in_the_order_of_prediction_until_the_time_is_up(device: Callable[..., Times]) -> None:
    times = device(5.0)
    (found,) = tuned(softmax, 4.0)
    assert times.now == 4.0
    order = ranked(found.problem, TARGET, machine_of(TARGET, DEVICE), 512 * 256, "auto")
    first, *others = [measured["softmax_0"] for measured in times.measured]
    assert others == [c.schedule for c in order if c.schedule != first][:3]
    assert [trial.predicted for trial in found.trials[1:]] == sorted(trial.predicted for trial in found.trials[1:])
    assert found.best.schedule == first, "of equals, what the function had"


@pytest.mark.parametrize("grid_reduction", ["atomics", "grid_sync", "last_block", "second_kernel"])
def test_candidates_combine_partials_as_asked(grid_reduction: str) -> None:
    """Atomic additions are not among the ways of `auto`."""
    lowered = mf.fuse(lambda x: mf.sum(x, axis=0), target="sm_90a").lower(mf.TensorSpec((None, 256), mf.float32))
    (problem,) = problems_of(lowered).values()
    found = ranked(problem, TARGET, machine_of(TARGET, DEVICE), 1 << 20, grid_reduction)
    loops = [each.schedule.persistent_loop for each in found]
    assert {loop.grid_reduction for loop in loops if loop is not None} == {grid_reduction}


def test_kernels_share_the_time_and_keep_the_others_schedules(device: Callable[..., Times]) -> None:
    times = device(9.0, 8.0, 4.0, 8.0, 7.0, 2.0)
    found = tuned(statistics, 6.0, mix_order="split")
    assert len(found) == 2
    assert [len(each.trials) for each in found] == [3, 3]
    one, two = (each.kernel for each in found)
    assert len({measured[two] for measured in times.measured[:3]}) == 1
    assert {measured[one] for measured in times.measured[3:]} == {found[0].best.schedule}
    assert compiled_for(statistics, mix_order="split").schedules == {
        one: found[0].best.schedule,
        two: found[1].best.schedule,
    }


def test_problems_with_a_record_are_measured_again_only_if_asked(device: Callable[..., Times]) -> None:
    times = device(9.0, 3.0)
    tuned(softmax, 2.0)
    assert not tuned(softmax, 2.0)
    assert times.now == 2.0
    (found,) = tuned(softmax, 1.0, again=True)
    assert found.trials[0].schedule == times.measured[1]["softmax_0"]


def test_a_record_that_is_illegal_is_ignored_with_a_remark(records: Path) -> None:
    plain = compiled_for(softmax)
    (problem,) = problems_of(plain.lowered).values()
    key = RecordKey(problem, TARGET, DEVICE)
    schedule = plain.schedules["softmax_0"]
    layout = replace(schedule.layout, warps=(64, 64))
    store(key, Record(replace(schedule, layout=layout), 1.0))
    compiled = compiled_for(softmax)
    assert compiled.schedules == plain.schedules
    assert "the tuned schedule of softmax_0 is not used: " in compiled.explain(verbose=True)


def _report(spilled: int) -> list[KernelResources]:
    return [KernelResources("softmax_0_kernel", 255, spilled, spilled, 0, 0, 0, 128, 1)]


def test_what_spills_is_no_trial_and_ignored_in_a_record(records: Path) -> None:
    plain = compiled_for(softmax)
    (problem,) = problems_of(plain.lowered).values()
    key = RecordKey(problem, TARGET, DEVICE)
    others = ranked(problem, TARGET, machine_of(TARGET, DEVICE), 512 * 256, "auto")
    schedule = next(c.schedule for c in others if c.schedule != plain.schedules["softmax_0"])
    with on_trial(key, schedule), pytest.raises(ScheduleError, match="on trial.* spills 40 bytes"):
        without_spills(plain.lowered._compile, lambda binaries: _report(40))

    store(key, Record(schedule, 1.0))
    reports = [_report(40), _report(0)]
    compiled = without_spills(plain.lowered._compile, lambda binaries: reports.pop(0))
    assert compiled.schedules["softmax_0"] != schedule
    assert "the tuned schedule of softmax_0 is not used: it spills 40 bytes" in compiled.explain(verbose=True)


def test_a_record_is_for_the_second_stage_that_was_asked_for(device: Callable[..., Times]) -> None:
    def sums(x: Any) -> Any:
        return mf.sum(x, axis=0)

    times = device(9.0)
    tuned(sums, 4.0, grid_reduction="last_block")
    loops = [measured["sums_0"].persistent_loop for measured in times.measured]
    assert [loop is not None and loop.grid_reduction for loop in loops] == ["last_block"] * 4
    assert "tuned tile" in compiled_for(sums, grid_reduction="last_block").explain(verbose=True)
    for asked in ("auto", "second_kernel", "atomics"):
        assert "tuned tile" not in compiled_for(sums, grid_reduction=asked).explain(verbose=True)


def test_the_first_call_tunes_and_later_processes_take_what_it_found(
    device: Callable[..., Times], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = device(9.0, 3.0, 5.0)
    monkeypatch.setattr(api_tuning, "FIRST_CALL_SECONDS", 3.0)
    monkeypatch.setattr("mlirfuse.api.fused.load", lambda *_: None)
    monkeypatch.setattr("mlirfuse.api.fused.assemble_ahead", lambda _: None)
    monkeypatch.setattr(cuda, "on_device", lambda device: pytest.MonkeyPatch.context())
    fused, later = mf.fuse(softmax, tune=True), mf.fuse(softmax, tune=True)
    for call in (fused, fused, later):
        call._prepare(ROWS)
    assert len(times.measured) == 3
    for call in (fused, later):
        (compiled,) = call._compiled.values()
        assert compiled.schedules == times.measured[1]
    assert not capsys.readouterr().err, "a bar shows itself on terminals alone"

    monkeypatch.setenv("MLIRFUSE_RECORDS", "off")
    with pytest.raises(ArgumentError, match="MLIRFUSE_RECORDS is off"):
        mf.fuse(softmax, tune=True)._prepare(ROWS)


def test_tuning_needs_calls_on_a_gpu() -> None:
    with pytest.raises(ArgumentError, match="target='interpret' has none"):
        mf.fuse(softmax, tune=True, target="interpret")
    with pytest.raises(ArgumentError, match="tune is 1.5"):
        mf.fuse(softmax, tune=1.5)
    with pytest.raises(ArgumentError, match="lower makes none(.|\n)*with_options"):
        mf.fuse(softmax, tune=True).lower(mf.TensorSpec((None, 256), mf.float32))


def test_the_command_tunes_a_product(
    device: Callable[..., Times], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "products.py"
    file.write_text(PRODUCT)
    times = device(19.0, 18.0, RuntimeLaunchError("no launch"), 16.0)
    assert main(["tune", f"{file}:product", "--seconds", "4"]) == 0
    printed = capsys.readouterr().out
    assert len({measured["product_0"] for measured in times.measured}) == 4
    assert "128 x 128 x 8192 bfloat16, 3 of " in printed
    assert "no launch" in printed
    assert "chosen before" in printed


def test_the_command_tunes_kernels_without_contractions(
    device: Callable[..., Times], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scales.py"
    file.write_text("SPECS = {'scale': ['f32[512,256]', 'float']}\ndef scale(x, factor):\n    return x * factor\n")
    device(3.0, 2.0)
    assert main(["tune", f"{file}:scale", "--seconds", "3"]) == 0
    assert "scale_0: ?, " in capsys.readouterr().out
