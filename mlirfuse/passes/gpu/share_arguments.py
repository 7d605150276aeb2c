"""`fuse-share-arguments`: a kernel reads an array through one of the arguments that are this array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import argument_attributes, is_tile_program, kernels, symbol
from mlirfuse.analysis.memory.shared_arrays import passed_arrays, shared_arrays, source_alignment
from mlirfuse.dialect.attributes import ALIGN
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.model.machine import DEFAULT_ALIGNMENT


@dataclass(frozen=True)
class FuseShareArguments(Pass):
    """Reads through the first of several arguments of a tile program that every call passes the same array for.

    Requires tile programs whose calls are in the module. Arguments are the same array where all calls pass one value
    for them, or gathered views of one value. Windows that overlap, of the taps of a stencil, are views of one array,
    and their loads of the same element are only seen to be equal if they are loads from one argument. That is aligned
    as the array is, of which windows that begin beside an aligned element say less. The other arguments stay, without
    uses. Arguments of different types or other attributes are left alone, as are results.

    ```mlir
    %0 = "fuse.gathered_view"(%x) {map = affine_map<(p, c) -> (p - 1, c)>, ...}
    %1 = call @sum(%0, %x) : ...
    func.func private @sum_kernel(%arg0: memref<8x16xf16>, %arg1: memref<8x16xf16>, ...) {
      ... vector.transfer_read %arg1[...]
    ```
    becomes, in the kernel,
    ```mlir
      ... vector.transfer_read %arg0[...]
    ```
    """

    name: ClassVar[str] = "fuse-share-arguments"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        passed = passed_arrays(module)
        for kernel in filter(is_tile_program, kernels(module)):
            merged = _share(kernel, passed.get(symbol(kernel), []))
            if merged:
                remarks.applied(self, f"{merged} arguments of {symbol(kernel)} are read through others", kernel)
            else:
                remarks.declined(self, "no two arguments are known to be the same array", kernel)


def _share(kernel: ir.Operation, calls: Sequence[Sequence[ir.Value]]) -> int:
    """Replaces arguments by earlier ones; returns how many."""
    arguments, known = list(kernel.regions[0].blocks[0].arguments), argument_attributes(kernel)
    first: dict[tuple[int, ir.Type, ir.Attribute], int] = {}
    merged = 0
    for number, array in enumerate(shared_arrays(calls)):
        argument = arguments[number]
        if not isinstance(argument.type, ir.MemRefType):
            continue
        others = {name: attribute for name, attribute in known[number].items() if name != ALIGN}
        earlier = first.setdefault((array, argument.type, ir.DictAttr.get(others)), number)
        if earlier != number and list(argument.uses):
            argument.replace_all_uses_with(arguments[earlier])
            align = source_alignment(calls, number, DEFAULT_ALIGNMENT)
            known[earlier][ALIGN] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), align)
            merged += 1
    if merged:
        kernel.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(own) for own in known])
    return merged
