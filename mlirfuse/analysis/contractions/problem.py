"""Measures a contraction for its schedule heuristics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import gcd, prod

from mlir import ir

from mlirfuse.analysis.arithmetic.instruction_counts import Instructions, instructions_of
from mlirfuse.analysis.arithmetic.ranges import Ranges
from mlirfuse.analysis.contractions.contraction import Contraction
from mlirfuse.analysis.contractions.contraction_operands import Axes, ContractionOperand, operand_of
from mlirfuse.analysis.contractions.epilogue_work import epilogue_work
from mlirfuse.analysis.contractions.k_ends import k_ends
from mlirfuse.analysis.contractions.operand_sums import OperandSum, operand_sums
from mlirfuse.analysis.extent_hints import expected_extents
from mlirfuse.analysis.kernels import argument_attributes, body, stored_values
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.structure import structure_of
from mlirfuse.analysis.memory.mapped_views import MappedView, mapped_argument
from mlirfuse.analysis.memory.strided_views import may_be_reversed
from mlirfuse.dialect.attributes import ALIGN, GATHER, STRIDES
from mlirfuse.dialect.gathered_view import Gather, gather_of, is_check, source_of
from mlirfuse.dialect.scatter import scatter_of
from mlirfuse.dialect.staged_tile import TYPES
from mlirfuse.errors import PassError
from mlirfuse.schedule.model.machine import TENSOR_MAP_STRIDE, WIDEST_ACCESS
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.support.dtypes import element_bytes, from_mlir
from mlirfuse.support.strides import entries_of, is_known


def contraction_problem(kernel: ir.Operation, space: IterationSpace, contraction: Contraction) -> ContractionProblem:
    """The scheduling problem of a kernel with a contraction; raises `PassError` if k is dynamic."""
    k = space.extents[contraction.k]
    if k is None:
        raise PassError(
            "the contracted dimension is dynamic", where=contraction.structure.op, hint="make the extent static"
        )
    sides = [[operand_of(space, contraction, number) for number in numbers] for numbers in contraction.sides]
    everything, operands = [operand for side in sides for operand in side], [side[0] for side in sides]
    units = [[f.axes[unit_axis(kernel, f.source, f.axes)] for f in side] for side in sides]
    contiguous = [all(unit == contraction.k for unit in side) for side in units]
    tiled = ((contraction.m, contraction.k), (contraction.n, contraction.k))
    stored = [from_mlir(ir.RankedTensorType(f.source.type).element_type).bytes for f in operands]
    result = ir.RankedTensorType(contraction.structure.op.results[0].type)
    sums = _sums(kernel, space, contraction)
    apart = {contraction.structure.op, *(each.reduction.op for each in sums)}
    reductions = [op for op in space.reduced if op not in apart]
    over = {d for reduction in reductions for d in space.reduced[reduction]}
    batch = tuple(space.extents[d] for d in contraction.batch)
    reads = tuple((d in operands[0].axes, d in operands[1].axes) for d in contraction.batch)
    expected = expected_extents(kernel, space)
    residual = _residual(kernel, space, contraction)
    found = ContractionProblem(
        batch=batch,
        m=space.extents[contraction.m],
        n=space.extents[contraction.n],
        k=k,
        outer_k=prod(space.extents[d] or 1 for d in contraction.outer_k),
        element=from_mlir(ir.RankedTensorType(operands[0].value.type).element_type),
        accumulator=from_mlir(result.element_type),
        row_bytes=gcd(*(_row_bytes(kernel, o, contraction) for o in everything)),
        k_contiguous=(contiguous[0], contiguous[1]),
        unmapped=any(_is_unmapped(kernel, operand.source) for operand in everything),
        step_divides=gcd(*(_longest_step(kernel, operand.source) for operand in everything)),
        precision=contraction.precision,
        accumulator_bytes=sum(
            from_mlir(ir.RankedTensorType(op.results[0].type).element_type).bytes for op in reductions
        ),
        reduced_over=(contraction.m in over, contraction.n in over),
        errors_show=_errors_show(kernel, operands[0].value.type, result.element_type),
        computed_from=tuple(size if f.ops else None for f, size in zip(operands, stored, strict=True)),
        sources=tuple(
            tuple(
                from_mlir(ir.RankedTensorType(argument.type).element_type).bytes
                for argument in f.whole
                if not is_check(_attributes(kernel, argument))
            )
            for f in operands
        ),
        computing=tuple(_computing(f) for f in operands),
        residual_bytes=0 if residual is None else element_bytes(residual.type),
        staged_arguments=_staged_arguments(kernel, space, contraction, residual),
        scattered=(not set(units[0]) <= set(tiled[0]), not set(units[1]) <= set(tiled[1])),
        batch_reads=() if all(map(all, reads)) else reads,
        one_array=operands[0].source == operands[1].source,
        arrays=(len(sides[0]), len(sides[1])),
        hints=tuple(expected[d] for d in (*contraction.batch, contraction.m, contraction.n)),
        windows=tuple(
            _windows(kernel, f, dim, contraction.batch)
            for f, dim in zip(operands, (contraction.m, contraction.n), strict=True)
        ),
        operand_sums=(
            sum(each.number in contraction.sides[0] for each in sums),
            sum(each.number in contraction.sides[1] for each in sums),
        ),
        scattered_results=_scatters(kernel),
        strided=_strided(kernel, space, contraction),
        k_ends=_k_ends(kernel, operands[1], contraction),
    )
    work = epilogue_work(kernel, space, contraction)
    return found if found.work == work else replace(found, epilogue=work)


def _computing(operand: ContractionOperand) -> tuple[float, float]:
    """Instructions that compute an element of an operand, and those of special-function units."""
    range_of = Ranges().of
    count = sum((instructions_of(structure.op, range_of) for structure in operand.ops), Instructions())
    return count.plain + count.double, count.special


def _sums(kernel: ir.Operation, space: IterationSpace, contraction: Contraction) -> tuple[OperandSum, ...]:
    """The sums of an operand that a kernel makes beside the product."""
    if len(space.reduced) == 1:
        return ()
    return operand_sums(space, contraction, [s for op in body(kernel) if (s := structure_of(op)) is not None])


def _scatters(kernel: ir.Operation) -> bool:
    """Whether a kernel scatters a result."""
    return any(scatter_of(value) is not None for value in body(kernel)[-1].operands)


def _strided(kernel: ir.Operation, space: IterationSpace, contraction: Contraction) -> tuple[int, int]:
    """How many results, and arguments of the epilogue, are contiguous along neither rows nor columns."""
    tile = {contraction.m, contraction.n}
    results = [] if _scatters(kernel) else [space.value_axes[value] for value in stored_values(kernel)]
    units = [next((d for d in reversed(axes) if d is not None and space.extents[d] != 1), None) for axes in results]
    arguments = [
        axes[unit_axis(kernel, value, axes)]
        for value, axes in _arguments_beside(kernel, space, contraction)
        if GATHER not in _attributes(kernel, value)
    ]
    whole = [unit for unit, axes in zip(units, results, strict=True) if tile <= set(axes)]
    return sum(unit not in tile for unit in whole), sum(unit not in tile for unit in arguments)


def _arguments_beside(
    kernel: ir.Operation, space: IterationSpace, contraction: Contraction
) -> list[tuple[ir.Value, Axes]]:
    """The arguments that the epilogue reads beside every element of the product, each once for an order of its axes."""
    arguments = list(kernel.regions[0].blocks[0].arguments)
    found = dict.fromkeys((op.operands[number], tuple(axes)) for (op, number), axes in space.use_axes.items())
    return [
        (value, axes)
        for value, axes in found
        if value in arguments
        and {contraction.m, contraction.n} <= set(axes)
        and not set(contraction.summed) & set(axes)
    ]


def _residual(kernel: ir.Operation, space: IterationSpace, contraction: Contraction) -> ir.Value | None:
    """An argument that the epilogue reads in the order of a result of the same type, which it computes from it element
    by element; None if there is no such argument, and where results are scattered, through no subtiles that an argument
    could share.
    """
    if _scatters(kernel):
        return None
    tile = {contraction.m, contraction.n}
    results = [value for value in stored_values(kernel) if tile <= set(space.value_axes[value])]
    for value, axes in _arguments_beside(kernel, space, contraction):
        if axes[unit_axis(kernel, value, axes)] != contraction.n:
            continue
        made = _elementwise_of(value, space)
        if any(result in made and _element(result) == _element(value) for result in results):
            return value
    return None


def _elementwise_of(value: ir.Value, space: IterationSpace) -> set[ir.Value]:
    """What a kernel computes from an argument and reduces nowhere on the way."""
    made = {value}
    for op in space.loops:  # in the order of the kernel
        if op not in space.reduced and any(operand in made for operand in op.operands):
            made.update(op.results)
    return made


def _element(value: ir.Value) -> ir.Type:
    return ir.RankedTensorType(value.type).element_type


def _staged_arguments(
    kernel: ir.Operation, space: IterationSpace, contraction: Contraction, residual: ir.Value | None
) -> tuple[int, ...]:
    """Bytes of an element of the arguments that the epilogue reads beside, but for the residual: of those whose type
    stages take, and whose rows are aligned as tensor maps need.
    """
    beside = _arguments_beside(kernel, space, contraction)
    others = [(value, axes) for value, axes in beside if residual is None or value != residual]
    return tuple(
        element_bytes(value.type)
        for value, axes in others
        if str(ir.RankedTensorType(value.type).element_type) in TYPES
        and GATHER not in _attributes(kernel, value)
        and not may_be_reversed(_attributes(kernel, value))
        and _aligned_bytes(kernel, value, axes, (contraction.m, contraction.n)) == TENSOR_MAP_STRIDE
    )


def _results(kernel: ir.Operation) -> list[ir.Type]:
    return list(ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value).results)


def _errors_show(kernel: ir.Operation, operand: ir.Type, sums: ir.Type) -> bool:
    """Whether operands are narrower than the sums, and a result of the kernel is as wide as the sums."""
    if ir.RankedTensorType(operand).element_type.width >= sums.width or not isinstance(sums, ir.FloatType):
        return False
    elements = [ir.RankedTensorType(result).element_type for result in _results(kernel)]
    return any(isinstance(element, ir.FloatType) and element.width >= sums.width for element in elements)


def unit_axis(kernel: ir.Operation, argument: ir.Value, axes: Axes) -> int:
    """The axis of stride 1 among an argument's axes that vary, or the last of these."""
    arguments = list(kernel.regions[0].blocks[0].arguments)
    attributes = argument_attributes(kernel)[arguments.index(argument)]
    strides = entries_of(attributes[STRIDES]) if STRIDES in attributes else []
    varying = [axis for axis, dim in enumerate(axes) if dim is not None]
    return next((axis for axis in varying if strides and strides[axis] == 1), varying[-1])


