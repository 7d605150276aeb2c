"""`fuse.gathered_view`: a view of a tensor or a buffer through any affine map, with zeros where the map leaves it.

```mlir
%windows = "fuse.gathered_view"(%x) {basis = array<i64: 8, 56, 56, 3, 3, 64>, ranks = array<i64: 3, 3>,
                                     map = affine_map<(n, p, q, r, s, c) -> (n, p + r - 1, q + s - 1, c)>}
    : (tensor<8x56x56x64xf16>) -> tensor<25088x576xf16>
```

Each dimension of the view is numbered by components, the last one fastest: dimension i by the next `ranks[i]` entries
of `basis`, whose product is the dimension's extent. The map takes all components to an index of the source. The view's
element is the source's element there, and zero where that index is outside of the source. With the attribute
`inside = array<i64: ...>`, which has extents for the results of the map, the view has elements of `i1` instead: whether
the index is inside of these extents. It is a check then, of whatever source, of which nothing is read. Of a memref, the
view's strides are no addresses: they only say how fragments are aligned. A view takes no memory: readers compute the
addresses (`fuse-resolve-gathers`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd, prod

from mlir import ir

from mlirfuse.dialect.attributes import ALIGN, GATHER, STRIDES
from mlirfuse.dialect.base import SINGLE, OpDefinition
from mlirfuse.support.affine_expressions import bounds, coefficients, largest, substituted, used_dims, wrapped_once
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.strides import attribute_of, entries_of, row_major

IM2COL = "im2col"
"""Entry of a tensor map's description: the corners and steps of windows, where it copies tiles of a view of them."""

INSIDE = "inside"
"""Attribute of a view whose elements say which of its indices are inside of these extents."""

Linear = tuple[list[int], int]
"""Coefficients of the components, and a constant."""

ODD = 3
"""A stride that promises no more alignment than that of an element, and is not that of neighbours."""


PAST_END = 1 << 20
"""Elements that a tile reaches past a view's end, at most, and its first components past theirs."""


