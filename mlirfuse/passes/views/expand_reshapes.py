"""`fuse-expand-reshapes`: ops around a reshape of a computed value run over dimensions that both sides divide into."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import linalg, tensor

from mlirfuse.analysis.kernels import body, functions
from mlirfuse.analysis.loops.factors import DYNAMIC, DimFactors, Factors
from mlirfuse.analysis.loops.structure import OpStructure, is_constant, structure_of
from mlirfuse.analysis.memory.host_views import RESHAPES, layout_of, view_layout, viewed
from mlirfuse.dialect.attributes import KERNEL
from mlirfuse.passes.slices.sliced_ops import SLICE, extracted, ranges_of
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import defining_op, erase, erase_dead, ops_named
from mlirfuse.tiling.tiles import index

Groups = list[list[int]]


@dataclass(frozen=True)
class FuseExpandReshapes(Pass):
    """Splits the loops of ops in front of and behind a reshape, so that the value between them needs no other shape.

    Requires host functions of tensor ops. A kernel has one iteration space, so that a reshape of a computed value would
    take it to memory and start another kernel. Where the dimensions on both sides have factors in common, ops run over
    these: 256 channels by 56 by 56 pixels, and 32 groups of 25088 elements, over 32 x 8 x 56 x 56. The factors spread
    to all ops that share a loop with these, and through transposes; arguments and results are reshaped instead, which
    are views. Merged again are dimensions that a kernel traverses together (`fuse-collapse-dims`). Ops that multiply
    and sum stay as they are, with the elementwise ops that can share their kernels, and so do ops that use indices of
    loops, or that gather, extents without common factors, and dynamic ones.

    ```mlir
    %h = linalg.generic ... ins(%x : tensor<64x256x3136xbf16>) ... -> tensor<64x256x3136xf32>
    %0 = tensor.collapse_shape %h [[0], [1, 2]] : tensor<64x256x3136xf32> into tensor<64x802816xf32>
    %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [64, 32, 25088] : ... into tensor<64x32x25088xf32>
    %sum = linalg.generic ... ["parallel", "parallel", "reduction"] ins(%1 : tensor<64x32x25088xf32>) ...
    ```
    becomes
    ```mlir
    %2 = tensor.expand_shape %x [[0], [1, 2], [3]] output_shape [64, 32, 8, 3136] : ... into tensor<64x32x8x3136xbf16>
    %h = linalg.generic ... ins(%2 : tensor<64x32x8x3136xbf16>) ... -> tensor<64x32x8x3136xf32>
    %sum = linalg.generic ... ["parallel", "parallel", "reduction", "reduction"] ins(%h : tensor<64x32x8x3136xf32>) ...
    ```
    """

    name: ClassVar[str] = "fuse-expand-reshapes"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for function in functions(module):
            if KERNEL in function.attributes or not body(function):
                continue
            structures = _splittable_ops(function)
            chains = list(_chains(structures))
            if not chains:
                remarks.declined(self, "no computed value is reshaped for an op that computes", function)
                continue
            factors = DimFactors(structures)
            united = []
            for chain in chains:
                if factors.unite(chain):
                    united.append(chain)
                else:
                    remarks.declined(self, "the dimensions on both sides have no factors in common", chain[-1])
            if united:
                count = _Expansion(factors, united).run(structures)
                remarks.applied(self, f"{count} ops run over the factors that {len(united)} reshapes divide", function)
                erase_dead(body(function)[:-1])


def _splittable_ops(function: ir.Operation) -> list[OpStructure]:
    """The structures of the ops whose loops may be split: not of sums of products, nor of their epilogues."""
    found: list[OpStructure] = []
    products: set[ir.Operation] = set()  # with their epilogues
    for op in body(function):
        structure = _structure(op)
        if structure is None:
            continue
        if _multiplies(structure) or _is_epilogue(structure, products):
            products.add(op)
        else:
            found.append(structure)
    return found


def _structure(op: ir.Operation) -> OpStructure | None:
    """The structure of an op whose loops are known, and have no indices."""
    if op.name == "linalg.transpose":
        return structure_of(op)
    if op.name != "linalg.generic" or ops_named(op, "linalg.index"):
        return None
    structure = structure_of(op)
    return None if structure is None or None in _inputs(structure) else structure


def _inputs(structure: OpStructure) -> Sequence[Sequence[int | None] | None]:
    """The loop of each axis of the operands that an op reads."""
    return structure.operand_axes[: -len(structure.op.results)]


def _multiplies(structure: OpStructure) -> bool:
    """Whether an op sums up products."""
    return bool(structure.reduction_loops) and sum(bool(axes) for axes in _inputs(structure)) > 1


def _is_epilogue(structure: OpStructure, products: Collection[ir.Operation]) -> bool:
    """Whether an op computes the elements of a product, one by one and in its order, from these and from arguments."""
    op = structure.op
    if op.name != "linalg.generic" or structure.reduction_loops:
        return False
    read = zip(op.operands, _inputs(structure), strict=False)
    makers = [(maker, axes) for value, axes in read if (maker := _computing(value)) is not None]
    inside = [axes for maker, axes in makers if maker in products]
    return len(inside) == len(makers) > 0 and all(axes == structure.result_axes[0] for axes in inside)


def _computing(value: ir.Value) -> ir.Operation | None:
    """The op that computes the elements of a value, behind views of it; None for an argument and a number."""
    source = viewed(value)
    return defining_op(source) if isinstance(value.type, ir.RankedTensorType) and not is_constant(source) else None


def _chains(structures: Sequence[OpStructure]) -> Iterator[list[ir.Operation]]:
    """The reshapes between an op and another one that reads its result, in order."""
    ops = {s.op for s in structures}
    for structure in structures:
        for result in structure.op.results:
            yield from _below(result, ops, [])


def _below(value: ir.Value, ops: set[ir.Operation], before: list[ir.Operation]) -> Iterator[list[ir.Operation]]:
    users = list(dict.fromkeys(use.owner.operation for use in value.uses))
    if before and any(user in ops and _computes(user) for user in users):
        yield before
    for user in users:
        if user.name in RESHAPES:
            yield from _below(user.results[0], ops, [*before, user])


def _computes(op: ir.Operation) -> bool:
    """Whether an op, or one that reads its result, does more than to give elements other coordinates: it computes, or
    is a reshape that takes a copy, as of what is transposed.
    """
    if op.name != "linalg.transpose" and op.name not in RESHAPES:
        return True
    if op.name in RESHAPES and view_layout(op, layout_of(op.operands[0])) is None:
        return True
    return any(
        use.owner.operation.name != "func.return" and _computes(use.owner.operation) for use in op.results[0].uses
    )


class _Expansion:
    """Rewrites ops over the factors of their loops.

    Args:
        factors: of all values' dimensions.
        chains: reshapes whose sides have the same factors.
    """

    def __init__(self, factors: DimFactors, chains: Sequence[Sequence[ir.Operation]]):
        self._factors = factors
        self._united = dict.fromkeys(reshape for chain in chains for reshape in chain)
        self._expanded: dict[ir.Value, ir.Value] = {}
        self._views: dict[tuple[ir.Value, tuple[Factors, ...]], ir.Value] = {}

    def run(self, structures: Sequence[OpStructure]) -> int:
        """Rewrites all ops that have a loop of several factors; returns how many."""
        loops_of = [(structure, self._factors.loops(structure)) for structure in structures]
        found = [(structure, loops) for structure, loops in loops_of if any(len(f) > 1 for f in loops)]
        for structure, loops in found:
            with ir.InsertionPoint(structure.op), structure.op.location:
                self._rewrite(structure, loops)
        for reshape in self._united:  # ops behind it that run over its dimensions as they are
            result = reshape.results[0]
            if not _only_ones(reshape) and all(len(f) == 1 for f in self._factors.of(result)):
                with ir.InsertionPoint(reshape), reshape.location:
                    result.replace_all_uses_with(self._of(result))
        for structure, _ in found:
            with ir.InsertionPoint(structure.op), structure.op.location:
                for old in structure.op.results:
                    new, groups = self._expanded[old], _groups(self._factors.of(old))
                    is_same = new.type == old.type
                    old.replace_all_uses_with(new if is_same else tensor.CollapseShapeOp(old.type, new, groups).result)
            erase(structure.op)
        return len(found)

    def _rewrite(self, structure: OpStructure, loops: Sequence[Factors]) -> None:
        op = structure.op
        inputs, outs = list(op.operands)[: -len(op.results)], list(op.operands)[-len(op.results) :]
        read = [self._of(value) if isinstance(value.type, ir.RankedTensorType) else value for value in inputs]
        starts = [self._start(value, self._factors.of(result)) for value, result in zip(outs, op.results, strict=True)]
        attributes = {name: op.attributes[name] for name in op.attributes}
        if op.name == "linalg.transpose":
            groups = _groups(self._factors.of(inputs[0]))
            moved = [dim for old in ir.DenseI64ArrayAttr(attributes["permutation"]) for dim in groups[old]]
            attributes["permutation"] = ir.DenseI64ArrayAttr.get(moved)
        else:
            attributes |= _split_loops(op, loops)
        types = [value.type for value in starts]
        new = ir.Operation.create(op.name, types, [*read, *starts], attributes, regions=1)
        op.regions[0].blocks[0].append_to(new.regions[0])
        self._expanded.update(zip(op.results, new.results, strict=True))

    def _of(self, value: ir.Value) -> ir.Value:
        """A value over the factors of its dimensions."""
        if value not in self._expanded:
            maker, factors = defining_op(value), self._factors.of(value)
            is_split = any(len(f) > 1 for f in factors)
            if maker is not None and maker in self._united and (is_split or not _only_ones(maker)):
                self._expanded[value] = _with_ones(self._of(maker.operands[0]), [n for f in factors for n in f])
            elif is_split:
                self._expanded[value] = self._view(value, factors)
            else:
                return value
        return self._expanded[value]

    def _view(self, value: ir.Value, factors: Sequence[Factors]) -> ir.Value:
        """A value over factors; of a slice along other axes than these the same slice of all that is sliced, so that
        other slices of it, and accesses to them, are beside it.
        """
        key = (value, tuple(factors))
        if key not in self._views:
            maker = defining_op(value)
            ranges = ranges_of(maker, backwards=True) if maker is not None and maker.name == SLICE else None
            pairs = list(zip(ranges or (), factors, strict=False))
            if maker is not None and ranges is not None and all(r is None or len(f) == 1 for r, f in pairs):
                extents = ir.RankedTensorType(maker.operands[0].type).shape
                sides = [f if r is None else (n,) for (r, f), n in zip(pairs, extents, strict=True)]
                own = [each for r, f in pairs for each in (r,) * len(f)]
                self._views[key] = extracted(self._view(maker.operands[0], sides), tuple(own))
            else:
                self._views[key] = _expand(value, factors)
        return self._views[key]

    def _start(self, value: ir.Value, factors: Sequence[Factors]) -> ir.Value:
        """What a result of these factors starts from: the same number everywhere, any value, or a value's elements."""
        maker = defining_op(value)
        if maker is None or not is_constant(value) or all(len(f) == 1 for f in factors):
            return self._of(value)
        if maker.name == "linalg.fill":
            return linalg.fill(maker.operands[0], outs=[self._start(maker.operands[1], factors)])
        type_ = ir.RankedTensorType.get([n for f in factors for n in f], ir.RankedTensorType(value.type).element_type)
        return ir.Operation.create("tensor.empty", [type_], list(maker.operands)).results[0]


