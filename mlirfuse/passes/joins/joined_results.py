"""Joins of computed parts that are results: kernels store such parts where they belong (`fuse-scatter-parts`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlir import ir

from mlirfuse.analysis.contractions.contraction import product_of
from mlirfuse.analysis.loops.structure import structure_of
from mlirfuse.analysis.memory.host_views import RESHAPES
from mlirfuse.dialect.copies import COPIED
from mlirfuse.dialect.gathered_view import DEFINITION, gather_of
from mlirfuse.support.dtypes import bytes_of
from mlirfuse.support.rewriting import defining_op


class JoinedResults:
    """The joins that are results, of a function that stays as it is; each is looked at once."""

    def __init__(self) -> None:
        self._known: dict[ir.Operation, bool] = {}

    def have(self, view: ir.Operation) -> bool:
        """Whether a view of a computed value is only selected from, beside views of others, for what is a result.

        The parts have one shape, and are computed from something in common, so that one kernel makes them all.
        """
        users = {use.owner.operation for use in view.results[0].uses}
        if len(users) != 1:
            return False
        (join,) = users
        if join not in self._known:
            self._known[join] = _joins_results(join)
        return self._known[join]


def _joins_results(join: ir.Operation) -> bool:
    """Whether an op selects from views of computed values, as `JoinedResults.have` says."""
    parts = parts_of_result(join)
    return bool(parts) and all(map(is_computed, parts)) and have_in_common(parts)


def parts_of_result(join: ir.Operation) -> list[ir.Value]:
    """The values of one shape that an op joins to what is a result; none for another op. A result may be read by others
    where that takes fewer reads.
    """
    makers = [maker for operand in join.operands if (maker := defining_op(operand)) is not None]
    views = [maker for maker in makers if maker.name == DEFINITION.full_name and not gather_of(maker.attributes).inside]
    parts = list(dict.fromkeys(view.operands[0] for view in views))
    shapes = {tuple(ir.RankedTensorType(part.type).shape) for part in parts}
    if len(parts) < 2 or len(shapes) > 1:
        return []
    (result,) = join.results
    return parts if is_result(result) or (_is_returned(result) and _saves_reads(parts, result)) else []


def interleave(parts: Sequence[ir.Value]) -> bool:
    """Whether the elements of joined parts of one shape lie one beside the other."""
    shape = ir.RankedTensorType(parts[0].type).shape
    return len(shape) > 1 and shape[-1] == 1 and any(extent > 1 for extent in shape)


def have_in_common(parts: Sequence[ir.Value]) -> bool:
    """Whether each part is computed from something in memory that the first one is computed from too."""
    first, *others = ({*_leaves(part)} for part in parts)
    return all(first & other for other in others)


def is_computed(value: ir.Value) -> bool:
    """Whether an op computes a value of more than its elements elsewhere, or is a copy that a kernel makes."""
    maker = defining_op(value)
    if maker is not None and maker.name == "tensor.expand_shape":
        maker = defining_op(maker.operands[0])
    if maker is None or maker.name != "linalg.generic":
        return False
    return COPIED in maker.attributes or len(maker.regions[0].blocks[0].operations) > 1


def _is_returned(value: ir.Value) -> bool:
    """Whether a value is a result of the function, reshaped or not; others may read it too."""
    users = [use.owner.operation for use in value.uses]
    return any(u.name == "func.return" or (u.name in RESHAPES and _is_returned(u.results[0])) for u in users)


def _saves_reads(parts: Sequence[ir.Value], whole: ir.Value) -> bool:
    """Whether a kernel that computes all parts, and others that read the joined whole, read less than one that computes
    each part where it belongs.
    """
    each = [{*_leaves(part)} for part in parts]
    return sum(map(_bytes, set().union(*each))) + _bytes(whole) < sum(_bytes(leaf) for own in each for leaf in own)


def _bytes(value: ir.Value) -> int:
    type_ = ir.RankedTensorType(value.type)
    return bytes_of(type_) if type_.has_static_shape else 0


def _are_parts_of_results(view: ir.Operation) -> bool:
    """Whether a view, or a check, is of a part of further joins that are results."""
    return all(bool(parts_of_result(use.owner.operation)) for use in view.results[0].uses)


def is_result(value: ir.Value) -> bool:
    """Whether a value is returned or multiplied, or only what functions of its elements make of it."""
    for use in value.uses:
        user = use.owner.operation
        if user.name == "func.return" or (user.name in RESHAPES and is_result(user.results[0])):
            continue
        if user.name == DEFINITION.full_name and _are_parts_of_results(user):
            continue
        structure = structure_of(user)
        if structure is None:
            return False
        if product_of(user) is not None:
            continue
        is_function = len(structure.operands) == 1 + len(user.results) == 2 and not structure.reduction_loops
        if not is_function or not is_result(user.results[0]):
            return False
    return True


def _leaves(value: ir.Value) -> Iterator[ir.Value]:
    """What is in memory of all that a value is computed from."""
    open_, seen = [value], set[ir.Value]()
    while open_:
        value = open_.pop()
        if value in seen or not isinstance(value.type, ir.RankedTensorType):
            continue
        seen.add(value)
        if (maker := defining_op(value)) is not None and maker.name == "tensor.expand_shape":
            open_.append(maker.operands[0])
        elif is_computed(value):
            open_ += list(value.owner.operation.operands)
        elif (maker := defining_op(value)) is None or maker.name not in ("tensor.empty", "linalg.fill"):
            yield value