def _is_unmapped(kernel: ir.Operation, argument: ir.Value) -> bool:
    """Whether no tensor map describes an argument: a stride may be negative, or it is a gathered view of other kinds
    than windows.
    """
    view = _mapped(kernel, argument)
    return may_be_reversed(_attributes(kernel, argument)) if view is None else isinstance(view, str)


def _windows(
    kernel: ir.Operation, operand: ContractionOperand, dim: int, batch: Sequence[int]
) -> tuple[int, int, int] | None:
    """Of an operand that is a gathered view the elements of its source that one product reads; those along a dimension
    of the operand that do not read again what others read; and the bytes of the source's rows, if it reads past their
    end, else 0. None for other operands, and views in which the dimension is none.
    """
    view = _view(kernel, operand)
    if view is None or dim not in operand.axes:
        return None
    source, gather = view
    parts = prod(gather.parts(operand.axes.index(d), source.shape) for d in batch if d in operand.axes)
    row = source.shape[-1]
    last = gather.map.results[-1]
    is_padded = any(last == ir.AffineExpr.get_dim(c) and n > row for c, n in enumerate(gather.components))
    row_bytes = row * from_mlir(source.element_type).bytes if is_padded else 0
    return prod(source.shape) // parts, gather.period(operand.axes.index(dim)), row_bytes


