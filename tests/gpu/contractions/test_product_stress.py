"""Splits of products under stress, with every reduction of partial tiles: bits, semaphores, and failed launches."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

import mlirfuse as mf
from mlirfuse.errors import RuntimeLaunchError
from mlirfuse.runtime import workspace
from tests.support.contractions.products import REDUCTIONS, Product, pinned_schedule
from tests.support.gpu import stress
from tests.support.gpu.torch_arrays import torch

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

PRODUCT = Product(200, 136, 1032, "nt")
"""Ragged, and six tiles of 128 x 64."""

SPLIT = 4
FORMS = [(instruction, reduction) for instruction in ("wgmma", "mma") for reduction in REDUCTIONS]


def single(x: Any, w: Any) -> Any:
    """In single precision, whose bits show in which order parts were added."""
    return mf.matmul(x, w.mT, dtype=mf.float32)


def operands(seed: int) -> list[Any]:
    generator = torch.Generator("cuda").manual_seed(seed)
    shapes = ((PRODUCT.m, PRODUCT.k), (PRODUCT.n, PRODUCT.k))
    return [torch.randn(shape, device="cuda", generator=generator).bfloat16() for shape in shapes]


def check(results: stress.Tensors, tensors: stress.Tensors) -> None:
    x, w = tensors
    torch.testing.assert_close(results[0].double(), x.double() @ w.double().T, rtol=1e-4, atol=1e-3)


def split_product(instruction: str, reduction: str) -> mf.Fused:
    if instruction == "wgmma" and torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("no Hopper GPU")
    return mf.fuse(single, schedule=pinned_schedule(PRODUCT, 128, 64, SPLIT, reduction, instruction))


@pytest.fixture(scope="module", params=FORMS, ids="-".join)
def make_stress(request: pytest.FixtureRequest) -> stress.MakeStress:
    fused = split_product(*request.param)
    return lambda sets: stress.Stress(fused, [operands(seed) for seed in range(sets)], check)


STRESSES = (stress.back_to_back, stress.on_streams, stress.on_threads, stress.replayed, stress.graphs_beside_calls)


@pytest.mark.parametrize("act", STRESSES)
def test_stress(act: Callable[[stress.MakeStress], None], make_stress: stress.MakeStress) -> None:
    act(make_stress)


def test_threads_that_make_the_first_call_together() -> None:
    """One compiles, the others wait for it, and all launch, each on a stream of its own."""
    fused = split_product("mma", "last_block")
    arguments = [operands(seed) for seed in range(4)]
    torch.cuda.synchronize()
    start = Barrier(len(arguments))

    def first_call(tensors: stress.Tensors) -> Any:
        stream = torch.cuda.Stream()
        start.wait()
        with torch.cuda.stream(stream):
            result = fused(*tensors)
        stream.synchronize()
        return result

    with ThreadPoolExecutor(len(arguments)) as pool:
        results = list(pool.map(first_call, arguments))
    for result, tensors in zip(results, arguments, strict=True):
        check([result], tensors)
    assert not stress.semaphores_at_rest()


def two_products(x: Any, w: Any, v: Any) -> Any:
    return mf.matmul(x @ w.mT, v, dtype=mf.float32)


@pytest.mark.parametrize(("instruction", "reduction"), FORMS)
def test_a_call_that_fails_after_its_first_kernel(instruction: str, reduction: str) -> None:
    """The first product has run, the second is refused; what is in the semaphores then is not trusted."""
    schedule = split_product(instruction, reduction)._schedules["single_0"]
    fused = mf.fuse(two_products, schedule={"two_products_0": schedule})
    x, w = operands(0)
    v = torch.randn(PRODUCT.n, 64, device="cuda").bfloat16()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        expected = fused(x, w, v)
    stream.synchronize()
    exact = (x.double() @ w.double().T).bfloat16().double() @ v.double()
    torch.testing.assert_close(expected.double(), exact, rtol=2e-2, atol=2)
    (_, second) = sorted(next(iter(fused._loaded.values())))
    broken = stress.refused(fused, second)
    for _ in range(3):
        with pytest.raises(RuntimeLaunchError, match="two_products: the driver refuses the launch"):
            broken((x, w, v), stream=stream)
        semaphores = workspace.arena(0, stream.cuda_stream)._blocks["semaphores"]
        if semaphores.nbytes:  # a cluster needs none
            cupy.cuda.runtime.memsetAsync(semaphores.pointer, 0x55, semaphores.nbytes, stream.cuda_stream)
        with torch.cuda.stream(stream):
            again = fused(x, w, v)
        stream.synchronize()
        assert stress.same([again], [expected])
        assert not stress.semaphores_at_rest()
