"""Every microbenchmark on a device that is not there: ptxas assembles its kernels, and its arithmetic is checked."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.builder.spec import TensorSpec
from mlirfuse.machine import machine_of
from mlirfuse.machine.model import QUANTITIES
from mlirfuse.target import LINE
from mlirfuse.tools.calibration import latencies, tensor_cores
from mlirfuse.tools.calibration.benchmark import Microbenchmark
from mlirfuse.tools.calibration.table import BENCHMARKS, BY_NAME
from tests.support.fakes.fake_gpu import (
    BLOCK,
    CLUSTER_LAUNCH,
    DEPENDENT_LAUNCH,
    ITERATION,
    LAUNCH,
    STREAM_LAUNCH,
    FakeGpu,
)

CHIPS = ("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a")


@pytest.fixture(autouse=True)
def small_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains of real size take seconds to make; `test_a_chain_visits_every_line` has small ones."""
    monkeypatch.setattr(latencies, "chain_of_offsets", lambda nbytes: np.zeros(16, np.uint64))


def test_every_quantity_is_measured_once() -> None:
    measured = [name for benchmark in BENCHMARKS for name in benchmark.measures]
    assert sorted(measured) == sorted(QUANTITIES)
    assert all(benchmark.how and 0 <= benchmark.spread <= 0.5 for benchmark in BENCHMARKS)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_benchmarks_run(benchmark: Microbenchmark, chip: str) -> None:
    gpu = FakeGpu(chip)
    if not benchmark.exists_on(gpu.target):
        model = machine_of(chip)
        assert not any(getattr(model, name) for name in benchmark.measures), "what is not measured is not there"
        return
    found = benchmark.run(gpu)
    wanted = {name for name in benchmark.measures if name != "mma_f8_per_sm" or gpu.target.has_float8_conversions}
    assert found.keys() == wanted
    assert all(value > 0 for value in found.values())
    for assembled in gpu.assembled.values():
        assert (assembled.resources.spill_store_bytes, assembled.resources.spill_load_bytes) == (0, 0)


def test_what_is_compiled_compiles() -> None:
    gpu = FakeGpu("sm_90a")
    for name in ("dram_bandwidth", "dram_read_bandwidth", "dram_write_bandwidth", "mma_16bit_per_sm"):
        BY_NAME[name].run(gpu)
    assert [len(shapes) for _, shapes, *_ in gpu.fused] == [1, 1, 2, 2]
    for function, shapes, dtype, target in gpu.fused:
        fused = mf.fuse(function).with_options(target=target)
        text = fused.lower(*(TensorSpec(shape, dtype) for shape in shapes)).compile().as_text("ptx")
        assert "wgmma" not in text
        assert ".entry" in text


@pytest.mark.parametrize(
    ("quantity", "value"),
    [
        ("graph_launch", LAUNCH + ITERATION + 132 * BLOCK),
        ("stream_launch", STREAM_LAUNCH + ITERATION + 132 * BLOCK),
        ("dependent_launch", DEPENDENT_LAUNCH + ITERATION + 132 * BLOCK),
        ("block_launch", 132 * BLOCK),
        ("block_start", BLOCK),
        ("cluster_start", BLOCK),
        ("cluster_launch", CLUSTER_LAUNCH - LAUNCH),
        ("block_barrier", ITERATION / 8),
        ("cluster_barrier", ITERATION / 8),
        ("grid_barrier", ITERATION),
        ("message_latency", ITERATION / 2),
        ("dram_latency", ITERATION / latencies.STEPS),
        ("shared_latency", ITERATION / latencies.STEPS),
        ("clock", 1.98e9),
        ("f32_fma_per_sm", 1024 * 64 / ITERATION),
        ("f16_fma_per_sm", 1024 * 128 / ITERATION),
        ("load_store_per_sm", 1024 * 4 / ITERATION),
        ("shared_bandwidth_per_sm", 1024 * 32 / ITERATION),
        ("l2_bandwidth_per_sm", 1024 * 8 * 16 / ITERATION),
        ("tma_line_bandwidth_per_sm", 64 * 128 / ITERATION),
        ("cp_async_bandwidth_per_sm", 512 * 16 / ITERATION),
        ("atomics_per_address", 132 * 256 / ITERATION),
        ("dram_bandwidth", 2 * (512 << 20) / 1e-3),
        ("dram_write_bandwidth", (512 << 20) / 1e-3),
        ("l2_bytes", 50 << 20),
    ],
)
def test_what_times_amount_to(quantity: str, value: float) -> None:
    assert BY_NAME[quantity].run(FakeGpu("sm_90a"))[quantity] == pytest.approx(value)


def test_bytes_in_flight_amount_to_a_latency() -> None:
    """Here every shape takes as long, so that the largest is the fastest, and the latency that of an iteration."""
    found = BY_NAME["l2_read_bandwidth"].run(FakeGpu("sm_90a"))
    assert found["l2_read_bandwidth"] == pytest.approx(132 * (128 << 10) / ITERATION)
    assert found["l2_loaded_latency"] == pytest.approx(0.95 * ITERATION, rel=0.01)


def test_other_types_are_in_proportion_to_products() -> None:
    found = BY_NAME["wgmma_16bit_per_sm"].run(FakeGpu("sm_90a"))
    assert found["wgmma_16bit_per_sm"] == pytest.approx(2 * 8192**3 / 132 / 1e-3)
    assert found["wgmma_tf32_per_sm"] == pytest.approx(found["wgmma_16bit_per_sm"] / 2)
    assert found["wgmma_f8_per_sm"] == pytest.approx(found["wgmma_16bit_per_sm"] * 2)


def test_a_type_that_the_assembler_does_not_know_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tuple(
        dataclasses.replace(product, types="f32.e9m9.e9m9.f32") if product.quantity == "mma_f8_per_sm" else product
        for product in tensor_cores.MMA
    )
    family = tensor_cores._family(broken, lambda target: target)
    assert family.run(FakeGpu("sm_90a")).keys() == set(family.measures) - {"mma_f8_per_sm"}


def test_a_chain_visits_every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    chain = latencies.chain_of_offsets(64 * LINE)
    offset, seen = 0, []
    for _ in range(64):
        seen.append(offset)
        offset = int(chain[offset // 8])
    assert offset == 0
    assert sorted(seen) == list(range(0, 64 * LINE, LINE))
    assert seen != sorted(seen)
