"""Vector loads and stores as inline PTX, for qualifiers that LLVM does not have."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir import ir
from mlir.dialects import arith, llvm, nvvm, vector

from mlirfuse.distribution.threads.scalars import constant
from mlirfuse.lowering.memory.addresses import element_pointer
from mlirfuse.schedule.model.machine import ACCESS_WIDTHS
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import erase, integer_of

HINT = ".L2::cache_hint"


def buffer_of(op: ir.Operation) -> ir.Value:
    """The memref that a `vector.load`, a `vector.maskedload` or a `vector.store` accesses."""
    return op.operands[0] if op.results else op.operands[1]


def why_not_inline(op: ir.Operation) -> str | None:
    """Why a vector load or `vector.store` cannot become one access of whole registers, or None."""
    fragment = _fragment(op)
    if fragment.rank != 1:
        return f"{fragment} is not one-dimensional"
    width = _bytes(fragment)
    if width not in ACCESS_WIDTHS:
        return f"{width} bytes is none of {', '.join(map(str, ACCESS_WIDTHS))}"
    aligned = ir.IntegerAttr(op.attributes["alignment"]).value if "alignment" in op.attributes else 0
    return None if aligned >= width else f"it is not known to be aligned to {width} bytes"


def inline_load(op: ir.Operation, instruction: str, space: int, policy: ir.Value | None = None) -> None:
    """Replaces a `vector.load` of an address space by `instruction`.

    Args:
        op: the load.
        instruction: opcode and qualifiers, up to the cache hint.
        space: LLVM's number of the address space.
        policy: the L2 policy, an i64 from `createpolicy`; None for a load without a hint.
    """
    count = _bytes(_fragment(op)) // 4
    pointer = element_pointer(op.operands[0], list(op.operands)[1:], space)
    hint, last, operands = ("", "", [pointer]) if policy is None else (HINT, f", ${count + 1}", [pointer, policy])
    text = f"{instruction}{hint}{_suffix(count)} {_registers(count, 0)}, [${count}]{last};"
    words = nvvm.InlinePtxOp([_i32()] * count, operands, [], text)
    _replace(op, list(words.results))


def movable_load(op: ir.Operation, instruction: str, space: int, policy: ir.Value) -> None:
    """Like `inline_load`, for memory that is not written before the kernel ends.

    The backend may move such a load down to its first use, as it does with its own loads, which saves registers.
    """
    count = _bytes(_fragment(op)) // 4
    pointer = element_pointer(op.operands[0], list(op.operands)[1:], space)
    text = f"{instruction}{HINT}{_suffix(count)} {_registers(count, 0)}, [${count}], ${count + 1};"
    constraints = ",".join(["=r"] * count + ["l", "l"])
    if count == 1:
        _replace(op, [llvm.inline_asm(_i32(), [pointer, policy], text, constraints)])
        return
    struct = llvm.StructType.get_literal([_i32()] * count)
    words = llvm.inline_asm(struct, [pointer, policy], text, constraints)
    _replace(op, [_part(words, n) for n in range(count)])


def predicated_load(op: ir.Operation, condition: ir.Value, instruction: str, space: int) -> None:
    """Replaces a `vector.maskedload`, whose mask is one condition, by a load that is skipped where it does not hold.

    The registers hold what the op passes through before. The load stays where it is among other side effects, as
    those of waiting for another kernel.
    """
    rank = ir.MemRefType(op.operands[0].type).rank
    count = _bytes(_fragment(op)) // 4
    # An index that is a number becomes a sum: it is then added to the pointer with the numbers of the others.
    places = [arith.addi(constant(0), i) if integer_of(i) else i for i in list(op.operands)[1 : 1 + rank]]
    pointer = element_pointer(op.operands[0], places, space)
    through = _words(op.operands[2 + rank], count)
    text = f"@${count + 1} {instruction}{_suffix(count)} {_registers(count, 0)}, [${count}];"
    constraints = ",".join([*["=r"] * count, "l", "b", *map(str, range(count))])
    type_ = _i32() if count == 1 else llvm.StructType.get_literal([_i32()] * count)
    found = llvm.inline_asm(type_, [pointer, condition, *through], text, constraints, has_side_effects=True)
    _replace(op, [found] if count == 1 else [_part(found, n) for n in range(count)])


def inline_store(op: ir.Operation, instruction: str, space: int, policy: ir.Value | None = None) -> None:
    """Replaces a `vector.store` to an address space by `instruction`.

    Args:
        op: the store.
        instruction: opcode and qualifiers, up to the cache hint.
        space: LLVM's number of the address space.
        policy: the L2 policy, an i64 from `createpolicy`; None for a store without a hint.
    """
    count = _bytes(_fragment(op)) // 4
    pointer = element_pointer(op.operands[1], list(op.operands)[2:], space)
    words = _words(op.operands[0], count)
    hint, last, policies = ("", "", []) if policy is None else (HINT, f", ${count + 1}", [policy])
    text = f"{instruction}{hint}{_suffix(count)} [$0], {_registers(count, 1)}{last};"
    nvvm.InlinePtxOp([], [pointer, *words, *policies], [], text)
    erase(op)


def _replace(load: ir.Operation, words: Sequence[ir.Value]) -> None:
    """Replaces the result of a `vector.load` by 32-bit words."""
    fragment = _fragment(load)
    packed = vector.from_elements(ir.VectorType.get([len(words)], _i32()), words)
    value = vector.bitcast(fragment, packed) if fragment != packed.type else packed
    load.results[0].replace_all_uses_with(value)
    erase(load)


def _words(fragment: ir.Value, count: int) -> list[ir.Value]:
    """The 32-bit words of a vector."""
    type_ = ir.VectorType.get([count], _i32())
    packed = fragment if fragment.type == type_ else vector.bitcast(type_, fragment)
    return list(vector.ToElementsOp(packed).results)


def _part(words: ir.Value, number: int) -> ir.Value:
    """One of several words that inline assembly returns."""
    return llvm.extractvalue(_i32(), words, ir.DenseI64ArrayAttr.get([number]))


def _i32() -> ir.Type:
    return ir.IntegerType.get_signless(32)


def _fragment(op: ir.Operation) -> ir.VectorType:
    return ir.VectorType(op.results[0].type if op.results else op.operands[0].type)


def _bytes(fragment: ir.VectorType) -> int:
    """Size of a fragment in memory, bytes; 0 for `i1`, which `lower-kernel-abi` has not made bytes yet."""
    dtype = from_mlir(fragment.element_type)
    return 0 if dtype.kind == "bool" else prod(fragment.shape) * dtype.bytes


def _registers(count: int, first: int) -> str:
    """`count` placeholders of inline PTX, from `$first` on: `$0`, `{$0, $1}`."""
    names = ", ".join(f"${first + i}" for i in range(count))
    return names if count == 1 else f"{{{names}}}"


def _suffix(count: int) -> str:
    return ".b32" if count == 1 else f".v{count}.b32"
