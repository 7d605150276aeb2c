"""What the `fuse` attributes of functions and their arguments may be, checked where IR comes from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from mlir import ir

from mlirfuse.analysis.kernels import KERNEL, LAUNCH, RESULT_EXTENTS, RESULTS, body, functions, kernels, symbol
from mlirfuse.errors import IRError
from mlirfuse.passes.fusion.mix_order_reduction import MIX_ORDER
from mlirfuse.passes.fusion.segment import SCHEDULES
from mlirfuse.passes.kernels.assign_schedule import GRID_REDUCTION
from mlirfuse.passes.kernels.schedule_attempts import ATTEMPTS
from mlirfuse.schedule.parts.persistent_loop import GRID_REDUCTIONS
from mlirfuse.schedule.schedule import ATTRIBUTE as SCHEDULE
from mlirfuse.support.renamed_names import RENAMED, renamed
from mlirfuse.support.strides import ATTRIBUTE as STRIDES
from mlirfuse.support.strides import PACKED
from mlirfuse.target.module_target import target_of_module

Rule = tuple[Callable[[ir.Attribute], bool], str]
"""Whether an attribute is legal, and what it must be."""


def _one_of(*words: str) -> Rule:
    def legal(attribute: ir.Attribute) -> bool:
        return isinstance(attribute, ir.StringAttr) and attribute.value in words

    return legal, f"one of {', '.join(map(repr, words))}"


FUNCTION: Mapping[str, Rule] = {
    KERNEL: (lambda a: isinstance(a, ir.UnitAttr), "a unit attribute"),
    LAUNCH: (lambda a: isinstance(a, ir.FlatSymbolRefAttr), "a symbol"),
    RESULT_EXTENTS: (lambda a: isinstance(a, ir.DenseI64ArrayAttr) and len(a) % 2 == 0, "pairs in an array<i64>"),
    RESULTS: _one_of("single", "tuple", "list"),
    SCHEDULE: (lambda a: isinstance(a, ir.DictAttr), "a dictionary"),
    SCHEDULES: (lambda a: isinstance(a, ir.DictAttr), "a dictionary"),
    MIX_ORDER: (lambda a: isinstance(a, ir.StringAttr), "a string"),
    GRID_REDUCTION: _one_of(*GRID_REDUCTIONS),
    ATTEMPTS: (lambda a: isinstance(a, ir.DictAttr), "a dictionary"),
}

ARGUMENT: Mapping[str, Rule] = {
    "fuse.name": (lambda a: isinstance(a, ir.StringAttr), "a string"),
    "fuse.align": (lambda a: isinstance(a, ir.IntegerAttr) and a.value in (1, 2, 4, 8, 16), "1, 2, 4, 8 or 16"),
    STRIDES: (
        lambda a: isinstance(a, ir.DenseI64ArrayAttr) and all(stride >= PACKED for stride in a),
        "an array<i64> of strides, -1, -2 or -3 where run time knows them",
    ),
}


def verify_attributes(module: ir.Operation) -> None:
    """Raises `IRError` naming the first attribute of a function, or of an argument, that is not what it must be.

    What a declaration launches must be in the module. No op may have an attribute by a name that it had once. Raises
    `TargetError` for a module whose target is not known.
    """
    _refuse_old_names(module)
    target_of_module(module)
    for function in functions(module):
        for problem in _problems(function):
            raise IRError(f"{symbol(function)}: {problem}", where=function)
        if LAUNCH in function.attributes:
            kernel = ir.FlatSymbolRefAttr(function.attributes[LAUNCH]).value
            if kernel not in (present := _launched(module)):
                what = f"{symbol(function)} launches @{kernel}, which the module does not have"
                kinds = "a kernel is a tile program, or a gpu.func in a gpu.module of the same name"
                hint = f"kernels: {', '.join(present)}" if present else kinds
                raise IRError(what, where=function, hint=hint)


def _refuse_old_names(module: ir.Operation) -> None:
    """Raises `IRError` for an attribute of an op, or of a function's argument, that has another name now."""

    def visit(op: ir.Operation) -> ir.WalkResult:
        given = [*op.attributes.keys()]
        if "arg_attrs" in op.attributes:
            given += [named.name for entry in ir.ArrayAttr(op.attributes["arg_attrs"]) for named in ir.DictAttr(entry)]
        failures.extend(
            IRError(f"'{op.name}' op has an attribute {name}", where=op, hint=renamed("attribute", name))
            for name in given
            if name in RENAMED["attribute"]
        )
        return ir.WalkResult.INTERRUPT if failures else ir.WalkResult.ADVANCE

    failures: list[IRError] = []
    module.walk(visit)
    if failures:  # raised here: an exception may not cross the bindings' walk
        raise failures[0]


def _launched(module: ir.Operation) -> list[str]:
    """The names of what declarations may launch: tile programs, and functions in `gpu.module`s of the same name."""
    names = [symbol(kernel) for kernel in kernels(module)]
    for op in module.regions[0].blocks[0].operations:
        if op.operation.name == "gpu.module":
            inside = [symbol(f.operation) for f in body(op.operation) if f.name in ("gpu.func", "llvm.func")]
            names += [name for name in inside if name == symbol(op.operation)]
        if op.operation.name == "gpu.binary":
            names.append(symbol(op.operation))
    return names


def _problems(function: ir.Operation) -> Iterator[str]:
    for name, (legal, wanted) in FUNCTION.items():
        if name in function.attributes and not legal(function.attributes[name]):
            yield f"{name} is {function.attributes[name]}, and must be {wanted}"
    if "arg_attrs" not in function.attributes:
        return
    types = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs
    for number, attributes in enumerate(ir.ArrayAttr(function.attributes["arg_attrs"])):
        for named in ir.DictAttr(attributes):
            legal, wanted = ARGUMENT.get(named.name, (lambda _: True, ""))
            if not legal(named.attr):
                yield f"{named.name} of argument {number} is {named.attr}, and must be {wanted}"
            if named.name == "fuse.strides" and len(named.attr) != getattr(types[number], "rank", 0):
                yield f"fuse.strides of argument {number} has {len(named.attr)} entries for {types[number]}"
