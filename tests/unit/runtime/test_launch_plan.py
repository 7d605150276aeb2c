"""Launch plans and dispatch against a driver that only notes what it is given."""

from __future__ import annotations

import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from mlirfuse.compiler.kernel_info import kernel_infos
from mlirfuse.compiler.read_host import host_program
from mlirfuse.errors import ArgumentError, IRError, RuntimeLaunchError
from mlirfuse.lowering.ptx.to_ptx import KernelBinary
from mlirfuse.runtime.device import cuda
from mlirfuse.runtime.device.module import LoadedKernel, load
from mlirfuse.runtime.dispatch import Dispatcher
from mlirfuse.target import TARGETS, target_of
from tests.support.fakes.fake_driver import dispatcher, ndarray, x_and_y
from tests.support.harnesses.lowering_harness import SCALE, TRANSPOSED, VIEWS, lower

TWO_KERNELS = SCALE.replace(
    "  return %0 : tensor<?x512xf32>",
    """  %1 = call @scale_0(%0, %x, %factor) : (tensor<?x512xf32>, tensor<?x512xf32>, f64) -> tensor<?x512xf32>
  return %1 : tensor<?x512xf32>""",
)


def test_launch_into_a_new_array(driver):
    run = dispatcher(driver)
    x, y = x_and_y()
    (result,) = run((x, y, 2.5))
    assert (result.shape, result.dtype, result.data.ptr) == ((6, 512), np.float32, 1 << 30)
    assert driver.launches == [(1, 6, 128, 0, 5, [1 << 24, 6, (1 << 24) + (1 << 20), 6, 2.5, 1 << 30, 6])]


def test_a_warm_call_prepares_nothing_and_takes_new_pointers_and_numbers(driver):
    run = dispatcher(driver)
    x, y = x_and_y()
    run((x, y, 2.5))
    run((y, x, 0.5))
    run((*x_and_y(rows=7), 0.5))
    assert len(run.prepared) == 2
    assert [launch[5][0] for launch in driver.launches] == [x.data.ptr, y.data.ptr, x.data.ptr]
    assert [launch[5][4] for launch in driver.launches] == [2.5, 0.5, 0.5]
    assert [launch[1] for launch in driver.launches] == [6, 6, 7]


def test_out_and_stream(driver):
    run = dispatcher(driver)
    x, y = x_and_y()
    out = ndarray((6, 512), 1 << 26)
    for stream in (SimpleNamespace(ptr=17), SimpleNamespace(cuda_stream=17), 17):
        assert run((x, y, 1.0), out=out, stream=stream) is out
    assert [(launch[4], launch[5][5]) for launch in driver.launches] == [(17, 1 << 26)] * 3


def test_the_current_stream_is_that_of_the_arrays_device(driver):
    x, y = (ndarray((6, 512), pointer, device=1) for pointer in (1 << 24, 1 << 25))
    dispatcher(driver, device=1)((x, y, 1.0))
    assert driver.launches[0][4] == 6


def test_a_number_that_only_equals_the_last_one_is_written(driver):
    run = dispatcher(driver)
    for number in (0.0, -0.0):
        run((*x_and_y(), number), out=ndarray((6, 512), 1 << 26))
    assert [np.signbit(launch[5][4]) for launch in driver.launches] == [False, True]


def test_a_call_during_another_one_has_parameters_of_its_own(driver):
    """As another thread's may be, while the driver copies them."""
    run, launch = dispatcher(driver), driver.launchKernel
    x, y = x_and_y()
    out, other = ndarray((6, 512), 1 << 26), ndarray((6, 512), 1 << 27)
    meanwhile = [lambda: run((y, x, 2.0), out=other)]

    def interrupted(*arguments):
        if meanwhile:
            meanwhile.pop()()
        launch(*arguments)

    driver.launchKernel = interrupted
    run((x, y, 1.0), out=out)
    second, first = [launch[5] for launch in driver.launches]
    assert first == [x.data.ptr, 6, y.data.ptr, 6, 1.0, out.data.ptr, 6]
    assert second == [y.data.ptr, 6, x.data.ptr, 6, 2.0, other.data.ptr, 6]


def test_each_plan_keeps_the_structure_of_its_results(driver):
    run = dispatcher(driver, structure=lambda infos: "single" if infos[0].shape[0] == 6 else "list")
    for _ in range(2):
        assert isinstance(run((*x_and_y(rows=6), 1.0)), ndarray)
        assert isinstance(run((*x_and_y(rows=7), 1.0)), list)


def test_no_rows_launch_nothing(driver):
    (result,) = dispatcher(driver)((*x_and_y(rows=0), 1.0))
    assert result.shape == (0, 512)
    assert driver.launches == []


BESIDE = """
gpu.module @beside {
  gpu.func @beside(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %w: memref<128xf32>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>, fuse.grid = affine_map<()[s0] -> (s0)>,
                         fuse.grid_operands = array<i64: 0, 0>} { gpu.return }
}
func.func @f(%x: tensor<?x128xf32>) -> (tensor<?x128xf32>, tensor<128xf32>) {
  %0:2 = call @f_0(%x) : (tensor<?x128xf32>) -> (tensor<?x128xf32>, tensor<128xf32>)
  return %0#0, %0#1 : tensor<?x128xf32>, tensor<128xf32>
}
func.func private @f_0(tensor<?x128xf32>) -> (tensor<?x128xf32>, tensor<128xf32>)
    attributes {fuse.launch = @beside, fuse.result_extents = array<i64: 0, 0>}
"""


