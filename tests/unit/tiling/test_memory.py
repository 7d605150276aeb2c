"""How wide accesses to a buffer may be."""

from __future__ import annotations

import pytest
from mlir import ir

from mlirfuse.compiler.context import make_context
from mlirfuse.tiling.memory import access_elements, alignment


@pytest.mark.parametrize(
    ("text", "axis", "declared", "expected"),
    [
        ("memref<?x4096xf16>", 1, 16, 16),
        ("memref<?x4097xf16>", 1, 16, 2),
        ("memref<?x5140xf16>", 1, 16, 8),
        ("memref<?x5140xf16>", 1, 4, 4),
        ("memref<?x5140xf16>", 1, None, 8),
        ("memref<?xf16>", 0, 16, 16),
        ("memref<?x?x4097xf32>", 2, 16, 4),
        ("memref<?x?xf32>", 1, 16, 4),
        ("memref<?x?x8xf32>", 2, 16, 16),
        ("memref<?x4097xf16, strided<[?, 1]>>", 1, 16, 16),
        ("memref<?x4097xf16, strided<[?, 1]>>", 1, 2, 2),
        ("memref<16x64xf32, strided<[1, ?]>>", 0, 16, 16),
    ],
)
def test_alignment_of_rows(text: str, axis: int, declared: int | None, expected: int) -> None:
    """Of a contiguous buffer the strides follow from its shape; those of a strided one are as aligned as declared."""
    with make_context():
        type_ = ir.MemRefType(ir.Type.parse(text))
        assert alignment(type_, axis, declared) == expected
        size = 2 if "f16" in text else 4
        assert access_elements(type_, axis, declared, 16) == max(1, expected // size)


def test_an_axis_that_is_not_contiguous_is_accessed_by_elements() -> None:
    with make_context():
        assert access_elements(ir.MemRefType(ir.Type.parse("memref<8x8xf32>")), 0, 16, 4) == 1
        assert access_elements(ir.MemRefType(ir.Type.parse("memref<8x8xf32>")), None, 16, 4) == 1
        single = ir.MemRefType(ir.Type.parse("memref<8x8x1xf32>"))  # no address has the last axis's stride
        assert access_elements(single, 1, 16, 4) == 4
        assert alignment(single, 1, 16) == 4
