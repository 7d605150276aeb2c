"""Machine models: shipped files, what is wrong with files, scaling and lookup."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mlirfuse.errors import TargetError
from mlirfuse.machine import lookup, machine_of, quantities, shipped_models
from mlirfuse.machine.files import parse, read, shipped, to_text
from mlirfuse.machine.model import QUANTITIES, UNITS
from mlirfuse.target import TARGETS, target_of


@pytest.fixture(autouse=True)
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory of calibrated files."""
    monkeypatch.setenv(lookup.VARIABLE, str(tmp_path))
    lookup.forget()
    return tmp_path


def _h200(**changes: object) -> str:
    """The text of the H200's file with other top-level values."""
    file = shipped()["h200"]
    return json.dumps(json.loads(to_text(file.model, file.devices)) | changes)


def test_there_are_few_quantities_and_each_has_a_unit() -> None:
    found = list(quantities())
    assert len(found) <= 62
    assert all(q.unit in UNITS and q.low < q.high and q.scope in ("device", "sm", "fixed") for q in found)


@pytest.mark.parametrize("stem", shipped())
def test_shipped_files_are_complete_and_say_their_sources(stem: str) -> None:
    file = shipped()[stem]
    assert file.devices
    for quantity in quantities():
        value = getattr(file.model, quantity.name)
        assert quantity.low <= value <= quantity.high or (value == 0 and quantity.is_optional), quantity.name
        assert file.model.sources[quantity.name], quantity.name


@pytest.mark.parametrize("chip", TARGETS)
def test_every_target_has_a_model(chip: str) -> None:
    model = machine_of(chip)
    assert (model.architecture, model.sms) == (TARGETS[chip].architecture, TARGETS[chip].sms)
    assert (model.wgmma_16bit_per_sm > 0) == chip.startswith("sm_90")
    assert (model.cluster_barrier > 0) == TARGETS[chip].has_clusters


def test_a_part_of_a_device_has_its_share() -> None:
    whole, part = machine_of("sm_90a"), machine_of(target_of("sm_90a").with_sms(66))
    assert part.dram_bandwidth == whole.dram_bandwidth / 2
    assert part.f32_fma_per_sm == whole.f32_fma_per_sm
    assert part.graph_launch == whole.graph_launch
    assert part.cluster_sms_4 % 4 == 0
    assert part.sources["dram_bandwidth"].startswith("0.5 x NVIDIA H200")
    assert part.dram_bytes_in_flight == pytest.approx(whole.dram_bytes_in_flight)


def test_a_file_is_read_as_it_was_written(machines: Path) -> None:
    file = shipped()["h200"]
    (machines / "x.json").write_text(to_text(file.model, file.devices, file.generic_for))
    assert read(machines / "x.json") == file
    assert dict(read(machines / "x.json").model.sources) == dict(file.model.sources)


def test_a_calibrated_file_wins(machines: Path) -> None:
    plain = json.loads(_h200())
    plain["quantities"]["dram_bandwidth"]["value"] = 4e12
    path = lookup.calibrated_path("NVIDIA H200")
    assert path is not None
    path.write_text(json.dumps(plain))
    assert machine_of("sm_90a", "NVIDIA H200").dram_bandwidth == 4e12
    assert machine_of("sm_90a").dram_bandwidth == 4e12
    assert machine_of("sm_80").dram_bandwidth < 2.1e12


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a machine model"),
        ("[]", "it must have"),
        (_h200(quantities={}), "it lacks atomic_latency"),
        (_h200(chip="sm_7"), "unknown target 'sm_7'"),
        (_h200(sms="132"), "sms is '132'"),
        (_h200(sms=0), "0 SMs"),
        (_h200(more=1), "it must have"),
        (_h200(like="gtx"), "like is 'gtx'"),
        (_h200(quantities={"speed": {}}), "unknown quantity 'speed'"),
        (_h200(quantities={"clock": 1e9}), "clock must have value, unit and source"),
        (_h200(quantities={"clock": {"value": 1, "unit": "MHz", "source": ""}}), "clock is in 'MHz'"),
        (_h200(quantities={"clock": {"value": 1, "unit": "Hz", "source": ""}}), "clock is 1"),
        (_h200(quantities={"clock": {"value": None, "unit": "Hz", "source": ""}}), "clock is None"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(text: str, message: str) -> None:
    with pytest.raises(TargetError, match=message) as error:
        parse(text, "x.json")
    assert str(error.value).startswith("x.json: ")
    assert error.value.hint


def test_only_optional_quantities_may_be_zero() -> None:
    plain = json.loads(_h200())
    for name, quantity in QUANTITIES.items():
        plain["quantities"][name]["value"] = 0
        if quantity.is_optional:
            assert getattr(parse(json.dumps(plain), "x").model, name) == 0
        else:
            with pytest.raises(TargetError, match=f"{name} is 0"):
                parse(json.dumps(plain), "x")
        plain = json.loads(_h200())


def test_names_of_devices() -> None:
    assert lookup.file_stem("NVIDIA H100 80GB HBM3") == "nvidia-h100-80gb-hbm3"
    assert set(shipped_models()) == set(shipped())