def _only_ones(reshape: ir.Operation) -> bool:
    """Whether a reshape only adds or drops extents of 1."""
    before, after = (
        [extent for extent in ir.RankedTensorType(value.type).shape if extent != 1]
        for value in (reshape.operands[0], reshape.results[0])
    )
    return before == after


def _with_ones(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """A value with extents of 1 in other places; loops run along the others."""
    type_ = ir.RankedTensorType(value.type)
    if list(type_.shape) == list(shape):
        return value
    kept = [extent for extent in shape if extent != 1] or [1]
    if list(type_.shape) != kept:
        dropped = ir.RankedTensorType.get(kept, type_.element_type)
        value = tensor.CollapseShapeOp(dropped, value, _runs(type_.shape)).result
    if kept == list(shape):
        return value
    sizes = [tensor.dim(value, index(d)) for d, extent in enumerate(kept) if extent == DYNAMIC]
    wide = ir.RankedTensorType.get(shape, type_.element_type)
    return tensor.ExpandShapeOp(wide, value, _runs(shape), sizes, shape).result


def _runs(shape: Sequence[int]) -> Groups:
    """The dimensions of other extents than 1, each with those of 1 behind it, the first with those in front too."""
    found: Groups = [[]]
    for dim, extent in enumerate(shape):
        if extent != 1 and any(shape[d] != 1 for d in found[-1]):
            found.append([])
        found[-1].append(dim)
    return found


def _split_loops(op: ir.Operation, loops: Sequence[Factors]) -> dict[str, ir.Attribute]:
    """The maps and the kinds of loops of a `linalg.generic` over the factors of its loops."""
    groups, count = _groups(loops), sum(map(len, loops))
    maps = [ir.AffineMapAttr(each).value for each in op.attributes["indexing_maps"]]
    kinds = [kind for kind, f in zip(op.attributes["iterator_types"], loops, strict=True) for _ in f]
    split = [ir.AffineMapAttr.get(_split(each, groups, count)) for each in maps]
    return {"indexing_maps": ir.ArrayAttr.get(split), "iterator_types": ir.ArrayAttr.get(kinds)}


def _split(old: ir.AffineMap, groups: Groups, count: int) -> ir.AffineMap:
    """A map of loops over the factors of these."""
    results: list[ir.AffineExpr] = []
    for expr in old.results:
        if isinstance(expr, ir.AffineDimExpr):
            results += [ir.AffineExpr.get_dim(dim) for dim in groups[expr.position]]
        else:
            results.append(expr)
    return ir.AffineMap.get(count, 0, results)


def _groups(factors: Sequence[Factors]) -> Groups:
    """The new dimensions of each old one."""
    starts = [sum(map(len, factors[:d])) for d in range(len(factors))]
    return [list(range(start, start + len(f))) for start, f in zip(starts, factors, strict=True)]


def _expand(value: ir.Value, factors: Sequence[Factors]) -> ir.Value:
    shape = [n for f in factors for n in f]
    type_ = ir.RankedTensorType.get(shape, ir.RankedTensorType(value.type).element_type)
    sizes = [tensor.dim(value, index(d)) for d, f in enumerate(factors) if f == (DYNAMIC,)]
    return tensor.ExpandShapeOp(type_, value, _groups(factors), sizes, shape).result
