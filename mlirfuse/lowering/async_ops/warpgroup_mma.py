"""`lower-warpgroup-mma`: warpgroup multiplication becomes wgmma on shared-memory descriptors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, llvm, nvvm, vector

from mlirfuse.dialect.warpgroup_mma import extents
from mlirfuse.errors import PassError
from mlirfuse.lowering.async_ops.hopper import kernels_using, warpgroup_number
from mlirfuse.lowering.async_ops.shared_address import stage_address
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.model.machine import MMA_K_BYTES, SWIZZLE_BYTES, SWIZZLE_ROWS, WARPGROUP_ROWS
from mlirfuse.support.dtypes import element_bytes
from mlirfuse.support.rewriting import defining_op, erase

SWIZZLE_128 = 1 << 62  # the layout type of a shared-memory matrix descriptor (PTX ISA, "Matrix Descriptor Format")
TYPES = {
    "f16": nvvm.WGMMATypes.f16,
    "bf16": nvvm.WGMMATypes.bf16,
    "f32": nvvm.WGMMATypes.tf32,
    "f8E4M3FN": nvvm.WGMMATypes.e4m3,
    "f8E5M2": nvvm.WGMMATypes.e5m2,
    "i8": nvvm.WGMMATypes.s8,
}


@dataclass(frozen=True)
class Operand:
    """One operand of the product in shared memory.

    Attributes:
        ring: the type of its ring.
        major: `k` or `mn`.
    """

    ring: ir.MemRefType
    major: str

    @property
    def atom_stride(self) -> int:
        """Bytes from one swizzle atom of a stage to the next."""
        return int(self.ring.shape[1]) * SWIZZLE_BYTES

    @property
    def layout(self) -> nvvm.MMALayout:
        return nvvm.MMALayout.row if self.major == "k" else nvvm.MMALayout.col

    @property
    def transposed_layout(self) -> nvvm.MMALayout:
        return nvvm.MMALayout.col if self.major == "k" else nvvm.MMALayout.row

    def descriptor_bits(self) -> int:
        """The bits of a descriptor without the address: the offsets of swizzle atoms (leading) and of 8 rows (stride),
        and the swizzle.
        """
        return SWIZZLE_128 | (SWIZZLE_ROWS * SWIZZLE_BYTES >> 4) << 32 | (self.atom_stride >> 4) << 16

    def k_offset(self, step: int) -> int:
        """Bytes to the `step`-th instruction's part along k."""
        if self.major == "k":
            atom, within = divmod(step * MMA_K_BYTES, SWIZZLE_BYTES)
            return atom * self.atom_stride + within
        return step * (MMA_K_BYTES // element_bytes(self.ring)) * SWIZZLE_BYTES

    @property
    def rows_stride(self) -> int:
        """Bytes from 64 rows (or columns of the product) to the next 64."""
        if self.major == "k":
            return WARPGROUP_ROWS * SWIZZLE_BYTES
        return WARPGROUP_ROWS * element_bytes(self.ring) // SWIZZLE_BYTES * self.atom_stride


@dataclass(frozen=True)
class LowerWarpgroupMma(Pass):
    """Lowers `fuse.warpgroup_mma` to a group of `nvvm.wgmma.mma_async`, and `fuse.warpgroup_wait` to the group wait.

    Requires a target of sm_90a and accumulators as one thread's `vector<2xf32>`s. A stage becomes one instruction for
    each 32 bytes of k and each 64 rows of the warpgroup, between a fence and a commit. Descriptors are those of the
    128-byte swizzle. The first instruction overwrites accumulators that are all zero constants. The wait is inline
    assembly with the accumulators as operands and results, as LLVM could move uses of the accumulators in front of
    `nvvm.wgmma.wait.group.sync.aligned`, which has no operands.

    ```mlir
    %1:64 = "fuse.warpgroup_mma"(%ra, %rb, %stage, %0#0, ...) {a_major = "k", b_major = "k"} : ...
    %2:64 = "fuse.warpgroup_wait"(%1#0, ...) {pending = 0 : i64} : ...
    ```
    becomes
    ```mlir
    nvvm.wgmma.fence.aligned
    %s1 = nvvm.wgmma.mma_async %a, %b, %s0, #nvvm.shape<m = 64, n = 256, k = 16>, ... : !llvm.struct<(f32, ...)>
    nvvm.wgmma.commit.group.sync.aligned
    %s2 = llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 0;", "=f,...,0,..." ...
    ```

    Raises `TargetError` for another target, `PassError` for accumulators or an element type that wgmma does not have.
    """

    name: ClassVar[str] = "lower-warpgroup-mma"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func, ops in kernels_using(
            module, frozenset(("fuse.warpgroup_mma", "fuse.warpgroup_wait")), lambda target: target.has_wgmma
        ):
            for op in ops:
                with ir.InsertionPoint(op), op.location:
                    values = _multiply(op) if op.name == "fuse.warpgroup_mma" else _wait(op)
                for result, value in zip(op.results, values, strict=True):
                    result.replace_all_uses_with(value)
                erase(op)
            remarks.applied(self, f"{len(ops)} warpgroup ops lowered", func)


def _multiply(op: ir.Operation) -> list[ir.Value]:
    ring_a, ring_b, stage, *accumulators = op.operands
    a = Operand(ir.MemRefType(ring_a.type), ir.StringAttr(op.attributes["a_major"]).value)
    b = Operand(ir.MemRefType(ring_b.type), ir.StringAttr(op.attributes["b_major"]).value)
    kinds = [TYPES.get(str(ring.element_type)) for ring in (a.ring, b.ring)]
    (rows, k), (columns, _) = extents(a.ring, a.major), extents(b.ring, b.major)
    size = columns // 4  # vectors of a thread for 64 rows: columns * 64 elements over 128 threads, in pairs
    if None in kinds or not _are_pairs(accumulators) or len(accumulators) % size or columns > 256:
        raise PassError(
            f"wgmma has no {rows}x{columns} product of {a.ring.element_type} with {len(accumulators)} accumulators of "
            f"{accumulators[0].type} a thread",
            where=op,
        )
    tiles = len(accumulators) // size
    warpgroups = rows // (WARPGROUP_ROWS * tiles)
    first_a = _descriptor(ring_a, stage, a, warpgroup_number() if warpgroups > 1 else None)
    first_b = _descriptor(ring_b, stage, b, None)
    steps = k * element_bytes(a.ring) // MMA_K_BYTES
    shape = ir.Attribute.parse(
        f"#nvvm.shape<m = {WARPGROUP_ROWS}, n = {columns}, k = {MMA_K_BYTES // element_bytes(a.ring)}>"
    )
    sums = [_pack(accumulators[t * size : (t + 1) * size]) for t in range(tiles)]
    from_zero = all(map(_is_zero, accumulators))
    plus, total = nvvm.WGMMAScaleIn.one, _sums_kind(accumulators[0])
    nvvm.wgmma_fence_aligned()
    for step in range(steps):
        desc_b = _advance(first_b, b.k_offset(step))
        scale = nvvm.WGMMAScaleOut.zero if from_zero and step == 0 else nvvm.WGMMAScaleOut.one
        for t in range(tiles):
            desc_a = _advance(first_a, a.k_offset(step) + t * warpgroups * a.rows_stride)
            sums[t] = nvvm.wgmma_mma_async(
                sums[t].type, sums[t], desc_a, desc_b, shape, *kinds, total,
                scale, plus, plus, a.layout, b.transposed_layout,
            )  # fmt: skip
    nvvm.wgmma_commit_group_sync_aligned()
    return [pair for value in sums for pair in _unpack(value, size)]


def _wait(op: ir.Operation) -> list[ir.Value]:
    """Emits the wait, whose results are the accumulators."""
    pending = ir.IntegerAttr(op.attributes["pending"]).value
    if not _are_pairs(op.operands):
        raise PassError("accumulators must be a thread's vector<2xf32>s or vector<2xi32>s", where=op)
    numbers = [number for pair in op.operands for number in vector.ToElementsOp(pair).results]
    result = _struct([number.type for number in numbers])
    register = "f" if isinstance(numbers[0].type, ir.FloatType) else "r"
    constraints = ",".join([f"={register}"] * len(numbers) + [str(i) for i in range(len(numbers))])
    waited = llvm.inline_asm(
        result, numbers, f"wgmma.wait_group.sync.aligned {pending};", constraints, has_side_effects=True
    )
    return _unpack(waited, len(op.operands))


def _are_pairs(values: Sequence[ir.Value]) -> bool:
    pairs = [ir.VectorType.get([2], element) for element in (ir.F32Type.get(), ir.IntegerType.get_signless(32))]
    return values[0].type in pairs and all(value.type == values[0].type for value in values)


def _sums_kind(pair: ir.Value) -> nvvm.WGMMATypes:
    """Of accumulators, of which one pair is given."""
    is_float = isinstance(ir.VectorType(pair.type).element_type, ir.FloatType)
    return nvvm.WGMMATypes.f32 if is_float else nvvm.WGMMATypes.s32


def _is_zero(value: ir.Value) -> bool:
    """Whether a pair is a constant of positive zeros; negative zeros do not count, as adding them gives another sign of
    zero.
    """
    producer = defining_op(value)
    if producer is None or producer.name != "arith.constant":
        return False
    dense = ir.DenseElementsAttr(producer.attributes["value"])
    if not dense.is_splat:
        return False
    splat = dense.get_splat_value()
    return str(splat.value) == "0.0" if isinstance(splat, ir.FloatAttr) else ir.IntegerAttr(splat).value == 0


def _descriptor(ring: ir.Value, stage: ir.Value, operand: Operand, warpgroup: ir.Value | None) -> ir.Value:
    """The descriptor (i64) of the first 64 rows of a warpgroup in a stage."""
    i64, index = ir.IntegerType.get_signless(64), ir.IndexType.get()
    address = stage_address(ring, stage)
    if warpgroup is not None:
        stride = arith.constant(index, operand.rows_stride)
        address = arith.addi(address, arith.muli(arith.index_cast(index, warpgroup), stride))
    # Shared addresses have 18 bits; the field counts 16 bytes.
    field = arith.andi(arith.index_cast(i64, address), arith.constant(i64, 0x3FFFF))
    field = arith.shrui(field, arith.constant(i64, 4))
    return arith.ori(field, arith.constant(i64, operand.descriptor_bits()))


def _advance(descriptor: ir.Value, offset: int) -> ir.Value:
    if not offset:
        return descriptor
    return arith.addi(descriptor, arith.constant(ir.IntegerType.get_signless(64), offset >> 4))


def _struct(types: Sequence[ir.Type]) -> ir.Type:
    return ir.Type.parse(f"!llvm.struct<({', '.join(map(str, types))})>")


def _pack(pairs: Sequence[ir.Value]) -> ir.Value:
    """A struct of all the numbers of some pairs."""
    numbers = [number for pair in pairs for number in vector.ToElementsOp(pair).results]
    packed = llvm.mlir_undef(_struct([number.type for number in numbers]))
    for i, number in enumerate(numbers):
        packed = llvm.insertvalue(packed, number, ir.DenseI64ArrayAttr.get([i]))
    return packed


def _unpack(packed: ir.Value, count: int) -> list[ir.Value]:
    """The pairs of a struct of `2 * count` numbers."""
    number = ir.Type.parse("i32") if "i32" in str(packed.type) else ir.F32Type.get()
    pair = ir.VectorType.get([2], number)
    numbers = [llvm.extractvalue(number, packed, ir.DenseI64ArrayAttr.get([i])) for i in range(2 * count)]
    return [vector.FromElementsOp(pair, numbers[2 * i : 2 * i + 2]).result for i in range(count)]
