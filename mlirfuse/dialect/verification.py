"""Checks of the dialect's ops and attributes that IRDL cannot express: relations between types, ranges of values, and
names of discardable attributes.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from mlir import ir

from mlirfuse.dialect import OPS
from mlirfuse.dialect.attributes import ATTRIBUTES, RESULT_EXTENTS, STRIDES
from mlirfuse.errors import IRError
from mlirfuse.support.renamed_names import renamed
from mlirfuse.support.rewriting import ops_named

PREFIX = "fuse."
_OF_ARGUMENTS = {"arg_attrs": "argument", "workgroup_attrib_attrs": "buffer"}


def verify_fuse_ops(root: ir.Operation) -> None:
    """Checks every fuse op under `root`.

    Raises:
        IRError: an op violates its rules; the error has the location of the first such op.
    """
    for op in ops_named(root, *OPS):
        if (problem := OPS[op.name].problem(op)) is not None:
            raise IRError(f"'{op.name}' op {problem}", where=op)


def verify_fuse_attributes(root: ir.Operation) -> None:
    """Checks every discardable fuse attribute under `root` against `ATTRIBUTES`.

    Raises:
        IRError: an attribute has an unknown name (the hint is the closest known name) or a wrong type, or is on an op
            that may not have it.
    """

    def visit(op: ir.Operation) -> ir.WalkResult:
        failures.extend(_problems(op))
        return ir.WalkResult.INTERRUPT if failures else ir.WalkResult.ADVANCE

    failures: list[IRError] = []
    root.walk(visit)
    if failures:  # raised here: exceptions may not cross the bindings' walk
        raise failures[0]


def _problems(op: ir.Operation) -> Iterator[IRError]:
    where = f"{ir.StringAttr(op.attributes['sym_name']).value}: " if "sym_name" in op.attributes else ""
    for name in op.attributes:
        if name.startswith(PREFIX):
            yield from _attribute_problems(op, name, op.attributes[name], where)
    for group, word in _OF_ARGUMENTS.items():
        if group in op.attributes:
            for number, entry in enumerate(ir.ArrayAttr(op.attributes[group])):
                for named in ir.DictAttr(entry):
                    if named.name.startswith(PREFIX):
                        yield from _attribute_problems(op, named.name, named.attr, where, f"{word} {number}")


def _attribute_problems(
    op: ir.Operation, name: str, value: ir.Attribute, where: str, argument: str = ""
) -> Iterator[IRError]:
    """Yields what is wrong with an attribute of an op, or of the op's argument `argument`."""
    if name not in ATTRIBUTES:
        text = f"{argument} of '{op.name}' op" if argument else f"'{op.name}' op"
        yield IRError(f"{text} has an unknown attribute {name}", where=op, hint=_suggest(name))
        return
    known = ATTRIBUTES[name]
    carriers = known.holders if argument else known.carriers
    of_argument = f" of {argument}" if argument else ""
    if carriers is not None and op.name not in carriers:
        carrier = f"an argument of '{op.name}' op" if argument else f"'{op.name}' op"
        yield IRError(f"{where}{name} is on {carrier}", where=op, hint=f"it belongs on {carriers_text(name)}")
    elif not known.type.legal(value):
        yield IRError(f"{where}{name}{of_argument} is {value}, and must be {known.type.text}", where=op)
    elif name == STRIDES:
        types = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value).inputs
        type_ = types[int(argument.split()[1])]
        if len(value) != getattr(type_, "rank", 0):
            yield IRError(f"{where}{name}{of_argument} has {len(value)} entries for {type_}", where=op)
    elif name == RESULT_EXTENTS:
        yield from (IRError(f"{where}{name} names {problem}", where=op) for problem in _missing_extents(op, value))


def _missing_extents(op: ir.Operation, pairs: ir.DenseI64ArrayAttr) -> Iterator[str]:
    """The (argument, dimension) pairs that a function does not have, in words."""
    types = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value).inputs
    for argument, dim in zip(list(pairs)[::2], list(pairs)[1::2], strict=True):
        if not 0 <= argument < len(types):
            yield f"argument {argument} of {len(types)}"
        elif not 0 <= dim < (rank := getattr(types[argument], "rank", 0)):
            yield f"dimension {dim} of argument {argument}, which has {rank}"


def carriers_text(name: str) -> str:
    """The ops that may carry an attribute, in words."""
    known = ATTRIBUTES[name]
    words = ["any op"] if known.carriers is None else [f"`{op}`" for op in known.carriers]
    return ", ".join([*words, *(f"arguments of `{op}`" for op in known.holders)])


def _suggest(name: str) -> str:
    """The hint for an unknown attribute name."""
    close = get_close_matches(name, ATTRIBUTES, n=1)
    return renamed("attribute", name) or (f"did you mean {close[0]}?" if close else "docs/dialect.md lists all")