@dataclass(frozen=True)
class Gather:
    """How a gathered view's elements lie in its source.

    Attributes:
        basis: for each dimension of the view the extents of its components.
        map: from all components to an index of the source.
        inside: the extents inside of which the view's elements say that an index is; None where they are those of the
            source.
    """

    basis: tuple[tuple[int, ...], ...]
    map: ir.AffineMap
    inside: tuple[int, ...] | None = None

    @cached_property
    def components(self) -> tuple[int, ...]:
        """The extents of all components."""
        return tuple(extent for group in self.basis for extent in group)

    @property
    def dims(self) -> tuple[int, ...]:
        """The dimension of the view that each component numbers."""
        return tuple(dim for dim, group in enumerate(self.basis) for _ in group)

    @property
    def joins_components(self) -> bool:
        """Whether a dimension of the view is numbered by several components."""
        return any(len(group) != 1 for group in self.basis)

    def selected(self, outer: Gather) -> Gather:
        """What a view of the view has of the source. Indices that wrap around do so once.

        Args:
            outer: from the view's dimensions, which join no components; it does not leave the view.
        """
        results = [substituted(expr, list(outer.map.results)) for expr in self.map.results]
        results = [wrapped_once(expr, outer.components) for expr in results]
        return Gather(outer.basis, ir.AffineMap.get(len(outer.components), 0, results), self.inside)

    def reshaped(self, shape: Sequence[int]) -> Gather:
        """The same elements, in their order, in a view of another shape.

        Where the dimensions of both views begin at different components, those of the new one are its dimensions.
        """
        basis, old = [list[int]() for _ in shape], list[ir.AffineExpr]()
        count = 0
        for dims, numbers in _runs(shape, self.components):
            extents = [self.components[number] for number in numbers]
            alone = len(dims) == 1
            own = extents if alone else [shape[d] for d in dims]
            new = [ir.AffineExpr.get_dim(count + n) for n in range(len(own))]
            old += new if alone else _digits(_number(new, own), extents)
            for place, extent in enumerate(own):
                basis[dims[0 if alone else place]].append(extent)
            count += len(own)
        results = [substituted(expr, old) for expr in self.map.results]
        return Gather(tuple(map(tuple, basis)), ir.AffineMap.get(count, 0, results), self.inside)

    @property
    def shape(self) -> tuple[int, ...]:
        """The view's shape."""
        return tuple(map(prod, self.basis))

    @cached_property
    def read_along(self) -> tuple[tuple[int, ...], ...]:
        """The dimensions of the view that the index along each axis of the source depends on."""
        dims = self.dims
        return tuple(tuple(sorted({dims[component] for component in used_dims(expr)})) for expr in self.map.results)

    def strides_in(self, shape: Sequence[int]) -> tuple[list[int], int]:
        """Elements of a contiguous source of that shape from one element of the view to the next along each dimension;
        and the elements that the address of the first one is a multiple of, 0 for any.

        A dimension of several components has that of the last one of more than one element.
        """
        places = [coefficients(expr, len(self.components)) for expr in self.map.results]
        steps, start = [0] * len(self.components), 0
        for linear, step in zip(places, row_major(shape), strict=True):
            factors, constant = linear or ([0] * len(steps), 0)
            steps = [own + factor * step for own, factor in zip(steps, factors, strict=True)]
            start += constant * step
        large = zip(self.dims, steps, self.components, strict=True)
        last = {dim: step for dim, step, extent in large if extent > 1}
        return [last.get(dim, 0) for dim in range(len(self.basis))], start

    @cached_property
    def index_bits(self) -> int:
        """Bits of an integer that holds all indices of the view, of tiles past its end, and all values of the map."""
        most = max([*self.shape, *(largest(expr, self.components) for expr in self.map.results)], default=0)
        return 32 if most < (1 << 31) - PAST_END else 64

    def period(self, dim: int) -> int:
        """Elements along a dimension of the view that read elements of their own, whatever the other dimensions are:
        those of windows read again what the pixels beside them read, as a component does that shares an axis of the
        source with a longer one.
        """
        extents, start = self.components, sum(len(group) for group in self.basis[:dim])
        used = [used_dims(expr) for expr in self.map.results]
        own = [
            extent
            for component, extent in enumerate(self.basis[dim], start)
            if not any(component in dims and any(extents[d] > extent for d in dims) for dims in used)
        ]
        return prod(own)

    def parts(self, dim: int, shape: Sequence[int]) -> int:
        """The parts of a source of that shape that the elements along a dimension of the view divide it into, as the
        groups of a convolution divide its channels; 1 for a dimension whose elements read the same parts.
        """
        count = 1
        for component in (c for c, of in enumerate(self.dims) if of == dim):
            for expr, extent in zip(self.map.results, shape, strict=True):
                linear = coefficients(expr, len(self.components))
                if linear is not None and linear[0][component] * self.components[component] >= extent:
                    count *= self.components[component]
        return count

    def attributes(self) -> dict[str, ir.Attribute]:
        """The op's attributes."""
        entries: dict[str, ir.Attribute] = {
            "basis": ir.DenseI64ArrayAttr.get(list(self.components)),
            "ranks": ir.DenseI64ArrayAttr.get([len(group) for group in self.basis]),
            "map": ir.AffineMapAttr.get(self.map),
        }
        return entries if self.inside is None else entries | {INSIDE: ir.DenseI64ArrayAttr.get(list(self.inside))}

    def unit(self, shape: Sequence[int], strides: Sequence[int | None]) -> tuple[int | None, int]:
        """Where neighbours of the view are neighbours in a source of that shape and strides, in elements.

        Strides that are not known are None.

        Returns:
            The dimension of the view along which elements are contiguous, or None; and the length of the contiguous,
            equally long runs that start at multiples of that length, in the view and in memory. A run is in bounds as
            a whole, or out of bounds.
        """
        count = len(self.components)
        linear = [coefficients(expr, count) for expr in self.map.results]
        steps = [0 if known == 1 else step for known, step in zip(shape, strides, strict=True)]
        if any(step is None for step in steps):
            return (self._neighbours(linear, strides), 1) if 1 in strides else (None, 1)
        inside = [self.is_inside(axis, extent) for axis, extent in enumerate(shape)]
        dim = None if 1 not in strides else self._neighbours(linear, strides)
        if dim is None:
            return None, 1
        used = [used_dims(expr) for expr in self.map.results]
        start = sum(len(group) for group in self.basis[:dim])
        length, taken = 1, set()
        for component in reversed(range(start, start + len(self.basis[dim]))):
            if self.components[component] > 1:
                moved = [axis for axis, dims in enumerate(used) if component in dims]
                if length == 1 and len(moved) == 1 and not inside[moved[0]]:
                    length = self._whole_run(linear[moved[0]], component, shape[moved[0]])
                    taken.add(component)
                    break
                if not all(inside[axis] and linear[axis] is not None for axis in moved):
                    break
                moves = [(steps[axis] or 0) * entry[0][component] for axis, entry in enumerate(linear) if entry]
                if sum(moves) != length:
                    break
                length *= self.components[component]
            taken.add(component)
        parts = [length]
        for axis, entry in enumerate(linear):
            step = steps[axis] or 0
            if entry is None:  # may take any index
                parts.append(step)
                continue
            parts.append(step * entry[1])
            parts += [
                step * c
                for component, c in enumerate(entry[0])
                if component not in taken and self.components[component] > 1
            ]
        return dim, max(gcd(*parts), 1)

    def _whole_run(self, entry: Linear | None, component: int, extent: int) -> int:
        """The length of runs along a component that are in bounds as a whole, or out of bounds, on an axis that the map
        leaves.
        """
        if entry is None:
            return 1
        others = (c for number, c in enumerate(entry[0]) if number != component and self.components[number] > 1)
        return gcd(self.components[component], extent, entry[1], *others)

    def _neighbours(self, linear: Sequence[Linear | None], strides: Sequence[int | None]) -> int | None:
        """The dimension of the view whose last component moves along the source's contiguous axis alone, by one."""
        axis, last = list(strides).index(1), -1
        for dim, group in enumerate(self.basis):
            last += len(group)
            if self.components[last] == 1:
                continue
            moved = [n for n, expr in enumerate(self.map.results) if last in used_dims(expr)]
            entry = linear[axis]
            if moved == [axis] and entry is not None and entry[0][last] == 1:
                return dim
        return None

    def is_inside(self, axis: int, extent: int) -> bool:
        """Whether all indices along an axis of a source of that extent are inside of it."""
        low, high = bounds(self.map.results[axis], self.components)
        return low >= 0 and high < extent