def test_a_result_with_elements_that_no_block_would_write(driver):
    """Calls of fused functions are compiled for no rows; a kernel for any number of them is not run for none."""
    run = dispatcher(driver, BESIDE)
    assert [result.shape for result in run((ndarray((3, 128), 1 << 20),))] == [(3, 128), (128,)]
    with pytest.raises(IRError, match="beside has no blocks for these extents, but its results have elements"):
        run((ndarray((0, 128), 1 << 20),))


NOTHING = """
func.func @f(%x: tensor<0x?xf32>) -> (tensor<0x?xf32>, tensor<0x?xf32>) {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c1 : tensor<0x?xf32>
  %e = tensor.empty(%n) : tensor<0x?xf32>
  return %e, %e : tensor<0x?xf32>, tensor<0x?xf32>
}
"""


def test_arrays_without_elements_are_returned(driver):
    """Each is an array of its own, and `out` may name it."""
    run, x = dispatcher(driver, NOTHING), ndarray((0, 5), 1 << 20)
    assert [result.shape for result in run((x,))] == [(0, 5), (0, 5)]
    out = ndarray((0, 5), 1 << 21), ndarray((0, 5), 1 << 22)
    assert run((x,), out=out) is out
    assert driver.launches == []


def test_a_returned_array_with_elements_must_be_written():
    text = "func.func @f() -> tensor<2xf32> { %e = tensor.empty() : tensor<2xf32>\n return %e : tensor<2xf32> }"
    with pytest.raises(IRError, match="tensor.empty has elements, which no kernel writes"):
        host_program(lower(text).operation)


def test_intermediates_are_allocated_once_a_stream(driver):
    run = dispatcher(driver, TWO_KERNELS)
    x, y = x_and_y()
    out = ndarray((6, 512), 1 << 26)
    for stream in (1, 1, 2):
        run((x, y, 1.0), out=out, stream=stream)
    written = [launch[5][5] for launch in driver.launches]
    assert written[1::2] == [1 << 26] * 3
    assert written[0] == written[2] != written[4]
    assert [launch[5][0] for launch in driver.launches[1::2]] == written[::2]


def test_a_captured_stream_gets_intermediates_of_its_own(driver):
    run = dispatcher(driver, TWO_KERNELS)
    x, y = x_and_y()
    out = ndarray((6, 512), 1 << 26)
    for driver.runtime.capture in (1, 1, 2):
        run((x, y, 1.0), out=out, stream=99)
    run((x, y, 1.0), out=out, stream=98)
    first, again, second, eager = [launch[5][5] for launch in driver.launches[::2]]
    assert first == again
    assert len({first, second, eager}) == 3


def test_a_stream_whose_pointer_another_one_had(driver):
    run = dispatcher(driver, TWO_KERNELS)
    x, y = x_and_y()
    for driver.runtime.identities[3] in (11, 11, 12):
        run((x, y, 1.0), stream=3)
    first, second, third = [launch[5][5] for launch in driver.launches[::2]]
    assert first == second != third
    assert driver.runtime.freed == [first]


def test_views_launch_nothing(driver):
    x = ndarray((6, 512), 1 << 24)
    flat, same = dispatcher(driver, VIEWS)((x,))
    assert (flat.shape, flat.data.ptr) == ((3072,), x.data.ptr)
    assert same is x
    assert driver.launches == []


def test_view_of_strided_memory_is_not_misread(driver):
    x = ndarray((6, 512), 1 << 24, strides=(4, 24))
    text = SCALE.replace(
        "  %0 = call @scale_0(%x, %y",
        """  %c0 = arith.constant 0 : index
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<?x512xf32> into tensor<?xf32>
  %n = tensor.dim %x, %c0 : tensor<?x512xf32>
  %again = tensor.expand_shape %flat [[0, 1]] output_shape [%n, 512] : tensor<?xf32> into tensor<?x512xf32>
  %0 = call @scale_0(%again, %y""",
    )
    with pytest.raises(ArgumentError, match=r"x: the program reshapes an array with strides \(1, 6\)"):
        dispatcher(driver, text)((x, x_and_y()[1], 1.0))


def test_a_transposed_result_is_a_view_of_what_the_kernel_writes(driver):
    run = dispatcher(driver, TRANSPOSED)
    (result,) = run((*x_and_y(), 1.0))
    assert (result.shape, result.strides) == ((512, 6), (4, 2048))
    assert driver.launches[0][5][5] == result.data.ptr
    out = ndarray((512, 6), 1 << 26, strides=(4, 2048))
    assert run((*x_and_y(), 1.0), out=out) is out
    assert driver.launches[1][5][5] == 1 << 26


