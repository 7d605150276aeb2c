"""The array API's `linalg` namespace, as far as it is supported."""

from __future__ import annotations

from mlirfuse.builder.functions.diagonals import diagonal, trace
from mlirfuse.builder.functions.manipulation import matrix_transpose
from mlirfuse.builder.functions.products.contraction import matmul
from mlirfuse.builder.functions.products.tensor_products import outer, tensordot, vecdot

__all__ = ["diagonal", "matmul", "matrix_transpose", "outer", "tensordot", "trace", "vecdot"]
