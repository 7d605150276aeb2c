"""How many elements each warp and block holds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from mlir import ir

from mlirfuse.compiler.context import make_context
from mlirfuse.distribution.reduce.counts import held_elements
from mlirfuse.distribution.threads.fragments import Fragments
from mlirfuse.schedule.layout import BlockedLayout


@given(st.integers(0, 5), st.integers(1, 5), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.data())
def test_what_is_held_sums_to_the_extent(
    lane_bits: int, warps: int, repeats: int, blocks: int, inner: int, data: st.DataObject
) -> None:
    lanes = 1 << lane_bits
    layout = BlockedLayout((1, 2), (32 // lanes, lanes), (1, warps), (1, repeats), (1, blocks), (1, inner))
    extent = 2 * data.draw(st.integers(1, layout.extents[1] // 2))
    with make_context():
        tile = Fragments(layout, (32 // lanes, extent), ir.F32Type.get())
        held = [[held_elements(tile, (1,), block, warp) for warp in range(warps)] for block in range(blocks)]
        assert sum(map(sum, held)) == extent
        assert [held_elements(tile, (1,), block) for block in range(blocks)] == [sum(row) for row in held]
