"""PTX of kernels with arguments of dynamic strides, which may be negative."""

from __future__ import annotations

from typing import Any

import pytest

import mlirfuse as mf
from mlirfuse.compiler.compile import Compiled
from tests.support.contractions.warpgroup_schedules import warpgroup_schedule


def compiled(fn: Any, *specs: mf.TensorSpec, schedule: mf.Schedule | None = None) -> Compiled:
    return mf.fuse(fn, target="sm_90a", schedule=schedule).lower(*specs).compile()


@pytest.mark.parametrize(("stride", "unsigned"), [("negative", False), (None, True)])
def test_addresses_with_negative_strides_are_not_unsigned(stride: Any, unsigned: bool) -> None:
    """Upstream says of an access's arithmetic that it does not wrap as unsigned numbers, which LLVM may rely on."""
    spec = mf.TensorSpec((None, 64), "float32", strides=(stride, stride), align=4)
    text = compiled(lambda x: (x * 2.0, mf.sum(x, axis=-1)), spec).as_text("nvvm")
    assert ("nuw" in text) == unsigned


@pytest.mark.parametrize(
    "strides", [("negative", 1), (1, "negative"), ("negative", "negative"), ("packed", "negative")]
)
@pytest.mark.parametrize("which", [0, 1])
def test_no_tensor_map_is_made_of_a_reversed_operand(strides: Any, which: int) -> None:
    """Their strides are unsigned numbers: the driver would refuse the map when the function is called."""
    plain = mf.TensorSpec((512, 512), "float16")
    specs = [plain, plain]
    specs[which] = mf.TensorSpec((512, 512), "float16", strides=strides)
    infos = compiled(lambda x, w: x @ w, *specs).infos.values()
    mapped = {p.arg for info in infos for p in info.parameters if p.kind == "tensor_map"}
    assert which not in mapped
    forward = compiled(lambda x, w: x @ w, plain, plain).infos.values()
    assert any(p.kind == "tensor_map" for info in forward for p in info.parameters)


def test_no_tensor_map_is_made_of_a_reversed_residual() -> None:
    schedule = warpgroup_schedule(128, 128, persistent=True, consumer_groups=2)
    plain = mf.TensorSpec((4096, 4096), "bfloat16")
    for strides, residual in ((("negative", 1), False), ((None, 1), True)):
        spec = mf.TensorSpec((4096, 4096), "bfloat16", strides=strides)  # type: ignore[arg-type]
        infos = compiled(lambda x, w, r: x @ w + r, plain, plain, spec, schedule=schedule).infos.values()
        mapped = {p.arg for info in infos for p in info.parameters if p.kind == "tensor_map"}
        assert (2 in mapped) == residual


def test_what_is_reversed_along_its_rows_is_loaded_element_by_element() -> None:
    for stride, wide in (("negative", False), (1, True)):
        spec = mf.TensorSpec((None, 1024), "float16", strides=(None, stride))  # type: ignore[arg-type]
        ptx = compiled(lambda x: x * 2.0, spec).as_text("ptx")
        assert ("ld.global.nc.v4" in ptx or ".v4.b32" in ptx.split("st.global")[0]) == wide, ptx


def test_reversed_slices_have_constant_strides() -> None:
    """A dimension that the function reverses has a known stride: the kernel is passed none."""
    spec = mf.TensorSpec((None, 512), "float32", align=16)
    flipped = compiled(lambda x: mf.flip(x, axis=1) * 2.0, spec)
    parameters = [p for info in flipped.infos.values() for p in info.parameters]
    assert not [p for p in parameters if p.kind == "stride"]
    assert "nuw" not in flipped.as_text("nvvm")
    plain = compiled(lambda x: x * 2.0, spec)
    times = [c.predicted([(65536, 512)]).microseconds for c in (flipped, plain)]
    assert times[0] < 1.2 * times[1]