def source_of(attributes: ir.DictAttr) -> ir.RankedTensorType:
    """The type of the source that a `fuse.gather` attribute has."""
    return ir.RankedTensorType(ir.TypeAttr(attributes["source"]).value)


def gather_of(attributes: ir.OpAttributeMap | ir.DictAttr) -> Gather:
    """The gather of the op's attributes, or of a `fuse.gather` attribute."""
    flat = list(ir.DenseI64ArrayAttr(attributes["basis"]))
    groups, start = [], 0
    for rank in ir.DenseI64ArrayAttr(attributes["ranks"]):
        groups.append(tuple(flat[start : start + rank]))
        start += rank
    inside = tuple(ir.DenseI64ArrayAttr(attributes[INSIDE])) if INSIDE in attributes else None
    return Gather(tuple(groups), ir.AffineMapAttr(attributes["map"]).value, inside)


def is_check(known: Mapping[str, ir.Attribute]) -> bool:
    """Whether an argument with these attributes says which elements are inside of an array, and is in no memory."""
    return GATHER in known and INSIDE in ir.DictAttr(known[GATHER])


def promised_strides(gather: Gather, shape: Sequence[int], strides: Sequence[int | None]) -> list[int]:
    """Strides of a view of a source: the length of contiguous runs, of which they promise the alignment, and 1 along
    these.
    """
    dim, run = _unit(gather, shape, strides)
    apart = run if run > 1 else ODD
    return [1 if d == dim else apart for d in range(len(gather.shape))]


def _unit(gather: Gather, shape: Sequence[int], strides: Sequence[int | None]) -> tuple[int | None, int]:
    """`Gather.unit`, where a check has its own extents in place of the source's; of run-time strides and steps back it
    knows nothing.
    """
    if gather.inside is not None:
        return gather.unit(gather.inside, row_major(gather.inside))
    return gather.unit(shape, [None if s is None or s < 0 else s for s in strides])