@pytest.mark.parametrize("argument", [[1.0], np.zeros(3), object()])
def test_an_argument_that_is_no_array_is_named(driver, argument):
    with pytest.raises(ArgumentError, match=r"^y: "):
        dispatcher(driver)((x_and_y()[0], argument, 1.0))


def test_stream_that_is_none(driver):
    with pytest.raises(ArgumentError, match="stream: 'default' is no stream"):
        dispatcher(driver)((*x_and_y(), 1.0), stream="default")


def test_arrays_and_kernels_on_different_devices(driver):
    with pytest.raises(ArgumentError, match="arrays are on device 0, scale_kernel is loaded on 1"):
        dispatcher(driver, device=1)((*x_and_y(), 1.0))


def test_the_driver_refuses(driver):
    run = dispatcher(driver)
    driver.errors = ["CUDA_ERROR_INVALID_VALUE: invalid argument"]
    with pytest.raises(RuntimeLaunchError, match=r"scale: the driver refuses the launch: CUDA_ERROR_INVALID_VALUE"):
        run((*x_and_y(), 1.0))


def test_a_thread_without_a_context_gets_one(driver):
    """Whether its call is the first of a signature, or a warm one."""
    run = dispatcher(driver)
    for _ in range(2):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(run, (*x_and_y(), 1.0)).result()
    assert len(driver.launches) == 2


def test_a_new_thread_asks_how_many_blocks_are_resident(driver):
    kernel = LoadedKernel(next(iter(kernel_infos(lower(SCALE).operation).values())), 1, 0, None)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(kernel.resident_blocks, 2).result() == 2 * 132


def test_a_kernel_stays_loaded_when_nothing_refers_to_it(driver, monkeypatch):
    """A graph may still launch it. What is loaded again is what was loaded."""
    monkeypatch.setenv("MLIRFUSE_ASSEMBLER", "driver")
    info = next(iter(kernel_infos(lower(SCALE).operation).values()))
    binaries = [KernelBinary(info.name, target_of("sm_90a"), ptx) for ptx in ("// 1", "// 2", "// 1")]
    loaded = [load(binary, info, 0).function for binary in binaries]
    assert loaded == [1, 2, 1]
    assert load(binaries[0], info, 1).function == 3, "another device"
    gc.collect()
    assert driver.unloaded == []


def test_a_kernel_that_is_not_there(driver):
    program = host_program(lower(SCALE).operation)
    with pytest.raises(IRError, match="there is no kernel scale_kernel"):
        Dispatcher(lambda infos: (program, {}), "xyz")((*x_and_y(), 1.0))


def test_a_number_of_the_wrong_kind(driver):
    with pytest.raises(IRError, match=r"argument 2 of scale_kernel is passed as 'd', the call gives 'q'"):
        dispatcher(driver)((*x_and_y(), 1))


@pytest.mark.parametrize("number", [1 << 63, -(1 << 63) - 1])
def test_a_number_that_no_parameter_holds(driver, number):
    run = dispatcher(driver, SCALE.replace("f64", "i64").replace("arith.truncf %factor", "arith.sitofp %factor"))
    run((*x_and_y(), 2))
    with pytest.raises(ArgumentError, match=f"arg2: {number} does not fit i64\n  hint: give a float"):
        run((*x_and_y(), number))
    assert len(driver.launches) == 1


def test_no_cupy(monkeypatch):
    cuda.cupy.cache_clear()
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(RuntimeLaunchError, match="launching a kernel needs CuPy"):
        cuda.cupy()


@pytest.mark.parametrize(
    ("capability", "chip"),
    [(80, "sm_80"), (86, "sm_86"), (87, "sm_87"), (88, "sm_88"), (89, "sm_89"), (90, "sm_90a"), (100, "sm_100a"),
     (103, "sm_103a"), (110, "sm_110a"), (120, "sm_120a"), (121, "sm_121a")],
)  # fmt: skip
def test_target_for_a_device(capability, chip):
    assert cuda.chip_for(capability, {}.__getitem__) == chip, "its limits need not be asked"


@pytest.mark.parametrize(
    ("capability", "as_if", "chip"),
    [(85, "sm_80", "sm_80"), (107, "sm_100", "sm_103"), (122, "sm_121", "sm_121"),
     (122, "sm_86", "sm_88"), (122, "sm_87", "sm_88"), (130, "sm_103", "sm_121"), (130, "sm_90", "sm_121")],
)  # fmt: skip
def test_target_for_a_device_that_is_not_known(capability, as_if, chip):
    """One that asks for no more threads, blocks and shared memory than the device says it has."""
    device = TARGETS[as_if]
    found = TARGETS[cuda.chip_for(capability, lambda name: getattr(device, name))]
    assert found.chip == chip
    assert found.shared_per_block <= device.shared_per_block


def test_a_device_with_less_than_every_target():
    with pytest.raises(RuntimeLaunchError, match=r"compute capability 9\.9 is not supported"):
        cuda.chip_for(99, lambda name: 1)


def test_a_device_that_is_too_old():
    with pytest.raises(RuntimeLaunchError, match=r"compute capability 7\.5 is not supported\n.*oldest is 8\.0"):
        cuda.chip_for(75, lambda name: 1 << 20)