def _k_ends(kernel: ir.Operation, operand: ContractionOperand, contraction: Contraction) -> tuple[int, float]:
    """`ContractionProblem.k_ends` of operand B."""
    view = _view(kernel, operand)
    if view is None or operand.ops or len(contraction.pairs) > 1:
        return 0, 1.0
    source, gather = view
    dims = (operand.axes.index(d) for d in (contraction.k, contraction.n))
    found = k_ends(gather, source.shape, *dims)
    return (0, 1.0) if found is None else (found.columns, found.share)


def _view(kernel: ir.Operation, operand: ContractionOperand) -> tuple[ir.RankedTensorType, Gather] | None:
    """The source of an operand that is a gathered view, and how it lies there; None for other operands, and for checks,
    which read nothing of a source.
    """
    attributes = _attributes(kernel, operand.source)
    if GATHER not in attributes or is_check(attributes):
        return None
    entries = ir.DictAttr(attributes[GATHER])
    return source_of(entries), gather_of(entries)


def _longest_step(kernel: ir.Operation, argument: ir.Value) -> int:
    """What steps along k must divide for tensor maps to copy an argument; 0 for any."""
    view = _mapped(kernel, argument)
    return view.rows if isinstance(view, MappedView) else 0


def _mapped(kernel: ir.Operation, argument: ir.Value) -> MappedView | str | None:
    """How tensor maps describe an argument that is a gathered view, or why not; None for any other argument."""
    attributes = _attributes(kernel, argument)
    if GATHER not in attributes:
        return None
    size = from_mlir(ir.RankedTensorType(argument.type).element_type).bytes
    return mapped_argument(ir.DictAttr(attributes[GATHER]), size)


