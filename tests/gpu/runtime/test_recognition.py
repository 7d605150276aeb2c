"""Warm calls on real arrays: what is recognised gives the results of a first call, and nothing else is recognised."""

from __future__ import annotations

from typing import Any

import pytest

import mlirfuse as mf
from mlirfuse.errors import ArgumentError
from mlirfuse.runtime import recognition
from mlirfuse.runtime.device import cuda

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


def scaled(x: Any, w: Any) -> Any:
    return x * 2 + w


def warm(x: Any, w: Any) -> mf.Fused:
    """A function that knows calls with arrays like these."""
    fused = mf.fuse(scaled)
    for _ in range(3):
        fused(x, w)
    return fused


def recognises(fused: mf.Fused, *arrays: Any) -> bool:
    last = fused._dispatch._last
    return last is not None and last.recognise(arrays, None) is not None


def test_the_guards_of_this_pytorch_hold() -> None:
    assert recognition.guards_hold()


def test_guards_that_look_at_less_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    class Guards:
        def __init__(self, *tensors: Any, **_: object):
            self.ranks = [t.ndim for t in tensors]

        def check(self, *tensors: Any) -> bool:
            return [getattr(t, "ndim", None) for t in tensors] == self.ranks

    monkeypatch.setattr(torch._C._dynamo.guards, "TensorGuards", Guards)
    recognition.guards_hold.cache_clear()
    try:
        assert not recognition.guards_hold()
        x, w = torch.randn(8, 64, device="cuda"), torch.randn(64, device="cuda")
        assert not recognises(warm(x, w), x, w)
    finally:
        recognition.guards_hold.cache_clear()


def others(x: Any) -> dict[str, Any]:
    """Tensors that differ from one of (8, 64) in one thing each."""
    return {
        "rows": torch.randn(9, 64, device="cuda"),
        "strides": torch.randn(64, 8, device="cuda").t(),
        "gaps": torch.randn(8, 128, device="cuda")[:, :64],
        "broadcast": torch.randn(1, 64, device="cuda").expand(8, 64),
        "dtype": torch.randn(8, 64, device="cuda", dtype=torch.float64),
        "integers": torch.arange(512, device="cuda", dtype=torch.int32).view(8, 64),
        "unaligned": torch.randn(513, device="cuda")[1:].view(8, 64),
        "parameter": torch.nn.Parameter(torch.randn(8, 64, device="cuda"), requires_grad=False),
    }


def test_tensors_that_differ_in_one_thing() -> None:
    x, w = torch.randn(8, 64, device="cuda"), torch.randn(64, device="cuda")
    fused = warm(x, w)
    assert recognises(fused, x, w)
    for name, other in others(x).items():
        assert not recognises(fused, other, w), name
        got = fused(other, w)
        expected = other.detach() * 2 + w
        torch.testing.assert_close(got.to(expected.dtype), expected, msg=name)
        for _ in range(3):
            fused(x, w)
    torch.testing.assert_close(fused(x, w), x * 2 + w)


@pytest.mark.parametrize("make", [torch.nn.Parameter, lambda t: t.requires_grad_()], ids=["parameter", "tensor"])
def test_a_tensor_that_requires_grad(make: Any) -> None:
    """Refused while gradients are recorded, after calls without as well, and taken while they are not."""
    x, w = torch.randn(8, 64, device="cuda"), torch.randn(64, device="cuda")
    fused, wanted = warm(x, w), make(torch.randn(8, 64, device="cuda"))
    assert recognition.guards_hold()
    with torch.no_grad():
        for _ in range(4):
            torch.testing.assert_close(fused(wanted, w), wanted * 2 + w)
        assert recognises(fused, wanted, w)
    assert not recognises(fused, wanted, w)
    for _ in range(2):
        with pytest.raises(ArgumentError, match="x: the tensor requires grad"):
            fused(wanted, w)
        with pytest.raises(ArgumentError, match="out: the tensor requires grad"):
            fused(x, w, out=wanted)
    with torch.inference_mode():
        torch.testing.assert_close(fused(wanted, w), wanted * 2 + w)
    torch.testing.assert_close(fused(wanted.detach(), w), wanted.detach() * 2 + w)


