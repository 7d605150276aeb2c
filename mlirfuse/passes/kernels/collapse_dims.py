"""`fuse-collapse-dims`: merges dimensions that every op of a kernel treats alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, func, tensor

from mlirfuse.analysis.grid_reduction import needs_grid
from mlirfuse.analysis.kernels import (
    argument_attributes,
    body,
    functions,
    is_tile_program,
    kernels,
    result_sources,
    symbol,
)
from mlirfuse.analysis.loops.collapsing import Pair, mergeable_pairs
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.loops.structure import is_unit_reshape
from mlirfuse.analysis.memory.strided_views import axes_apart
from mlirfuse.analysis.scheduling.scheduling_problem import kernel_problem
from mlirfuse.analysis.segments.segments import CHEAP_OPS
from mlirfuse.dialect.attributes import KERNEL, SCHEDULE, STRIDES
from mlirfuse.dialect.expected_extents import EXTENT_HINTS, hints_attribute, hints_of
from mlirfuse.dialect.module_target import target_of_module
from mlirfuse.errors import ScheduleError
from mlirfuse.passes.kernels.collapse_kernel import DYNAMIC, Groups, KernelCollapser, collapsed_type
from mlirfuse.passes.kernels.host import callee, calls
from mlirfuse.passes.kernels.merged_extents import extent_reads, known_pairs
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.choice.proposals import loops
from mlirfuse.schedule.problem import Problem
from mlirfuse.support.reshapes import reassociation
from mlirfuse.support.rewriting import defining_op, erase, nested


@dataclass(frozen=True)
class FuseCollapseDims(Pass):
    """Merges neighbouring dimensions of a kernel's iteration space, and has its caller pass views.

    Requires kernels on tensors, called by a host function. Two dimensions become one where every op loops over both or
    neither, reduces both or neither, and every array has them next to each other: a row of 64 by 80 elements that is
    reduced whole becomes a row of 5120, and batches of rows become rows. A dynamic dimension is not merged with the
    innermost one, whose static extent determines the width of accesses, unless accesses are of single elements and one
    dimension remains. Nor are those whose tiles a loop of the grid needs, as where some reductions run over them, and
    others within. An extent that is computed with, as by a mean, is a quotient of the merged one; of several that
    are merged, only the product is known. Non-contiguous arguments keep dimensions that are not one in memory, and
    kernels with a schedule, which refers to the existing dimensions, keep all.

    ```mlir
    %0 = call @f_0(%x) : (tensor<?x64x80xf32>) -> tensor<?xf32>      // sums over d1 and d2
    ```
    becomes
    ```mlir
    %rows = tensor.collapse_shape %x [[0], [1, 2]] : tensor<?x64x80xf32> into tensor<?x5120xf32>
    %0 = call @f_0(%rows) : (tensor<?x5120xf32>) -> tensor<?xf32>
    ```
    """

    name: ClassVar[str] = "fuse-collapse-dims"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        hosts = [f for f in functions(module) if KERNEL not in f.attributes and calls(f)]
        for kernel in list(kernels(module)):
            if is_tile_program(kernel):
                continue
            if reason := obstacle(kernel):
                remarks.declined(self, reason, kernel)
                continue
            space, _ = kernel_space(kernel)
            pairs = pairs_of(kernel)
            if not pairs:
                remarks.declined(self, "no neighbouring dimensions can be merged", kernel)
                continue
            if space.unread_dims:
                remarks.declined(self, "it reads nothing with one of its dynamic extents", kernel)
                continue
            if needs_grid(space) and _has_loop(kernel) and not _has_loop_merged(kernel):
                remarks.declined(self, "the merged dimensions leave no tiles for a loop of the grid", kernel)
                continue
            merge_dims(kernel, space, pairs, hosts)
            remarks.applied(self, f"{space.rank} dimensions became {space.rank - len(pairs)}", kernel)


def pairs_of(kernel: ir.Operation) -> frozenset[Pair]:
    """The `mergeable_pairs` of a tensor kernel's dimensions; none where these cannot be renumbered."""
    if obstacle(kernel):
        return frozenset()
    space, structures = kernel_space(kernel)
    arguments = kernel.regions[0].blocks[0].arguments
    attributes = argument_attributes(kernel)
    strided = {a: axes_apart(a.type, known) for a, known in zip(arguments, attributes, strict=True) if STRIDES in known}
    return known_pairs(kernel, space, mergeable_pairs(space, structures, strided))


def collapse_alone(kernel: ir.Operation) -> None:
    """Merges the dimensions of a kernel that nobody calls, as a trial, as the pass would."""
    pairs, (space, _) = pairs_of(kernel), kernel_space(kernel)
    if pairs and not space.unread_dims:
        _collapse(kernel, space, pairs)


def _has_loop(kernel: ir.Operation) -> bool:
    """Whether there is a persistent loop for a kernel."""
    try:
        problem = kernel_problem(kernel)
        return isinstance(problem, Problem) and next(loops(problem, target_of_module(kernel.parent)), None) is not None
    except ScheduleError:
        return False


