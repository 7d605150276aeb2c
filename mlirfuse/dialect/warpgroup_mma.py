"""`fuse.warpgroup_mma`: warpgroups multiply a stage of two rings, asynchronously.

```mlir
%1 = "fuse.warpgroup_mma"(%ra, %rb, %stage, %0) {a_major = "k", b_major = "k"}
    : (memref<4x128x64xbf16, #gpu.address_space<workgroup>>, memref<4x256x64xbf16, #gpu.address_space<workgroup>>,
       index, vector<128x256xf32>) -> vector<128x256xf32>
```

`accumulator[m, n] + Σ_k a[stage][m, k] * b[stage][n, k]`, summed in f32. A ring whose `major` is `"k"` holds (m, k) or
(n, k); one whose `major` is `"mn"` holds (k, m) or (k, n). Elements are f16 or bf16; or float8, of either kind in each
ring, for which the hardware keeps some 14 bits of a sum; or f32, of which the hardware reads tf32, the upper 19 bits.
float8 and f32 need `"k"` majors. Accumulators that are all zero constants are not read.

Whole warpgroups execute the op together and divide the rows among them in groups of 64. The op reads the stages and
writes its results at any time until a `fuse.warpgroup_wait` has waited for it; until then a result may only be passed
on, as an accumulator or to the wait.

At the tile level there is one accumulator. At the gpu level the accumulators are the thread's fragments, one
`vector<2xf32>` for each pair of columns, in the order of PTX's registers: for each 64 rows of the thread's warpgroup,
for each 8 columns, row `lane / 4`, then 8 rows below.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.dialect.base import SINGLE, VARIADIC, OpDefinition
from mlirfuse.dialect.shared_memory import ring_problem

MAJORS = ("k", "mn")

HALVES, FLOAT8 = {"f16", "bf16"}, {"f8E4M3FN", "f8E5M2"}
"""Element types that allow either major, and float8 types, which may be mixed."""


def _verify(op: ir.Operation) -> str | None:
    a, b, _, *accumulators = op.operands
    problem = ring_problem(a) or ring_problem(b)
    if problem:
        return problem
    a_type, b_type = ir.MemRefType(a.type), ir.MemRefType(b.type)
    majors = [ir.StringAttr(op.attributes[name]).value for name in ("a_major", "b_major")]
    if any(major not in MAJORS for major in majors):
        return f"majors {majors} must each be one of {list(MAJORS)}"
    elements = {str(a_type.element_type), str(b_type.element_type)}
    if a_type.shape[0] != b_type.shape[0] or (len(elements) > 1 and not elements <= FLOAT8):
        return f"rings {a_type} and {b_type} differ in element type or stages"
    if not elements <= HALVES and majors != ["k", "k"]:
        return f"k must be contiguous in rings of {', '.join(sorted(elements))}"
    (m, k), (n, k_of_b) = extents(a_type, majors[0]), extents(b_type, majors[1])
    if k != k_of_b:
        return f"rings {a_type} and {b_type} have {k} and {k_of_b} elements along k"
    if m % 64 or n % 8:
        return f"{m} rows and {n} columns must be multiples of 64 and 8"
    if not accumulators or [v.type for v in accumulators] != [v.type for v in op.results]:
        return "results must have the accumulators' types"
    shape = list(ir.VectorType(accumulators[0].type).shape)
    if shape != [2] and (shape[-2:] != [m, n] or len(accumulators) != 1):
        return f"accumulator {accumulators[0].type} must be one tile of {m}x{n}, or a thread's vector<2xf32>s"
    return None


def extents(ring: ir.MemRefType, major: str) -> tuple[int, int]:
    """(rows or columns of the product, k) of a stage."""
    _, rows, columns = ring.shape
    return (rows, columns) if major == "k" else (columns, rows)


DEFINITION = OpDefinition(
    "warpgroup_mma",
    operands=(("a", SINGLE), ("b", SINGLE), ("stage", SINGLE), ("accumulators", VARIADIC)),
    results=(("sums", VARIADIC),),
    attributes=("a_major", "b_major"),
    verify=_verify,
    needs_layout=True,
)


def warpgroup_mma(
    a: ir.Value, b: ir.Value, stage: ir.Value, accumulators: Sequence[ir.Value], a_major: str, b_major: str
) -> list[ir.Value]:
    """Builds the op at the current insertion point; returns the sums."""
    op = ir.Operation.create(
        DEFINITION.full_name,
        results=[value.type for value in accumulators],
        operands=[a, b, stage, *accumulators],
        attributes={"a_major": ir.StringAttr.get(a_major), "b_major": ir.StringAttr.get(b_major)},
    )
    return list(op.results)