def _runs(shape: Sequence[int], components: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Dimensions, and the components that number their elements: the fewest that begin and end together."""
    dim = number = 0
    while dim < len(shape) or number < len(components):
        dims, numbers = [dim] if dim < len(shape) else [], list[int]()
        dim += 1
        while (of_dims := prod(shape[d] for d in dims)) != (of_numbers := prod(components[n] for n in numbers)):
            if of_numbers < of_dims:
                numbers.append(number)
                number += 1
            else:
                dims.append(dim)
                dim += 1
        if dim >= len(shape):  # components of one element that are left over
            numbers += range(number, len(components))
            number = len(components)
        yield dims, numbers


def _number(digits: Sequence[ir.AffineExpr], extents: Sequence[int]) -> ir.AffineExpr:
    """The number that digits of these extents write, the last one fastest."""
    number: ir.AffineExpr = ir.AffineExpr.get_constant(0)
    for digit, extent in zip(digits, extents, strict=True):
        number = number * extent + digit
    return number


def _digits(number: ir.AffineExpr, extents: Sequence[int]) -> list[ir.AffineExpr]:
    """The digits of a number, of these extents."""
    digits = list[ir.AffineExpr]()
    for place, extent in enumerate(extents):
        rest = ir.AffineExpr.get_floor_div(number, prod(extents[place + 1 :]))
        digits.append(rest if place == 0 else ir.AffineExpr.get_mod(rest, extent))
    return digits


def view_attributes(
    gather: Gather, type_: ir.RankedTensorType, source: dict[str, ir.Attribute]
) -> dict[str, ir.Attribute]:
    """The attributes of a kernel's argument that is a gathered view, from the type and those of the view's source."""
    known = entries_of(source[STRIDES]) if STRIDES in source else row_major(type_.shape)
    strides = promised_strides(gather, type_.shape, known)
    entries = gather.attributes() | {"source": ir.TypeAttr.get(type_)}
    if STRIDES in source:
        entries["strides"] = source[STRIDES]
    view = {GATHER: ir.DictAttr.get(entries), STRIDES: attribute_of(strides)}
    if ALIGN not in source:
        return view
    return view | {ALIGN: promised_alignment(gather, type_, known, source[ALIGN])}


def promised_alignment(
    gather: Gather, source: ir.ShapedType, strides: Sequence[int | None], alignment: ir.Attribute
) -> ir.IntegerAttr:
    """Bytes of which contiguous runs of a view are a multiple, and to which they are aligned, `alignment` at most."""
    _, run = _unit(gather, source.shape, strides)
    known, size = ir.IntegerAttr(alignment), 1 if gather.inside else from_mlir(source.element_type).bytes
    return ir.IntegerAttr.get(known.type, gcd(known.value, run * size))


def _verify(op: ir.Operation) -> str | None:
    source, view = (ir.ShapedType(v.type) for v in (op.operands[0], op.results[0]))
    flat, ranks = (list(ir.DenseI64ArrayAttr(op.attributes[name])) for name in ("basis", "ranks"))
    if sum(ranks) != len(flat) or any(n < 1 for n in flat):
        return f"ranks {ranks} must partition the extents {flat}, which are positive"
    gather = gather_of(op.attributes)
    if not source.has_static_shape or not view.has_static_shape:
        return f"{source} and its view {view} must have static shapes"
    wanted = ir.IntegerType.get_signless(1) if gather.inside else source.element_type
    if view.element_type != wanted:
        return f"elements of the view must be {wanted}, not {view.element_type}"
    if list(view.shape) != list(gather.shape):
        return f"the view's shape must be {gather.shape}, not {list(view.shape)}"
    rank = source.rank if gather.inside is None else len(gather.inside)
    if gather.map.n_dims != len(flat) or gather.map.n_symbols or len(gather.map.results) != rank:
        return f"map {gather.map} must take {len(flat)} components to {rank} indices"
    try:
        for expr in gather.map.results:
            bounds(expr, flat)
    except ValueError as error:
        return str(error)
    return None


DEFINITION = OpDefinition(
    "gathered_view",
    operands=(("source", SINGLE),),
    results=(("view", SINGLE),),
    attributes=("basis", "ranks", "map"),
    verify=_verify,
)


def gathered_view(source: ir.Value, gather: Gather, view: ir.Type | None = None) -> ir.Value:
    """Builds the op at the current insertion point; the view is a tensor unless its type is given."""
    if view is None:
        element = ir.IntegerType.get_signless(1) if gather.inside else ir.ShapedType(source.type).element_type
        view = ir.RankedTensorType.get(list(gather.shape), element)
    op = ir.Operation.create(DEFINITION.full_name, operands=[source], results=[view], attributes=gather.attributes())
    return op.results[0]
