"""Hand-written gpu-stage kernels, launched: the runtime without the compiler's front."""

from __future__ import annotations

import threading
from types import ModuleType

import numpy as np
import pytest

from mlirfuse.compiler.read_host import host_program
from mlirfuse.errors import ArgumentError
from mlirfuse.lowering.ptx.assembler import assemble
from mlirfuse.runtime.device import cuda
from mlirfuse.runtime.device.module import driver_resources, load
from mlirfuse.runtime.dispatch import Dispatcher
from tests.support.harnesses.lowering_harness import SCALE, compile_text

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

TWICE = SCALE.replace(
    "  return %0 : tensor<?x512xf32>",
    """  %1 = call @scale_0(%0, %x, %factor) : (tensor<?x512xf32>, tensor<?x512xf32>, f64) -> tensor<?x512xf32>
  return %1 : tensor<?x512xf32>""",
)

CLUSTER = """
#shared = #gpu.address_space<workgroup>
gpu.module @ring {
  gpu.func @ring(%x: memref<?xf32>, %y: memref<?xf32>) workgroup(%s : memref<32xf32, #shared>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>, known_cluster_size = array<i32: 4, 1, 1>,
                         fuse.grid = affine_map<()[s0] -> (s0 floordiv 32)>, fuse.grid_operands = array<i64: 0, 0>} {
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c32 = arith.constant 32 : index
    %t = gpu.thread_id x
    %block = gpu.block_id x
    %rank = gpu.cluster_block_id x
    %base = arith.muli %block, %c32 : index
    %i = arith.addi %base, %t : index
    %v = memref.load %x[%i] : memref<?xf32>
    %next = arith.addi %rank, %c1 : index
    %to = arith.andi %next, %c3 : index
    "fuse.cluster_barrier"() : () -> ()
    "fuse.cluster_store"(%v, %s, %t, %to) : (f32, memref<32xf32, #shared>, index, index) -> ()
    "fuse.cluster_barrier"() : () -> ()
    %w = memref.load %s[%t] : memref<32xf32, #shared>
    memref.store %w, %y[%i] : memref<?xf32>
    gpu.return
  }
}
func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = call @f_0(%x) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @f_0(tensor<?xf32>) -> tensor<?xf32>
    attributes {fuse.launch = @ring, fuse.result_extents = array<i64: 0, 0>}
"""

# Writes 100 KB of shared memory, which is more than the static limit, and reads it back reversed.
SHARED = """
#shared = #gpu.address_space<workgroup>
gpu.module @reverse {
  gpu.func @reverse(%x: memref<25600xf32>, %y: memref<25600xf32>) workgroup(%s : memref<25600xf32, #shared>)
      kernel attributes {known_block_size = array<i32: 256, 1, 1>, fuse.grid = affine_map<() -> (1)>,
                         fuse.grid_operands = array<i64>} {
    %c0 = arith.constant 0 : index
    %c256 = arith.constant 256 : index
    %n = arith.constant 25600 : index
    %last = arith.constant 25599 : index
    %t = gpu.thread_id x
    scf.for %i = %t to %n step %c256 {
      %v = memref.load %x[%i] : memref<25600xf32>
      memref.store %v, %s[%i] : memref<25600xf32, #shared>
    }
    gpu.barrier
    scf.for %i = %t to %n step %c256 {
      %j = arith.subi %last, %i : index
      %v = memref.load %s[%j] : memref<25600xf32, #shared>
      memref.store %v, %y[%i] : memref<25600xf32>
    }
    gpu.return
  }
}
func.func @f(%x: tensor<25600xf32>) -> tensor<25600xf32> {
  %0 = call @f_0(%x) : (tensor<25600xf32>) -> tensor<25600xf32>
  return %0 : tensor<25600xf32>
}
func.func private @f_0(tensor<25600xf32>) -> tensor<25600xf32>
    attributes {fuse.launch = @reverse, fuse.result_extents = array<i64>}
"""


def dispatcher(text: str) -> Dispatcher:
    binaries, infos, module = compile_text(text, cuda.chip(0))
    program = host_program(module.operation)
    kernels = {name: load(binary, infos[name], 0) for name, binary in binaries.items()}
    return Dispatcher(lambda arguments: (program, kernels), [argument.name for argument in program.arguments])


@pytest.fixture(scope="module")
def scale() -> Dispatcher:
    return dispatcher(SCALE)


@pytest.fixture
def torch() -> ModuleType:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch has no CUDA")
    return torch


def random(rows: int) -> cupy.ndarray:
    return cupy.random.standard_normal((rows, 512), dtype=cupy.float32)


@pytest.mark.parametrize("rows", [0, 1, 7, 1000])
def test_new_array(scale, rows):
    x, y = random(rows), random(rows)
    (result,) = scale((x, y, 1.5))
    assert isinstance(result, cupy.ndarray)
    np.testing.assert_allclose(result.get(), x.get() * np.float32(1.5) + y.get(), rtol=1e-6, atol=1e-6)


