"""Data gradients with strides are one launch: layers of ResNet-50, ConvNeXt and the like, for sm_80 and sm_90a."""

from __future__ import annotations

from typing import Any

import pytest

import mlirfuse as mf

LAYERS = {
    "resnet 3x3": ((8, 28, 28, 128), (128, 3, 3, 64), 56, {"stride": 2, "padding": 1}),
    "resnet 1x1": ((8, 28, 28, 512), (512, 1, 1, 256), 56, {"stride": 2}),
    "stem 7x7": ((8, 112, 112, 64), (64, 7, 7, 16), 224, {"stride": 2, "padding": 3}),
    "convnext 2x2": ((8, 14, 14, 768), (768, 2, 2, 384), 28, {"stride": 2}),
    "patches 4x4": ((8, 28, 28, 96), (96, 4, 4, 16), 112, {"stride": 4}),
    "convnext stem 4x4": ((8, 56, 56, 96), (96, 4, 4, 3), 224, {"stride": 4}),
    "vit patches 16x16": ((8, 14, 14, 768), (768, 16, 16, 3), 224, {"stride": 16}),
    "unet 4x4": ((8, 28, 28, 128), (128, 4, 4, 64), 56, {"stride": 2, "padding": 1}),
}
"""Shapes of dy and w, the input's size, and parameters."""


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("layer", LAYERS)
def test_strided_data_gradients(layer: str, target: str) -> None:
    dy, w, size, parameters = LAYERS[layer]

    def gradient(dy: Any, w: Any) -> Any:
        return mf.conv2d_dgrad(dy, w, input_size=size, **parameters)

    specs = mf.TensorSpec(dy, "float16"), mf.TensorSpec(w, "float16")
    compiled = mf.fuse(gradient, target=target).lower(*specs).compile(choose_again=False)
    assert len(compiled.binaries) == 1
    (launch,) = compiled.program.launches
    assert len(launch.outputs) == 1


def test_epilogue_of_a_strided_data_gradient() -> None:
    """A pending scale, a bias, an activation's mask and another gradient are read in the same launch."""

    def gradient(dy: Any, w: Any, scale: Any, bias: Any, x: Any, old: Any) -> Any:
        dx = mf.conv2d_dgrad(dy, w, input_size=56, stride=2, padding=1) * scale + bias
        return mf.where(x > 0, dx, 0) + old

    dy, w, *_ = LAYERS["resnet 3x3"]
    shapes = [dy, w, (64,), (64,), (8, 56, 56, 64), (8, 56, 56, 64)]
    specs = [mf.TensorSpec(shape, "float16") for shape in shapes]
    compiled = mf.fuse(gradient, target="sm_90a").lower(*specs).compile(choose_again=False)
    assert len(compiled.binaries) == 1


@pytest.mark.parametrize(("stride", "kernels"), [(4, 1), (5, 2)])
def test_zeros_beside_an_element(stride: int, kernels: int) -> None:
    """Threads store the zeros of a stride above the filter's size, up to a number."""

    def gradient(dy: Any, w: Any) -> Any:
        return mf.conv2d_dgrad(dy, w, input_size=20 * stride, stride=stride)

    specs = mf.TensorSpec((8, 20, 20, 64), "float16"), mf.TensorSpec((64, 1, 1, 32), "float16")
    compiled = mf.fuse(gradient, target="sm_90a").lower(*specs).compile(choose_again=False)
    assert len(compiled.binaries) == kernels
    assert ("would be stored with 24 zeros" in compiled.explain(verbose=True)) == (kernels == 2)


def test_few_channels_say_why_they_are_two_launches() -> None:
    def gradient(dy: Any, w: Any) -> Any:
        return mf.conv2d_dgrad(dy, w, input_size=32, stride=2, padding=1)

    specs = mf.TensorSpec((8, 16, 16, 64), "float16"), mf.TensorSpec((64, 3, 3, 4), "float16")
    compiled = mf.fuse(gradient, target="sm_90a").lower(*specs).compile(choose_again=False)
    assert len(compiled.binaries) == 2
    assert "gradient_0 stays apart from gradient_1: its rows lie apart in runs of 8 bytes" in compiled.explain(
        verbose=True
    )
