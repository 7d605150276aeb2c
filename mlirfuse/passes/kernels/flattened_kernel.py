"""An elementwise kernel whose innermost dimensions are one, though some of its operands lack some of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from mlir import ir
from mlir.dialects import func, linalg, tensor

from mlirfuse.analysis.kernels import argument_attributes, body, symbol
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.maps import projection
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.loops.structure import RENAMING_OPS, OpStructure
from mlirfuse.analysis.segments.segments import CHEAP_OPS
from mlirfuse.dialect.attributes import GATHER, KERNEL, RESULT_EXTENTS, STRIDES
from mlirfuse.dialect.expected_extents import EXTENT_HINTS, hints_attribute, hints_of
from mlirfuse.dialect.gathered_view import Gather, view_attributes
from mlirfuse.errors import PassError
from mlirfuse.support.extents import extents_of
from mlirfuse.support.rewriting import clone, copy_body, erase, nested
from mlirfuse.tiling.kernel_signature import result_extents

Groups = list[list[int]]
Dims = tuple[int | None, ...]


class Kept(Exception):
    """The dimensions stay apart, for a reason."""


@dataclass(frozen=True)
class Flattened:
    """A kernel of which the innermost dimensions are one.

    Attributes:
        kernel: the function.
        gathers: of arguments that are read through a view of them, by number.
        operands: axes of the other arguments that are one, by number.
        results: the same of the results.
    """

    kernel: ir.Operation
    gathers: dict[int, Gather]
    operands: dict[int, Groups]
    results: list[Groups]


@dataclass
class FlatteningKernel:
    """A kernel on tensors that reduces nothing.

    Attributes:
        kernel: the function.
        space: its iteration space.
        structures: its ops with loops.
    """

    kernel: ir.Operation
    space: IterationSpace
    structures: Sequence[OpStructure]

    @staticmethod
    def of(kernel: ir.Operation) -> FlatteningKernel:
        return FlatteningKernel(kernel, *kernel_space(kernel))

    def first(self) -> int:
        """The outermost of the innermost dimensions whose extents are numbers.

        Raises:
            Kept: there are fewer than two of them, or another reason to keep them apart.
        """
        if self.space.reduced_dims:
            raise Kept("it reduces")
        dynamic = [d for d, extent in enumerate(self.space.extents) if extent is None]
        first = max(dynamic) + 1 if dynamic else 0
        if self.space.rank - first < 2:
            raise Kept("no two innermost dimensions have extents that are numbers")
        for op in body(self.kernel):
            if any(inner.name == "linalg.index" for inner in nested(op)[1:]):
                raise Kept("it computes with the index of an element")
        return first

    def flattened(self) -> Flattened:
        """A copy of the kernel, inserted before it, whose innermost dimensions are one.

        Raises:
            Kept: an array is not contiguous along them, or varies along some of them and an extent of run time.
        """
        first = self.first()
        arguments = list(self.kernel.regions[0].blocks[0].arguments)
        axes = self._axes_of(arguments)
        types, attributes, gathers = [], [], dict[int, Gather]()
        for number, (argument, known) in enumerate(zip(arguments, argument_attributes(self.kernel), strict=True)):
            along = axes.get(argument)
            if along is None or not any(d is not None and d >= first for d in along):
                types.append(argument.type)
                attributes.append(known)
            elif self._is_whole(along, first):
                types.append(self._joined(argument.type, along, first))
                attributes.append(_joined_attributes(known, along, first))
            else:
                gathers[number] = self._gather(argument.type, along, first)
                types.append(ir.RankedTensorType.get(gathers[number].shape, argument.type.element_type))
                if GATHER in known:
                    raise Kept("an operand is a view of another one already")
                attributes.append(view_attributes(gathers[number], ir.RankedTensorType(argument.type), known))
        if not gathers:
            raise Kept("no operand lacks one of several dimensions")
        returned = [self.space.value_axes[value] for value in body(self.kernel)[-1].operands]
        if not all(self._is_whole(along, first) for along in returned):
            raise Kept("a result lacks one of the dimensions")
        operands = {
            number: groups_of(axes[argument], first)
            for number, argument in enumerate(arguments)
            if number not in gathers and argument.type != types[number]
        }
        copy = self._copy(first, axes, types, attributes)
        return Flattened(copy, gathers, operands, [groups_of(along, first) for along in returned])

    def _axes_of(self, arguments: Iterable[ir.Value]) -> dict[ir.Value, Dims]:
        """The dimension along each axis of the arguments that are read."""
        found: dict[ir.Value, Dims] = {}
        for (op, number), axes in self.space.use_axes.items():
            if found.setdefault(op.operands[number], axes) != axes:
                raise Kept("an operand is read along different dimensions")
        return {argument: found[argument] for argument in arguments if argument in found}

    def _is_whole(self, along: Dims, first: int) -> bool:
        """Whether an array has all of the innermost dimensions, in their order."""
        if not set(self._inner(first)) <= set(along):
            return False
        dims = [d for d in along if d is not None]
        if dims != sorted(dims):
            raise Kept("an array lies in another order")
        return True

    def components(self, first: int) -> tuple[int, ...]:
        """The extents of the innermost dimensions, which are numbers."""
        return tuple(self.space.extents[d] or 1 for d in range(first, self.space.rank))

    def _inner(self, first: int) -> list[int]:
        """The innermost dimensions, but those of extent 1."""
        return [d for d in range(first, self.space.rank) if self.space.extents[d] != 1]

    def _joined(self, type_: ir.Type, along: Dims, first: int) -> ir.RankedTensorType:
        """The type of an array in which the innermost dimensions are one axis."""
        shape = ir.RankedTensorType(type_).shape
        merged = [prod(shape[axis] for axis in group) for group in groups_of(along, first)[:-1]]
        outer = [n if n >= 0 else ir.ShapedType.get_dynamic_size() for n in merged]
        return ir.RankedTensorType.get([*outer, prod(self.components(first))], type_.element_type)

    def _gather(self, type_: ir.Type, along: Dims, first: int) -> Gather:
        """The view of an array, which lacks some of the innermost dimensions, along all of them."""
        if any(d is not None and d < first for d in along):
            raise Kept("an operand varies along some of them, and along an extent of run time")
        exprs = [ir.AffineExpr.get_constant(0) if d is None else ir.AffineExpr.get_dim(d - first) for d in along]
        components = self.components(first)
        return Gather((components,), ir.AffineMap.get(len(components), 0, exprs))

    def _copy(
        self, first: int, axes: dict[ir.Value, Dims], types: list[ir.Type], attributes: list[dict[str, ir.Attribute]]
    ) -> ir.Operation:
        """The kernel with these arguments, of which every op that runs along an innermost dimension runs along all."""
        arguments = list(self.kernel.regions[0].blocks[0].arguments)
        with ir.InsertionPoint(self.kernel), self.kernel.location:
            name = f"{symbol(self.kernel)}_flat"
            made = func.FuncOp(name, ir.FunctionType.get(types, []), visibility="private").operation
            made.attributes[KERNEL] = ir.UnitAttr.get()
            made.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(known) for known in attributes])
            block = made.regions[0].blocks.append(*types, arg_locs=[self.kernel.location] * len(types))
        copies = _Copies(self, first, dict(zip(arguments, block.arguments, strict=True)), {})
        for argument, along in axes.items():
            keeps = not any(d is not None and d >= first for d in along)
            copies.dims[argument] = tuple(along) if keeps else canonical(along, first)
        try:
            returned = copies.add_all(block, *body(self.kernel))
            result_types = [value.type for value in returned]
            made.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, result_types))
            extents = result_extents(kernel_space(made)[0], list(block.arguments), returned, made)
        except Kept:
            erase(made)
            raise
        except PassError as error:
            erase(made)
            raise Kept(error.message) from error
        made.attributes[RESULT_EXTENTS] = ir.DenseI64ArrayAttr.get(extents)
        return made


@dataclass
class _Copies:
    """Copies of a kernel's ops in the space in which its innermost dimensions are one.

    Attributes:
        kernel: the kernel.
        first: the dimension that they are.
        values: the copy of each value.
        dims: the new dimension along each axis of a copy; None for an axis of extent 1.
    """

    kernel: FlatteningKernel
    first: int
    values: dict[ir.Value, ir.Value]
    dims: dict[ir.Value, Dims]

    def add_all(self, block: ir.Block, *ops: ir.Operation) -> list[ir.Value]:
        """Copies ops, of which the last one returns, to a block; returns what is returned."""
        structures = {s.op: s for s in self.kernel.structures}
        with ir.InsertionPoint(block):
            for op in ops[:-1]:
                with op.location:
                    self._add(op, structures.get(op))
            with ops[-1].location:
                returned = [self.values[value] for value in ops[-1].operands]
                func.ReturnOp(returned)
        return returned

    def _add(self, op: ir.Operation, structure: OpStructure | None) -> None:
        """Copies an op at the current insertion point, if it computes anything along the space."""
        if structure is not None and op.name in RENAMING_OPS:
            source = op.operands[0]
            self.values[op.results[0]], self.dims[op.results[0]] = self.values[source], self.dims[source]
        elif structure is not None and op.name == "linalg.generic":
            self._add_generic(op)
        elif op.name == "arith.constant":
            clone(op, self.values)
        elif op.name not in CHEAP_OPS:
            raise Kept(f"it has a {op.name}")

    def _add_generic(self, op: ir.Operation) -> None:
        run = self.kernel.space.loops[op]
        loops = list(canonical(sorted({d for d in run if d is not None}), self.first))
        inputs, maps = [], []
        count = len(op.operands) - len(op.results)
        for operand in list(op.operands)[:count]:
            if operand not in self.values:
                raise Kept("it reads an array of equal elements")
            inputs.append(self.values[operand])
            along = self.dims.get(operand, ())
            if operand not in self.dims and isinstance(operand.type, ir.RankedTensorType) and operand.type.rank:
                raise Kept("an op reads none of an operand's elements")
            if any(d is not None and d not in loops for d in along):
                raise Kept("an operand has a dimension of its own")
            maps.append(projection(len(loops), [None if d is None else loops.index(d) for d in along]))
        body_ = op.regions[0].blocks[0]
        if any(list(argument.uses) for argument in list(body_.arguments)[count:]):
            raise Kept("an op begins with the values of an array")
        captured = [v for inner in nested(op)[1:] for v in inner.operands if _block_of(v) != body_]
        if not all(value in self.values for value in captured):
            raise Kept("it computes with an extent")
        shape = [self._extent(d) for d in loops]
        inits = [tensor.EmptyOp(shape, ir.RankedTensorType(result.type).element_type).result for result in op.results]
        maps += [projection(len(loops), list(range(len(loops))))] * len(inits)
        kinds = ir.ArrayAttr.get([ir.Attribute.parse("#linalg.iterator_type<parallel>")] * len(loops))
        new = linalg.GenericOp([init.type for init in inits], inputs, inits, ir.ArrayAttr.get(maps), kinds)
        copy_body(op, new.operation, self.values)
        for old, result in zip(op.results, new.results, strict=True):
            self.values[old], self.dims[old] = result, tuple(loops)

    def _extent(self, dim: int) -> int | ir.Value:
        """The extent of a dimension of the new space."""
        space = self.kernel.space
        if dim == self.first:
            return prod(self.kernel.components(self.first))
        known = space.extents[dim]
        if known is not None:
            return known
        arguments = ((value, along) for value, along in self.dims.items() if isinstance(value.owner, ir.Block))
        argument, axis = next((value, along.index(dim)) for value, along in arguments if dim in along)
        return extents_of(self.values[argument], [axis])[0]


def _block_of(value: ir.Value) -> ir.Block:
    """The block that a value is made in."""
    return value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block


def canonical(along: Iterable[int | None], first: int) -> tuple[int, ...]:
    """The dimensions of a value, of which those from the first one on are one; axes of extent 1 are left out."""
    known = [d for d in along if d is not None]
    return (*(d for d in known if d < first), *((first,) if any(d >= first for d in known) else ()))


def groups_of(along: Dims, first: int) -> Groups:
    """The axes of a value that are one axis of its copy; axes of extent 1 go with the next one."""
    groups: list[list[int]] = [[]]
    for axis, d in enumerate(along):
        groups[-1].append(axis)
        if d is not None and d < first:
            groups.append([])
    return groups


def _joined_attributes(known: dict[str, ir.Attribute], along: Dims, first: int) -> dict[str, ir.Attribute]:
    """The attributes of an argument whose axes are joined."""
    if STRIDES in known or GATHER in known:
        raise Kept("an array is not contiguous")
    if EXTENT_HINTS not in known:
        return known
    hints = hints_of(known, len(along))
    outer = [hints[group[-1]] for group in groups_of(along, first)[:-1]]
    return known | {EXTENT_HINTS: hints_attribute([*outer, None])}