def test_guards_are_asked_in_any_mode() -> None:
    for mode in (torch.no_grad, torch.inference_mode, torch.enable_grad):
        recognition.guards_hold.cache_clear()
        with mode():
            assert recognition.guards_hold()


def test_a_tensor_that_is_changed_in_place() -> None:
    """The same object with another shape, other strides, other memory, and lazily negated."""
    x, w = torch.randn(8, 64, device="cuda"), torch.randn(64, device="cuda")
    fused = warm(x, w)
    x.t_().t_()
    torch.testing.assert_close(fused(x, w), x * 2 + w)
    x.resize_(4, 64)
    torch.testing.assert_close(fused(x, w), x * 2 + w)
    x.data = torch.randn(64, 16, device="cuda").t()[:, :64]
    torch.testing.assert_close(fused(x, w), x * 2 + w)
    negated = torch._neg_view(torch.randn(16, 64, device="cuda"))
    fused = warm(torch.randn(16, 64, device="cuda"), w)
    assert not recognises(fused, negated, w)
    with pytest.raises(mf.MlirFuseError, match="negated"):
        fused(negated, w)


def test_arrays_of_cupy() -> None:
    x, w = cupy.random.rand(8, 64, dtype=cupy.float32), cupy.random.rand(64, dtype=cupy.float32)
    fused = warm(x, w)
    assert recognises(fused, x, w)
    for other in (x[:4], x.astype(cupy.float64), cupy.asfortranarray(x), cupy.random.rand(8, 128)[:, :64]):
        assert not recognises(fused, other, w)
        cupy.testing.assert_allclose(fused(other, w), other * 2 + w, rtol=1e-6)
        for _ in range(3):
            fused(x, w)
    cupy.testing.assert_allclose(fused(x, w), x * 2 + w, rtol=1e-6)


@pytest.mark.parametrize("is_private", [True, False])
def test_results_of_warm_calls_are_arrays_like_others(is_private: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made in two steps of CuPy's own where it has these; with memory of their own, which they give back."""
    if is_private:
        assert cuda._constructor() is not None
    else:
        monkeypatch.setattr(cuda, "_constructor", lambda: None)
    x, w = cupy.random.rand(8, 64, dtype=cupy.float32), cupy.random.rand(64, dtype=cupy.float32)
    fused, pool = warm(x, w), cupy.get_default_memory_pool()
    like, before = x * 2 + w, pool.used_bytes()
    result, other = fused(x, w), fused(x, w)
    assert type(result) is cupy.ndarray
    for name in ("shape", "strides", "dtype", "base", "size", "nbytes", "device"):
        assert getattr(result, name) == getattr(like, name)
    assert result.flags.c_contiguous
    assert result.flags.owndata
    assert result.data.ptr != other.data.ptr
    cupy.testing.assert_allclose(result, like, rtol=1e-6)
    cupy.testing.assert_allclose(cupy.asarray(torch.from_dlpack(result)).T.copy(), like.T, rtol=1e-6)
    del result, other
    assert pool.used_bytes() == before


def test_alternating_buffers() -> None:
    """Parameters are written where they differ from those of the call before."""
    xs, w = [torch.randn(8, 64, device="cuda") for _ in range(3)], torch.randn(64, device="cuda")
    out, fused = torch.empty_like(xs[0]), mf.fuse(scaled)
    for i in (0, 0, 0, 1, 1, 0, 2, 0):
        out.fill_(torch.nan)
        fused(xs[i], w, out=out)
        torch.testing.assert_close(out, xs[i] * 2 + w)


def test_numbers_beside_arrays() -> None:
    x = torch.randn(8, 64, device="cuda")
    fused = mf.fuse(lambda x, a: x * a)
    for a in (1.0, 2.0, 3.0, 4.0):
        torch.testing.assert_close(fused(x, a), x * a)
