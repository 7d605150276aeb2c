"""What the launcher reads off a lowered kernel."""

from __future__ import annotations

import pytest

from mlirfuse.compiler.expressions import Binary, Constant, Symbol
from mlirfuse.compiler.kernel_info import AbiParameter, kernel_infos
from mlirfuse.errors import IRError
from tests.support.harnesses.lowering_harness import SCALE, lower, one_kernel


def test_scale():
    info = kernel_infos(lower(SCALE).operation)["scale_kernel"]
    assert (info.name, info.block, info.cluster, info.dynamic_shared_bytes) == ("scale_kernel", 128, 1, 0)
    assert info.grid == Symbol(0)
    assert info.grid_operands == ((0, 0),)
    assert info.parameters == (
        AbiParameter("pointer", 0, 0, "Q"),
        AbiParameter("size", 0, 0, "q"),
        AbiParameter("pointer", 1, 0, "Q"),
        AbiParameter("size", 1, 0, "q"),
        AbiParameter("scalar", 2, 0, "d"),
        AbiParameter("pointer", 3, 0, "Q"),
        AbiParameter("size", 3, 0, "q"),
    )


def test_grid_is_evaluated_from_extents():
    text = SCALE.replace("affine_map<()[s0] -> (s0)>", "affine_map<()[s0] -> ((s0 ceildiv 4) * 2 + 1)>")
    info = kernel_infos(lower(text).operation)["scale_kernel"]
    assert info.grid == Binary(
        "add", Binary("mul", Binary("ceildiv", Symbol(0), Constant(4)), Constant(2)), Constant(1)
    )
    shapes = [(9, 512), (9, 512), (), (9, 512)]
    assert info.blocks(shapes) == 7
    assert info.blocks([(0, 512), (0, 512), (), (0, 512)]) == 1


def test_numbers_of_blocks_count_as_so_many_at_least():
    text = SCALE.replace(
        "fuse.grid = affine_map<()[s0] -> (s0)>, fuse.grid_operands = array<i64: 0, 0>",
        "fuse.grid = affine_map<()[s0, s1] -> (s0, s1)>, fuse.grid_operands = array<i64: 0, 0, -1, 1>, "
        "fuse.grid_least = array<i64: 8, 0>",
    )
    info = kernel_infos(lower(text).operation)["scale_kernel"]
    counts = [(2, 132), (9, 132), (200, 132), (2, 4)]
    found = [info.blocks([(n, 512), (n, 512), (), (n, 512)], lambda _, most=most: most) for n, most in counts]
    assert found == [8, 9, 132, 4]
    with pytest.raises(IRError, match="fuse.grid_least .* does not go with"):
        kernel_infos(lower(text.replace("array<i64: 8, 0>", "array<i64: 8>")).operation)


def test_clusters_strides_and_dynamic_shared_memory():
    text = """
    gpu.module @k {
      gpu.func @k(%x: memref<?x8xf16, strided<[?, 1]>>, %n: i64)
          workgroup(%s : memref<16384xf32, #gpu.address_space<workgroup>>)
          kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_cluster_size = array<i32: 4, 1, 1>,
                             fuse.grid = affine_map<()[s0] -> (s0 * 4)>, fuse.grid_operands = array<i64: 0, 0>} {
        gpu.return
      }
    }"""
    info = kernel_infos(lower(text).operation)["k"]
    assert (info.cluster, info.dynamic_shared_bytes) == (4, 65536)
    assert [(p.kind, p.arg, p.dim, p.code) for p in info.parameters] == [
        ("pointer", 0, 0, "Q"),
        ("size", 0, 0, "q"),
        ("stride", 0, 0, "q"),
        ("scalar", 1, 0, "q"),
    ]


@pytest.mark.parametrize("missing", ["fuse.grid", "fuse.grid_operands", "known_block_size", "fuse.abi"])
def test_missing_attribute(missing):
    module = lower(SCALE)
    (kernel,) = [
        op for op in module.body.operations[0].regions[0].blocks[0].operations if op.operation.name == "gpu.func"
    ]
    del kernel.attributes[missing]
    with pytest.raises(IRError, match=rf"kernel scale_kernel has no {missing}"):
        kernel_infos(module.operation)


def test_grid_that_does_not_go_with_its_operands():
    text = one_kernel("").replace("array<i64: 0, 0>", "array<i64: 0, 0, 1, 0>")
    with pytest.raises(IRError, match="does not go with"):
        kernel_infos(lower(text).operation)


def test_two_dimensional_block():
    text = one_kernel("").replace("array<i32: 128, 1, 1>", "array<i32: 16, 8, 1>")
    with pytest.raises(IRError, match="not one-dimensional"):
        kernel_infos(lower(text).operation)