def test_out_is_written_everywhere_and_only_there(scale):
    x, y = random(9), random(9)
    memory = cupy.full((11, 512), np.nan, np.float32)
    result = scale((x, y, 2.0), out=memory[1:10])
    assert result.data.ptr == memory.data.ptr + 2048
    np.testing.assert_allclose(memory[1:10].get(), x.get() * 2 + y.get(), rtol=1e-6, atol=1e-6)
    assert cupy.isnan(memory[0]).all()
    assert cupy.isnan(memory[10]).all()


def test_torch_in_torch_out_on_torch_s_stream(scale, torch):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x = torch.randn(64, 512, device="cuda")
        y = torch.randn(64, 512, device="cuda")
        (result,) = scale((x, y, 0.5))
        expected = x * 0.5 + y
    stream.synchronize()
    assert isinstance(result, torch.Tensor)
    torch.testing.assert_close(result, expected)


def test_torch_parameter(scale, torch):
    x = torch.nn.Parameter(torch.randn(4, 512, device="cuda"))
    with torch.no_grad():
        (result,) = scale((x, x.detach(), 1.0))
    torch.testing.assert_close(result, x.detach() * 2)


def test_explicit_streams(scale, torch):
    x, y = random(16), random(16)
    cupy.cuda.Device().synchronize()
    for stream in (cupy.cuda.Stream(non_blocking=True), torch.cuda.Stream(), cupy.cuda.Stream.null.ptr):
        (result,) = scale((x, y, 3.0), stream=stream)
        cupy.cuda.Device().synchronize()
        np.testing.assert_allclose(result.get(), x.get() * 3 + y.get(), rtol=1e-6, atol=1e-6)


def test_overlapping_out_is_refused(scale):
    x = random(8)
    with pytest.raises(ArgumentError, match="overlaps an argument"):
        scale((x, random(8), 1.0), out=x)


def test_host_arrays_are_refused(scale, torch):
    with pytest.raises(ArgumentError, match="x: ndarray is not on a CUDA device"):
        scale((np.zeros((2, 512), np.float32), random(2), 1.0))
    with pytest.raises(ArgumentError, match="y: the tensor is on"):
        scale((random(2), torch.zeros(2, 512), 1.0))


def test_intermediate():
    run = dispatcher(TWICE)
    for _ in range(3):
        x, y = random(33), random(33)
        (result,) = run((x, y, 2.0))
        np.testing.assert_allclose(result.get(), (x.get() * 2 + y.get()) * 2 + x.get(), rtol=1e-5, atol=1e-5)


def test_graph_capture(torch):
    run = dispatcher(TWICE)
    x, y, out = (torch.randn(128, 512, device="cuda") for _ in range(3))
    run((x, y, 2.0), out=out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run((x, y, 2.0), out=out)
    x.normal_()
    out.zero_()
    graph.replay()
    torch.testing.assert_close(out, (x * 2 + y) * 2 + x)


def test_threads(scale):
    """Calls of one plan from several threads do not mix up their parameters."""
    inputs = [(random(50), random(50), float(i)) for i in range(8)]
    results: list[list[cupy.ndarray]] = [[] for _ in inputs]

    def call(i: int) -> None:
        for _ in range(200):
            results[i].append(scale(inputs[i])[0])
            del results[i][:-5]

    threads = [threading.Thread(target=call, args=(i,)) for i in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for (x, y, factor), made in zip(inputs, results, strict=True):
        for result in made:
            np.testing.assert_allclose(result.get(), x.get() * np.float32(factor) + y.get(), rtol=1e-5, atol=1e-5)


def test_large_dynamic_shared_memory():
    x = cupy.random.standard_normal(25600, dtype=cupy.float32)
    (result,) = dispatcher(SHARED)((x,))
    np.testing.assert_array_equal(result.get(), x.get()[::-1])


@pytest.mark.skipif(int(cupy.cuda.Device(0).compute_capability) < 90, reason="needs clusters")
def test_cluster():
    x = cupy.random.standard_normal(8 * 128, dtype=cupy.float32)
    (result,) = dispatcher(CLUSTER)((x,))
    expected = np.roll(x.get().reshape(8, 4, 32), 1, axis=1).reshape(-1)
    np.testing.assert_array_equal(result.get(), expected)


def test_driver_agrees_with_ptxas_on_resources():
    chip = cuda.chip(0)
    binaries, infos, _ = compile_text(SCALE, chip)
    binary = binaries["scale_kernel"]
    loaded = driver_resources(load(binary, infos["scale_kernel"], 0))
    assembled = assemble(binary)
    assert (loaded.stack_bytes, loaded.shared_bytes, loaded.block) == (0, 0, 128)
    assert abs(loaded.registers - assembled.registers) <= 4  # two versions of ptxas
