"""`fuse-share-arguments`: a kernel reads an array through one of the arguments that are this array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import argument_attributes, body, functions, is_tile_program, kernels, symbol
from mlirfuse.dialect.attributes import LAUNCH
from mlirfuse.dialect.gathered_view import DEFINITION
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import defining_op


@dataclass(frozen=True)
class FuseShareArguments(Pass):
    """Reads through the first of several arguments of a tile program that every call passes the same array for.

    Requires tile programs whose calls are in the module. Arguments are the same array where all calls pass one value
    for them, or gathered views of one value. Windows that overlap, of the taps of a stencil, are views of one array,
    and their loads of the same element are only seen to be equal if they are loads from one argument. The other
    arguments stay, without uses. Arguments of different types or attributes are left alone, as are results.

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
        passed = _passed(module)
        for kernel in filter(is_tile_program, kernels(module)):
            merged = _share(kernel, passed.get(symbol(kernel), []))
            if merged:
                remarks.applied(self, f"{merged} arguments of {symbol(kernel)} are read through others", kernel)
            else:
                remarks.declined(self, "no two arguments are known to be the same array", kernel)


def _passed(module: ir.Operation) -> dict[str, list[Sequence[ir.Value]]]:
    """What each call passes to a kernel, by the kernel's symbol: of a gathered view its source."""
    names = {
        symbol(f): ir.FlatSymbolRefAttr(f.attributes[LAUNCH]).value for f in functions(module) if LAUNCH in f.attributes
    }
    found: dict[str, list[Sequence[ir.Value]]] = {}
    for function in functions(module):
        for op in body(function):
            if op.name == "func.call":
                callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
                found.setdefault(names.get(callee, callee), []).append([_source(v) for v in op.operands])
    return found


def _source(value: ir.Value) -> ir.Value:
    maker = defining_op(value)
    return maker.operands[0] if maker is not None and maker.name == DEFINITION.full_name else value


def _share(kernel: ir.Operation, calls: Sequence[Sequence[ir.Value]]) -> int:
    """Replaces arguments by earlier ones; returns how many."""
    if not calls:
        return 0
    arguments, known = list(kernel.regions[0].blocks[0].arguments), argument_attributes(kernel)
    first: dict[tuple[object, ...], ir.Value] = {}
    merged = 0
    for number, sources in enumerate(zip(*calls, strict=True)):
        argument = arguments[number]
        if not isinstance(argument.type, ir.MemRefType):
            continue
        key = (*sources, argument.type, ir.DictAttr.get(known[number]))
        if key in first and list(argument.uses):
            argument.replace_all_uses_with(first[key])
            merged += 1
        first.setdefault(key, argument)
    return merged
