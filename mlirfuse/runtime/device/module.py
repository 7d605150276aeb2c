"""Loads kernels into the driver: as machine code where there is an assembler, else as PTX."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from mlirfuse.compiler.kernel_info import KernelInfo
from mlirfuse.errors import RuntimeLaunchError
from mlirfuse.lowering.ptx.assembler import DRIVER, assemble_kernel, assemble_kernels, chosen_assembler, driver_release
from mlirfuse.lowering.ptx.miscompilations import warn_of_driver
from mlirfuse.lowering.ptx.resources import KernelResources
from mlirfuse.lowering.ptx.to_ptx import KernelBinary
from mlirfuse.runtime.device import driver
from mlirfuse.runtime.device.cuda import SM_COUNT, capability, cupy, on_device

# CUfunction_attribute, of the CUDA driver API
_SHARED_BYTES, _LOCAL_BYTES, _REGISTERS, _MAX_DYNAMIC_SHARED_BYTES = 1, 3, 4, 8

_MODULES: dict[tuple[int, bytes], Any] = {}
"""Every module that was loaded, by device and digest of its code."""


@dataclass(frozen=True)
class LoadedKernel:
    """A kernel on a device, ready to launch.

    Attributes:
        info: how to launch it.
        function: its `CUfunction`, as an integer.
        device: the CUDA device it is loaded on.
        owner: its `cupy.cuda.function.Module`.
    """

    info: KernelInfo
    function: int
    device: int
    owner: object

    def resident_blocks(self, per_sm: int) -> int:
        """How many of its blocks the device holds at once, with at most `per_sm` on each SM.

        Raises:
            RuntimeLaunchError: not even one block fits.
        """
        cuda, info = cupy().cuda, self.info
        with on_device(self.device):
            sms = cuda.runtime.deviceGetAttribute(SM_COUNT, self.device)
            fitting = cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
                self.function, info.block, info.dynamic_shared_bytes
            )
            blocks = sms * min(per_sm, fitting)
            if info.cluster > 1:
                # A cluster stays within one GPC of the device, and clusters need not fill a GPC.
                clusters = driver.max_active_clusters(
                    self.function, info.block, info.cluster, info.dynamic_shared_bytes
                )
                blocks = min(blocks, clusters * info.cluster)
        if blocks < info.cluster:
            raise RuntimeLaunchError("not one block of the kernel fits an SM", where=info.name)
        return blocks


def load(binary: KernelBinary, info: KernelInfo, device: int) -> LoadedKernel:
    """Loads a kernel on a device, as the chosen assembler assembles it. Without one the driver assembles the PTX.

    Both keep the result in a cache on disk.

    A kernel stays loaded until the process ends, as a graph may launch it after the function that it was captured from
    is gone. A kernel that needs dynamic shared memory opts in here. The shape of clusters is in the PTX.

    Raises:
        CompileError: the assembler refuses the PTX.
        RuntimeLaunchError: there is no GPU, or the driver refuses the code or the shared memory.
    """
    function, module = load_function(binary, device, info.dynamic_shared_bytes)
    return LoadedKernel(info, function, device, module)


def load_function(binary: KernelBinary, device: int, dynamic_shared_bytes: int = 0) -> tuple[int, object]:
    """The same of a kernel of which nothing but its code is known: its `CUfunction`, and what keeps it loaded.

    Args:
        binary: the kernel.
        device: the CUDA device.
        dynamic_shared_bytes: dynamic shared memory that it needs.

    Raises:
        CompileError, RuntimeLaunchError: as of `load`.
    """
    cuda = cupy().cuda
    code = _code(binary, capability(device))
    try:
        with on_device(device):
            module = _module(code, device)
            function = module.get_function(binary.name)
            if dynamic_shared_bytes:
                cuda.driver.funcSetAttribute(function.ptr, _MAX_DYNAMIC_SHARED_BYTES, dynamic_shared_bytes)
    except cuda.driver.CUDADriverError as error:
        raise RuntimeLaunchError(
            f"the driver refuses to load the kernel, compiled for {binary.target.chip}: {error}",
            where=binary.name,
            hint="compile for this device's architecture, and check that the driver is as new as the code",
        ) from error
    return function.ptr, module


def assemble_ahead(binaries: Iterable[KernelBinary]) -> None:
    """Assembles the kernels of a function at the same time, where there is an assembler; `load` then finds them."""
    assemble_kernels(binary for binary in binaries if chosen_assembler(binary.target).kind != DRIVER)


def _code(binary: KernelBinary, device_capability: int) -> bytes:
    """The code of a kernel for the driver: a cubin, or PTX for the driver's compiler.

    A cubin loads only on devices of its architecture; PTX also on later ones.
    """
    assembler = chosen_assembler(binary.target)
    if assembler.kind == DRIVER or binary.target.capability != device_capability:
        warn_of_driver(driver_release(), binary.target)
        return binary.ptx.encode()
    return assemble_kernel(binary, assembler).cubin


def _module(code: bytes, device: int) -> Any:
    """The module of a cubin or PTX on a device, which must be current; the one loaded before, where there is one."""
    key = (device, sha256(code).digest())
    if key not in _MODULES:
        module = cupy().cuda.function.Module()
        module.load(code)
        return _MODULES.setdefault(key, module)  # another thread may have loaded the module meanwhile
    return _MODULES[key]


def driver_resources(kernel: LoadedKernel) -> KernelResources:
    """The driver's report of a loaded kernel; unlike that of ptxas it does not separate spills from other local
    memory.
    """
    driver = cupy().cuda.driver
    return KernelResources(
        name=kernel.info.name,
        registers=driver.funcGetAttribute(_REGISTERS, kernel.function),
        spill_store_bytes=None,
        spill_load_bytes=None,
        stack_bytes=driver.funcGetAttribute(_LOCAL_BYTES, kernel.function),
        shared_bytes=driver.funcGetAttribute(_SHARED_BYTES, kernel.function),
        barriers=None,
        block=kernel.info.block,
        cluster=kernel.info.cluster,
    )