def _attributes(kernel: ir.Operation, argument: ir.Value) -> dict[str, ir.Attribute]:
    arguments = list(kernel.regions[0].blocks[0].arguments)
    return argument_attributes(kernel)[arguments.index(argument)]


def _row_bytes(kernel: ir.Operation, operand: ContractionOperand, contraction: Contraction) -> int:
    """`_aligned_bytes` of an operand's tiles."""
    return _aligned_bytes(kernel, operand.source, operand.axes, (contraction.m, contraction.n, contraction.k))


def _aligned_bytes(kernel: ir.Operation, argument: ir.Value, axes: Axes, tiled: Sequence[int]) -> int:
    """Bytes to which every row of an argument's tiles is aligned, 16 at most; those of an element where the memory is
    contiguous along a dimension in which tiles have one element.
    """
    attributes, tensor = _attributes(kernel, argument), ir.RankedTensorType(argument.type)
    if axes[unit_axis(kernel, argument, axes)] not in tiled:
        return from_mlir(tensor.element_type).bytes
    known = attributes.get(ALIGN)
    base = WIDEST_ACCESS if known is None else ir.IntegerAttr(known).value
    if STRIDES in attributes:
        strides, size = entries_of(attributes[STRIDES]), from_mlir(tensor.element_type).bytes
        if 1 not in strides:
            return size
        unit = strides.index(1)
        apart = (s for axis, s in enumerate(strides) if axis != unit and tensor.shape[axis] != 1 and is_known(s))
        return gcd(base, *(stride * size for stride in apart))
    inner = tensor.shape[-1]
    return gcd(base, inner * from_mlir(tensor.element_type).bytes)
