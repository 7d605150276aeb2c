"""gpu-stage text to what the lowering makes of it; shared by the tests of lowering and runtime."""

from __future__ import annotations

from mlir import ir

from mlirfuse.compiler.context import make_context
from mlirfuse.compiler.kernel_info import KernelInfo, kernel_infos
from mlirfuse.compiler.pipeline import LOWER, stage
from mlirfuse.dialect.module_target import set_target
from mlirfuse.lowering.ptx import to_ptx
from mlirfuse.lowering.ptx.to_ptx import KernelBinary
from mlirfuse.passmanager.manager import Pipeline
from mlirfuse.support.diagnostics import parse_module
from mlirfuse.target import target_of

SCALE = """
gpu.module @scale_kernel {
  gpu.func @scale_kernel(%x: memref<?x512xf32> {fuse.align = 16 : i64}, %y: memref<?x512xf32>, %factor: f64,
                         %out: memref<?x512xf32>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>,
                         fuse.grid = affine_map<()[s0] -> (s0)>, fuse.grid_operands = array<i64: 0, 0>} {
    %c4 = arith.constant 4 : index
    %t = gpu.thread_id x
    %row = gpu.block_id x
    %col = arith.muli %t, %c4 : index
    %a = vector.load %x[%row, %col] {alignment = 16 : i64, nontemporal = true} : memref<?x512xf32>, vector<4xf32>
    %b = vector.load %y[%row, %col] {alignment = 16 : i64} : memref<?x512xf32>, vector<4xf32>
    %factor32 = arith.truncf %factor : f64 to f32
    %factors = vector.broadcast %factor32 : f32 to vector<4xf32>
    %scaled = arith.mulf %a, %factors : vector<4xf32>
    %sum = arith.addf %scaled, %b : vector<4xf32>
    vector.store %sum, %out[%row, %col] {alignment = 16 : i64, nontemporal = true} : memref<?x512xf32>, vector<4xf32>
    gpu.return
  }
}
func.func @scale(%x: tensor<?x512xf32> {fuse.name = "x"}, %y: tensor<?x512xf32> {fuse.name = "y"}, %factor: f64)
    -> tensor<?x512xf32> {
  %0 = call @scale_0(%x, %y, %factor) : (tensor<?x512xf32>, tensor<?x512xf32>, f64) -> tensor<?x512xf32>
  return %0 : tensor<?x512xf32>
}
func.func private @scale_0(tensor<?x512xf32>, tensor<?x512xf32>, f64) -> tensor<?x512xf32>
    attributes {fuse.launch = @scale_kernel, fuse.result_extents = array<i64: 0, 0>}
"""
VIEWS = """
func.func @views(%x: tensor<?x512xf32> {fuse.name = "x"}) -> (tensor<?xf32>, tensor<?x512xf32>) {
  %0 = tensor.collapse_shape %x [[0, 1]] : tensor<?x512xf32> into tensor<?xf32>
  return %0, %x : tensor<?xf32>, tensor<?x512xf32>
}
"""
TRANSPOSED = SCALE.replace(
    "  return %0 : tensor<?x512xf32>",
    """  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x512xf32>
  %e = tensor.empty(%m) : tensor<512x?xf32>
  %t = linalg.transpose ins(%0 : tensor<?x512xf32>) outs(%e : tensor<512x?xf32>) permutation = [1, 0]
  return %t : tensor<512x?xf32>""",
).replace("-> tensor<?x512xf32> {", "-> tensor<512x?xf32> {")
"""`x * factor + y` with its host function."""


def lower(text: str, chip: str = "sm_90a", first: str = "") -> ir.Module:
    """The module, run through the passes `first` and every pass before NVVM."""
    module = parse_module(text, make_context())
    set_target(module.operation, target_of(chip))
    Pipeline.parse(stage(",".join(filter(None, [first.replace("{", "{{").replace("}", "}}"), LOWER])))).run(module)
    return module


def compile_text(
    text: str, chip: str = "sm_90a", first: str = ""
) -> tuple[dict[str, KernelBinary], dict[str, KernelInfo], ir.Module]:
    """(PTX, launch information) of every kernel, and the lowered module; `first` takes the text to the gpu stage."""
    module = lower(text, chip, first)
    infos = kernel_infos(module.operation)
    to_ptx.to_nvvm(module.operation)
    return to_ptx.ptx(module.operation, target_of(chip)), infos, module


def one_kernel(body: str, arguments: str = "%x: memref<?xf32>, %y: memref<?xf32>") -> str:
    """A gpu-stage module with one kernel `k` of 128 threads, whose body may use the thread's number `%t` and `%c0`."""
    return f"""gpu.module @k {{
      gpu.func @k({arguments}) kernel attributes {{known_block_size = array<i32: 128, 1, 1>,
          fuse.grid = affine_map<()[s0] -> (s0 ceildiv 128)>, fuse.grid_operands = array<i64: 0, 0>}} {{
        %t = gpu.thread_id x
        %c0 = arith.constant 0 : index
        {body}
        gpu.return
      }}
    }}"""


EXP = one_kernel("""
    %v = memref.load %x[%t] : memref<?xf32>
    %e = math.exp %v : f32
    memref.store %e, %y[%t] : memref<?xf32>""")
COPY = one_kernel("""
    %v = memref.load %x[%t] : memref<?xf32>
    memref.store %v, %y[%t] : memref<?xf32>""")