def _has_loop_merged(kernel: ir.Operation) -> bool:
    """Whether there is one for a kernel with its dimensions merged."""
    with ir.InsertionPoint(kernel):
        trial = kernel.clone().operation
    try:
        collapse_alone(trial)
        return _has_loop(trial)
    except ScheduleError:
        return False
    finally:
        erase(trial)


def merge_dims(
    kernel: ir.Operation, space: IterationSpace, pairs: frozenset[Pair], hosts: Iterable[ir.Operation]
) -> None:
    """Makes some or all of a kernel's `mergeable_pairs` of dimensions one, and has its callers pass views."""
    old_sources = result_sources(kernel)
    groups, returned = _collapse(kernel, space, pairs)
    for call in [c for host in hosts for c in calls(host) if callee(c) == symbol(kernel)]:
        _pass_views(call, kernel, groups, returned, old_sources)


def _collapse(
    kernel: ir.Operation, space: IterationSpace, pairs: frozenset[Pair]
) -> tuple[dict[int, Groups], list[Groups]]:
    """Merges dimensions of a kernel, and what is expected of them; returns those of arguments and results that were."""
    types = [argument.type for argument in kernel.regions[0].blocks[0].arguments]
    groups, returned = KernelCollapser(kernel, space, pairs).collapse()
    _merge_hints(kernel, groups, types)
    return groups, returned


def _merge_hints(kernel: ir.Operation, groups: dict[int, Groups], types: Sequence[ir.Type]) -> None:
    """Gives merged dimensions of the arguments, which had these types, the products of the expected extents."""
    attributes = argument_attributes(kernel)
    for number, known in enumerate(attributes):
        if EXTENT_HINTS not in known or number not in groups:
            continue
        shape = ir.RankedTensorType(types[number]).shape
        extents = [hint if n == DYNAMIC else n for n, hint in zip(shape, hints_of(known, len(shape)), strict=True)]
        merged = [prod(extents[d] or 0 for d in group) for group in groups[number]]
        dynamic = [any(shape[d] == DYNAMIC for d in group) for group in groups[number]]
        known[EXTENT_HINTS] = hints_attribute([n if d else None for n, d in zip(merged, dynamic, strict=True)])
    kernel.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(known) for known in attributes])


def obstacle(kernel: ir.Operation) -> str | None:
    """Why a kernel's dimensions cannot be renumbered; None where they can."""
    if SCHEDULE in kernel.attributes:
        return "its schedule refers to its dimensions as they are"
    for op in body(kernel)[:-1]:
        known = op.name in CHEAP_OPS or op.name in ("linalg.generic", "linalg.transpose") or is_unit_reshape(op)
        if not known or any(inner.name == "linalg.index" for inner in nested(op)):
            return f"{op.name} depends on the number of dimensions"
    if any(not isinstance(dim.operands[0].owner, ir.Block) for read in extent_reads(kernel) for dim in read.dims):
        return "it computes with an extent of what it computes"
    return None


def _pass_views(
    call: ir.Operation,
    kernel: ir.Operation,
    groups: dict[int, Groups],
    returned: list[Groups],
    extent_sources: list[tuple[int, int]],
) -> None:
    """Calls the rewritten kernel on views, and gives its results their shapes back."""
    kernel_type = ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value)
    with ir.InsertionPoint(call), call.location:
        operands = [collapsed_value(v, groups[i]) if i in groups else v for i, v in enumerate(call.operands)]
        new = func.CallOp(kernel_type.results, callee(call), operands)
        pairs = iter(extent_sources)
        for old, result, merged in zip(call.results, new.results, returned, strict=True):
            shape = ir.RankedTensorType(old.type).shape
            sources = [next(pairs) for extent in shape if extent == DYNAMIC]
            arrays, dims = [call.operands[a] for a, _ in sources], [d for _, d in sources]
            old.replace_all_uses_with(expanded_value(result, old.type, merged, arrays, dims))
    erase(call)


def collapsed_value(value: ir.Value, groups: Groups) -> ir.Value:
    """The view of a host value with grouped axes; an earlier expansion of the same groups is undone."""
    type_ = collapsed_type(value.type, groups)
    if type_ == value.type:
        return value
    maker = defining_op(value)
    if maker is not None and maker.name == "tensor.expand_shape" and maker.operands[0].type == type_:
        known = reassociation(maker)
        if known == groups:
            return maker.operands[0]
    return tensor.CollapseShapeOp(type_, value, groups).result


def expanded_value(
    value: ir.Value, type_: ir.Type, groups: Groups, sources: list[ir.Value], dims: list[int]
) -> ir.Value:
    """A kernel's result with its original axes; its dynamic extents are those of the sources."""
    if type_ == value.type:
        return value
    sizes = [
        tensor.DimOp(source, arith.ConstantOp(ir.IndexType.get(), dim).result).result
        for source, dim in zip(sources, dims, strict=True)
    ]
    return tensor.ExpandShapeOp(type_, value, groups, sizes, list(ir.RankedTensorType(type_).shape)).result
